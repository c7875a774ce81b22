"""What a log folder remembers of its canaries: when each began, its share, why it was stopped.

One small JSON file a canary revision, beside the segments: every worker, a restarted service and
the console read the same.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

from hydra_core.decision_log.segments import LogError
from hydra_core.whole_file import whole_file

__all__ = ["CanaryRecord", "begin_canary", "canaries", "stop_canary"]


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """One canary revision.

    Attributes:
        digest: Of its catalog.
        began: ISO 8601, UTC.
        stopped: Why it was stopped, '' while it runs.
        at: When it was stopped.
    """

    digest: str
    catalog: str
    share: float
    began: str
    stopped: str = ""
    at: str = ""


def begin_canary(folder: Path, fresh: CanaryRecord) -> CanaryRecord:
    """The record of this revision: the one that is there, else `fresh`, which is written.

    Raises:
        LogError: It cannot be read or written.
    """
    path = _path(folder, fresh.digest)
    if path.exists():
        return _read(path)
    _write(path, fresh)
    return fresh


def stop_canary(folder: Path, record: CanaryRecord, why: str, at: datetime) -> CanaryRecord:
    """Write down that a canary is stopped; until its file is removed it stays so.

    Raises:
        LogError: It cannot be written.
    """
    stopped = replace(record, stopped=why, at=at.isoformat(timespec="seconds"))
    _write(_path(folder, record.digest), stopped)
    return stopped


def canaries(folder: Path) -> tuple[CanaryRecord, ...]:
    """Every canary of a log folder, newest first.

    Raises:
        LogError: A record is damaged.
    """
    found = [_read(path) for path in folder.glob("canary-*.json")]
    return tuple(sorted(found, key=lambda one: one.began, reverse=True))


def _path(folder: Path, digest: str) -> Path:
    return folder / f"canary-{digest[:16]}.json"


def _read(path: Path) -> CanaryRecord:
    try:
        return CanaryRecord(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise LogError(f"{path}: is no record of a canary: {error}; remove it") from error


def _write(path: Path, record: CanaryRecord) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as fresh:
            fresh.chmod(0o600)  # as the segments
            fresh.write_text(json.dumps(asdict(record)), encoding="utf-8")
    except OSError as error:
        raise LogError(f"{path}: cannot be written: {error.strerror or error}") from error
