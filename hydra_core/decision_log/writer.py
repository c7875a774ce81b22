"""The files of a decision log: written by one writer a process, finished as Parquet, recovered.

A segment is `<name>.jsonl`, held by its writer's lock; `<name>.count` beside it says how many
records were accepted for it and outlives the process. A segment whose lock is free belongs to a
process that died: what was flushed is finished, what was not is counted, and both are said.
"""

import fcntl
import json
import logging
import mmap
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from hydra_core.base.errors import HydraError
from hydra_core.base.whole_file import synced
from hydra_core.decision_log.records import SCHEMA, DecisionRecord, GapRecord, OutcomeRecord, row

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
        raise LogError(
            f"{path}: cannot be read: {error}; move it to another folder to read the others"
        ) from error


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


#: Records that wait at most while the disk refuses; older ones are given up and counted.
_MOST_WAITING: Final = 100_000
#: While the disk refuses, the time between two tries grows up to this.
_LONGEST_PAUSE_S: Final = 10.0
_ROTATE_S: Final = 3600.0
Record = DecisionRecord | OutcomeRecord | GapRecord


class LogWriter:
    """Appends records to the segments of a folder. Safe to share between threads.

    `add` never waits for the disk. What was added at least `flush_s` ago survives the process.

    Args:
        folder: Made where it is not there; other processes may write to it as well.
        rotate_bytes: A segment of this size is finished as Parquet, as one of an hour is.

    Attributes:
        problem: Why the log cannot be written at the moment, '' when it can.
        given_up: Records that were dropped because the disk refused for too long.

    Raises:
        LogError: The folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        flush_s: float = 0.1,
        rotate_bytes: int = 4 << 20,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder, self._clock = folder, clock
        self._flush_s, self._rotate_bytes = flush_s, rotate_bytes
        self._waiting: deque[Record] = deque()
        self._lock = threading.Lock()  # of the queue and its count
        self._writing = threading.Lock()  # of the segment: one flush at a time
        self._stop = threading.Event()
        self._accepted, self.given_up, self.problem = 0, 0, ""
        self._unfinished: list[Path] = []
        gaps = recover(folder, clock()) if folder.is_dir() else []
        self._segment, self._since = self._fresh(), time.monotonic()
        for gap in gaps:
            self.add(gap)
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)
        self._thread.start()

    def add(self, record: Record) -> None:
        """Take a record; it is on the disk `flush_s` later."""
        with self._lock:
            self._waiting.append(record)
            self._accepted += 1
            self._segment.accepted(self._accepted)
            if len(self._waiting) > _MOST_WAITING:
                self._waiting.popleft()
                self.given_up += 1

    def flush(self) -> None:
        """Write what waits, now. Records go on waiting where the disk refused (LogError)."""
        with self._writing:
            with self._lock:
                records = list(self._waiting)
                self._waiting.clear()
            try:
                self._segment.append(b"".join(map(self._line, records)))
            except OSError as error:
                with self._lock:
                    self._waiting.extendleft(reversed(records))
                self.problem = f"{self._segment.path}: {error.strerror or error}"
                raise LogError(f"{self.problem}; {len(records)} records wait") from error
            try:
                if self._due():
                    self._rotate()
                self._finish()
            except LogError as error:
                self.problem = str(error)
                raise
            self.problem = ""

    def close(self) -> None:
        """Write what waits and finish the segment; LogError where the disk refused."""
        self._stop.set()
        self._thread.join()
        self.flush()
        with self._writing:
            self._segment.close()
            self._unfinished.append(self._segment.path)
            self._finish()

    def _run(self) -> None:
        pause_s = self._flush_s
        while not self._stop.wait(pause_s):
            try:
                self.flush()
                pause_s = self._flush_s
                continue
            except LogError as error:
                _LOG.error("%s", error)
            except Exception:  # whatever it was, later records are written
                _LOG.exception("the decision log was not written")
            pause_s = min(2 * pause_s, max(_LONGEST_PAUSE_S, self._flush_s))

    def _line(self, record: Record) -> bytes:
        """The record as a line; none where it cannot be said in JSON, which counts as given up."""
        try:
            found = row(record)
            text = json.dumps(found, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        except ValueError as error:
            self.given_up += 1
            _LOG.error("a record is left out of the decision log: %s", error)
            return b""
        return text.encode("utf-8", "replace") + b"\n"  # a lone surrogate would spoil the segment

    def _due(self) -> bool:
        segment, age_s = self._segment, time.monotonic() - self._since
        return segment.bytes >= self._rotate_bytes or (segment.bytes > 0 and age_s > _ROTATE_S)

    def _rotate(self) -> None:
        done = self._segment
        fresh = self._fresh()
        with self._lock:  # what waits now belongs to the next segment
            done.accepted(self._accepted - len(self._waiting))
            self._segment, self._since = fresh, time.monotonic()
            self._accepted = len(self._waiting)
            fresh.accepted(self._accepted)
        done.close()
        self._unfinished.append(done.path)

    def _finish(self) -> None:
        """Turn the segments that are done into Parquet; one that cannot be is tried again."""
        while self._unfinished:
            finish(self._unfinished[0])
            del self._unfinished[0]

    def _fresh(self) -> Segment:
        stamp = f"{self._clock().astimezone(UTC):%Y%m%dT%H%M%S.%fZ}"
        return Segment(self._folder / f"decisions-{stamp}-{os.getpid()}.jsonl")
