"""A canary against the main revision: errors and feedback, to be read at any moment.

The unit is a conversation. Both metrics share the 5 %: the canary is stopped when either is worse
by an always-valid interval, however often it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.base.intervals import LEVEL
from hydra_core.base.types import BoolArray, FloatArray, IntArray
from hydra_core.live.flight.effects import Effect, Moments, compare, moments
from hydra_core.live.traffic import Traffic

MAIN: Final = "main"
CANARY: Final = "canary"
#: Columns of the log that are looked at.
COLUMNS: Final = ("arm", "catalog_digest", "conversation_id", "status")
#: Conversations that each arm needs before anything is said.
LEAST_UNITS: Final = 30
_METRICS: Final = 2


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
        failed: Share of failed requests among those answered or failed.
        quality: Mean feedback.
        worse: Why the canary should stop, '' while it may go on.
    """

    failed: Compared
    quality: Compared
    worse: str


def canary_report(traffic: Traffic, digest: str) -> CanaryReport:
    """How a canary does.

    Args:
        digest: The canary's catalog; earlier canaries in the log do not count.
    """
    rows = traffic.rows
    began = rows["at"].where((rows["arm"] == CANARY) & (rows["catalog_digest"] == digest)).min()
    canary = (rows["arm"] == CANARY) & (rows["catalog_digest"] == digest)
    main = (rows["arm"] == MAIN) & (rows["at"] >= began)
    some = traffic.take(np.asarray(canary | main, dtype=bool))
    ended = some.rows["status"].isin(("answered", "failed"))
    failed = np.asarray(some.rows["status"] == "failed", dtype=np.float64)
    errors = _compared(some, np.asarray(ended, dtype=bool), failed)
    told = some.rows["quality"].to_numpy(dtype=np.float64)
    quality = _compared(some, np.isfinite(told), told)
    return CanaryReport(errors, quality, _worse(errors, quality))


def _compared(some: Traffic, which: BoolArray, values: FloatArray) -> Compared:
    clusters, arm = some.clusters[which], (some.rows["arm"] == CANARY).to_numpy()[which]
    total = np.bincount(clusters, weights=values[which])
    count = np.bincount(clusters)
    of_canary = np.bincount(clusters, weights=arm) > 0
    here = count > 0
    mean, side = total[here] / count[here], of_canary[here].astype(np.intp)
    parts = [mean[side == one] for one in (0, 1)]
    units = (parts[0].size, parts[1].size)
    means = tuple(float(one.mean()) if one.size else float("nan") for one in parts)
    effect = None if min(units) < LEAST_UNITS else _effect(mean, side)
    return Compared(units, (means[0], means[1]), effect)


def _effect(mean: FloatArray, side: IntArray) -> Effect:
    mean, side = np.append(mean, [0.0, 1.0, 0.0, 1.0]), np.append(side, [0, 0, 1, 1])
    ones = np.ones_like(mean)
    found = moments(mean, ones, 0 * ones, side, (2, 1), np.zeros(3))
    arms = [Moments(found.sums[i], found.origin) for i in (0, 1)]
    return compare(arms[0], arms[1], level=1 - (1 - LEVEL) / _METRICS)


def _worse(failed: Compared, quality: Compared) -> str:
    if failed.effect is not None and float(failed.effect.lo) > 0:
        main, canary = failed.means
        return f"{100 * canary:.1f} % of its requests fail, {100 * main:.1f} % on the main revision"
    if quality.effect is not None and float(quality.effect.hi) < 0:
        main, canary = quality.means
        return f"mean feedback is {canary:.3f}, {main:.3f} on the main revision"
    return ""
