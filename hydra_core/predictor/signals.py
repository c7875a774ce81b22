"""The 7-flag signal prefix (paper section "Capability Requirement Predictor"), and surface counts.

Seven cheap facts about a message, put in front of it as ASCII, e.g. ``"[T1 ERR CODE] "``. The rules
are language neutral; the few words for "error" are listed in all sixteen. Every quantifier is
bounded, and only the first 3,000 and the last 1,000 characters are looked at. Any Python string is
accepted. The form of the prefix is part of what a model was trained on: changing a rule here means
training a new bundle. Success heads read the counts, of the same characters, beside the vector.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

HEAD_CHARS = 3_000
TAIL_CHARS = 1_000

#: Lower ends of the turn bins: 1, 2-3, 4-7, 8 and more.
_TURN_BINS = (8, 4, 2)

#: A message with less than this many English letters (about eight words) is short.
_SHORT_LETTERS = 40.0
_SHORT_LOOK = 400

#: What is counted, in this order.
COUNTS: Final = ("chars", "words", "lines", "digits", "marks", "capitals")

CountArray = npt.NDArray[np.int32]

_LARGEST = np.iinfo(np.int32).max
_DIGITS, _CAPITALS = re.compile(r"\d+"), re.compile(r"[^\W\d_a-z]+")
_LETTERS = re.compile(r"[\w\s]+")


@dataclass(frozen=True, slots=True)
class Signals:
    """The seven flags of one message.

    Attributes:
        turn_bin: Lower end of the turn's bin: 1, 2, 4 or 8.
        err: It shows or names an error.
        file: It names a file or a path.
        url: It holds a URL.
        cmd: It holds a shell command.
        code: It holds code.
        short: It says less than about eight English words would.
    """

    turn_bin: int
    err: bool
    file: bool
    url: bool
    cmd: bool
    code: bool
    short: bool


def _any(*patterns: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.ASCII | re.MULTILINE | flags)


_ERR_FORM = _any(
    r"Traceback \(most",
    r"\b[A-Z]\w{0,60}(?:Error|Exception|Panic)\b",
    r"\b(?:[Ee]rror|ERROR|FATAL|[Ff]atal|[Ee]xception|[Pp]anic|Caused by)(?: ?[:\[(]|：)",
    r"\berror (?:TS|CS|E|C|LNK)?\d{2,5}\b",
    r"\b(?:E0\d{3}|TS\d{4}|CS\d{4}|ORA-\d{5}|ERR_[A-Z]{3})",
    r"\bE(?:NOENT|ACCES|PERM|CONN(?:REFUSED|RESET)|ADDRINUSE|TIMEDOUT|PIPE|EXIST|RESOLVE)\b",
    r"\bSIG(?:SEGV|ABRT|KILL|ILL|BUS|FPE)\b",
    r"\bat [\w$.<>/@]{1,120} ?\([^()\n]{1,160}:\d",
    r"\bFile \"[^\"\n]{1,200}\", line \d",
    r"\b[Ee]xit(?:ed)?(?: with)?(?: (?:[Cc]ode|[Ss]tatus))?:? [1-9]\d{0,2}\b",
    r"\b(?:HTTP|[Ss]tatus)(?:/\d(?:\.\d)?)?(?: ?code)?[ :=]{0,3}[45]\d\d\b",
    r"\b(?:4(?:0[0134589]|22|29)|50[0-4]) (?:Bad|Unauth|Forb|Not|Conf|Inter|Serv|Gate|Too|Unproc)",
    r"\b[Ss]eg(?:mentation )?fault\b|\b[Cc]ore dumped\b|\bpanicked at\b|\bgoroutine \d+ \[",
    r"\b[Uu]ndefined (?:reference|symbol)\b|\bcommand not found\b|\b[Pp]ermission denied\b",
    r"\b[Nn]o such file or directory\b|\b[Cc]onnection (?:refused|reset|timed out)\b",
    r"\b(?:OOMKilled|CrashLoopBackOff|NullPointer|OutOfMemory)\b",
)

#: "error", "crash" and "stack trace" in the sixteen languages; matched without ASCII rules, so that
#: an inflected Russian or Turkish form counts as well.
_ERR_WORD = re.compile(
    r"\b(?:errors?|crash(?:e[sd]|ing)?|stack ?traces?|tracebacks?"  # en, and borrowed everywhere
    r"|erreurs?|errori|errore|errores|erros?|fehler\w{0,12}|abst[uü]rz\w{0,4}"
    r"|b[łl][ąa]d(?:u|em|y|zie)?|błęd\w{1,5}|hata(?:lar\w{0,8}|s[ıi]\w{0,6}|y[ıi]|n[ıi]n|da|dan)?"
    r"|ошибк\w{1,4}|ошибок|kesalahan|galat|l[ỗồ]i)\b"
    r"|خطأ|أخطاء|اخطاء|错误|錯誤|报错|報錯|异常|崩溃|エラー|クラッシュ|오류|에러|크래시"
    r"|ข้อผิดพลาด|เออเรอร์",
    re.I,
)

_URL = _any(
    r"\b(?:https?|ftp|wss?|ssh|git|s3|jdbc|postgres(?:ql)?|mysql|mongodb|redis|amqp)://[^\s]{1,200}",
    r"\bwww\.[a-z0-9-]",
    r"\bgit@[\w.-]{1,60}:",
    r"\blocalhost:\d",
    r"[a-z0-9]\.(?:com|org|net)(?![\w-])",
    flags=re.I,
)

_EXTENSIONS = (
    "py|pyi|ipynb|js|mjs|cjs|jsx|ts|tsx|vue|svelte|java|kt|kts|scala|go|rs|rb|php|c|h|cc|cpp|hpp|cxx"
    "|cs|fs|swift|m|mm|lua|pl|pm|r|jl|ex|exs|erl|hs|clj|dart|zig|sol|sql|sh|bash|zsh|ps1|bat|cmd"
    "|html?|css|scss|sass|less|xml|xsd|json|jsonl|ya?ml|toml|ini|cfg|conf|env|lock|proto|graphql"
    "|tf|tfvars|gradle|md|rst|txt|log|csv|tsv|parquet|xlsx?|docx?|pptx?|pdf|png|jpe?g|gif|svg|webp"
    "|mp[34]|wav|zip|tar|gz|whl|jar|dll|so|exe|bin|db|sqlite3?|bak|pem|crt|key"
)
_NOT_FILES = "".join(
    rf"(?<!{name}\.)" for name in ("node", "next", "vue", "three", "express", "react", "d3", "nuxt")
)
#: Each with the character without which it cannot match, so that most messages skip most of them.
_FILE = (
    (".", _any(rf"\.(?<=[\w)\]-]\.){_NOT_FILES}(?:{_EXTENSIONS})(?![\w-])(?!\.\w)", flags=re.I)),
    (".", _any(r"\.(?<![\w.]\.)(?:env|gitignore|bashrc|zshrc|npmrc|dockerignore|eslintrc|ssh)\b")),
    (
        "/",
        _any(
            r"(?<![\w/:.])(?:~|\.{1,2})?/[A-Za-z_.][\w.\-]{0,63}/[\w.\-]",
            r"(?<![\w/:.])(?:~|\.{1,2})/[\w.]",
            r"\b(?:src|lib|tests?|app|packages|docs|internal|cmd|components|utils)/[\w.]",
        ),
    ),
    ("\\", _any(r"\b[A-Z]:\\\w", flags=re.I)),
    ("ile", _any(r"\b(?:Docker|Make|Jenkins|Gem|Proc)file\b", flags=re.I)),
    ("README", _any(r"\bREADME\b")),
)

_CMD = _any(
    r"^\s{0,8}(?:\$|❯|PS [^>\n]{1,80}>|[\w.-]{1,40}@[\w.-]{1,40}:[^\n#$]{0,80}[#$]) ?[a-z./]",
    r"^/[a-z][a-z-]{1,20}(?![\w/.])",
    r"\b(?:sudo|npx|journalctl|chmod|chown|scp|rsync) [\w~./+-]",
    r"\b(?:kubectl|systemctl) (?:get|describe|logs|apply|exec|delete|rollout|scale|top|port-forward"
    r"|start|stop|status|restart|enable|disable|daemon-reload)\b",
    r"\b(?:pip3?|brew|conda|gem|apt|apt-get|yum|dnf|composer) (?:install|add|update|upgrade)\b",
    r"\b(?:npm|yarn|pnpm|bun) (?:i|install|ci|run|test|start|build|add|audit|publish|dev)\b",
    r"\bgit (?:clone|commit|push|pull|fetch|rebase|checkout|switch|merge|status|log|diff|add|stash"
    r"|reset|bisect|branch|cherry-pick|revert|tag|blame|init|config|remote|submodule)\b",
    r"\bdocker(?:-compose)? (?:run|build|compose|ps|exec|pull|push|logs|up|down)\b",
    r"\b(?:curl|wget) (?:-|https?:|[\w.]{1,60}/)",
    r"\b(?:cargo|go|dotnet) (?:build|vet|fmt|mod|clippy)\b|\b(?:cargo|go|dotnet) (?:run|test)\b",
    r"\bmake (?:-j|install|clean|check|all)\b|\b(?:gcc|g\+\+|clang|rustc|javac|tsc) [\w./-]",
    r"\bpython3? (?:-m|[\w./]{1,80}\.py)|\bpytest(?: |$)|\bnode [\w./]{1,80}\.m?js",
    r"\b(?:rm|ls|cp|mv|grep|tar|ps|du|df|head|tail|find|awk|sed|xargs|ssh|cat|make) -{1,2}[A-Za-z]",
    r"\bcd [~./]|\bchmod \+x|\b(?:mvn|gradle|\./gradlew) [a-z]|\bterraform (?:init|plan|apply)\b",
    r"\b(?:helm|aws|gcloud|flyctl|heroku|psql|mysql|redis-cli) [a-z0-9-]{1,20} ?(?:-|[a-z])",
)

_CODE = _any(
    r"```|~~~",
    r"`[^`\n]{0,80}[()=;{}<>_][^`\n]{0,80}`",
    r"\b(?:async )?(?:def|func|fn|function|sub) ?\w{0,60} ?\(",
    r"\b(?:class|struct|interface|enum|trait|impl|namespace) \w{1,60} ?[:({<]",
    r"^\s{0,12}(?:import|from|using|use|package|require) [\w.:{*]{1,80}(?:;| import|$)",
    r"#include ?[<\"]|^#!/|<\?php|<!DOCTYPE|\bpublic (?:static|class|void)\b|\bstd::\w",
    r"\b(?:const|let|var|int|float|double|char|string|bool|auto) \w{1,60} ?(?:=|;|\[\])",
    r"\b(?:if|for|while|switch|catch) ?\([^\n]{1,120}\) ?\{",
    r"^\s{0,24}(?:if|for|while|elif|else|try|except|with)\b[^\n]{0,120}:$",
    r"[;{}]$|\breturn [\w.()\[\]\"']{1,60};|=>|!==?|===?|&&|\|\||\+=|->|:=",
    r"\b[a-z_][\w.]{1,60}\((?:[\w\"'\[\]., =*-]{0,80})\)",
    r"</?[a-z][a-z0-9-]{0,20}(?: [a-z-]{1,20}=[^>\n]{0,120})?/?>",
    r"\bSELECT\b[^;]{1,200}\bFROM\b|\b(?:INSERT INTO|(?:CREATE|ALTER) TABLE|UPDATE \w{1,60} SET)\b",
    r"^\s{0,12}[\"']?\w{1,40}[\"']? ?[:=] ?[\[{]",
)

#: Without one of these there is no code, and the search above can be spared.
_CODE_HINT = _any(
    r"[`(){};=<>&|:~\[#]",
    r"\b(?:FROM|INTO|TABLE|SET)\b",
    r"^\s{0,12}(?:import|from|using|use|package|require) ",
)

#: Letters of each script are worth this many English letters (measured on parallel texts).
_SCRIPTS = (
    (re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 2.85),
    (re.compile("[\u3041-\u3096\u30a1-\u30fa\u30fc\uff66-\uff9f]"), 1.95),
    (re.compile("[\uac00-\ud7a3]"), 2.2),
    (re.compile("[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46]"), 1.33),
    (re.compile("[\u0600-\u06ff\u0750-\u077f]"), 1.23),
)
_ALNUM = re.compile(r"[^\W_]")


def _is_short(text: str) -> bool:
    """Whether `text` holds fewer than `_SHORT_LETTERS` English letters' worth of writing."""
    head = " ".join(text.split())
    if len(head) > _SHORT_LOOK:
        return False
    letters = len(_ALNUM.findall(head))
    if letters >= _SHORT_LETTERS or head.isascii():
        return letters < _SHORT_LETTERS
    extra = sum(len(script.findall(head)) * (worth - 1.0) for script, worth in _SCRIPTS)
    return letters + extra < _SHORT_LETTERS


