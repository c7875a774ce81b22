"""Which numbers of the evidence move routing on an eval set, and which models cannot be reached.

Each number that Algorithm 1 stands on is nudged up and down by a stated step, alone; capabilities,
shortfalls and choices are computed anew, and the queries that change their model are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

import numpy as np

from hydra_core.base.types import Benchmark, BoolArray, Catalog, FloatArray, Pool
from hydra_core.catalog.profiles import capabilities
from hydra_core.replay.metrics import picked
from hydra_core.replay.replay import ReplayData, replay
from hydra_core.routing.matcher import choose, shortfall


class Cell(StrEnum):
    """Which kind of number."""

    SCORE = "score"
    IMPORTANCE = "importance"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Steps:
    """How far each kind of number is nudged: rates and omega absolutely, alpha as a share of it."""

    score: float = 0.05
    importance: float = 0.5
    weight: float = 0.1


@dataclass(frozen=True, slots=True)
class Effect:
    """What nudging one number does.

    Attributes:
        of: The model for a score, the dimension for a weight, '' for an importance.
        delta_quality: Mean quality after minus before, over all queries.
    """

    cell: Cell
    benchmark: str
    of: str
    before: float
    after: float
    flips: int
    delta_quality: float
    delta_cost_usd: float


@dataclass(frozen=True, slots=True)
class Reach:
    """What of the traffic a model gets and could get.

    Attributes:
        share: Of all queries, at the policy's tau.
        at_some_tau: Of all queries, those that some tau sends to it.
        dominated_by: A model ranked before it that is at least as capable on every dimension, so
            that no query ever reaches it; '' for none.
    """

    model: str
    share: float
    at_some_tau: float
    dominated_by: str


def sensitivity(data: ReplayData, catalog: Catalog, steps: Steps = Steps()) -> tuple[Effect, ...]:  # noqa: B008
    """Every number's largest effect of the two directions, those that flip most queries first.

    A nudge that leaves [0, 1] is cut there; a number that is cut to itself has no effect.

    Args:
        catalog: With the policy's tau.
    """
    base = replay(data, catalog.policy.tau)
    quality, cost = (float(picked(v, base).mean()) for v in (data.quality, data.cost_usd))
    rows = [[model.id for model in catalog.models].index(name) for name in data.pool.ids]
    largest: dict[tuple[Cell, str, str], Effect] = {}
    for cell, benchmark, of, before, after, changed in _nudges(catalog, steps):
        lacks = shortfall(data.requirements, capabilities(changed)[rows], data.pool.weights)
        choice = choose(lacks, data.pool.cost, catalog.policy.tau)
        effect = Effect(
            cell, benchmark, of, before, after, int((choice != base).sum()),
            float(picked(data.quality, choice).mean()) - quality,
            float(picked(data.cost_usd, choice).mean()) - cost,
        )  # fmt: skip
        key = (cell, benchmark, of)
        if key not in largest or effect.flips > largest[key].flips:
            largest[key] = effect
    return tuple(sorted(largest.values(), key=lambda effect: -effect.flips))


_Nudge = tuple[Cell, str, str, float, float, Catalog]


def _nudges(catalog: Catalog, steps: Steps) -> Iterator[_Nudge]:
    """Every number a step up and down: which it is, before, after, and the catalog with it."""
    for (b, benchmark), sign in product(enumerate(catalog.benchmarks), (1.0, -1.0)):
        before = benchmark.importance
        after = before * (1.0 + sign * steps.importance)
        changed = _with_benchmark(catalog, b, replace(benchmark, importance=after))
        yield Cell.IMPORTANCE, benchmark.id, "", before, after, changed
        for k, (dimension, before) in enumerate(
            zip(catalog.dimensions, benchmark.weights, strict=True)
        ):
            after = float(np.clip(before + sign * steps.weight, 0.0, 1.0))
            weights = (*benchmark.weights[:k], after, *benchmark.weights[k + 1 :])
            changed = _with_benchmark(catalog, b, replace(benchmark, weights=weights))
            yield Cell.WEIGHT, benchmark.id, dimension, before, after, changed
        for m, model in enumerate(catalog.models):
            if benchmark.id in model.scores:
                before = model.scores[benchmark.id]
                after = float(np.clip(before + sign * steps.score, 0.0, 1.0))
                other = replace(model, scores={**model.scores, benchmark.id: after})
                models = (*catalog.models[:m], other, *catalog.models[m + 1 :])
                changed = replace(catalog, models=models)
                yield Cell.SCORE, benchmark.id, model.id, before, after, changed


def _with_benchmark(catalog: Catalog, b: int, benchmark: Benchmark) -> Catalog:
    benchmarks = (*catalog.benchmarks[:b], benchmark, *catalog.benchmarks[b + 1 :])
    return replace(catalog, benchmarks=benchmarks)


def dominated(capability: FloatArray, cost: FloatArray) -> tuple[int | None, ...]:
    """Per model the index of one that always goes before it, None where there is none.

    Model j always goes before i when it ranks before it (cheaper, or equally dear and earlier)
    and is at least as capable on every dimension: its shortfall is never larger.

    Args:
        capability: (m, K).
        cost: (m,).
    """
    m = len(cost)
    earlier = np.arange(m)[:, None] < np.arange(m)[None, :]
    before = (cost[:, None] < cost[None, :]) | ((cost[:, None] == cost[None, :]) & earlier)
    over: BoolArray = before & (capability[:, None, :] >= capability[None, :, :]).all(axis=2)
    return tuple(int(np.flatnonzero(over[:, i])[0]) if over[:, i].any() else None for i in range(m))


def reach(requirements: FloatArray, pool: Pool, tau: float) -> tuple[Reach, ...]:
    """What every model of the pool gets and could get, cheapest first; no outcome is needed.

    Some tau sends a query to a model exactly when it falls less short than every model ranked
    before it.

    Args:
        requirements: (n, K).
    """
    ids, cost = pool.ids, pool.cost
    order = np.argsort(cost, kind="stable")
    lacks = shortfall(requirements, pool.capabilities, pool.weights)
    least = np.minimum.accumulate(lacks[:, order], axis=1)
    earlier = np.concatenate([np.full((len(lacks), 1), np.inf), least[:, :-1]], axis=1)
    possible = (lacks[:, order] < earlier).mean(axis=0)
    counts = np.bincount(choose(lacks, cost, tau), minlength=len(ids)) / len(lacks)
    over = dominated(pool.capabilities, cost)
    return tuple(
        Reach(
            model=ids[i],
            share=float(counts[i]),
            at_some_tau=float(possible[rank]),
            dominated_by="" if (by := over[i]) is None else ids[by],
        )
        for rank, i in enumerate(order)
    )
