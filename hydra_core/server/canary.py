"""A canary: a share of the conversations on a second catalog, stopped when it is worse."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from hydra_core.base.errors import HydraError
from hydra_core.decision_log.canaries import CanaryRecord, begin_canary, stop_canary
from hydra_core.decision_log.reading import read_log
from hydra_core.live.canary import COLUMNS, canary_report
from hydra_core.live.traffic import traffic_of
from hydra_core.routing.query import Query
from hydra_core.server.live import LiveCatalog, Serving

_LOG = logging.getLogger(__name__)
#: Time between two looks, in multiples of what a look takes: it may use 5 % of a core.
_REST = 20.0


class Canary:
    """Which conversations are on the canary. Safe to share between threads.

    Args:
        live: The canary's catalog; a new revision of it is a new canary.
        share: Of the conversations, in (0, 1).
        folder: The decision log, which says how both arms do; workers agree through it.
        every_s: Least time between two looks.
        clock: The current moment, with a time zone.
    """

    def __init__(
        self,
        live: LiveCatalog,
        share: float,
        folder: Path,
        every_s: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.live, self._share, self._folder = live, share, folder
        self._every_s, self._clock = every_s, clock
        self._rng, self._problem = random.Random(), ""
        self._record = self._begun(live.now)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="canary", daemon=True)

    def start(self) -> None:
        """Begin to watch both arms."""
        self.live.start()
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        self.live.close()

    @property
    def stopped(self) -> str:
        """Why the canary gets no traffic, '' while it does."""
        return self._record.stopped

    @property
    def problem(self) -> str:
        """What does not work as it should, '' when all does."""
        why = f"canary {self._record.catalog} stopped: {self.stopped}" if self.stopped else ""
        return "; ".join(filter(None, (why, self._problem, self.live.problem)))

    def takes(self, query: Query) -> Serving | None:
        """The canary's revision where this request is on it; a conversation always or never is."""
        serving = self.live.now
        if self.stopped or serving.catalog.digest != self._record.digest:
            return None  # a new revision counts from the next look on, when its record is there
        key = query.conversation_id
        place = self._rng.random() if key is None else _place(serving.catalog.name, key)
        return serving if place < self._share else None

    def look(self) -> None:
        """Read how both arms do, and stop the canary if it is worse."""
        record = self._record = self._begun(self.live.now)
        if record.stopped:
            return
        with (self._folder / ".canary.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another worker looks
            since = datetime.fromisoformat(record.began)
            log = read_log(self._folder, since=since, columns=COLUMNS)
            why = canary_report(traffic_of(log), record.digest).worse
            if why:
                _LOG.error("canary %s is stopped: %s", record.catalog, why)
                self._record = stop_canary(self._folder, record, why, self._clock())

    def _watch(self) -> None:
        pause = self._every_s
        while not self._stop.wait(pause):
            start = time.monotonic()
            try:
                self.look()
                self._problem = ""
            except (HydraError, OSError) as error:
                self._problem = f"canary cannot be watched: {error}"
                _LOG.error("%s", self._problem)
            except Exception as error:  # whatever it was, the next look may see the canary fail
                self._problem = f"canary cannot be watched: {type(error).__name__}"
                _LOG.exception("the canary was not looked at")
            pause = max(self._every_s, _REST * (time.monotonic() - start))

    def _begun(self, serving: Serving) -> CanaryRecord:
        catalog, now = serving.catalog, self._clock().isoformat(timespec="seconds")
        return begin_canary(
            self._folder, CanaryRecord(catalog.digest, catalog.name, self._share, now)
        )


def _place(name: str, conversation_id: str) -> float:
    """In [0, 1): the same for a conversation in every process."""
    digest = hashlib.sha256(f"{name}\0{conversation_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
