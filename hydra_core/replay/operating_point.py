"""Operating points by constraint, and what they are worth on queries they were not chosen on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.errors import HydraError
from hydra_core.base.types import IntArray, Rule, Selection
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice
from hydra_core.replay.replay import ReplayData, data_frontier, replay
from hydra_core.replay.step_curve import CurvePoint, StepCurve
from hydra_core.replay.verdict import Verdict, verdict


class InfeasibleError(HydraError):
    """No setting of the knob meets the constraint; the message says what can be reached."""


@dataclass(frozen=True, slots=True)
class CrossFit:
    """An aim solved on one half and measured on the other, both ways round.

    Attributes:
        knobs: The tau (V under the value rule) chosen on each half.
        metrics: All queries, each routed with the knob its own half did not choose.
        verdict: Against the best fixed mix, on the same; its `note` says that it is cross-fitted.
        in_sample_quality: Mean quality the two halves promised where they were chosen.
        optimism: in_sample_quality minus the quality measured on the other half.
    """

    knobs: tuple[float, ...]
    metrics: PolicyMetrics
    verdict: Verdict
    in_sample_quality: float
    optimism: float


def cheapest_with_quality(curve: StepCurve, quality: float) -> CurvePoint:
    """The cheapest point with mean quality >= `quality`; of equals the largest knob.

    Raises:
        InfeasibleError: No setting reaches it.
    """
    feasible = curve.quality >= quality - 1e-12
    if not feasible.any():
        raise InfeasibleError(
            f"no {curve.symbol} reaches {100 * quality:.1f} % quality on this set; the most is "
            f"{100 * float(curve.quality.max()):.1f} %. Ask for less or change the catalog"
        )
    cost = np.where(feasible, curve.mean_cost_usd, np.inf)
    return curve.point(int(np.flatnonzero(cost <= cost.min())[-1]))


def best_with_cost(curve: StepCurve, mean_cost_usd: float) -> CurvePoint:
    """The best quality at no more than this mean cost; of equals the cheapest.

    Raises:
        InfeasibleError: Every setting costs more.
    """
    feasible = curve.mean_cost_usd <= mean_cost_usd + 1e-15
    if not feasible.any():
        raise InfeasibleError(
            f"no {curve.symbol} stays within ${mean_cost_usd:.4g} per query; the cheapest costs "
            f"${float(curve.mean_cost_usd.min()):.4g}. Allow more or change the pool"
        )
    quality = np.where(feasible, curve.quality, -np.inf)
    best = np.flatnonzero(quality >= quality.max())
    return curve.point(int(best[curve.mean_cost_usd[best].argmin()]))


def knee(curve: StepCurve) -> CurvePoint:
    """The point farthest above the straight line from the cheapest to the best point.

    Cost and quality are scaled to [0, 1] over that stretch, so the unit of cost is irrelevant.
    """
    cheap = np.lexsort((-curve.quality, curve.mean_cost_usd))[0]
    best = np.lexsort((curve.mean_cost_usd, -curve.quality))[0]
    cost = curve.mean_cost_usd - curve.mean_cost_usd[cheap]
    quality = curve.quality - curve.quality[cheap]
    if cost[best] <= 0 or quality[best] <= 0:
        return curve.point(int(best))
    return curve.point(int((quality / quality[best] - cost / cost[best]).argmax()))


def cross_fit(
    data: ReplayData,
    aim: Callable[[ReplayData, StepCurve], float],
    *,
    rng: np.random.Generator,
    rule: Rule = Rule.SHORTFALL,
    baseline: str | None = None,
) -> CrossFit:
    """Choose the knob on one half, measure it on the other, both ways; clusters stay together.

    Args:
        data: Replayed set with at least 4 queries (or clusters).
        aim: Takes the data and the curve of a half, returns the knob it would choose.
        rule: Whose knob; the value rule needs data with predictions.
    """
    halves = _halves(data, rng)
    choice = np.empty(len(data.query_ids), dtype=np.intp)
    knobs, promised = [], 0.0
    for here, other in (halves, halves[::-1]):
        half = data.take(other)
        curve = data_frontier(half, rule=rule)
        knob = aim(half, curve)
        knobs.append(knob)
        promised += curve.at(knob).quality * len(here) / len(choice)
        choice[here] = replay(data.take(here), knob, rule=rule)
    metrics = evaluate_choice(data, choice, baseline=baseline)
    found = verdict(data, choice, Selection.CROSS_FITTED, knob=curve.symbol)
    return CrossFit(
        knobs=tuple(knobs),
        metrics=metrics,
        verdict=replace(found, cross_fitted=True),
        in_sample_quality=promised,
        optimism=promised - metrics.quality.value,
    )


def _halves(data: ReplayData, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    units = np.arange(len(data.query_ids)) if data.clusters is None else data.clusters
    names = rng.permutation(np.unique(units))
    first = np.isin(units, names[: len(names) // 2])
    return np.flatnonzero(first), np.flatnonzero(~first)
