"""What the workers of a log folder share beside the log: its canaries, and the alerts sent.

A canary's record says when it began, its share and why it was stopped. All are small JSON files:
workers, a restarted service and the console read the same.
"""

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from hydra_core.base.digests import text_sha256
from hydra_core.base.whole_file import whole_file
from hydra_core.decision_log.writer import LogError

#: Which canary the services of this folder run; no order leaves it to their command line.
_ORDER: Final = "canary.json"
#: The order that a service could not follow, and why.
_REFUSED: Final = "canary.refused.json"


@dataclass(frozen=True, slots=True)
class CanaryOrder:
    """Which catalog gets a share of the conversations.

    Attributes:
        catalog: A YAML file, or `store:NAME`; '' for no canary.
        share: Of the conversations, in (0, 1).
        limit: So many times dearer or slower than the main revision stops it; 0 for never.
    """

    catalog: str
    share: float = 0.1
    limit: float = 2.0


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """One canary revision.

    Attributes:
        digest: Of its catalog.
        began: ISO 8601, UTC.
        stopped: Why it was stopped, '' while it runs; `at` is when.
        limit: So many times dearer or slower stops it; 0 for never.
    """

    digest: str
    catalog: str
    share: float
    began: str
    stopped: str = ""
    at: str = ""
    limit: float = 2.0


_Kind = TypeVar("_Kind", CanaryOrder, CanaryRecord)


def order_canary(folder: Path, order: CanaryOrder) -> None:
    """Have the services of this log folder run another canary, or none, without a restart."""
    _write(folder / _ORDER, order)


def ordered_canary(folder: Path) -> CanaryOrder | None:
    """The order in this folder, None where there is none; LogError of a damaged one."""
    path = folder / _ORDER
    return _parsed(CanaryOrder, path, "order") if path.exists() else None


def refuse_order(folder: Path, order: CanaryOrder, why: str) -> None:
    """Leave word of why a service does not follow an order; '' takes the word back."""
    path = folder / _REFUSED
    if why:
        _write(path, {"order": asdict(order), "why": why})
    else:
        path.unlink(missing_ok=True)


def refused_order(folder: Path, order: CanaryOrder) -> str:
    """Why a service does not follow this order, '' where none says so."""
    try:
        found = json.loads((folder / _REFUSED).read_text(encoding="utf-8"))
        return str(found["why"]) if found["order"] == asdict(order) else ""
    except (OSError, ValueError, TypeError, KeyError):
        return ""


def begin_canary(folder: Path, fresh: CanaryRecord) -> CanaryRecord:
    """The record of this revision: the one that is there, else `fresh`, which is written.

    Raises:
        LogError: It cannot be read or written.
    """
    path = _path(folder, fresh.digest)
    if not path.exists():
        _write(path, fresh)
        return fresh
    record = _parsed(CanaryRecord, path, "record")
    if (record.share, record.limit) != (fresh.share, fresh.limit):
        # else nothing is written: somebody may just have stopped it
        record = replace(record, share=fresh.share, limit=fresh.limit)
        _write(path, record)
    return record


def resume_canary(folder: Path, record: CanaryRecord, at: datetime) -> CanaryRecord:
    """Give a stopped canary its share again; what came before does not count against it."""
    began = at.isoformat(timespec="seconds")
    resumed = replace(record, began=began, stopped="", at="")
    _write(_path(folder, record.digest), resumed)
    return resumed


def stop_canary(folder: Path, record: CanaryRecord, why: str, at: datetime) -> CanaryRecord:
    """Write down that a canary is stopped; until its file is removed it stays so."""
    stopped = replace(record, stopped=why, at=at.isoformat(timespec="seconds"))
    _write(_path(folder, record.digest), stopped)
    return stopped


def canaries(folder: Path) -> tuple[CanaryRecord, ...]:
    """Every canary of a log folder, newest first; LogError of a damaged record."""
    paths = folder.glob("canary-*.json")
    found = [_parsed(CanaryRecord, path, "record") for path in paths]
    return tuple(sorted(found, key=lambda one: one.began, reverse=True))


def _path(folder: Path, digest: str) -> Path:
    return folder / f"canary-{digest[:16]}.json"


def _parsed(kind: type[_Kind], path: Path, what: str) -> _Kind:
    try:
        return kind(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise LogError(f"{path}: is no {what} of a canary: {error}; remove it") from error


def _write(path: Path, record: CanaryRecord | CanaryOrder | dict[str, object]) -> None:
    content = record if isinstance(record, dict) else asdict(record)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.chmod(0o600)  # as the segments
            fresh.write_text(json.dumps(content), encoding="utf-8")
    except OSError as error:
        raise LogError(f"{path}: cannot be written: {error.strerror or error}") from error


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
