"""One eval set under one policy, with everything Tune and Overview draw from it. No streamlit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import numpy as np

from hydra_core.catalog.profiles import compensated_weights, pool
from hydra_core.errors import MismatchError
from hydra_core.evaluation.choose.operating_point import (
    CrossFit,
    InfeasibleError,
    best_with_cost,
    cheapest_with_quality,
    cross_fit,
    data_frontier,
    knee,
    oracle_quality,
)
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.frontier import Frontier, shares
from hydra_core.evaluation.replay.metrics import (
    ConstantPolicy,
    PolicyMetrics,
    costliest,
    evaluate_choice,
    oracle_choice,
    single_models,
    upper_hull,
)
from hydra_core.evaluation.replay.replay import ReplayData, align
from hydra_core.evaluation.replay.verdict import Verdict, verdict
from hydra_core.routing.matcher import choose
from hydra_core.types import Catalog, CostBasis, FloatArray, IntArray

__all__ = [
    "Aim",
    "Bench",
    "Point",
    "build",
    "held_out",
    "measure",
    "solve",
    "tidy_tau",
    "turning_points",
]

_SHARE_STEPS = 160
_SLIDER_STEPS = 140


class Aim(StrEnum):
    """What the constraint solver looks for."""

    QR = "qr"
    COST = "cost"
    KNEE = "knee"


@dataclass(frozen=True, slots=True, eq=False)
class Bench:
    """An eval set replayed under one set of weights, for every tau.

    Attributes:
        weights: (K,) stored weights w_k.
        compensated: (K,) w~ (Eq. 4).
        order: (m,) pool columns from cheapest to dearest.
        shortfalls: (n, m), pool order.
        oracle: Metrics of the oracle.
        baselines: Models that savings can be measured against, dearest first.
        steps: (s,) taus that lie evenly along the curve, 0 first; the slider's positions.
        shares_tau: (t,) taus of `shares`.
        shares: (t, m) traffic, columns in `order`.
    """

    evalset: EvalSet
    catalog: Catalog
    data: ReplayData
    weights: tuple[float, ...]
    compensated: FloatArray
    curve: Frontier
    order: IntArray
    shortfalls: FloatArray
    singles: tuple[ConstantPolicy, ...]
    hull: tuple[ConstantPolicy, ...]
    oracle: PolicyMetrics
    baselines: tuple[str, ...]
    steps: tuple[float, ...]
    shares_tau: FloatArray
    shares: FloatArray

    @property
    def models(self) -> tuple[str, ...]:
        """Model ids from cheapest to dearest by the pool's cost order."""
        return tuple(self.data.pool.ids[i] for i in self.order)

    @property
    def binary(self) -> bool:
        """Whether every outcome is a plain yes or no."""
        return bool(np.isin(self.data.quality, (0.0, 1.0)).all())

    def cost_of(self, model: str) -> float:
        """Mean realised cost of always using `model`, USD per query."""
        return self.singles[self.data.pool.ids.index(model)].mean_cost_usd


@dataclass(frozen=True, slots=True)
class Point:
    """The policy at one tau: its metrics with intervals and its verdict."""

    tau: float
    choice: IntArray
    metrics: PolicyMetrics
    verdict: Verdict


