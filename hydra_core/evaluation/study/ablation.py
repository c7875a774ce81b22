"""How much each dimension is worth: the router with K = 1, 2, ... of its dimensions.

Every subset is replayed with the capabilities, bands and weights of the dimensions it keeps. Tau is
chosen on one half for the full policy's cost and measured on the other, so no subset profits from
its own tuning, and all are compared at about the same cost. A router on few dimensions may ask for
less than that at every tau; its cost then says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from hydra_core.catalog.profiles import compensated_weights
from hydra_core.evaluation.replay.folds import Fold, folds
from hydra_core.evaluation.replay.frontier import frontier
from hydra_core.evaluation.replay.metrics import PolicyMetrics, evaluate_choice, picked
from hydra_core.evaluation.replay.replay import ReplayData, replay
from hydra_core.evaluation.replay.verdict import Selection, Verdict, verdict
from hydra_core.evaluation.study.compare import Comparison, compare, policy_run
from hydra_core.types import Band, IntArray

__all__ = ["Ablated", "ablation", "choice_at_cost"]

_MOST = 6


@dataclass(frozen=True, slots=True, eq=False)
class Ablated:
    """The router on some of its dimensions.

    Attributes:
        kept: Names of the dimensions it keeps.
        against_full: It minus the router on all dimensions at the same cost limit, paired.
    """

    kept: tuple[str, ...]
    metrics: PolicyMetrics
    verdict: Verdict
    against_full: Comparison


def ablation(
    data: ReplayData,
    dimensions: Sequence[str],
    stored_weights: Sequence[float],
    bands: Sequence[Band],
    tau: float,
    *,
    seed: int = 0,
) -> tuple[Ablated, ...]:
    """Every subset of the dimensions, largest first, at the cost the full policy has at `tau`.

    Args:
        data: Replayed set.
        dimensions: (K,) names, K <= 6.
        stored_weights: (K,) operator's weights.
        bands: (K,) score bands.
        tau: The full policy's operating point; it sets the cost limit.
        seed: Draws the halves.

    Raises:
        ValueError: More than 6 dimensions.
    """
    count = len(dimensions)
    if not 1 <= count <= _MOST:
        raise ValueError(f"{count} dimensions have too many subsets; at most {_MOST}")
    limit = float(picked(data.cost_usd, replay(data, tau)).mean())
    cut = folds(data, 2, np.random.default_rng(seed))
    subsets = [kept for k in range(count, 0, -1) for kept in combinations(range(count), k)]
    choices = [
        choice_at_cost(_kept(data, kept, stored_weights, bands), cut, limit) for kept in subsets
    ]
    full = policy_run("all dimensions", data, choices[0])
    found = []
    for kept, choice in zip(subsets, choices, strict=True):
        names = tuple(dimensions[k] for k in kept)
        run = policy_run(" + ".join(names), data, choice)
        metrics = evaluate_choice(data, choice)
        said = verdict(data, choice, Selection.CROSS_FITTED)
        found.append(Ablated(names, metrics, said, compare(full, run)))
    return tuple(found)


def _kept(
    data: ReplayData, kept: Sequence[int], stored: Sequence[float], bands: Sequence[Band]
) -> ReplayData:
    columns = list(kept)
    weights = compensated_weights([stored[k] for k in kept], [bands[k] for k in kept])
    pool = replace(data.pool, capabilities=data.pool.capabilities[:, columns], weights=weights)
    return replace(data, requirements=data.requirements[:, columns], pool=pool)


def choice_at_cost(data: ReplayData, cut: Sequence[Fold], limit: float) -> IntArray:
    """(n,) choices: each part at the tau that comes nearest to a cost on the other parts.

    Args:
        cut: The parts, each with the queries that its tau is chosen on.
        limit: USD per query.
    """
    choice = np.empty(len(data.query_ids), dtype=np.intp)
    for fold in cut:
        here = data.take(fold.train)
        curve = frontier(here.shortfalls(), here.pool.cost, here.quality, here.cost_usd)
        row = int(np.abs(curve.mean_cost_usd - limit).argmin())
        choice[fold.test] = replay(data.take(fold.test), float(curve.tau[row]))
    return choice
