"""The files of a decision log: segments that are written, finished as Parquet, and recovered.

A segment is `<name>.jsonl`, held by its writer's lock; `<name>.count` beside it says how many
records were accepted for it and outlives the process. A segment whose lock is free belongs to a
process that died: what was flushed is finished, what was not is counted, and both are said.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import struct
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from hydra_core.base.errors import HydraError
from hydra_core.base.whole_file import synced
from hydra_core.decision_log.records import SCHEMA, GapRecord

_LOG = logging.getLogger(__name__)
_COUNT: Final = struct.Struct("<q")


class LogError(HydraError):
    """The decision log cannot be written or read; the message names the file."""


class Segment:
    """One file being written by this process alone.

    Args:
        path: Ends in .jsonl; must not exist yet.

    Raises:
        LogError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _locked(path)
            try:
                self._count = _counter(_count_path(path))
            except OSError:
                for made in (path, _count_path(path)):
                    made.unlink(missing_ok=True)
                os.close(self._file)
                raise
        except OSError as error:
            raise LogError(f"{path}: cannot be written: {error.strerror or error}") from error

    def accepted(self, count: int) -> None:
        """Say how many records this segment will hold in all; survives a killed process."""
        _COUNT.pack_into(self._count, 0, count)

    def append(self, data: bytes) -> None:
        """Write whole lines and wait until they are on the disk.

        Raises:
            OSError: The disk refused; nothing of `data` counts as written.
        """
        view, start = memoryview(data), self.bytes
        try:
            while view:
                view = view[os.write(self._file, view) :]
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, start)
            raise
        self.bytes = start + len(data)

    def close(self) -> None:
        """Let go of the file; `finish` may take it then."""
        self._count.close()
        os.close(self._file)


def _locked(path: Path) -> int:
    """The descriptor of a new file that this process alone holds.

    Between the opening and the lock another process may take the file for one of a dead process,
    finish it and remove it: what is written to it then would be lost, so another one is made.
    """
    while True:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_same_file(file, path):
                return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _counter(path: Path) -> mmap.mmap:
    """Memory of the count, which outlives the process."""
    with path.open("x+b") as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(_COUNT.pack(0))
        stream.flush()
        return mmap.mmap(stream.fileno(), _COUNT.size)


def is_same_file(file: int, path: Path) -> bool:
    """Whether an open file is still the one at this path."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(file)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def finish(path: Path) -> Path | None:
    """A closed segment as Parquet, in one step; None where it held nothing.

    Raises:
        LogError: It cannot be read or written; the segment stays as it is.
    """
    target = path.with_suffix(".parquet")
    try:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole and not target.exists():
            fresh = target.with_name(f".{target.name}.partial")
            fresh.unlink(missing_ok=True)
            fresh.touch(0o600)
            pq.write_table(_table(whole), fresh, compression="zstd")
            synced(fresh)
            os.replace(fresh, target)
            synced(target.parent)
            pa.default_memory_pool().release_unused()  # else a service grows by what it once held
        path.unlink()
        _count_path(path).unlink(missing_ok=True)
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"{path}: cannot be turned into Parquet: {error}") from error
    return target if whole else None


def recover(folder: Path, at: datetime) -> list[GapRecord]:
    """Finish the segments of processes that died; how many records each of them lost.

    The losses are recorded with `at`. A segment that cannot be finished stays as it is, which is
    logged: nothing starts later for it.
    """
    gaps = []
    for path in open_segments(folder):
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            continue  # another process was faster
        with stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its writer is alive
            if not is_same_file(stream.fileno(), path):
                continue  # another process was faster
            lost = _accepted(path) - stream.read().count(b"\n")
            try:
                finish(path)
            except LogError as error:
                _LOG.error("%s; it stays as it is", error)
                continue
        if lost > 0:
            _LOG.warning("%s: %d records had not been flushed and are lost", path.name, lost)
            gaps.append(GapRecord(at, lost, path.stem))
        else:
            _LOG.info("%s: finished after its process died, nothing was lost", path.name)
    return gaps


def open_segments(folder: Path) -> list[Path]:
    """Segments that are not Parquet yet, oldest first."""
    return _files(folder, "*.jsonl")


def parquet_segments(folder: Path) -> list[Path]:
    """Finished segments, oldest first."""
    return _files(folder, "*.parquet")


def _files(folder: Path, pattern: str) -> list[Path]:
    """Regular files alone: to open a pipe would wait for its other end."""
    named = (path for path in folder.glob(pattern) if not path.name.startswith("."))
    return sorted(path for path in named if path.is_file())


def lines_table(path: Path) -> pa.Table:
    """The whole lines of a segment that is not finished.

    Raises:
        FileNotFoundError: It was finished or removed.
        LogError: It cannot be read.
    """
    try:
        data = path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        return _table(whole) if whole else SCHEMA.empty_table()
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"{path}: cannot be read: {error}") from error


def _table(lines: bytes) -> pa.Table:
    options = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    read = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    table = pj.read_json(pa.BufferReader(lines), read_options=read, parse_options=options)
    return table.select(SCHEMA.names).cast(SCHEMA)


def _accepted(path: Path) -> int:
    try:
        raw = _count_path(path).read_bytes()
    except FileNotFoundError:
        return 0
    return int(_COUNT.unpack(raw)[0]) if len(raw) == _COUNT.size else 0


def _count_path(path: Path) -> Path:
    return path.with_suffix(".count")
