"""What an operator may aim at, and the setting of the knob that serves an aim best."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hydra_core.base.types import Rule
from hydra_core.replay.metrics import oracle_quality as quality_of_oracle
from hydra_core.replay.metrics import single_models
from hydra_core.replay.operating_point import (
    CrossFit,
    InfeasibleError,
    best_with_cost,
    cheapest_with_quality,
    cross_fit,
    knee,
)
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.step_curve import StepCurve


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
    if aim.kind is AimKind.HYPERVOLUME:
        point, score = knee(curve), hypervolume(curve, data)
    elif aim.kind is AimKind.CHEAPEST_WITH_QR:
        try:
            point = cheapest_with_quality(curve, aim.value * oracle_quality)
            score = -point.mean_cost_usd / dearest
        except InfeasibleError:
            if strict:
                raise
            point, met = best_with_cost(curve, np.inf), False
            score = point.quality - 10.0
    else:
        try:
            point = best_with_cost(curve, aim.value)
            score = point.quality
        except InfeasibleError:
            if strict:
                raise
            point, met = curve.point(int(curve.mean_cost_usd.argmin())), False
            score = -point.mean_cost_usd / dearest - 10.0
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
