"""Every change of a canary by a person: allowed by role, checked, recorded in the audit trail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hydra_core.base.errors import HydraError, Problem, ProblemsError
from hydra_core.decision_log.canaries import (
    CanaryOrder,
    CanaryRecord,
    canaries,
    order_canary,
    resume_canary,
    stop_canary,
)
from hydra_core.store import Action, Actor, Store, require


@dataclass(frozen=True, slots=True)
class CanaryChanges:
    """What one actor does to the canary of the services that write a log.

    Every method raises AccessError where the actor may not, and LogError where the log's folder
    cannot be read or written.

    Attributes:
        folder: The decision log.
        store: Whose audit trail records it; None where the log lies outside any workspace.
        clock: The current moment, with a time zone.
    """

    folder: Path
    actor: Actor
    store: Store | None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def begin(self, order: CanaryOrder, digest: str) -> None:
        """Have the services run this canary, or this share and limit of the one they run.

        A canary that ran before begins anew: what came before does not count against it.

        Args:
            digest: Of the catalog that is ordered.

        Raises:
            ProblemsError: Share or limit make no sense.
        """
        require_order(order)
        self._record(f"begin {order.catalog}, share {order.share:g}, limit {order.limit:g}")
        known = canaries(self.folder)
        again = next((one for one in known if one.digest == digest), None)
        if again is not None and (again.stopped or again is not known[0]):
            resume_canary(self.folder, again, self.clock())
        order_canary(self.folder, order)

    def end(self) -> None:
        """Leave the services without a canary."""
        self._record("end")
        order_canary(self.folder, CanaryOrder(""))

    def stop(self, why: str) -> None:
        """Take the newest canary's traffic away; it can be resumed."""
        newest = self._newest()
        self._record(f"stop {newest.catalog}", why)
        stop_canary(self.folder, newest, why, self.clock())

    def resume(self) -> None:
        """Give the newest canary its share again; what came before does not count against it."""
        newest = self._newest()
        self._record(f"resume {newest.catalog}")
        resume_canary(self.folder, newest, self.clock())

    def _newest(self) -> CanaryRecord:
        found = canaries(self.folder)
        if not found:
            raise HydraError(f"{self.folder}: no canary has begun here; begin one first")
        return found[0]

    def _record(self, what: str, why: str = "") -> None:
        """Before the change: one that cannot be recorded is not made."""
        require(self.actor, Action.CANARY)
        if not self.folder.is_dir():
            raise HydraError(f"{self.folder}: there is no such log folder")
        if self.store is not None:
            subject = f"canary of {self.folder.name}: {what}"
            self.store.record_event(self.actor, Action.CANARY, subject, reason=why)


def require_order(order: CanaryOrder) -> None:
    """Make sure that an order makes sense.

    Raises:
        ProblemsError: With every problem.
    """
    problems = []
    if not order.catalog:
        problems.append(Problem("catalog", "is missing", "name a YAML file or store:NAME"))
    if not 0 < order.share < 1:
        problems.append(Problem("share", f"must be in (0, 1), got {order.share:g}"))
    if order.limit != 0 and not 1 <= order.limit < 1e6:
        problems.append(Problem("limit", f"must be 0 or at least 1, got {order.limit:g}"))
    if problems:
        raise ProblemsError("canary", problems)
