"""Row-level problems, gathered: one Problem for each kind, with its count and first lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hydra_core.base.errors import EvalSetError, Problem

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
        """A problem that is not about rows."""
        self._problems.append(problem)

    def raise_any(self, source: str) -> None:
        """Raise what was found, if anything.

        Raises:
            EvalSetError: With every problem.
        """
        found = self.problems()
        if found:
            raise EvalSetError(source, found)

    def problems(self) -> list[Problem]:
        """All that was found."""
        found = list(self._problems)
        for (file, message), kind in self._kinds.items():
            lines = ", ".join(map(str, kind.lines)) + (", ..." if kind.count > _SHOWN else "")
            place = f"line {lines}" if kind.count == 1 else f"{kind.count} rows (lines {lines})"
            found.append(Problem(f"{file} {place}".strip(), message, kind.remedy))
        return found
