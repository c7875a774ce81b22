"""What every source of shortfalls is fitted to: requirements, outcomes and costs as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.choosing.material import Material


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """One row a query with outcomes and costs of all models.

    Attributes:
        models: (m,) ids.
        requirements: (n, K) predicted requirements in [0, 1].
        quality: (n, m) in [0, 1], none missing.
        cost_usd: (n, m) realised cost, USD, none missing.
        clusters: (n,) cluster numbers; queries of one cluster are dependent.
        input_tokens: (n, m) tokens read, None where the set has none.
        output_tokens: (n, m) tokens written, likewise.

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


def groups_of(material: Material) -> list[str] | None:
    """Return the (n,) groups of the complete rows, None where the set has none."""
    queries = material.evalset.queries
    if "group" not in queries.columns:
        return None
    named = queries["group"].iloc[material.rows[material.complete]].fillna("")
    return [str(name) for name in named]


def outcomes_of(material: Material) -> Outcomes:
    """Return the rows of a material on which every model has an outcome and a cost.

    Raises:
        ValueError: No row is complete.
    """
    rows = material.complete
    if not rows.size:
        raise ValueError("no query has an outcome and a cost of every model")
    tokens = (material.input_tokens, material.output_tokens)
    read, written = (
        None if values is None or not np.isfinite(values[rows]).all() else values[rows]
        for values in tokens
    )
    return Outcomes(
        material.models,
        np.asarray(material.messages.requirements[rows], dtype=np.float64),
        material.quality[rows],
        material.cost_usd[rows],
        np.unique(material.clusters[rows], return_inverse=True)[1],
        read,
        written,
    )