def signals(text: str, turn: int = 1) -> Signals:
    """The seven flags of one message, the user turn `turn` (from 1) of its conversation."""
    whole = len(text) <= HEAD_CHARS + TAIL_CHARS
    seen = text if whole else f"{text[:HEAD_CHARS]}\n{text[-TAIL_CHARS:]}"
    url = (":" in seen or "." in seen) and _URL.search(seen) is not None
    without_urls = _URL.sub(" ", seen) if url else seen
    return Signals(
        turn_bin=next((low for low in _TURN_BINS if turn >= low), 1),
        err=bool(_ERR_WORD.search(seen) or _ERR_FORM.search(seen)),
        file=any(need in without_urls and form.search(without_urls) for need, form in _FILE),
        url=url,
        cmd=_CMD.search(seen) is not None,
        code=bool(_CODE_HINT.search(seen) and _CODE.search(without_urls)),
        short=_is_short(seen),
    )


def signal_prefix(text: str, turn: int = 1) -> str:
    """The prefix put in front of the message, e.g. ``"[T1 ERR CODE] "``.

    ASCII, at most 34 characters, always ending in one space; the flags that are set appear in the
    order ERR FILE URL CMD CODE SHORT after the turn bin (T1, T2, T4 or T8).
    """
    found = signals(text, turn)
    flags = [name.upper() for name in Signals.__slots__[1:] if getattr(found, name)]
    names = [f"T{found.turn_bin}", *flags]
    return f"[{' '.join(names)}] "


def surface_counts(texts: Sequence[str]) -> CountArray:
    """(n,) messages -> (n, 6) counts in the order of `COUNTS`."""
    return np.array([_counts(text) for text in texts], dtype=np.int32).reshape(-1, len(COUNTS))


def _counts(text: str) -> tuple[int, ...]:
    whole = len(text) <= HEAD_CHARS + TAIL_CHARS
    seen = text if whole else f"{text[:HEAD_CHARS]} {text[-TAIL_CHARS:]}"
    upper = sum(map(str.isupper, "".join(_CAPITALS.findall(seen))))
    return (
        min(len(text), _LARGEST),
        len(seen.split()),
        seen.count("\n"),
        len("".join(_DIGITS.findall(seen))),
        len(_LETTERS.sub("", seen)),
        upper,
    )
