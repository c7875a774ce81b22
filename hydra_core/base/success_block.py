"""Success profiles as a catalog states them: the checked block `success_profiles`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from hydra_core.base.digests import text_sha256

#: Of each dimension, in catalog order: one number a knot.
PerDimension = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ModelSuccess:
    """Success and cost of one model.

    Attributes:
        intercept: Success of a query that requires nothing.
        adds: What a requirement at each knot adds to it.
        tokens: Mean tokens read and written a query; None where `cost_usd` stands instead.
        cost_usd: Mean cost of a query, USD.
    """

    intercept: float
    adds: PerDimension
    tokens: tuple[float, float] | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class SuccessBlock:
    """Success profiles of a catalog's models.

    Attributes:
        evalset: Name of the eval set that they were fitted to.
        digest: That set's digest (SHA-256, hex).
        queries: How many of its queries.
        knots: Requirements at which the curves are given, ascending, the last one 1.
        cost_intercept: Of the log of the cost factor that all models share.
        cost_adds: What a requirement at each knot adds to it.
        models: By id.
    """

    evalset: str
    digest: str
    queries: int
    knots: PerDimension
    cost_intercept: float
    cost_adds: PerDimension
    models: Mapping[str, ModelSuccess]

    @property
    def sha256(self) -> str:
        """Hex digest of all that it says."""
        return text_sha256(json.dumps(asdict(self), sort_keys=True))
