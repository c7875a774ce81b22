"""The one writer of a process: takes records without waiting, writes them a few times a second."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hydra_core.decision_log.records import DecisionRecord, GapRecord, OutcomeRecord, row
from hydra_core.decision_log.segments import LogError, Segment, finish, recover

_LOG = logging.getLogger(__name__)
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
        """Write what waits, now.

        Raises:
            LogError: The disk refused; the records go on waiting.
        """
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
        """Write what waits and finish the segment as Parquet.

        Raises:
            LogError: The disk refused.
        """
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
