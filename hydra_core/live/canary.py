"""A canary against the main revision: first attempts, time, cost and feedback, at any moment.

The unit is a conversation. All metrics share the 5 %: the canary is stopped when one is worse by an
always-valid interval. A first attempt that failed counts although another model answered then.
Dearer or slower may be meant: that stops a canary from `limit` times on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import HydraError, Problem, ProblemsError
from hydra_core.base.intervals import LEVEL
from hydra_core.base.spelling import usd
from hydra_core.base.types import BoolArray, FloatArray, IntArray
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    CanaryRecord,
    canaries,
    order_canary,
    ordered_canary,
    resume_canary,
    stop_canary,
)
from hydra_core.live.flight.effects import Effect, Moments, compare, moments
from hydra_core.live.traffic import Traffic
from hydra_core.store.roles import Action, Actor, require

if TYPE_CHECKING:
    from hydra_core.store.store import Store

MAIN: Final = "main"
CANARY: Final = "canary"
#: Columns of the log that are looked at.
COLUMNS: Final = (
    "arm", "catalog_digest", "conversation_id", "status", "attempts", "vetoed", "latency_ms",
    "cost_usd", "about_usd",
)  # fmt: skip
#: So many times dearer or slower than the main revision stops a canary.
LIMIT: Final = 2.0
#: Conversations that each arm needs before anything is said.
LEAST_UNITS: Final = 30
_METRICS: Final = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """A value in [0, 1] by conversation in both arms.

    Attributes:
        units: Conversations (main, canary) that have it.
        means: (main, canary), NaN where there is none.
        effect: Canary minus main; None while an arm has too few units. One good and one bad unit
            are added to each arm, so that an error that was not seen yet is not taken for 0.
    """

    units: tuple[int, int]
    means: tuple[float, float]
    effect: Effect | None


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """How a canary does so far.

    Attributes:
        failed: Share of requests whose first attempt failed, or whose model was not even asked
            because it had failed just before.
        quality: Mean feedback.
        worse: Why the canary should stop, '' while it may go on.
        rejected: Share of requests that an upstream said to be wrong.
        latency_ms, cost_usd: Means of a request.
    """

    failed: Compared
    quality: Compared
    rejected: Compared
    latency_ms: Compared
    cost_usd: Compared
    worse: str = ""


def canary_report(traffic: Traffic, digest: str, limit: float = LIMIT) -> CanaryReport:
    """How a canary does.

    Args:
        digest: The canary's catalog; earlier canaries in the log do not count.
        limit: So many times dearer or slower stops it; 0 for never.
    """
    rows = traffic.rows
    canary = (rows["arm"] == CANARY) & (rows["catalog_digest"] == digest)
    main = (rows["arm"] == MAIN) & (rows["at"] >= rows["at"].where(canary).min())
    some = traffic.take(np.asarray(canary | main, dtype=bool))
    status = some.rows["status"]
    ended = np.asarray(status.isin(("answered", "failed", "rejected")), dtype=bool)
    again = some.rows["attempts"].map(len).to_numpy() > 0
    vetoed = some.rows["vetoed"].fillna("").to_numpy() != ""
    first_failed = again | vetoed | (status == "failed").to_numpy()
    rated = some.rows["quality"].to_numpy(dtype=np.float64)
    cost_usd = some.rows["cost_usd"].fillna(some.rows["about_usd"])
    report = CanaryReport(
        failed=_compared(some, ended, np.asarray(first_failed, dtype=np.float64)),
        quality=_compared(some, np.isfinite(rated), rated),
        rejected=_compared(some, ended, np.asarray(status == "rejected", dtype=np.float64)),
        latency_ms=_compared_size(some, some.rows["latency_ms"], ended),
        cost_usd=_compared_size(some, cost_usd, ended),
    )
    return replace(report, worse=_worse(report, limit))


def _compared_size(some: Traffic, values: pd.Series[float], ended: BoolArray) -> Compared:
    """A value above 0, such as a cost, of the requests that have one."""
    sizes: FloatArray = np.asarray(values, dtype=np.float64)
    return _compared(some, ended & np.isfinite(sizes), sizes, bounded=False)


def _compared(
    some: Traffic, which: BoolArray, values: FloatArray, *, bounded: bool = True
) -> Compared:
    clusters, arm = some.clusters[which], (some.rows["arm"] == CANARY).to_numpy()[which]
    total = np.bincount(clusters, weights=values[which])
    count = np.bincount(clusters)
    of_canary = np.bincount(clusters, weights=arm) > 0
    here = count > 0
    mean, side = total[here] / count[here], of_canary[here].astype(np.intp)
    parts = [mean[side == one] for one in (0, 1)]
    units = (parts[0].size, parts[1].size)
    means = tuple(float(one.mean()) if one.size else float("nan") for one in parts)
    effect = None if min(units) < LEAST_UNITS else _effect(mean, side, bounded=bounded)
    return Compared(units, (means[0], means[1]), effect)


def _effect(mean: FloatArray, side: IntArray, *, bounded: bool) -> Effect:
    """Canary against main; a bad and a good unit in each arm stand for what was not seen yet."""
    ends = [0.0, 1.0] if bounded else [float(mean.min()), float(mean.max())]
    mean, side = np.append(mean, [*ends, *ends]), np.append(side, [0, 0, 1, 1])
    ones = np.ones_like(mean)
    found = moments(mean, ones, 0 * ones, side, (2, 1), np.zeros(3))
    arms = [Moments(found.sums[i], found.origin) for i in (0, 1)]
    return compare(arms[0], arms[1], level=1 - (1 - LEVEL) / _METRICS)


def _worse(report: CanaryReport, limit: float) -> str:
    """The first way in which the canary is worse beyond chance; '' for none."""
    for what, found in (("fail", report.failed), ("are rejected", report.rejected)):
        if found.effect is not None and float(found.effect.lo) > 0:
            main, canary = (100 * mean for mean in found.means)
            return f"{canary:.1f} % of its requests {what}, {main:.1f} % on the main revision"
    quality = report.quality
    if quality.effect is not None and float(quality.effect.hi) < 0:
        main, canary = quality.means
        return f"mean feedback is {canary:.3f}, {main:.3f} on the main revision"
    sizes = (("takes", "{:,.0f} ms".format, report.latency_ms), ("costs", usd, report.cost_usd))
    for verb, spelled, found in sizes:
        effect = found.effect if limit else None
        if effect is not None and float(effect.relative_lo) > limit - 1.0:
            before, now = map(spelled, found.means)
            return f"a request {verb} {now}, {before} on the main revision"
    return ""


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
        self._record("end")
        order_canary(self.folder, CanaryOrder(""))

    def stop(self, why: str) -> None:
        """Take the newest canary's traffic away; it can be resumed."""
        newest, why = self._newest(), why.strip() or "stopped by hand"
        self._record(f"stop {newest.catalog}", why)
        stop_canary(self.folder, newest, why, self.clock())

    def resume(self) -> None:
        """Give the newest canary its share again; what came before does not count against it.

        One that runs is left alone: it would lose what it has seen.
        """
        require(self.actor, Action.CANARY)
        newest = self._newest()
        if not newest.stopped:
            raise HydraError(
                f"{self.folder}: the canary of {newest.catalog} is not stopped; nothing was changed"
            )
        self._record(f"resume {newest.catalog}")
        resume_canary(self.folder, newest, self.clock())

    def _newest(self) -> CanaryRecord:
        found, order = canaries(self.folder), ordered_canary(self.folder)
        if order is not None and not order.catalog:
            raise HydraError(f"{self.folder}: the canary has ended; begin one first")
        if not found and order is not None:
            raise HydraError(f"{self.folder}: no service has begun the canary yet; `end` ends it")
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
    """Make sure that an order makes sense; ProblemsError lists every problem."""
    problems = []
    if not order.catalog:
        problems.append(Problem("catalog", "is missing", "name a YAML file or store:NAME"))
    if not 0 < order.share < 1:
        problems.append(Problem("share", f"must be in (0, 1), got {order.share:g}"))
    if order.limit != 0 and not 1 <= order.limit < 1e6:
        problems.append(Problem("limit", f"must be 0 or at least 1, got {order.limit:g}"))
    ProblemsError.raise_any("canary", problems)
