"""Events that somebody was alerted to, each once: in the log's folder for all workers of a host."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from hydra_core.base.digests import text_sha256

_FOLDER: Final = ".alerts"
_KEPT: Final = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """One event, and when somebody was alerted to it."""

    at: datetime
    text: str


class Events:
    """Remembers which events were sent. Safe to share between threads and processes.

    Without a folder (of the decision log) they are remembered in this process alone.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder / _FOLDER
        self._own: set[str] = set()

    def first(self, key: str, text: str, now: datetime) -> bool:
        """Whether this event is new; it counts as sent from now on."""
        if key in self._own:
            return False
        self._own.add(key)
        if self._folder is None:
            return True
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(self._path(key), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return False
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            json.dump({"at": now.isoformat(timespec="seconds"), "text": text}, stream)
        return True

    def over(self, key: str) -> None:
        """The event has ended: should it come again, it is a new one."""
        self._own.discard(key)
        if self._folder is not None:
            with suppress(FileNotFoundError):
                self._path(key).rename(self._path(f"{key} {os.urandom(4).hex()}"))

    def clean(self, now: datetime) -> None:
        """Remove events of long ago."""
        for path in [] if self._folder is None else self._folder.glob("*.json"):
            with suppress(OSError):
                if path.stat().st_mtime < (now - _KEPT).timestamp():
                    path.unlink()

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{text_sha256(key)[:32]}.json"


def read_alerts(folder: Path) -> tuple[AlertEvent, ...]:
    """Return the alerts of the services of a log folder, newest first, without damaged files."""
    found = []
    for path in (folder / _FOLDER).glob("*.json"):
        with suppress(OSError, ValueError, KeyError, TypeError):
            one = json.loads(path.read_text(encoding="utf-8"))
            found.append(AlertEvent(datetime.fromisoformat(one["at"]), str(one["text"])))
    return tuple(sorted(found, key=lambda one: one.at, reverse=True))
