"""A canary: a share of the conversations on a second catalog, stopped when it is worse."""

import contextlib
import fcntl
import hashlib
import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from hydra_core.base.errors import HydraError
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    CanaryRecord,
    begin_canary,
    ordered_canary,
    refuse_order,
    resume_canary,
    stop_canary,
)
from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.writer import LogError
from hydra_core.live.canary import COLUMNS, LIMIT, canary_report
from hydra_core.live.traffic import traffic_of
from hydra_core.routing.query import Query
from hydra_core.server.live import LiveCatalog, Serving, Watch

_LOG = logging.getLogger(__name__)
#: Time between two looks, in multiples of what a look takes: it may use 5 % of a core.
_REST = 20.0
#: An order, a stop or a resumption is taken in after so many seconds.
_SOON_S = 0.5


class Canary(Watch):
    """Which conversations are on the canary. Safe to share between threads.

    Args:
        live: The canary's catalog; a new revision of it is a new canary.
        share: Of the conversations, in (0, 1).
        folder: The decision log, which says how both arms do; workers agree through it.
        limit: So many times dearer or slower than the main revision stops it; 0 for never.
    """

    def __init__(
        self,
        live: LiveCatalog,
        share: float,
        folder: Path,
        every_s: float = 5.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        limit: float = LIMIT,
    ) -> None:
        super().__init__("canary", "canary cannot be watched", min(every_s, _SOON_S))
        self.live, self._share, self._folder, self._limit = live, share, folder, limit
        self._pause_s, self._due, self._clock = every_s, time.monotonic() + every_s, clock
        self._rng, self._problem = random.Random(), ""
        self._record = self._begun(live.now)

    def start(self) -> None:
        """Begin to watch both arms."""
        self.live.start()
        super().start()

    def close(self) -> None:
        super().close()
        self.live.close()

    @property
    def stopped(self) -> str:
        """Why the canary gets no traffic, '' while it does."""
        return self._record.stopped

    @property
    def stopped_at(self) -> str:
        """When it was stopped, '' while it gets traffic."""
        return self._record.at

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
        if self._clock() < datetime.fromisoformat(record.began):  # the clock went back
            record = self._record = resume_canary(self._folder, record, self._clock())
        with (self._folder / ".canary.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return  # another worker looks
            since = datetime.fromisoformat(record.began)
            log = read_log(self._folder, since=since, columns=COLUMNS)
            why = canary_report(traffic_of(log), record.digest, record.limit).worse
            if why:
                extra = {"event": "canary_stopped", "catalog": record.catalog}
                _LOG.error("a canary is stopped: %s", why, extra=extra)
                self._record = stop_canary(self._folder, record, why, self._clock())

    def _turn(self) -> None:
        start = time.monotonic()
        if start < self._due:  # somebody may have stopped or resumed it: that takes no look
            self._record = self._begun(self.live.now)
            return
        try:
            self.look()
            self._problem = ""
        finally:
            took_s = time.monotonic() - start
            self._due = start + took_s + max(self._pause_s, _REST * took_s)

    def _failed(self, error: Exception) -> None:
        known = isinstance(error, HydraError | OSError)
        problem = f"{self._trouble}: {error if known else type(error).__name__}"
        if problem != self._problem:
            super()._failed(error)
        self._problem = problem

    def _begun(self, serving: Serving) -> CanaryRecord:
        catalog, now = serving.catalog, self._clock().isoformat(timespec="seconds")
        return begin_canary(
            self._folder,
            CanaryRecord(catalog.digest, catalog.name, self._share, now, limit=self._limit),
        )


class Canaries(Watch):
    """The canary of a service: as its log folder orders, else as the command line says.

    Args:
        folder: The decision log; an order in it is followed without a restart.
        make: Makes the canary of an order; raises HydraError where it cannot run.
        first: What the command line says; no catalog for no canary.

    Raises:
        HydraError: The first canary cannot run.
    """

    def __init__(
        self, folder: Path, make: Callable[[CanaryOrder], Canary], first: CanaryOrder
    ) -> None:
        super().__init__("canary-orders", "the canary's order was not read", _SOON_S)
        self._folder, self._make, self._first = folder, make, first
        self._order = ordered_canary(folder) or first
        self.current = make(self._order) if self._order.catalog else None
        self._problem = ""

    def start(self) -> None:
        """Begin to watch both arms and the orders."""
        if self.current is not None:
            self.current.start()
        super().start()

    def close(self) -> None:
        super().close()
        if self.current is not None:
            self.current.close()

    @property
    def problem(self) -> str:
        """What does not work as it should, '' when all does."""
        own = self.current.problem if self.current is not None else ""
        return "; ".join(filter(None, (own, self._problem)))

    def look(self) -> None:
        """Take a new order; one that cannot be followed leaves the canary as it is."""
        order = None
        try:
            order = ordered_canary(self._folder) or self._first
            if order == self._order:
                if self._problem:
                    self._leave_word(order, "")
                self._problem = ""
                return
            fresh = self._make(order) if order.catalog else None
        except (HydraError, OSError) as error:
            problem = f"the canary's order is not followed: {error}"
            if problem != self._problem:
                _LOG.error("%s", problem)
                self._leave_word(order, str(error))
            self._problem = problem
            return
        self._leave_word(order, "")
        if fresh is not None:
            fresh.start()
        before, self.current, self._order, self._problem = self.current, fresh, order, ""
        if before is not None:
            before.close()
        extra = {"event": "canary_ordered", "catalog": order.catalog or None}
        _LOG.info("a canary is ordered, or none", extra=extra)

    def _leave_word(self, order: CanaryOrder | None, why: str) -> None:
        """Have whoever gave the order see why it is not followed; the service goes on without."""
        with contextlib.suppress(LogError, OSError):
            if order is not None:
                refuse_order(self._folder, order, why)


def _place(name: str, conversation_id: str) -> float:
    """In [0, 1): the same for a conversation in every process."""
    digest = hashlib.sha256(f"{name}\0{conversation_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
