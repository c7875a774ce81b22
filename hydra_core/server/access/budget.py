"""What was spent today: known to every worker, and after a restart, where there is a folder."""

from __future__ import annotations

import fcntl
import os
import threading
from datetime import date
from pathlib import Path
from typing import Final

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
            self._own = (day.isoformat(), _spent(None, day, self._own) + usd)
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
            total = _spent(stream.read(), day, ("", 0.0)) + usd
            stream.seek(0)
            stream.truncate()
            stream.write(f"{day.isoformat()} {total!r}")


def _spent(text: str | None, day: date, own: tuple[str, float]) -> float:
    """Spent on a day, by the folder's sum (`text`) where there is one, else by one's own."""
    if text is None:
        return own[1] if own[0] == day.isoformat() else 0.0
    kept, _, amount = text.partition(" ")
    try:
        return float(amount) if kept == day.isoformat() else 0.0
    except ValueError:
        return 0.0
