"""The seven flags: each in several languages, on hostile text, and in a stable form."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.predictor.signals import signal_prefix, signals

ERRORS = [
    'Traceback (most recent call last):\n  File "a.py", line 3, in <module>',
    "it dies with KeyError: 'id'",
    "    at Object.run (/srv/app/index.js:12:9)",
    "El proceso termina con exit code 137",
    "thread 'main' panicked at src/main.rs:4",
    "コンパイルすると error[E0382] が出ます",
    "server returns HTTP 500 sometimes",
    "저장하면 오류가 발생해요",
    "保存时报错",
    "ログインするとエラーになる",
    "При сохранении возникает ошибка",
    "Beim Speichern kommt eine Fehlermeldung",
    "J'ai une erreur au démarrage",
    "me da errores al compilar",
    "l'app dà errore all'avvio",
    "aparece um erro ao salvar",
    "Przy zapisie pojawia się błąd",
    "Kaydederken hata veriyor: hatayı düzelt",
    "يظهر خطأ عند الحفظ",
    "Ứng dụng báo lỗi khi lưu",
    "ada kesalahan saat menyimpan",
    "มีข้อผิดพลาดตอนบันทึก",
    "npm ERR: ENOENT",
]
NO_ERRORS = [
    "Write a poem about the sea",
    "写一首关于大海的诗",
    "Напиши стихотворение о море",
    "Seit 1912 fehlt nichts",
    "Order 500 chairs for room 404",
    "loin de la terre",
]
FILES = [
    "open main.py",
    "打开main.py看看",
    "в файле src/app/index.tsx",
    "/etc/nginx/nginx.conf を見て",
    "C:\\Users\\me\\report.docx",
    "edit the Dockerfile",
    "~/notes ist leer",
    "data/clients.csv를 정리해줘",
    "كم سطرا في settings.yaml؟",
]
NO_FILES = [
    "Is Node.js faster than Vue.js?",
    "and/or, he/she",
    "e.g. this. And that.",
    "https://example.org/a/main.py",
    "version 3.11",
    "今天天气很好。",
]
URLS = [
    "see https://example.org/x",
    "看http://example.org。",
    "www.example.org öffnen",
    "localhost:8080 не отвечает",
    "git@host.example:me/repo",
    "api.example.com を呼ぶ",
]
COMMANDS = [
    "npm install はどこで実行しますか",
    "run git rebase -i",
    "$ ls -la",
    "me@host:~/src$ make",
    "sudo systemctl restart nginx 有什么用",
    "Что делает docker compose up?",
    "pip install numpy schlägt fehl",
    "kubectl get pods",
    "/review",
]
NO_COMMANDS = [
    "Make a plan for the week",
    "go for a run",
    "find me a hotel, cheap",
    "# Überschrift",
    "az iki kişi geldi",
    "use kubectl and docker please",
]
CODE = [
    "```\nx\n```",
    "def f(x):\n    return x",
    "这段代码 for (int i = 0; i < n; i++) { 有问题",
    "Что вернёт list(map(str, xs))?",
    "SELECT name FROM users を速くして",
    "const x = 3;",
    "#include <stdio.h>",
    '<div class="a">ciao</div>',
    "import os",
    "ما معنى x => x + 1",
]
NO_CODE = [
    "Explain recursion (with an example), please: short!",
    "用三句话解释递归（举例）。",
    "Bonjour, comment ça va ?",
    "select a gift from the list",
    "We import goods; they export them.",
]


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_is_seen_in_every_language(text: str) -> None:
    assert signals(text).err


@pytest.mark.parametrize("text", NO_ERRORS)
def test_plain_talk_is_no_error(text: str) -> None:
    assert not signals(text).err


@pytest.mark.parametrize("text", FILES)
def test_a_file_is_seen(text: str) -> None:
    assert signals(text).file


@pytest.mark.parametrize("text", NO_FILES)
def test_dots_and_slashes_alone_are_no_file(text: str) -> None:
    assert not signals(text).file


@pytest.mark.parametrize("text", URLS)
def test_a_url_is_seen(text: str) -> None:
    assert signals(text).url


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_is_seen(text: str) -> None:
    assert signals(text).cmd


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_ordinary_verbs_are_no_command(text: str) -> None:
    assert not signals(text).cmd


@pytest.mark.parametrize("text", CODE)
def test_code_is_seen(text: str) -> None:
    assert signals(text).code


@pytest.mark.parametrize("text", NO_CODE)
def test_prose_is_no_code(text: str) -> None:
    assert not signals(text).code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "fix it",
        "继续",
        "続けてください",
        "계속해 주세요",
        "ทำต่อเลย",
        "استمر",
        "дальше",
        "🙂🙂",
    ],
)
def test_a_few_words_are_short_in_every_script(text: str) -> None:
    assert signals(text).short


@pytest.mark.parametrize(
    "text",
    [
        "Please rewrite this paragraph so that a child of ten can understand it",
        "请把这段话改写成十岁孩子也能看懂的样子",
        "この段落を十歳の子どもにも分かるように書き直してください",
        "이 문단을 열 살 아이도 이해할 수 있게 다시 써 주세요",
        "ช่วยเขียนย่อหน้านี้ใหม่ให้เด็กอายุสิบขวบเข้าใจได้ด้วยนะครับ",
        "أعد كتابة هذه الفقرة بحيث يفهمها طفل في العاشرة من عمره",
        "Перепиши этот абзац так, чтобы его понял десятилетний ребёнок",
    ],
)
def test_the_same_sentence_is_not_short_in_any_script(text: str) -> None:
    assert not signals(text).short


@pytest.mark.parametrize(
    ("turn", "low"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (7, 4), (8, 8), (999, 8)]
)
def test_turns_fall_into_four_bins(turn: int, low: int) -> None:
    assert signals("hello", turn).turn_bin == low


def test_the_prefix_has_one_stable_form() -> None:
    text = "$ git push\nerror: see https://example.org and main.py\n```\nx\n```"
    assert signal_prefix(text, 5) == "[T4 ERR FILE URL CMD CODE] "
    assert signal_prefix("hi") == "[T1 SHORT] "
    assert signal_prefix("Tell me about the history of the city of Lisbon, in detail") == "[T1] "


@given(st.text(st.characters(codec=None, categories=None), max_size=300), st.integers(-5, 99))
def test_any_text_gets_a_short_ascii_prefix(text: str, turn: int) -> None:
    prefix = signal_prefix(text, turn)
    assert prefix.isascii()
    assert len(prefix) <= 34
    assert prefix.startswith("[T")
    assert prefix.endswith("] ")


HOSTILE = [
    "a", "at ", "/a", "SELECT ", "`(", "if (", "(", "\u0e31", ".", "a.", " ", "\n", "x@y:",
    "\ud800",
    "<a ", "a(", "at a(b ", '"a":', "a\n", "\x00", "http://", "git@", "../", "File \"", "for x\n",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_takes_milliseconds(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    start = time.perf_counter()
    signals(text)
    assert time.perf_counter() - start < 0.25


def test_what_lies_between_head_and_tail_is_not_looked_at() -> None:
    filler = "lorem ipsum " * 1000
    assert signals("```x```" + filler).code
    assert signals(filler + "```x```").code
    assert not signals(filler + "```x```" + filler).code
