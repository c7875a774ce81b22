"""What comes out of a decision, spelt out: candidates with their reasons, the receipt.

The receipt is plain JSON and holds everything that decided; `redecide.redecide`
recomputes the model from it alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from hydra_core.predictor.signals import signals
from hydra_core.routing.facts import Cause, Facts, Fate, Origin, Reading
from hydra_core.routing.query import Query
from hydra_core.routing.reasons import fate_of
from hydra_core.types import FloatArray

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


@dataclass(frozen=True, slots=True, eq=False)
class Decision(Facts):
    """A route and everything that decided it (see `Facts`); spelt out on demand."""

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
