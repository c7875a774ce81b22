"""What a log folder remembers of its canaries: when each began, its share, why it was stopped.

One small JSON file a revision: workers, a restarted service and the console read the same.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from hydra_core.base.whole_file import whole_file
from hydra_core.decision_log.segments import LogError

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
    """The order in this folder, None where there is none.

    Raises:
        LogError: It is damaged.
    """
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
    """Every canary of a log folder, newest first.

    Raises:
        LogError: A record is damaged.
    """
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
