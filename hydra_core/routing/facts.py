"""What decided a route: causes, fates, and the facts of one decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from hydra_core.routing.query import Query
from hydra_core.routing.valuation import Valuation
from hydra_core.types import CostBasis, FloatArray, Pool, Rule

__all__ = ["Cause", "Facts", "Fate", "Origin", "Reading"]


class Cause(StrEnum):
    """Why the chosen model was chosen."""

    CHEAPEST_ELIGIBLE = "cheapest_eligible"
    FAIL_OPEN = "fail_open"
    GATEWAY_FALLBACK = "gateway_fallback"
    HIGHEST_VALUE = "highest_value"
    KEPT_BY_SESSION = "kept_by_session"
    KEPT_BELOW_THRESHOLD = "kept_below_threshold"
    KEPT_WITHIN_MARGIN = "kept_within_margin"

    @property
    def keeps(self) -> bool:
        """Whether the conversation kept its model."""
        return self.value.startswith("kept")


class Fate(StrEnum):
    """What became of one candidate."""

    CHOSEN = "chosen"
    DEARER = "dearer"
    SHORT = "short"
    GATED = "gated"
    UNHEALTHY = "unhealthy"
    WORTH_LESS = "worth_less"


@dataclass(frozen=True, slots=True)
class Origin:
    """The catalog revision that decided; `weights` are (K,) as stored."""

    catalog: str
    catalog_digest: str
    predictor_fingerprint: str
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the predictor read of the message, and how long it took.

    Attributes:
        capped: Dimensions whose score was above the catalog's cap and counted as the cap.
        distance: From the messages that the predictor was trained on; None where its bundle has
            nothing to compare with.
    """

    tokens: int
    truncated: bool
    ignored_chars: int
    predict_ms: float
    capped: tuple[str, ...] = ()
    distance: float | None = None

    @property
    def unusual(self) -> bool:
        """Whether the message is unlike those that the predictor was trained on."""
        return self.distance is not None and self.distance > 1.0

    def receipt(self) -> dict[str, Any]:
        """JSON-ready values; distance and flag only where there is something to compare with."""
        found = asdict(self)
        if self.distance is None:
            return {name: value for name, value in found.items() if name != "distance"}
        return {**found, "unusual": self.unusual}


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """A route and everything that decided it.

    Attributes:
        model: The chosen model.
        cause: Why it was chosen.
        pool: The routable models considered.
        dimensions: (K,) names.
        requirements: (K,) predicted requirements, NaN when the session kept the model unscored.
        shortfalls: (m,) weighted shortfalls, NaN likewise.
        gates: Model id -> why a hard gate took it out.
        health: (m,) in [0, 1].
        health_floor: Models below it are vetoed.
        tau: Threshold used.
        cost_basis: Whether the pool's cost is list price (USD per Mtok) or realised (per query).
        origin: The catalog revision.
        query: What was asked, None when only requirements were given.
        reading: What the predictor read, None when it was not asked.
        kept: The conversation's model where it was kept.
        session_note: What the session store has to say, such as that Redis does not answer.
        valuation: Predicted success and cost under the value rule; None under the shortfall rule,
            and where the session kept the model unscored.
        rule: The rule that decided; of the policy where the session kept the model.
    """

    model: str
    cause: Cause
    pool: Pool
    dimensions: tuple[str, ...]
    requirements: FloatArray
    shortfalls: FloatArray
    gates: Mapping[str, str]
    health: FloatArray
    health_floor: float
    tau: float
    cost_basis: CostBasis
    origin: Origin
    query: Query | None = None
    reading: Reading | None = None
    kept: str | None = None
    session_note: str = ""
    valuation: Valuation | None = None
    rule: Rule = Rule.SHORTFALL

    @property
    def index(self) -> int:
        """Row of the chosen model in the pool."""
        return self.pool.ids.index(self.model)

    @property
    def scored(self) -> bool:
        """Whether the predictor was asked (a kept model is not scored)."""
        return not bool(np.isnan(self.requirements).any())
