"""What a catalog states of a fit: the checked blocks `success_profiles` and `policy.promise`."""

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
    """Success profiles of a catalog's models, by id.

    Attributes:
        evalset: Name of the eval set that they were fitted to.
        digest: That set's digest (SHA-256, hex).
        queries: How many of its queries.
        knots: Requirements at which the curves are given, ascending, the last one 1.
        cost_intercept: Of the log of the cost factor that all models share.
        cost_adds: What a requirement at each knot adds to it.
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


@dataclass(frozen=True, slots=True)
class Promised:
    """At most so far below the best single model, with a confidence.

    Attributes:
        within: How far below it mean quality may lie, in units of quality, in (0, 1).
        confidence: In (0, 1).
        baseline: The best single model.
        floor: Mean quality that the promise allows: the baseline's on those queries less `within`.
        saving: Share of the baseline's cost that is saved.
        queries: Independent queries that it was calibrated on.
        evalset: Name of the eval set.
        calibrated_on: Which predictions the routes came from, in words.
        routes_by: Digest of all that decided the routes; it holds for these alone.
    """

    within: float
    confidence: float
    baseline: str
    floor: float
    saving: float
    queries: int
    evalset: str
    calibrated_on: str
    routes_by: str

    @property
    def claim(self) -> str:
        """What is promised, in words."""
        return (
            f"at most {100 * self.within:g} points below {self.baseline}, with "
            f"{100 * self.confidence:g} % confidence"
        )
