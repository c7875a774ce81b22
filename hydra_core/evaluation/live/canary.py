"""A canary against the main revision: errors and feedback, to be read at any moment.

The unit is a conversation. Both metrics share the 5 %: the canary is stopped when either is worse
by an always-valid interval, however often it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.evaluation.flight.effects import Effect, compare
from hydra_core.evaluation.flight.moments import Moments, moments
from hydra_core.evaluation.live.traffic import Traffic
from hydra_core.evaluation.significance import LEVEL
from hydra_core.types import BoolArray, FloatArray

__all__ = ["CANARY", "COLUMNS", "LEAST_UNITS", "MAIN", "CanaryReport", "canary_report"]

MAIN: Final = "main"
CANARY: Final = "canary"
#: Columns of the log that are looked at.
COLUMNS: Final = ("arm", "catalog_digest", "conversation_id", "status")
#: Conversations that each arm needs before anything is said.
LEAST_UNITS: Final = 30
_METRICS: Final = 2


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """Canary minus main so far.

    Attributes:
        units: Conversations (main, canary) that were answered or failed.
        errors: Share of failed requests; None while an arm has too few units.
        rated: Conversations (main, canary) with feedback.
        quality: Mean feedback; None likewise.
        worse: Why the canary should stop, '' while it may go on.
    """

    units: tuple[int, int]
    errors: Effect | None
    rated: tuple[int, int]
    quality: Effect | None
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
    units, errors = _compared(some, np.asarray(ended, dtype=bool), failed)
    told = some.rows["quality"].to_numpy(dtype=np.float64)
    rated, quality = _compared(some, np.isfinite(told), told)
    return CanaryReport(units, errors, rated, quality, _worse(errors, quality))


def _compared(
    some: Traffic, which: BoolArray, values: FloatArray
) -> tuple[tuple[int, int], Effect | None]:
    """Conversations in each arm, and the effect on a value in [0, 1]."""
    clusters, arm = some.clusters[which], (some.rows["arm"] == CANARY).to_numpy()[which]
    total = np.bincount(clusters, weights=values[which])
    count = np.bincount(clusters)
    of_canary = np.bincount(clusters, weights=arm) > 0
    here = count > 0
    mean, side = total[here] / count[here], of_canary[here].astype(np.intp)
    units = (int((side == 0).sum()), int((side == 1).sum()))
    if min(units) < LEAST_UNITS:
        return units, None
    # One good and one bad unit more in each arm: where none failed yet, the error is not 0.
    mean, side = np.append(mean, [0.0, 1.0, 0.0, 1.0]), np.append(side, [0, 0, 1, 1])
    ones = np.ones_like(mean)
    found = moments(mean, ones, 0 * ones, side, (2, 1), np.zeros(3))
    arms = [Moments(found.sums[i], found.origin) for i in (0, 1)]
    return units, compare(arms[0], arms[1], level=1 - (1 - LEVEL) / _METRICS)


def _worse(errors: Effect | None, quality: Effect | None) -> str:
    if errors is not None and float(errors.lo) > 0:
        return (
            f"{float(errors.treatment):.1%} of its requests fail, "
            f"{float(errors.control):.1%} on the main revision"
        )
    if quality is not None and float(quality.hi) < 0:
        return (
            f"mean feedback is {float(quality.treatment):.3f}, "
            f"{float(quality.control):.3f} on the main revision"
        )
    return ""
