"""What an eval set holds before anything is tuned on it: who solves what, gaps, duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hydra_core.base.intervals import SHARE, Interval
from hydra_core.base.types import FloatArray
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet
from hydra_core.evalsets.suspects import normalised
from hydra_core.replay.significance import mean_interval


@dataclass(frozen=True, slots=True)
class SolvePattern:
    """Queries that exactly these models resolve (of those with all outcomes)."""

    models: tuple[str, ...]
    queries: int


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Queries with one and the same text up to case, spaces and punctuation.

    Attributes:
        clustered: They are declared to be one cluster, so intervals count them once.
    """

    query_ids: tuple[str, ...]
    clustered: bool
    outcomes_differ: bool


@dataclass(frozen=True, slots=True)
class Overlap:
    """Texts that another set holds as well: what is tuned on one is not new to the other."""

    other: str
    queries: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingData:
    """Gaps: per model the queries without (quality, cost), and the queries that are complete."""

    queries: int
    complete: int
    by_model: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        if self.complete == self.queries:
            return f"every model has an outcome and a cost on all {self.queries:,} queries"
        gaps = ", ".join(f"{m}: {q:,} outcomes, {c:,} costs" for m, (q, c) in self.by_model.items())
        return f"{self.complete:,} of {self.queries:,} queries are complete; missing for {gaps}"


@dataclass(frozen=True, slots=True)
class Difficulty:
    """One language or group.

    Attributes:
        quality: Mean over its queries of the models' mean quality, with a 95 % interval.
        oracle: Mean of the best model's quality.
        decidable: Fraction of queries on which the models differ.
    """

    name: str
    n: int
    quality: Interval
    oracle: float
    decidable: float


def solve_patterns(models: Sequence[str], quality: FloatArray) -> tuple[SolvePattern, ...]:
    """Which models resolve what, the most frequent first (for an upset plot).

    Args:
        models: (m,) ids, m <= 62.
        quality: (n, m); rows with a NaN are left out.
    """
    known = quality[np.isfinite(quality).all(axis=1)]
    codes = (known >= RESOLVED_AT).astype(np.int64) @ (1 << np.arange(len(models), dtype=np.int64))
    values, counts = np.unique(codes, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return tuple(
        SolvePattern(
            tuple(model for j, model in enumerate(models) if int(values[i]) >> j & 1),
            int(counts[i]),
        )
        for i in order
    )


def duplicates(evalset: EvalSet) -> tuple[DuplicateGroup, ...]:
    """Texts that occur more than once, the largest groups first.

    A duplicate counts a query twice, and leaks between the part that is tuned on and the part
    that is reported on unless both lie in one cluster.

    Raises:
        EvalSetError: The set has no texts.
    """
    texts = evalset.require_texts("the search for duplicates").map(normalised)
    repeated = texts[texts.duplicated(keep=False)]
    owner = evalset.clusters
    ids = evalset.queries["query_id"]
    found = []
    for _, rows in repeated.groupby(repeated, sort=False).groups.items():
        at = np.asarray(rows, dtype=np.intp)
        solved = np.nan_to_num(evalset.quality[at], nan=-1.0)
        group = DuplicateGroup(
            query_ids=tuple(ids.iloc[at]),
            clustered=owner is not None and len(set(owner[at])) == 1,
            outcomes_differ=bool((solved != solved[0]).any()),
        )
        found.append(group)
    return tuple(sorted(found, key=lambda group: (-len(group.query_ids), group.query_ids)))


def overlaps(evalset: EvalSet, others: Mapping[str, Sequence[str]]) -> tuple[Overlap, ...]:
    """Queries whose text also lies in another set (its name -> its texts); none are left out.

    Raises:
        EvalSetError: The set has no texts.
    """
    texts = evalset.require_texts("the search for overlaps").map(normalised)
    found = []
    for name, theirs in others.items():
        shared = evalset.queries["query_id"][texts.isin({normalised(text) for text in theirs})]
        if len(shared):
            found.append(Overlap(name, len(shared), tuple(shared.iloc[:3])))
    return tuple(found)


def missing_data(evalset: EvalSet) -> MissingData:
    """Where outcomes or costs are missing; nothing is ever filled in."""
    complete = np.isfinite(evalset.quality).all(axis=1) & np.isfinite(evalset.cost_usd).all(axis=1)
    quality, cost = evalset.missing_quality, evalset.missing_cost
    gaps = {m: (quality[m], cost[m]) for m in evalset.models if quality[m] or cost[m]}
    return MissingData(evalset.n, int(complete.sum()), gaps)


def difficulty(evalset: EvalSet, column: str = "language") -> tuple[Difficulty, ...]:
    """How hard the queries of each language or group are, the largest first.

    Args:
        column: `language` or `group`; a set without it gives nothing.
    """
    if column not in evalset.queries.columns:
        return ()
    known = np.isfinite(evalset.quality).all(axis=1)
    names = evalset.queries[column].fillna("").astype(str).to_numpy()
    counts = Counter(names[known].tolist())
    found = []
    for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        quality = evalset.quality[known & (names == name)]
        found.append(
            Difficulty(
                name=name or "(none)",
                n=n,
                quality=mean_interval(quality.mean(axis=1)).clipped(*SHARE),
                oracle=float(quality.max(axis=1).mean()),
                decidable=float(np.mean(quality.max(axis=1) > quality.min(axis=1))),
            )
        )
    return tuple(found)
