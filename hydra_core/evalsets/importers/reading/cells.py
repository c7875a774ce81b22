"""Text cells to numbers, flags and codes; every cell that is no value is an issue with its line.

Issues are gathered: one Problem for each kind, with its count and first lines.
"""

import ast
import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.types import FloatArray

#: Name of the column that holds each row's place in its file (line, or row in Parquet).
LINE = "\0line"
_SHOWN = 5


@dataclass(slots=True)
class _Kind:
    remedy: str
    count: int = 0
    lines: list[int] = field(default_factory=list)


class Issues:
    """Collects what is wrong with single rows of one or several files.

    Attributes:
        notes: What was read otherwise than it stands, in words.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._problems: list[Problem] = []

    def add(self, message: str, line: int, remedy: str = "", file: str = "") -> None:
        """One row with a problem."""
        kind = self._kinds.setdefault((file, message), _Kind(remedy))
        kind.count += 1
        if len(kind.lines) < _SHOWN:
            kind.lines.append(int(line))

    def add_rows(
        self, message: str, rows: Iterable[tuple[str, int]], count: int, remedy: str = ""
    ) -> None:
        """Many rows with one problem: the first (file, line) pairs and how many there are."""
        if count:
            places = ", ".join(f"{file} line {line}" for file, line in rows)
            more = ", ..." if count > _SHOWN else ""
            self._problems.append(Problem(f"{count} row(s)", f"{message}: {places}{more}", remedy))

    def counts(self) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """What is wrong with single rows: the kind, how many, and where the first are."""
        for (_, message), kind in self._kinds.items():
            yield message, kind.count, tuple(f"line {line}" for line in kind.lines)

    def problem(self, problem: Problem) -> None:
        self._problems.append(problem)

    def raise_any(self, source: str) -> None:
        """Raise what was found, if anything, as an EvalSetError."""
        EvalSetError.raise_any(source, self.problems())

    def problems(self) -> list[Problem]:
        found = list(self._problems)
        for (file, message), kind in self._kinds.items():
            lines = ", ".join(map(str, kind.lines)) + (", ..." if kind.count > _SHOWN else "")
            place = f"line {lines}" if kind.count == 1 else f"{kind.count} rows (lines {lines})"
            found.append(Problem(f"{file} {place}".strip(), message, kind.remedy))
        return found


#: Name of the column that holds the file each row came from.
FILE = "\0file"

#: What stands for no value.
BLANK = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "–", "—"})
NUMBER = r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*"
#: Those that spreadsheets write in other languages among them.
TRUE = frozenset(
    {
        *("true", "yes", "y", "✓", "✔", "✔️", "☑", "☑️", "✅", "👍"),
        *("wahr", "ja", "vrai", "oui", "verdadero", "sí", "vero", "sì"),
    }
)
_FALSE = frozenset(
    {
        *("false", "no", "n", "✗", "✘", "✕", "✖", "✖️", "❌", "☒", "👎"),
        *("falsch", "nein", "faux", "non", "falso"),
    }
)
_PASSED = frozenset({"pass", "passed", "resolved", "solved", "correct", "success", "ok"})
_FAILED = frozenset(
    {"fail", "failed", "unresolved", "unsolved", "incorrect", "wrong", "failure", "not ok"}
)
_IMAGE = re.compile(
    r"(?s)\s*(?:\S.*\.(?:png|jpe?g|gif|webp|bmp|tiff?)|https?://\S+|data:image/.*)\s*",
    re.IGNORECASE,
)
#: What says in a word whether a query was answered well, and what says so as a flag.
WORDS, FLAGS = _PASSED | _FAILED, TRUE | _FALSE
#: What means 1 among them.
GOOD = TRUE | _PASSED


@dataclass(frozen=True, slots=True)
class Form:
    """How a whole table writes its numbers, and how whoever imports would say that it does.

    Attributes:
        decimal: The decimal mark, `.` or `,`, of cells that do not prove theirs.
        scale: The quality that means 1, such as 100 for percentages.
        words: Whether pass and fail, resolved and unresolved and the like are 1 and 0.
        to_read: How to say how one column is written, with COLUMN and HOW (percent, comma, ...).
        to_rate: How to say what a CURRENCY is worth.
        to_join: How to give a model of the table another id, PAIR being ID=NAME.
    """

    decimal: str = "."
    scale: float = 1.0
    words: bool = False
    to_read: str = "--read COLUMN=HOW"
    to_rate: str = "--rate CURRENCY=USD"
    to_join: str = "--rename PAIR"


#: Numbers as they stand, as far as nothing else is said.
PLAIN = Form()


def among(cells: pd.Series, words: Collection[str]) -> pd.Series:
    """Which cells are one of these words, in whatever case and between whatever spaces."""
    return cells.str.strip().str.lower().isin(words)


def first_places(frame: pd.DataFrame) -> list[tuple[str, int]]:
    """(file, line) of the first few rows."""
    head = frame.iloc[:_SHOWN]
    return list(zip(head[FILE].astype(str), head[LINE].astype(int), strict=True))


def note(issues: Issues, frame: pd.DataFrame, bad: pd.Series, message: str, remedy: str) -> None:
    """Report the bad rows of a frame as one problem."""
    if bad.any():
        found = frame.loc[bad]
        issues.add_rows(message, first_places(found), len(found), remedy)


def _shown(cells: pd.Series, bad: pd.Series) -> str:
    values = list(dict.fromkeys(cells[bad].iloc[:50]))[:3]
    return ", ".join(repr(str(value)[:60]) for value in values)


def numbers(
    frame: pd.DataFrame,
    name: str,
    issues: Issues,
    *,
    low: float = 0.0,
    high: float = np.inf,
    scale: float = 1.0,
    remedy: str = "",
) -> FloatArray:
    """(rows,) values of a column divided by `scale`; NaN where blank, issues where not a number
    or outside [low, high]. `true` and `false` count as 1 and 0.
    """
    cells = frame[name]
    numeric, yes, no = cells.str.fullmatch(NUMBER), among(cells, TRUE), among(cells, _FALSE)
    bad = ~(among(cells, BLANK) | numeric | yes | no)
    remedies = "use a plain number such as 0.5, or true or false"
    note(issues, frame, bad, f"{name} is not a number ({_shown(cells, bad)})", remedies)
    values = np.full(len(frame), np.nan)
    is_number = numeric.to_numpy(dtype=bool)
    values[is_number] = cells[numeric].to_numpy(dtype=object).astype(np.float64) / scale
    values[yes.to_numpy(dtype=bool)] = 1.0
    values[no.to_numpy(dtype=bool)] = 0.0
    with np.errstate(invalid="ignore"):
        out = pd.Series((values < low) | (values > high) | np.isinf(values), index=frame.index)
    bound = f"in [{low:g}, {high:g}]" if np.isfinite(high) else f">= {low:g}"
    note(issues, frame, out, f"{name} must be {bound}, got {_shown(cells, out)}", remedy)
    return values


def flags(frame: pd.DataFrame, name: str, issues: Issues) -> pd.Series:
    """(rows,) true or false of a column; blank is false, the file or address of an image true."""
    yes = among(frame[name], TRUE | {"1"}) | frame[name].str.fullmatch(_IMAGE)
    bad = ~(yes | among(frame[name], _FALSE | {"0"} | BLANK))
    shown = _shown(frame[name], bad)
    note(issues, frame, bad, f"{name} is not true or false ({shown})", "use true or false")
    return yes.astype(bool)


def language_codes(frame: pd.DataFrame, issues: Issues) -> pd.Series:
    """(rows,) ISO 639 codes (`en-US` becomes `en`); empty where blank."""
    codes = frame["language"].str.strip().str.lower().str.replace(r"[-_].*", "", regex=True)
    codes = codes.mask(codes.isin(BLANK), "")
    bad = ~codes.str.fullmatch(r"(?:[a-z]{2,3})?")
    shown = _shown(frame["language"], bad)
    note(issues, frame, bad, f"language is not a code ({shown})", "use ISO 639 codes such as en")
    return codes


def unlisted(texts: pd.Series) -> tuple[pd.Series, tuple[str, ...]]:
    """Texts without the list around each, where all of a column stand as `['...']`."""
    filled = texts[texts.str.strip() != ""]
    if filled.empty or not filled.str.fullmatch(r"(?s)\s*\[\s*['\"].*['\"]\s*\]\s*").all():
        return texts, ()
    inner = {text: _inner(text) for text in filled.unique()}
    if any(text is None for text in inner.values()):
        return texts, ()
    note = "texts were read out of the lists that they stand in, such as ['...']"
    return texts.map(lambda text: inner.get(text, text)), (note,)


def _inner(text: str) -> str | None:
    """The lines of a list of texts; None where it is none."""
    for read in (json.loads, ast.literal_eval):
        try:
            listed = read(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            return "\n".join(listed)
    return None