def build(
    evalset: EvalSet,
    catalog: Catalog,
    scores: FloatArray | None,
    weights: tuple[float, ...],
    *,
    today: date,
) -> Bench:
    """Replay an eval set under a catalog's pool and the given weights.

    Args:
        scores: (n, K) requirements from the catalog's own predictor bundle, None if not scored.
        weights: (K,) stored weights, > 0.

    Raises:
        MismatchError: Not scored for this catalog's bundle, or no common models.
    """
    if scores is None:
        raise MismatchError(
            f"Eval set '{evalset.name}' is not scored by '{catalog.predictor}' "
            f"({catalog.predictor_fingerprint[:12]}), the predictor that catalog "
            f"'{catalog.name}' is bound to. Score it on the Eval sets page, or choose a catalog "
            "whose predictor has scored it"
        )
    realised = None
    if catalog.policy.cost_basis is CostBasis.REALISED:
        means = np.nanmean(evalset.cost_usd, axis=0)
        realised = dict(zip(evalset.models, means.tolist(), strict=True))
    models = pool(catalog, today=today, weights=weights, realised_cost=realised)
    data = align(evalset, scores, models)
    curve = data_frontier(data)
    shortfalls = data.shortfalls()
    singles = single_models(data)
    order = np.argsort(data.pool.cost, kind="stable")
    top = max(float(curve.tau[-1]) * 1.02, 0.01)
    grid = np.linspace(0.0, top, _SHARE_STEPS)
    best = oracle_choice(data)
    dearest = sorted(singles, key=lambda s: -s.mean_cost_usd)
    traffic = shares(shortfalls, data.pool.cost, grid)[:, order]
    compensated = compensated_weights(np.asarray(weights), catalog.bands)
    for array in (shortfalls, order, grid, traffic, compensated):
        array.setflags(write=False)  # a bench is shared by every session
    return Bench(
        evalset=evalset,
        catalog=catalog,
        data=data,
        weights=weights,
        compensated=compensated,
        curve=curve,
        order=order,
        shortfalls=shortfalls,
        singles=singles,
        hull=upper_hull(singles),
        oracle=evaluate_choice(data, best),
        baselines=tuple(s.model for s in dearest),
        steps=turning_points(curve, _SLIDER_STEPS),
        shares_tau=grid,
        shares=traffic,
    )


def measure(bench: Bench, tau: float, baseline: str | None = None) -> Point:
    """Metrics and verdict of the policy at this tau."""
    choice = choose(bench.shortfalls, bench.data.pool.cost, tau)
    name = baseline if baseline in bench.data.pool.ids else costliest(bench.data)
    return Point(
        tau=tau,
        choice=choice,
        metrics=evaluate_choice(bench.data, choice, baseline=name),
        verdict=verdict(bench.data, choice),
    )


def tidy_tau(curve: Frontier, tau: float) -> float:
    """The shortest decimal that routes exactly as `tau` does on this set."""
    row = curve.row(tau)
    low = float(curve.tau[row])
    high = float(curve.tau[row + 1]) if row + 1 < curve.tau.size else np.inf
    for digits in range(2, 15):
        scale = 10.0**digits
        candidate = float(np.ceil(low * scale - 1e-9) / scale)
        if low <= candidate < high:
            return candidate
    return low


def turning_points(curve: Frontier, steps: int) -> tuple[float, ...]:
    """Tidy taus that lie evenly along the curve, so that each step moves the plot alike."""
    rows = curve.simplified(steps)
    return tuple(sorted({tidy_tau(curve, float(curve.tau[row])) for row in rows}))


def solve(data: ReplayData, curve: Frontier, aim: Aim, goal: float) -> float:
    """The tau that meets an aim on this data.

    Args:
        goal: QR in percent, USD per query, or unused.

    Raises:
        InfeasibleError: No tau meets it.
    """
    if aim is Aim.QR:
        return cheapest_with_quality(curve, goal / 100 * oracle_quality(data)).tau
    return (best_with_cost(curve, goal) if aim is Aim.COST else knee(curve)).tau


def held_out(bench: Bench, aim: Aim, goal: float) -> CrossFit:
    """The same aim solved on one half and measured on the other, both ways round."""

    def choose_tau(data: ReplayData, curve: Frontier) -> float:
        try:
            return solve(data, curve, aim, goal)
        except InfeasibleError:  # this half cannot reach it: its best is the nearest it has
            return best_with_cost(curve, np.inf).tau if aim is Aim.QR else knee(curve).tau

    return cross_fit(bench.data, choose_tau, rng=np.random.default_rng(0))
