"""Whether live traffic still is what a catalog's promise about quality was made for.

Feedback bets against the promise: wealth starts at 1 and is multiplied by 1 + stake (floor -
outcome) for every rated conversation. While the promise holds, it reaches 1 / (1 - confidence) with
a probability of at most 1 - confidence, however long one looks (Ville).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.types import Catalog, FloatArray
from hydra_core.catalog.promised import not_covered
from hydra_core.live.canary import CANARY
from hydra_core.live.traffic import Traffic

_STAKES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
#: Columns of the log that are read.
COLUMNS: Final = (
    *("arm", "catalog_digest", "conversation_id", "status", "cause", "rule", "quality"),
)


@dataclass(frozen=True, slots=True)
class PromiseStatus:
    """Whether a promise still covers the traffic.

    Attributes:
        ended: Why it is no longer covered; '' while it is.
        floor: Mean quality that it allows.
        rated: Rated conversations of this catalog.
        mean: Their mean outcome; NaN where there is none.
    """

    claim: str
    ended: str
    floor: float
    rated: int
    mean: float

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        if self.ended:
            return f"{self.claim[:1].upper()}{self.claim[1:]}: no longer covered. {self.ended}"
        rated = (
            f"{self.rated:,} rated conversations reach {100 * self.mean:.1f} %, the promise allows "
            f"{100 * self.floor:.1f} %."
            if self.rated
            else "No feedback yet that could contradict it."
        )
        return f"{self.claim[:1].upper()}{self.claim[1:]}. {rated}"


def promise_status(
    catalog: Catalog, traffic: Traffic, changed: Sequence[str] = ()
) -> PromiseStatus | None:
    """Say whether the catalog's promise still covers its traffic; None where it promises nothing.

    Args:
        traffic: Of the log; only decisions that its rule made count.
        changed: Dimensions whose requirements have changed (`Drift.verdict`).
    """
    made = catalog.policy.promise
    if made is None:
        return None
    outcomes = _rated(catalog, traffic)
    mean = float(outcomes.mean()) if outcomes.size else float("nan")
    ended = ""
    if problem := not_covered(catalog):
        ended = f"{problem[:1].upper()}{problem[1:]}."
    elif changed:
        names = ", ".join(name.replace("_", " ") for name in changed)
        ended = f"Requirements have changed ({names}): promise again on an eval set of this log."
    elif evidence(outcomes, made.floor) >= 1.0 / (1.0 - made.confidence):
        ended = (
            f"Feedback contradicts it: {outcomes.size:,} rated conversations reach "
            f"{100 * mean:.1f} %, the promise allows {100 * made.floor:.1f} %."
        )
    return PromiseStatus(made.claim, ended, made.floor, outcomes.size, mean)


def evidence(outcomes: FloatArray, floor: float) -> float:
    """Return the largest wealth of bets that the mean outcome lies below the floor.

    Args:
        outcomes: (n,) in [0, 1], oldest first.
        floor: What was promised, in [0, 1].
    """
    if not outcomes.size:
        return 1.0
    gains = np.clip(floor, 0.0, 1.0) - outcomes
    wealth = sum(np.exp(np.cumsum(np.log1p(stake * gains))) for stake in _STAKES)
    return float(np.max(wealth)) / len(_STAKES)


def _rated(catalog: Catalog, traffic: Traffic) -> FloatArray:
    """(n,) mean outcome of every rated conversation that this catalog's rule routed, in order."""
    rows = traffic.rows
    own = (rows["catalog_digest"] == catalog.digest) & (rows["arm"] != CANARY)
    known = rows["quality"].notna()
    chosen = np.asarray(own & known, dtype=bool) & traffic.routed
    outcomes = pd.Series(rows["quality"].to_numpy(dtype=np.float64)[chosen])
    by_unit = outcomes.groupby(traffic.clusters[chosen], sort=False).mean()
    result: FloatArray = np.clip(by_unit.to_numpy(dtype=np.float64), 0.0, 1.0)
    return result
