"""Two policies on the same queries: what moved from which model to which, and what it changed.

A policy may be a catalog's own, replayed; `what_if` says what another catalog would change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from hydra_core.base.intervals import DIFFERENCE, SHARE, Interval
from hydra_core.base.types import BoolArray, Catalog, FloatArray, IntArray
from hydra_core.evalsets.evalset import RESOLVED_AT, clusters_among
from hydra_core.replay.metrics import (
    PolicyMetrics,
    evaluate_choice,
    maybe_misrouted,
    misrouted,
    picked,
)
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    McNemar,
    mean_interval,
    paired_test,
    ratio_interval,
    saving_interval,
)
from hydra_core.replay.sweep import Sweep


@dataclass(frozen=True, slots=True, eq=False)
class PolicyRun:
    """One policy replayed: per query the model it went to and what came of it.

    Attributes:
        rows: (n,) row numbers in the eval set, ascending.
        ids: (m,) its pool.
        choice: (n,) index in `ids` of the model each query went to.
        quality: (n,) in [0, 1].
        cost_usd: (n,).
        oracle: (n,) the best quality any model of its pool reached.
        misrouted: (n,) whether a cheaper-ranked model resolved the query.
        unknown: (n,) whether the model it went to has no outcomes, so that quality is the least
            possible; None where all have.
        maybe: (n,) `misrouted`, and where a cheaper model without outcomes may have resolved it;
            None where all have.
    """

    name: str
    rows: IntArray
    ids: tuple[str, ...]
    choice: IntArray
    quality: FloatArray
    cost_usd: FloatArray
    oracle: FloatArray
    misrouted: FloatArray
    unknown: BoolArray | None = None
    maybe: FloatArray | None = None

    @property
    def models(self) -> np.typing.NDArray[np.str_]:
        """(n,) model ids."""
        return np.asarray(self.ids)[self.choice]

    @property
    def resolved(self) -> FloatArray:
        """(n,) 1 where the query was resolved, else 0."""
        return (self.quality >= RESOLVED_AT).astype(np.float64)

    @property
    def known_quality(self) -> FloatArray:
        """(n,) quality, NaN where the model chosen has no outcomes."""
        if self.unknown is None:
            return self.quality
        return np.where(self.unknown, np.nan, self.quality)

    @property
    def most(self) -> FloatArray:
        """(n,) the best possible quality: 1 where the model chosen has no outcomes."""
        return self.quality if self.unknown is None else self.quality + self.unknown

    @property
    def perhaps_misrouted(self) -> FloatArray:
        """(n,) 1 where only a cheaper model without outcomes may have resolved the query."""
        return 0.0 * self.misrouted if self.maybe is None else self.maybe - self.misrouted

    def take(self, at: IntArray) -> Self:
        """The same policy on some of the queries alone, by their places."""
        parts = ("rows", "choice", "quality", "cost_usd", "oracle", "misrouted")
        unknown = None if self.unknown is None else self.unknown[at]
        maybe = None if self.maybe is None else self.maybe[at]
        return replace(
            self, unknown=unknown, maybe=maybe, **{name: getattr(self, name)[at] for name in parts}
        )


@dataclass(frozen=True, slots=True)
class FlipCell:
    """Queries that went from one model to another; deltas are b minus a, per such query.

    delta_quality is NaN where nobody knows it.
    """

    before: str
    after: str
    queries: int
    delta_quality: float
    delta_cost_usd: float


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """b against a on the queries both have; every delta is b minus a with a paired interval.

    Attributes:
        left_out: Queries that only one of the two has outcomes for.
        quality, cost_usd, qr, misroute: Deltas per query (quality and rates as fractions).
        retained: QR of a and of b. Both, and their delta, are against one oracle, the best of
            either pool: against its own, a pool that lost a model looks better.
        savings: 1 - cost of b / cost of a.
        flips: From largest to smallest number of queries; the diagonal is not in it.
        flipped: (f,) row numbers in the eval set of the queries that changed model.
        rows: (n,) row numbers compared.
        delta_quality: (n,) per query, NaN where nobody knows it.
        least, most: (n,) what delta_quality is at least and at most.
        delta_cost: (n,) per query, USD.
        mcnemar: On the queries whose change in quality is known; over clusters where there are.
        unknown: Fraction of queries whose change in quality nobody knows, since either side sends
            them to a model without outcomes; the intervals hold all that is possible.
    """

    n: int
    left_out: int
    quality: Interval
    cost_usd: Interval
    qr: Interval
    retained: tuple[Interval, Interval]
    misroute: Interval
    savings: Interval
    mcnemar: McNemar
    flips: tuple[FlipCell, ...]
    flipped: IntArray
    rows: IntArray
    delta_quality: FloatArray
    delta_cost: FloatArray
    least: FloatArray
    most: FloatArray
    unknown: float = 0.0

    @property
    def moved(self) -> float:
        """Fraction of the queries that change model."""
        return len(self.flipped) / self.n


def policy_run(name: str, data: ReplayData, choice: IntArray) -> PolicyRun:
    """What one assignment of queries to models came to."""
    return PolicyRun(
        name=name,
        rows=data.rows,
        ids=data.pool.ids,
        choice=choice,
        quality=picked(data.quality, choice),
        cost_usd=picked(data.cost_usd, choice),
        oracle=picked(data.quality, data.oracle),
        misrouted=misrouted(data, choice).astype(np.float64),
        unknown=data.unknown(choice) if data.unmeasured else None,
        maybe=maybe_misrouted(data, choice).astype(np.float64) if data.unmeasured else None,
    )


def constant_run(data: ReplayData, model: str) -> PolicyRun:
    """Always the same model, or the one that stands in for it where a gate keeps it out."""
    choice = np.full(len(data.rows), data.pool.ids.index(model), dtype=np.intp)
    return policy_run(f"always {model}", data, data.served(choice))


def compare(
    a: PolicyRun, b: PolicyRun, clusters: Sequence[object] | IntArray | None = None
) -> Comparison:
    """Compare b with a, paired by query.

    Args:
        clusters: Cluster of each eval set row, None when all are independent.

    Raises:
        ValueError: They have no query in common.
    """
    rows, in_a, in_b = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
    if not rows.size:
        raise ValueError(f"'{a.name}' and '{b.name}' have no query in common")
    left_out = len(a.rows) + len(b.rows) - 2 * int(rows.size)
    a, b = a.take(in_a), b.take(in_b)
    groups = clusters_among(clusters, rows)
    quality, cost = b.quality - a.quality, b.cost_usd - a.cost_usd
    best = np.maximum(a.oracle, b.oracle)
    names = sorted({*a.ids, *b.ids})
    before, after = (
        np.asarray([names.index(model) for model in run.ids])[run.choice] for run in (a, b)
    )
    unknown = [
        np.zeros(len(rows)) if run.unknown is None else run.unknown * (before != after)
        for run in (a, b)
    ]
    least, most = quality - unknown[0], quality + unknown[1]
    known = np.where(least == most, quality, np.nan)
    wrong, perhaps = b.misrouted - a.misrouted, [run.perhaps_misrouted for run in (a, b)]
    if a.ids == b.ids:
        perhaps = [one * ((before != after) | (perhaps[0] != perhaps[1])) for one in perhaps]

    return Comparison(
        n=int(rows.size),
        left_out=left_out,
        quality=mean_interval(quality, groups)
        .spanning(mean_interval(least, groups), mean_interval(most, groups))
        .clipped(*DIFFERENCE),
        cost_usd=mean_interval(cost, groups),
        qr=ratio_interval(quality, best, groups)
        .spanning(ratio_interval(least, best, groups), ratio_interval(most, best, groups))
        .clipped(*DIFFERENCE),
        retained=(_retained(a, best, groups), _retained(b, best, groups)),
        misroute=mean_interval(wrong, groups)
        .spanning(
            mean_interval(wrong - perhaps[0], groups), mean_interval(wrong + perhaps[1], groups)
        )
        .clipped(*DIFFERENCE),
        savings=saving_interval(b.cost_usd, a.cost_usd, groups),
        mcnemar=tested(b, a, known, groups),
        flips=_flips(names, before, after, known, cost),
        flipped=rows[before != after],
        rows=rows,
        delta_quality=known,
        delta_cost=cost,
        least=least,
        most=most,
        unknown=float(np.isnan(known).mean()),
    )


def tested(b: PolicyRun, a: PolicyRun, change: FloatArray, clusters: IntArray | None) -> McNemar:
    """Test b against a on the queries whose change in quality is known: not NaN in `change`.

    The p value is NaN where it is known of none.
    """
    known = np.flatnonzero(~np.isnan(change))
    if not known.size:
        return McNemar(0, 0, float("nan"), exact=False)
    among = clusters_among(clusters, known)
    return paired_test(b.quality[known], a.quality[known], among)


def _retained(run: PolicyRun, best: FloatArray, groups: IntArray | None) -> Interval:
    found = ratio_interval(run.quality, best, groups)
    if run.unknown is not None:
        found = found.spanning(ratio_interval(run.quality + run.unknown, best, groups))
    return found.clipped(*SHARE)


def _flips(
    names: Sequence[str],
    before: IntArray,
    after: IntArray,
    quality: FloatArray,
    cost: FloatArray,
) -> tuple[FlipCell, ...]:
    moved = before != after
    pair = (before * len(names) + after)[moved]
    counts = np.bincount(pair)
    gained = np.bincount(pair, weights=quality[moved])
    spent = np.bincount(pair, weights=cost[moved])
    cells = [
        FlipCell(
            before=names[i // len(names)],
            after=names[i % len(names)],
            queries=int(counts[i]),
            delta_quality=gained[i] / counts[i],
            delta_cost_usd=spent[i] / counts[i],
        )
        for i in np.flatnonzero(counts).tolist()
    ]
    return tuple(sorted(cells, key=lambda cell: (-cell.queries, cell.before, cell.after)))


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """One catalog with its own policy on one eval set.

    Attributes:
        choice: (n,) pool index each query goes to.
        metrics: With 95 % intervals; savings against its own costliest model.
    """

    catalog: Catalog
    data: ReplayData
    choice: IntArray
    run: PolicyRun
    metrics: PolicyMetrics


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """Two replayed catalogs and their paired differences (after minus before).

    Attributes:
        shares: Model id -> (traffic before, traffic after) as fractions of the common queries;
            models of either pool, cheapest first.
    """

    before: Replayed
    after: Replayed
    comparison: Comparison
    shares: dict[str, tuple[float, float]]


def replay_policy(catalog: Catalog, sweep: Sweep) -> Replayed:
    """Route every query of an eval set as this catalog would, at its own setting.

    Args:
        sweep: The set under the catalog's own rule and weights, for every setting.
    """
    data, choice = sweep.data, sweep.route(catalog.policy.knob)
    return Replayed(
        catalog=catalog,
        data=data,
        choice=choice,
        run=policy_run(catalog.name, data, choice),
        metrics=evaluate_choice(data, choice),
    )


def what_if(before: Replayed, after: Replayed) -> WhatIf:
    """Compare two replayed catalogs, paired by query; ValueError where they share none."""
    data, groups = before.data, None
    if data.clusters is not None:  # of the common rows, all of which are among these
        groups = np.zeros(int(data.rows.max()) + 1, dtype=np.intp)
        groups[data.rows] = data.clusters
    comparison = compare(before.run, after.run, groups)
    return WhatIf(before, after, comparison, _shares(before, after))


def _shares(before: Replayed, after: Replayed) -> dict[str, tuple[float, float]]:
    ranked = {
        model: cost
        for part in (before, after)
        for model, cost in zip(part.data.pool.ids, part.data.pool.cost.tolist(), strict=True)
    }
    return {
        model: (before.metrics.shares.get(model, 0.0), after.metrics.shares.get(model, 0.0))
        for model in sorted(ranked, key=ranked.__getitem__)
    }
