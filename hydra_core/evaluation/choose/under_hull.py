"""Models that a mixture of the others beats at the same cost, beyond doubt.

With such a model in the pool the shortfall rule loses most: a dearer and worse model looks needed
on some dimension. Paired by query, one-sided, corrected for looking at every model (Holm).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.evaluation.replay.matched_cost import MatchedCost, Mix, matched_cost_mix
from hydra_core.evaluation.replay.metrics import single_models, upper_hull
from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.evaluation.significance import holm, standard_error, student_p
from hydra_core.types import FloatArray

__all__ = ["UnderHull", "under_hull"]

_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class UnderHull:
    """A model under the hull of the others.

    Attributes:
        gap: Mean quality that the mixture has more, in [0, 1].
        mix: The mixture of other models at no more than its cost.
        p_value: One-sided, Holm-corrected.
    """

    model: str
    gap: float
    mix: Mix
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.model}: {self.mix} is {100 * self.gap:.1f} points better at no more cost "
            f"(p = {self.p_value:.2g})"
        )


def under_hull(data: ReplayData) -> tuple[UnderHull, ...]:
    """The models that lie under the hull of the others, the clearest first.

    Each is compared with the others' best mixture at its own mean cost; a model cheaper than every
    other is never under their hull.
    """
    singles = single_models(data)
    found: list[tuple[str, float, Mix]] = []
    p_values: list[float] = []
    for one in singles:
        others = [other for other in singles if other.model != one.model]
        if not others or one.mean_cost_usd < min(other.mean_cost_usd for other in others):
            continue
        mix = matched_cost_mix(upper_hull(others), one.mean_cost_usd)
        gap = mix.quality - one.quality
        always = np.full((len(data.query_ids), 1), one.index)
        against = MatchedCost.of([mix], len(singles))
        worse = -against.differences(data.quality, data.cost_usd, always)[:, 0]
        found.append((one.model, gap, mix))
        p_values.append(_p_value(gap, worse - worse.mean(), data))
    rows = [
        UnderHull(model, gap, mix, p)
        for (model, gap, mix), p in zip(found, holm(p_values), strict=True)
        if gap > 0 and p < _LEVEL
    ]
    return tuple(sorted(rows, key=lambda row: row.p_value))


def _p_value(gap: float, influence: FloatArray, data: ReplayData) -> float:
    """One-sided: how likely a gap this wide is where there is none."""
    error, freedom = standard_error(influence, data.clusters)
    if not error > 0:
        return 0.0 if gap > 0 else 1.0
    if gap <= 0:
        return 1.0
    return student_p(gap / error, freedom) / 2
