"""What an operator may aim at, the setting that serves an aim best, and what it keeps elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from hydra_core.base.errors import HydraError
from hydra_core.base.types import IntArray, Rule, Selection
from hydra_core.replay.frontier import CurvePoint, StepCurve
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice, single_models
from hydra_core.replay.metrics import oracle_quality as quality_of_oracle
from hydra_core.replay.replay import ReplayData, data_frontier, replay
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
    """The cheapest point at `quality` or more (of equals the largest knob), or InfeasibleError."""
    feasible = curve.quality >= quality - 1e-12
    if not feasible.any():
        raise InfeasibleError(
            f"no {curve.symbol} reaches {100 * quality:.1f} % quality on this set; the most is "
            f"{100 * float(curve.quality.max()):.1f} %. Ask for less or change the catalog"
        )
    cost = np.where(feasible, curve.mean_cost_usd, np.inf)
    return curve.point(int(np.flatnonzero(cost <= cost.min())[-1]))


def best_with_cost(curve: StepCurve, mean_cost_usd: float) -> CurvePoint:
    """The best quality at no more than this cost (of equals the cheapest), or InfeasibleError."""
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


class AimKind(StrEnum):
    """The cheapest policy of some quality, the best of some cost, or the best curve as a whole."""

    CHEAPEST_WITH_QR = "cheapest_with_qr"
    BEST_WITH_COST = "best_with_cost"
    HYPERVOLUME = "hypervolume"


@dataclass(frozen=True, slots=True)
class Aim:
    """An aim and its number: a QR in [0, 1], a mean cost in USD per query, or none."""

    kind: AimKind
    value: float = 0.0

    def __str__(self) -> str:
        if self.kind is AimKind.CHEAPEST_WITH_QR:
            return f"the cheapest policy with QR >= {100 * self.value:.1f} %"
        if self.kind is AimKind.BEST_WITH_COST:
            return f"the best quality at no more than ${self.value:.4g} per query"
        return "the largest area under the frontier; tau or V at its knee"

    def met_by(self, qr: float, mean_cost_usd: float) -> bool:
        """Whether a QR in [0, 1] and a mean cost in USD per query keep the aim's limit."""
        if self.kind is AimKind.CHEAPEST_WITH_QR:
            return qr >= self.value - 1e-12
        if self.kind is AimKind.BEST_WITH_COST:
            return mean_cost_usd <= self.value + 1e-12
        return True


@dataclass(frozen=True, slots=True)
class Aimed:
    """The setting that serves an aim best on one curve.

    Attributes:
        knob: tau, or V in USD under the value rule.
        score: Higher is better; only comparable under one aim on one set of queries.
        qr: Mean quality over the oracle's.
        mean_cost_usd: USD per query.
        met: Whether the aim's limit is kept; if not, the knob comes as near to it as it can.
    """

    knob: float
    score: float
    qr: float
    mean_cost_usd: float
    met: bool


def aim_at(
    curve: StepCurve, aim: Aim, oracle_quality: float, data: ReplayData, *, strict: bool = False
) -> Aimed:
    """Solve an aim on one curve.

    Args:
        curve: Of `data`, under either rule.
        oracle_quality: Mean quality of the oracle on `data`.
        data: For the scale of costs.
        strict: Raise where the aim cannot be met instead of coming near to it.

    Raises:
        InfeasibleError: It cannot be met and `strict` is on.
    """
    met, dearest = True, max(float(data.cost_usd.mean(axis=0).max()), 1e-300)
    wants_quality = aim.kind is AimKind.CHEAPEST_WITH_QR
    try:
        if aim.kind is AimKind.HYPERVOLUME:
            point, score = knee(curve), hypervolume(curve, data)
        elif wants_quality:
            point = cheapest_with_quality(curve, aim.value * oracle_quality)
            score = -point.mean_cost_usd / dearest
        else:
            point = best_with_cost(curve, aim.value)
            score = point.quality
    except InfeasibleError:
        if strict:
            raise
        met, cheapest = False, int(curve.mean_cost_usd.argmin())
        point = best_with_cost(curve, np.inf) if wants_quality else curve.point(cheapest)
        score = (point.quality if wants_quality else -point.mean_cost_usd / dearest) - 10.0
    base = oracle_quality if oracle_quality > 0 else 1.0
    return Aimed(point.knob, score, point.quality / base, point.mean_cost_usd, met)


def cross_fit_aim(data: ReplayData, aim: Aim, rule: Rule = Rule.SHORTFALL) -> CrossFit:
    """The aim solved on each half of the queries and measured on the other.

    A half that cannot meet it comes as near to it as it can.
    """

    def knob_of(half: ReplayData, curve: StepCurve) -> float:
        return aim_at(curve, aim, quality_of_oracle(half), half).knob

    return cross_fit(data, knob_of, rng=np.random.default_rng(0), rule=rule)


def hypervolume(curve: StepCurve, data: ReplayData) -> float:
    """Area under the best quality reached at each cost, from the cheapest to the dearest constant.

    Both axes are scaled to those constants' range, so 1 means full quality at the lowest cost.
    """
    costs = [one.mean_cost_usd for one in single_models(data)]
    low, high = min(costs), max(costs)
    if high <= low:
        return float(curve.quality.max())
    order = np.argsort(curve.mean_cost_usd, kind="stable")
    at = np.clip(curve.mean_cost_usd[order], low, high)
    best = np.maximum.accumulate(curve.quality[order])
    width = np.diff(np.append(at, high))
    return float(width @ best) / (high - low)
