"""Requirement scores of the synthetic queries, and which query carries which of them.

The vectors come from a plain one-factor logit-normal model; nothing about a single vector is
constructed. Its parameters were fitted once so that the shares of traffic along tau match the
published cost savings and misroute rates. What is searched for is only the pairing of vectors
with queries: swaps between two queries are kept when they bring the sweep nearer to the figures.
"""

from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.routing.matcher import choose, shortfall
from sample_data.paper_costs import difficulty
from sample_data.published import (
    CAPABILITIES,
    COST_SAVINGS,
    MODELS,
    N_QUERIES,
    OPERATING_POINTS,
    PARETO,
    SECONDARY_POINTS,
    STRONG,
    compensated_weights,
)

__all__ = ["Target", "draw_scores", "pair", "targets"]

#: Logit-normal parameters per dimension, and the loading of the factor all dimensions share.
LOGIT_MEAN = np.array([-0.450, 0.488, 0.155, -1.763])
LOGIT_SD = np.array([0.279, 0.540, 0.491, 0.514])
LOADING = 0.66
#: Correlation with difficulty that the pairing starts from: a weak predictor.
START_CORRELATION = 0.15
COST_ORDER = np.arange(len(MODELS), dtype=np.float64)
MAX_SWAPS = 60_000
#: What counts as one unit of deviation: resolved queries (QR .2 %), CS .4 %, misroute 1 %.
_TOLERANCE = np.array([0.86, 0.004, 5.0])


@dataclass(frozen=True, slots=True)
class Target:
    """Where the sweep should pass: resolved count, CS and misroute at one tau, with a weight."""

    tau: float
    resolved: float
    cs: float
    misroute: float | None
    weight: float


def draw_scores(rng: np.random.Generator, n: int = N_QUERIES) -> FloatArray:
    """(n, 4) requirement scores in [0, 1], four decimals."""
    factor = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, len(LOGIT_MEAN)))
    logit = LOGIT_MEAN + LOGIT_SD * (LOADING * factor + np.sqrt(1 - LOADING**2) * own)
    return np.asarray(np.round(1.0 / (1.0 + np.exp(-logit)), 4))


def _routes(scores: FloatArray, taus: FloatArray) -> IntArray:
    """(n, 4), (t,) -> (n, t) chosen model."""
    shortfalls = shortfall(scores, CAPABILITIES, compensated_weights())
    return np.stack([choose(shortfalls, COST_ORDER, float(tau)) for tau in taus], axis=1)


def targets(scores: FloatArray) -> tuple[Target, ...]:
    """The named points, then the published frontier at the taus where CS is expected to meet it.

    The paper names tau for few points of its frontier; for the others it is read off the traffic
    shares of these scores.
    """
    named = [Target(p.tau, p.resolved, p.cs, p.misroute, 10.0) for p in OPERATING_POINTS]
    named += [Target(p.tau, p.resolved, p.cs, p.misroute, 4.0) for p in SECONDARY_POINTS]
    grid = np.arange(0.0, 1.5, 0.0025)
    expected = np.array(COST_SAVINGS)[_routes(scores, grid)].mean(axis=0)
    known = {point.cs for point in named}
    for cs, resolved in PARETO:
        if cs not in known:
            tau = float(grid[np.abs(expected - cs).argmin()])
            named.append(Target(tau, resolved, cs, None, 1.0))
    return tuple(named)


def _start(scores: FloatArray, quality: FloatArray, rng: np.random.Generator) -> IntArray:
    """(n,) vector of each query: demanding vectors tend, weakly, to go to hard queries."""
    noise = rng.standard_normal(len(quality))
    key = START_CORRELATION * difficulty(quality) + np.sqrt(1 - START_CORRELATION**2) * noise
    assigned = np.empty(len(quality), dtype=np.intp)
    assigned[np.argsort(key)] = np.argsort((scores * compensated_weights()).sum(axis=1))
    return assigned


def _cheaper_resolved(quality: FloatArray) -> FloatArray:
    """(n, m) -> (n, m): 1 where a model of lower rank resolved the query."""
    before = np.maximum.accumulate(quality, axis=1)
    return np.concatenate([np.zeros((len(quality), 1)), before[:, :-1]], axis=1)


def _goals(goals: tuple[Target, ...]) -> tuple[FloatArray, FloatArray]:
    """(t, 3) wanted totals of resolved, -cost and misroute in `_TOLERANCE` units; their weights."""
    wanted = [[goal.resolved, goal.cs - 1.0, N_QUERIES * (goal.misroute or 0.0)] for goal in goals]
    weight = [
        [goal.weight, goal.weight, 0.0 if goal.misroute is None else 0.3 * goal.weight]
        for goal in goals
    ]
    return np.array(wanted) / _TOLERANCE, np.array(weight)


def pair(
    scores: FloatArray, quality: FloatArray, cost_usd: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Hand the vectors to the queries so that the sweep passes near the published points.

    Args:
        scores: (n, 4) vectors of `draw_scores`.
        quality: (n, m) outcomes.
        cost_usd: (n, m).
        rng: Source of chance for the start and the swaps that are tried.

    Returns:
        (n, 4) the same vectors, in query order.
    """
    goals = targets(scores)
    routes = _routes(scores, np.array([goal.tau for goal in goals]))
    wanted, weight = _goals(goals)
    spent = -cost_usd / cost_usd[:, STRONG].sum()
    table = np.stack([quality, spent, _cheaper_resolved(quality)], axis=2) / _TOLERANCE
    assigned = _start(scores, quality, rng)
    total = table[np.arange(len(quality))[:, None], routes[assigned]].sum(axis=0) - wanted
    loss = float((weight * total**2).sum())
    for one, other in rng.integers(0, len(quality), size=(MAX_SWAPS, 2)):
        route, swapped = routes[assigned[one]], routes[assigned[other]]
        change = table[one][swapped] - table[one][route]
        change = change + table[other][route] - table[other][swapped]
        trial = float((weight * (total + change) ** 2).sum())
        if trial < loss:
            loss, total = trial, total + change
            assigned[[one, other]] = assigned[[other, one]]
    return scores[assigned]
