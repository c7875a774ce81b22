"""Sixteen languages in four groups, and a guess that holds for a plain sentence of each."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.predictor.languages import GROUPS, LANGUAGES, SCRIPTS, detect, group_of, script_of

SENTENCES = {
    "en": "What is the difference between a list and a tuple?",
    "fr": "Quelle est la différence entre une liste et un tuple ?",
    "it": "Qual è la differenza tra una lista e una tupla?",
    "es": "¿Cuál es la diferencia entre una lista y una tupla?",
    "de": "Was ist der Unterschied zwischen einer Liste und einem Tupel?",
    "pl": "Jaka jest różnica między listą a krotką?",
    "pt": "Qual é a diferença entre uma lista e uma tupla, e quando uso cada uma?",
    "tr": "Liste ile demet arasındaki fark nedir?",
    "zh": "列表和元组有什么区别？",
    "ja": "リストとタプルの違いは何ですか？",
    "ko": "리스트와 튜플의 차이는 무엇인가요?",
    "ru": "Чем список отличается от кортежа?",
    "ar": "ما الفرق بين القائمة والصف؟",
    "th": "ลิสต์กับทูเพิลต่างกันอย่างไร",
    "vi": "Danh sách và bộ khác nhau như thế nào?",
    "id": "Apa perbedaan antara list dan tuple?",
}


def test_there_are_the_papers_sixteen_in_four_groups() -> None:
    counts = Counter(language.group for language in LANGUAGES.values())
    assert counts == {"english": 1, "european": 7, "cjk": 3, "other": 5}
    assert set(counts) == set(GROUPS)


@pytest.mark.parametrize(
    ("code", "group"),
    [("pt-BR", "european"), ("ZH_cn", "cjk"), ("en", "english"), ("sw", "other"), ("", "other")],
)
def test_a_code_has_a_group(code: str, group: str) -> None:
    assert group_of(code) == group


@pytest.mark.parametrize(("code", "text"), SENTENCES.items())
def test_a_sentence_is_told_by_its_language(code: str, text: str) -> None:
    assert detect(text) == code


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("zh", "请解释 async def main(): await asyncio.gather(*tasks) 的意思"),
        ("ru", "Исправь:\n```python\nfor line in open(path):\n    print(line.strip())\n```"),
        (
            "en",
            "Translate the word 'ありがとう' into English, please, and explain when it is used.",
        ),
        ("en", ""),
        ("en", "🙂"),
    ],
)
def test_code_and_quoted_words_do_not_decide(code: str, text: str) -> None:
    assert detect(text) == code


@given(st.text(st.characters(codec=None, categories=None), max_size=200))
def test_any_text_has_a_language(text: str) -> None:
    assert detect(text) in LANGUAGES


@pytest.mark.parametrize("code", SENTENCES)
def test_the_writing_system_of_a_plain_sentence(code: str) -> None:
    others = {
        "zh": "cjk",
        "ja": "cjk",
        "ko": "cjk",
        "ru": "cyrillic",
        "ar": "arabic",
        "th": "other",
    }
    assert script_of(SENTENCES[code]) == others.get(code, "latin")


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("", "latin"),
        ("42 + 17 = ? 🙂 ...", "latin"),
        ("```py\nfor i in range(3): print(i)\n```", "latin"),
        ("исправь TypeError в parse_config", "cyrillic"),
        ("请修复这个 useEffect hook", "cjk"),
        ("What does 你好 mean in English?", "latin"),
        ("แก้ไข index.html ให้หน่อย", "other"),
        ("Διόρθωσε το σφάλμα", "other"),
        ("abcd я", "latin"),  # a tie
        ("abc я", "cyrillic"),
        ("Ｆｉｘ ｉｔ", "latin"),
        ("cafe\u0301", "latin"),
        ("고쳐 줘", "cjk"),  # decomposed
        ("ｶﾀｶﾅ", "cjk"),
        ("\ud800", "latin"),  # half a surrogate pair
        ("a" * 2_000 + "я" * 9_000, "latin"),
    ],
)
def test_the_writing_system_of_mixed_and_empty_messages(text: str, script: str) -> None:
    assert script_of(text) == script


@given(st.text())
def test_every_text_has_a_writing_system(text: str) -> None:
    assert script_of(text) in SCRIPTS
