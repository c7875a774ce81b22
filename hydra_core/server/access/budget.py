"""What was spent today: known to every worker, and after a restart, where there is a folder."""

from __future__ import annotations

import fcntl
import os
import threading
from datetime import date
from pathlib import Path
from typing import Final

#: Days that a clock may have been ahead.
_MOST_AHEAD: Final = 2
_FILE: Final = ".exploration-budget"


class Budget:
    """An amount a day. Safe to share between threads; with a folder also between processes.

    Args:
        usd: For one day.
        folder: Where the sum is kept; None for this process alone.
    """

    def __init__(self, usd: float, folder: Path | None = None) -> None:
        self._usd, self._path = usd, None if folder is None else folder / _FILE
        self._lock = threading.Lock()
        self._own: tuple[str, float] = ("", 0.0)

    def is_left(self, day: date) -> bool:
        """Whether something may be spent; not while the sum cannot be read."""
        with self._lock:
            try:
                text = self._read() if self._path is not None else None
            except OSError:
                return False
            return _spent(text, day, self._own) < self._usd

    def spend(self, day: date, usd: float) -> None:
        """Count an amount."""
        with self._lock:
            self._own = _added(day, _spent(None, day, self._own), self._own[0], usd)
            if self._path is not None:
                self._add(self._path, day, usd)

    def _read(self) -> str:
        assert self._path is not None
        try:
            return self._path.read_text(encoding="ascii")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""

    def _add(self, path: Path, day: date, usd: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        with os.fdopen(file, "r+", encoding="ascii", errors="replace") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            text = stream.read()
            before = _spent(text, day, ("", 0.0))
            last, total = _added(day, before, text.partition(" ")[0], usd)
            stream.seek(0)
            stream.truncate()
            stream.write(f"{last} {total!r}")


def _added(day: date, before: float, kept: str, usd: float) -> tuple[str, float]:
    """Day and sum after an amount; the later day stays where its sum counts."""
    return (max(day.isoformat(), kept) if before else day.isoformat()), before + usd


def _spent(text: str | None, day: date, own: tuple[str, float]) -> float:
    """Spent on a day, by the folder's sum (`text`) where there is one, else by one's own.

    A sum of the next days counts as well: a clock that went back must not give the budget twice.
    """
    kept, amount = own
    if text is not None:
        kept, _, written = text.partition(" ")
        try:
            amount = float(written)
        except ValueError:
            return 0.0
    try:
        ahead = (date.fromisoformat(kept) - day).days
    except ValueError:
        return 0.0
    return amount if 0 <= ahead <= _MOST_AHEAD else 0.0
