"""The messages of a run: JSONL, one object a line, with every check."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from hydra_core.base.errors import EvalSetError, LabelError
from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.predictor.languages import detect

_PATH: Final = re.compile(
    r"(?:^|[\s`'\"(])(?:\.{1,2}/|~/|/)[\w.-]+(?:/[\w.-]+)*"
    r"|(?:^|[\s`'\"(])[\w.-]+(?:/[\w.-]+){2,}"
    r"|[\w/-]+\.(?:py|tsx?|jsx?|go|rs|java|kt|cs|cpp|hpp|rb|php|swift|sql|ya?ml|toml|json|md|html|"
    r"css|vue|ipynb|sh|txt|log|csv|lock|env)\b"
)
_URL: Final = re.compile(r"\w+://\S+")
_ATTACHED: Final = re.compile(r"(?:^|\s)@[\w./-]*[/.][\w./-]+|#file:|#selection|#editor")
_TRACE: Final = re.compile(r"Traceback \(most recent|^\s+at \S+\(.*:\d+|:\d+:\d+: error", re.M)
#: Words and blanks beyond what any path, address or indentation has.
_LONG_RUN: Final = re.compile(r"(\S{300})\S+|(\s{40})\s+")
_MOST_CHARS: Final = 100_000
#: Words that point at something outside the message, language by language.
_POINTING: Final = re.compile(
    r"\b(?:this|these|the|my|our) (?:\w+ )?(?:repo(?:sitory)?|project|codebase|code|function|class|"
    r"file|method|tests?|build|branch|pr|app|bug|error|component|module)\b"
    r"|^\s*(?:proceed|continue|go on|go ahead|do it|yes|ok(?:ay)?|try again|fix it|again)\b"
    r"|\b(?:este|esta|el|la|mi|nuestro) (?:repositorio|proyecto|código|función|archivo|error)\b"
    r"|\b(?:este|esta|o|a|meu|nosso) (?:repositório|projeto|código|função|arquivo|erro)\b"
    r"|\b(?:ce|cette|le|la|mon|notre) (?:dépôt|projet|code|fonction|fichier|erreur)\b"
    r"|\b(?:diese[rsn]?|das|die|den|mein|unser) (?:projekt|code|funktion|datei|fehler|tests?)\b"
    r"|\b(?:questo|questa|il|la|mio|nostro) (?:progetto|codice|funzione|file|errore)\b"
    r"|\b(?:этот|эту|эта|наш|мой) (?:проект|код|функци\w+|файл|ошибк\w+)\b"
    r"|\b(?:ten|ta|tę|mój|nasz) (?:projekt|kod|funkcj\w+|plik|błąd)\b"
    r"|\bbu (?:proje|kod|fonksiyon|dosya|hata)\w*|\b(?:proyek|kode|fungsi|file|galat) ini\b"
    r"|\b(?:dự án|mã|hàm|tệp|lỗi) này\b|هذا (?:المشروع|الكود|الملف|الخطأ)|هذه الدالة"
    r"|(?:这个|此|该|当前)(?:项目|仓库|代码|函数|文件|错误|类)|^继续"
    r"|(?:この|その)(?:プロジェクト|コード|関数|ファイル|エラー|リポジトリ)|^続けて"
    r"|이 (?:프로젝트|코드|함수|파일|오류)|^계속|(?:โปรเจกต์|โค้ด|ฟังก์ชัน|ไฟล์)นี้",
    re.IGNORECASE,
)  # fmt: skip


def tier_of(text: str) -> int:
    """1 where context is attached or named, 2 where it is only pointed at, else 3."""
    prose = _URL.sub(" ", _bounded(text))
    if _ATTACHED.search(prose) or _TRACE.search(prose):
        return 1
    pointing = _POINTING.search(prose) is not None
    if _PATH.search(prose):
        return 1
    return 2 if pointing else 3


def _bounded(text: str) -> str:
    """What a pattern is tried on: on a run without an end some would take time by its square."""
    return _LONG_RUN.sub(lambda run: run[1] or run[2], text[:_MOST_CHARS])


#: Turns before the last one that are shown to the arms and the judge, and characters of each
#: assistant turn (paper section "Dual-Model Generation and Judging").
_TURNS: Final = 10
_ASSISTANT_CHARS: Final = 8_000
_ROLES: Final = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Message:
    """One user message with what came before it.

    Attributes:
        history: (role, content) of the system prompt and up to ten turns before.
        tier: Context tier 1 to 3, stated or read off the text.
    """

    id: str
    text: str
    lang: str
    history: tuple[tuple[str, str], ...]
    tier: int

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits of the text and its history."""
        return hashlib.sha256(repr((self.history, self.text)).encode()).hexdigest()[:16]


