"""From a receipt's own numbers back to the model: nothing else may have decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hydra_core.routing.decision import RECEIPT_SCHEMA, Cause
from hydra_core.routing.matcher import choose, choose_by_value, contenders, shortfall


def redecide(receipt: Mapping[str, Any]) -> str:
    """The model that a receipt's own numbers lead to.

    Args:
        receipt: As written by `Decision.receipt`.

    Raises:
        ValueError: The receipt is of another schema.
    """
    if receipt.get("schema") != RECEIPT_SCHEMA:
        raise ValueError(f"not a {RECEIPT_SCHEMA} receipt: schema is {receipt.get('schema')!r}")
    if Cause(receipt["cause"]).keeps:
        return str(receipt["kept"])
    order = {name: i for i, name in enumerate(receipt["catalog_order"])}
    rows = sorted(receipt["candidates"], key=lambda row: order[row["model"]])
    if receipt.get("rule") == "value":
        return _redecide_by_value(receipt, rows)
    need = np.asarray(receipt["requirements"])
    weights = np.asarray(receipt["weights_compensated"])
    health = np.asarray([row["health"] for row in rows])
    past_gates = np.asarray([row["gate"] is None for row in rows])
    alive, _ = contenders(past_gates, health, receipt["health_floor"])
    capabilities = np.asarray([row["capabilities"] for row in rows])[alive]
    cost = np.asarray([row["cost"] for row in rows])[alive]
    shortfalls = shortfall(need[None, :], capabilities, weights)
    return str(rows[alive[choose(shortfalls, cost, receipt["tau"])[0]]]["model"])


def _redecide_by_value(receipt: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    health = np.asarray([row["health"] for row in rows])
    past_gates = np.asarray([row["gate"] is None for row in rows])
    alive, _ = contenders(past_gates, health, receipt["health_floor"])
    success, cost_usd = (
        np.asarray([[rows[i][key] for i in alive]]) for key in ("success", "predicted_cost_usd")
    )
    chosen = choose_by_value(success, cost_usd, receipt["value_usd"])[0]
    return str(rows[alive[chosen]]["model"])
