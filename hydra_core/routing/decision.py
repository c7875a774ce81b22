"""What goes into a decision and what comes out of it: query, decision, receipt.

The receipt is plain JSON and holds everything that decided; `redecide.redecide`
recomputes the model from it alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from hydra_core.predictor.signals import signals
from hydra_core.routing.query import Query
from hydra_core.routing.reasons import Cause, Fate, fate_of
from hydra_core.routing.valuation import Valuation
from hydra_core.types import CostBasis, FloatArray, Pool, Rule

__all__ = [
    "RECEIPT_SCHEMA",
    "Candidate",
    "Cause",
    "Decision",
    "Fate",
    "Origin",
    "Query",
    "Reading",
]

RECEIPT_SCHEMA: Final = "hydra.receipt/v1"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model in a decision.

    Attributes:
        cost: What orders the models, in the unit of the decision's `cost_basis`.
        deficits: (K,) before weighting.
    """

    model: str
    fate: Fate
    reason: str
    cost: float
    health: float
    capabilities: tuple[float, ...]
    deficits: tuple[float, ...]
    shortfall: float


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
class Decision:
    """A route and everything that decided it; cheap to make, spelt out on demand.

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

    @property
    def reason(self) -> str:
        """Why the model was chosen, in one sentence."""
        return fate_of(self, self.index)[1]

    def candidates(self) -> tuple[Candidate, ...]:
        """Every model with its fate and one plain sentence, cheapest first."""
        deficits = np.maximum(self.requirements[None, :] - self.pool.capabilities, 0.0)
        rows = []
        for i in np.argsort(self.pool.cost, kind="stable"):
            fate, reason = fate_of(self, int(i))
            rows.append(
                Candidate(
                    model=self.pool.ids[i],
                    fate=fate,
                    reason=reason,
                    cost=float(self.pool.cost[i]),
                    health=float(self.health[i]),
                    capabilities=tuple(self.pool.capabilities[i].tolist()),
                    deficits=tuple(deficits[i].tolist()),
                    shortfall=float(self.shortfalls[i]),
                )
            )
        return tuple(rows)

    def receipt(self) -> dict[str, Any]:
        """JSON-ready record; `redecide` needs nothing else."""
        rows = self.candidates()
        return {
            "schema": RECEIPT_SCHEMA,
            "model": self.model,
            "cause": self.cause.value,
            "dimensions": list(self.dimensions),
            "requirements": _numbers(self.requirements),
            "weights_compensated": self.pool.weights.tolist(),
            "tau": self.tau,
            "health_floor": self.health_floor,
            "catalog_order": list(self.pool.ids),
            "candidates": [
                {
                    "model": row.model,
                    "fate": row.fate.value,
                    "reason": row.reason,
                    "cost": row.cost,
                    "health": row.health,
                    "gate": self.gates.get(row.model),
                    "capabilities": list(row.capabilities),
                    "deficits": _numbers(row.deficits),
                    "shortfall": None if np.isnan(row.shortfall) else row.shortfall,
                    **self._predicted(self.pool.ids.index(row.model)),
                }
                for row in rows
            ],
            "rule": self.rule.value,
            **({} if self.valuation is None else self.valuation.receipt()),
            "signals": None if self.query is None else _signals(self.query),
            "cost_basis": self.cost_basis.value,
            **asdict(self.origin),
            "weights": list(self.origin.weights),
            **({} if self.reading is None else self.reading.receipt()),
            **({} if self.kept is None else {"kept": self.kept}),
            **({"session_store": self.session_note} if self.session_note else {}),
        }

    def _predicted(self, i: int) -> dict[str, Any]:
        if self.valuation is None:
            return {}
        ends = self.valuation.range_of(i)
        return {
            "success": float(self.valuation.success[i]),
            "success_range": None if ends is None else list(ends),
            "predicted_cost_usd": float(self.valuation.cost_usd[i]),
        }


def _signals(query: Query) -> dict[str, Any]:
    """Found when a receipt is asked for: the scan would cost more than the routing."""
    found = signals(query.text, query.turn)
    return {name: getattr(found, name) for name in found.__slots__}


def _numbers(values: FloatArray | tuple[float, ...]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
