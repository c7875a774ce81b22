"""QR, CS and misroute (Algorithm 3), and what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hydra_core.base.intervals import COST, SHARE, Interval
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray
from hydra_core.evalsets.evalset import RESOLVED_AT
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    mean_interval,
    per_resolved,
    rate_interval,
    ratio_interval,
    saving_interval,
)


@dataclass(frozen=True, slots=True)
class PolicyMetrics:
    """One policy on one eval set, with 95 % intervals.

    Attributes:
        resolved: Queries with quality >= RESOLVED_AT.
        quality: Mean quality in [0, 1] (resolution rate where outcomes are yes/no).
        per_resolved_usd: USD per resolved query (`significance.per_resolved`).
        qr: Quality retention, quality / oracle quality (Eq. 7).
        cs: Cost savings, 1 - cost / baseline cost.
        misroute: Fraction of all queries a cheaper-ranked model resolved as well.
        baseline: The model that `cs` is measured against.
        shares: Model id -> fraction of traffic.
        unknown: Fraction of traffic that goes to models without outcomes. Quality and QR are then
            the least possible, and their intervals reach to the most possible.
    """

    n: int
    resolved: int
    quality: Interval
    mean_cost_usd: Interval
    per_resolved_usd: Interval
    qr: Interval
    cs: Interval
    misroute: Interval
    baseline: str
    shares: dict[str, float]
    unknown: float = 0.0


@dataclass(frozen=True, slots=True)
class ConstantPolicy:
    """Always the same model: its mean quality and mean cost per query in USD."""

    model: str
    index: int
    resolved: int
    quality: float
    mean_cost_usd: float


def picked(values: FloatArray, choice: ChoiceArray) -> FloatArray:
    """The value of each query's chosen model: (n, m) and (n,) -> (n,), or (n, p) -> (n, p)."""
    rows = np.arange(values.shape[0])
    return values[rows if choice.ndim == 1 else rows[:, None], choice]


def oracle_quality(data: ReplayData) -> float:
    """Mean quality of the oracle, the denominator of QR."""
    return float(picked(data.quality, data.oracle).mean())


def costliest(data: ReplayData) -> str:
    """The default baseline: the measured model with the highest mean realised cost."""
    return data.pool.ids[int(np.where(data.measured, data.alone[1], -np.inf).argmax())]


def misrouted(data: ReplayData, choice: IntArray) -> BoolArray:
    """(n,) True where a model of lower static cost than the chosen one resolved the query."""
    wrong: BoolArray = data.cheapest_resolving < data.pool.cost[choice]
    return wrong


def evaluate_choice(
    data: ReplayData, choice: IntArray, *, baseline: str | None = None
) -> PolicyMetrics:
    """Every metric of one assignment of queries to models.

    Args:
        choice: (n,) index of the chosen model.
        baseline: Model that savings are measured against; default the costliest.

    Raises:
        ValueError: The baseline is not in the pool.
    """
    name = baseline or costliest(data)
    if name not in data.pool.ids:
        raise ValueError(
            f"baseline '{name}' is not among the replayed models: {', '.join(data.pool.ids)}"
        )
    n = len(choice)
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    best = picked(data.quality, data.oracle)
    base_cost = data.cost_usd[:, data.pool.ids.index(name)]
    wrong = misrouted(data, choice)
    counts = np.bincount(choice, minlength=len(data.pool.ids))
    unknown = data.unknown(choice)
    most = quality + unknown

    # at the least possible quality, down to where it would be at the most possible
    least, best_case = (per_resolved(cost, one, data.clusters) for one in (quality, most))

    def mean_quality(values: FloatArray) -> Interval:
        return (rate_interval if data.binary else mean_interval)(values, data.clusters)

    return PolicyMetrics(
        n=n,
        resolved=int((quality >= RESOLVED_AT).sum()),
        quality=mean_quality(quality).spanning(mean_quality(most)).clipped(*SHARE),
        mean_cost_usd=mean_interval(cost, data.clusters).clipped(*COST),
        per_resolved_usd=least.spanning(best_case) if best_case.known and least.known else least,
        qr=ratio_interval(quality, best, data.clusters)
        .spanning(ratio_interval(most, best, data.clusters))
        .clipped(*SHARE),
        cs=saving_interval(cost, base_cost, data.clusters),
        misroute=rate_interval(wrong.astype(np.float64), data.clusters),
        baseline=name,
        shares={m: float(c) / n for m, c in zip(data.pool.ids, counts, strict=True)},
        unknown=float(unknown.mean()),
    )


def single_models(data: ReplayData) -> tuple[ConstantPolicy, ...]:
    """Every model used alone that has outcomes, pool order."""
    figures = zip(data.pool.ids, *data.alone, strict=True)
    return tuple(
        ConstantPolicy(model, i, int(resolved), float(quality), float(cost))
        for i, (model, quality, cost, resolved) in enumerate(figures)
        if data.measured[i]
    )


def upper_hull(singles: Sequence[ConstantPolicy]) -> tuple[ConstantPolicy, ...]:
    """The constants no mixture of others beats, from cheapest to best.

    Between two neighbours lies what a random mixture of the two reaches at that cost.
    """
    hull: list[ConstantPolicy] = []
    for point in sorted(singles, key=lambda p: (p.mean_cost_usd, -p.quality)):
        if hull and point.quality <= hull[-1].quality:
            continue
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(hull)


def _turns_up(a: ConstantPolicy, b: ConstantPolicy, c: ConstantPolicy) -> bool:
    """Whether b lies on or below the line from a to c."""
    left = (b.quality - a.quality) * (c.mean_cost_usd - a.mean_cost_usd)
    right = (c.quality - a.quality) * (b.mean_cost_usd - a.mean_cost_usd)
    return left <= right
