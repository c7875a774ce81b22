"""The sixteen languages of the paper, its four groups, a guess at a language, and writing systems.

The guess counts scripts, function words and telling letters; it serves tables by language, never a
score. The writing system is coarser and sure: a bundle may hold curves by it.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

#: The paper's groups, in the order of its tables.
GROUPS = ("english", "european", "cjk", "other")


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    group: str


#: ISO 639-1 code -> language.
LANGUAGES: Mapping[str, Language] = {
    "en": Language("English", "english"),
    "fr": Language("French", "european"),
    "it": Language("Italian", "european"),
    "es": Language("Spanish", "european"),
    "de": Language("German", "european"),
    "pl": Language("Polish", "european"),
    "pt": Language("Portuguese", "european"),
    "tr": Language("Turkish", "european"),
    "zh": Language("Chinese", "cjk"),
    "ja": Language("Japanese", "cjk"),
    "ko": Language("Korean", "cjk"),
    "ru": Language("Russian", "other"),
    "ar": Language("Arabic", "other"),
    "th": Language("Thai", "other"),
    "vi": Language("Vietnamese", "other"),
    "id": Language("Indonesian", "other"),
}

_LOOK_CHARS = 2_000
_CODE = re.compile(r"```.{0,1500}?(?:```|$)|`[^`\n]{0,100}`|https?://\S{1,200}", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile("[\u3041-\u30ff\uff66-\uff9f]")
_SCRIPTS = {
    "zh": re.compile("[\u3400-\u9fff]"),
    "ko": re.compile("[\uac00-\ud7a3\u3131-\u318e]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "ru": re.compile("[\u0400-\u04ff]"),
}
#: One letter of these scripts weighs as much as this many Latin ones against a text's Latin part:
#: a message with code and English terms in it is still written in its own script.
_SCRIPT_WEIGHT = 8

#: Writing systems that a bundle may hold curves for. `cjk`: Han, kana, bopomofo, hangul.
SCRIPTS = ("latin", "cjk", "cyrillic", "arabic", "other")
_NO_LETTER = re.compile(r"[\W\d_]+")
#: By blocks of Unicode.
_LETTERS_OF = {
    "latin": re.compile(
        "[A-Za-z\xaa\xba\xc0-\xd6\xd8-\xf6\xf8-\u02af\u1d00-\u1dbf\u1e00-\u1eff"
        "\uff21-\uff3a\uff41-\uff5a]"
    ),
    "cjk": re.compile(
        "[\u1100-\u11ff\u3005-\u3007\u3041-\u30ff\u3105-\u318e\u31a0-\u31bf\u31f0-\u31ff"
        "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
        "\U00020000-\U0003ffff]"
    ),
    "cyrillic": re.compile("[\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f]"),
    "arabic": re.compile("[\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufeff]"),
}
#: Messages to coding assistants are full of Latin names: of 3,043 in other scripts a plain majority
#: took 564 for Latin, this weight 124, and took 2 of 8,235 Latin ones for another.
_LETTER_WEIGHT = 4

_WORDS: Mapping[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "en": "the a an and of to is are in that this it for with what how my you can do does not"
        " be as at i from by or if write make please have we use when all should there into me use"
        " give explain create add fix list which why where who let your our was will would could",
        "fr": "le la les un une des et est sont dans que qui ce cette pour avec je tu vous nous mon"
        " ma mes ton votre pas ne sur au aux du de comment peux plus par ou où il elle sans fait"
        " faire se son sa ses quel quelle moi dois avez ai leur écris explique crée ajoute corrige",
        "it": "il lo la gli le un una e è sono di che per con non mi ti ci si del della dei delle"
        " nella come cosa puoi questo questa da al alla ai più ho hai ha quando anche su dal perché"
        " mio mia sul dammi fammi scrivi crea spiega aggiungi correggi tra ogni senza tutti tutte",
        "es": "el la los las un una y es son de que por para con no mi tu se del en al lo como qué"
        " cómo puedo puedes este esta esto su sus más me le ha hay cuando pero sin sobre muy todos"
        " todas escribe haz crea explica añade corrige cada donde dónde desde yo eso está están",
        "de": "der die das ein eine einen einem einer und ist sind in zu mit nicht ich du wir es"
        " auf für von dem den des im wie was mir mein meine kann kannst bitte wenn auch als an aus"
        " bei nach oder dass schreibe schreib erstelle erkläre alle wird werden über noch nur hat",
        "pl": "i w z na nie się jest są że do jak co to dla po od czy mi mój moje ten ta te który"
        " która które o za przy ale lub oraz jeśli napisz zrób dodaj popraw wyjaśnij proszę ze mam"
        " tego tej tym jego jej by może można wszystkie każdy gdy bez przez jako tylko już ma",
        "pt": "o a os as um uma e é são de que por para com não meu minha se do da dos das em no na"
        " nos nas como você eu este esta isso seu sua mais me há quando mas sem sobre muito todos"
        " todas escreva faça crie explique adicione corrija cada onde desde está ao à pelo pela",
        "tr": "ve bir bu için ile ne nasıl mi mı mu mü da de ben sen var yok olan olarak gibi daha"
        " her en ama veya şu o benim bana beni olduğunu değil sonra yaz yap ekle düzelt açıkla"
        " lütfen eğer ki hangi tüm üzerinde göre oluştur kullanarak içinde şekilde ise",
        "vi": "và là của có không cho tôi bạn một các những này đó với được trong để khi như thế"
        " hãy viết làm sao từ ra ở thì mà nếu đã sẽ bị cần về theo hoặc trên vào em mình giúp tại",
        "id": "dan yang di ke dari untuk dengan ini itu tidak saya kamu anda adalah pada apa"
        " buat tolong buatkan tulis jelaskan dalam atau jika ada bisa akan lalu juga semua setiap"
        " tanpa oleh agar kalau aku sudah bagaimana karena perbaiki tambahkan serta harus",
    }.items()
}
_LETTERS: Mapping[str, str] = {
    "fr": "èêàùçœ",
    "it": "ìòèù",
    "es": "ñ¿¡ó",
    "de": "äöüß",
    "pl": "ąćęłńśźż",
    "pt": "ãõçêâ",
    "tr": "ğışçİ",
    "vi": "ăđơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}


def language_name(code: str) -> str:
    """A language's name with its code; a code that nobody knows stands alone."""
    known = LANGUAGES.get(code)
    return f"{known.name} ({code})" if known else code


