"""What every source of shortfalls is fitted to: requirements, outcomes and costs as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.replay import ReplayData


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """One row a query with outcomes and costs of all models.

    Attributes:
        models: (m,) ids.
        requirements: (n, K) predicted requirements in [0, 1].
        quality, cost_usd: (n, m) in [0, 1] and in USD, none missing.
        clusters: (n,) cluster numbers; queries of one cluster are dependent.
        input_tokens, output_tokens: (n, m) read and written, None where the set has none.

    Raises:
        ValueError: The shapes do not fit, or a value is not finite.
    """

    models: tuple[str, ...]
    requirements: FloatArray
    quality: FloatArray
    cost_usd: FloatArray
    clusters: IntArray
    input_tokens: FloatArray | None = None
    output_tokens: FloatArray | None = None

    def __post_init__(self) -> None:
        """Check shapes and values once."""
        n, m = len(self.requirements), len(self.models)
        if self.quality.shape != (n, m) or self.cost_usd.shape != (n, m) or not n:
            raise ValueError(
                f"quality {self.quality.shape} and cost_usd {self.cost_usd.shape} must be "
                f"({n} queries, {m} models), at least one query"
            )
        if self.clusters.shape != (n,):
            raise ValueError(f"clusters must be ({n},), got {self.clusters.shape}")
        for name in ("requirements", "quality", "cost_usd"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} must be finite numbers, got NaN or infinity")

    @property
    def n(self) -> int:
        """Queries."""
        return len(self.requirements)

    def take(self, rows: IntArray) -> Outcomes:
        """Return some of the queries."""
        tokens = (self.input_tokens, self.output_tokens)
        read, written = (None if values is None else values[rows] for values in tokens)
        return Outcomes(
            self.models,
            self.requirements[rows],
            self.quality[rows],
            self.cost_usd[rows],
            np.unique(self.clusters[rows], return_inverse=True)[1],
            read,
            written,
        )

    def levelled(self, others: Outcomes) -> Outcomes:
        """Return these queries with each model's mean quality and cost as on others.

        Quality is shifted, so it may leave [0, 1] a little; cost is scaled.
        """
        shift = others.quality.mean(axis=0) - self.quality.mean(axis=0)
        own, theirs = self.cost_usd.mean(axis=0), others.cost_usd.mean(axis=0)
        factor = np.divide(theirs, own, out=np.ones_like(own), where=own > 0)
        return replace(self, quality=self.quality + shift, cost_usd=self.cost_usd * factor)


def groups_at(evalset: EvalSet, rows: IntArray) -> list[str] | None:
    """Return the (n,) groups of some rows of a set, None where it has none."""
    queries = evalset.queries
    if "group" not in queries.columns:
        return None
    return [str(name) for name in queries["group"].iloc[rows].fillna("")]


def outcomes_of_replay(data: ReplayData, evalset: EvalSet) -> Outcomes:
    """Return the outcomes of a replayed set, at the costs it was replayed with.

    Queries with the same text are one cluster; models without outcomes are left out.
    """
    data = data.with_outcomes
    columns = np.array([evalset.models.index(name) for name in data.pool.ids], dtype=np.intp)
    tokens = []
    for name in ("input_tokens", "output_tokens"):
        values = evalset.extras.get(name)
        part = None if values is None else values[np.ix_(data.rows, columns)]
        tokens.append(part if part is not None and np.isfinite(part).all() else None)
    return Outcomes(
        data.pool.ids,
        data.requirements[:, :-1] if data.pool.level else data.requirements,
        data.quality,
        data.cost_usd,
        clusters_of(data, evalset),
        *tokens,
    )


def clusters_of(data: ReplayData, evalset: EvalSet) -> IntArray:
    """Return the (n,) clusters of the set; else the same text is one cluster."""
    if data.clusters is not None:
        return np.unique(data.clusters, return_inverse=True)[1]
    if evalset.texts is None:
        return np.arange(len(data.query_ids))
    texts = evalset.texts.iloc[data.rows].fillna("").astype(str).str.strip()
    codes: IntArray = pd.factorize(texts)[0].astype(np.intp)
    return codes