def read_messages(path: Path) -> tuple[Message, ...]:
    """Objects with ``id`` and ``text``, and if wanted ``lang``, ``messages`` and ``tier``.

    A message without ``lang`` gets the language that is detected in its text.

    Raises:
        LabelError: With every kind of problem and the lines it stands on.
    """
    return read_each(path, partial(json_objects, path, Budget()), _message)


class _Named(Protocol):
    @property
    def id(self) -> str: ...


NamedT = TypeVar("NamedT", bound=_Named)
Row = Mapping[str, Any]


def read_each(
    path: Path,
    rows: Callable[[Issues], Iterable[tuple[int, Row]]],
    read: Callable[[Row, int, Issues], NamedT | None],
) -> tuple[NamedT, ...]:
    """What is read of each row of a file, no two with one id; LabelError lists all faults."""
    found: dict[str, NamedT] = {}
    with all_issues(path.name) as issues:
        for number, row in rows(issues):
            one = read(row, number, issues)
            if one is not None and one.id in found:
                issues.add(f"id {one.id!r} occurs twice", number, "give each its own id")
            elif one is not None:
                found[one.id] = one
    if not found:
        raise LabelError.of(path.name, "there are no messages", "one a line")
    return tuple(found.values())


@contextmanager
def all_issues(source: str) -> Iterator[Issues]:
    """Where to note what is wrong with a file; LabelError where anything was."""
    issues = Issues()
    try:
        yield issues
        issues.raise_any(source)
    except EvalSetError as error:
        raise LabelError(error.source, error.problems) from error


def is_whole(row: Mapping[str, Any], number: int, issues: Issues) -> bool:
    """Whether a row's texts can be sent on: half a character (a lone surrogate) cannot."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        issues.add("holds half a character (a lone surrogate)", number, "write the text anew")
        return False
    return True


def _message(entry: Mapping[str, Any], number: int, issues: Issues) -> Message | None:
    good = is_whole(entry, number, issues)
    for key in ("id", "text", *(("lang",) if entry.get("lang") is not None else ())):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            issues.add(f"{key} must be text", number, '{"id": "q1", "text": "...", "lang": "en"}')
            good = False
    tier = entry.get("tier")
    if tier is not None and (isinstance(tier, bool) or tier not in (1, 2, 3)):
        issues.add("tier must be 1, 2 or 3", number, "leave it out to have it read off the text")
        good = False
    history = _history(entry.get("messages", []), number, issues)
    if not good or history is None:
        return None
    text = entry["text"]
    lang = entry.get("lang") or detect(text)
    return Message(entry["id"], text, lang, history, tier or tier_of(text))


def _history(turns: object, number: int, issues: Issues) -> tuple[tuple[str, str], ...] | None:
    """The system prompts and the last ten turns; None where they are not turns."""
    found = []
    for turn in turns if isinstance(turns, list) else [None]:
        known = turn if isinstance(turn, dict) else {}
        role, content = known.get("role"), known.get("content")
        if role not in _ROLES or not isinstance(content, str):
            remedy = '[{"role": "user", "content": "..."}, ...], the turns before "text"'
            issues.add("messages must be a list of turns", number, remedy)
            return None
        found.append((str(role), content[:_ASSISTANT_CHARS] if role == "assistant" else content))
    system = [turn for turn in found if turn[0] == "system"]
    return (*system, *[turn for turn in found if turn[0] != "system"][-_TURNS:])