def group_of(code: str) -> str:
    """The group of a language code such as ``pt`` or ``zh-CN``; an unknown one is ``other``."""
    language = LANGUAGES.get(re.split("[-_]", code.strip().lower())[0])
    return language.group if language else "other"


def script_of(text: str) -> str:
    """The writing system of a message, one of `SCRIPTS`: that of most of its first 2,000
    characters' letters, where one that is not Latin counts four times.

    Nothing but code is `latin` like its letters; so is a message without any letter, and a tie.
    """
    letters = _NO_LETTER.sub("", text[:_LOOK_CHARS])
    counts = {script: len(one.findall(letters)) for script, one in _LETTERS_OF.items()}
    counts["other"] = len(letters) - sum(counts.values())
    latin = counts.pop("latin")
    best = max(counts, key=lambda script: counts[script])
    return best if counts[best] * _LETTER_WEIGHT > latin else "latin"


def detect(text: str) -> str:
    """A guess at the language of `text` (ISO 639-1, one of `LANGUAGES`); ``en`` when in doubt."""
    seen = text[:_LOOK_CHARS]
    seen = _CODE.sub(" ", seen) or seen
    words = [word.lower() for word in _WORD.findall(seen)]
    counts = {code: len(script.findall(seen)) for code, script in _SCRIPTS.items()}
    kana = len(_KANA.findall(seen))
    best = max(counts, key=lambda code: counts[code])
    latin = sum(len(word) for word in words if word[0] < "\u0250" or "\u1e00" <= word[0] < "\u1f00")
    if (counts[best] + kana) * _SCRIPT_WEIGHT > latin and counts[best] + kana:
        return "ja" if kana * 10 > counts["zh"] and kana > counts[best] / 10 else best
    return _latin(seen.lower(), words)


def _latin(seen: str, words: list[str]) -> str:
    """The likeliest Latin-script language: function words count 1, telling letters 1.5 each."""
    found: Counter[str] = Counter(en=0)
    for word in words:
        for code, known in _WORDS.items():
            if word in known:
                found[code] += 2
    for code, letters in _LETTERS.items():
        found[code] += 3 * sum(seen.count(letter) for letter in letters)
    return max(found, key=lambda code: (found[code], code == "en"))
