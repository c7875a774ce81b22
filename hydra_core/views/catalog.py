"""From a catalog to the words and tables that show it. No streamlit."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.types import Catalog, Policy, Rule

__all__ = ["RULES", "SYMBOLS", "knob_text", "policy_text", "pool_table", "usd"]

#: What people call a rule and its knob.
RULES = {Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"}
SYMBOLS = {Rule.SHORTFALL: "τ", Rule.VALUE: "V"}


def usd(value: float) -> str:
    """A cost per query with three significant digits and no scientific notation: $0.0123."""
    if not value:
        return "$0"
    digits = max(2 - int(np.floor(np.log10(abs(value)))), 2)
    return f"${value:,.{min(digits, 9)}f}"


def knob_text(rule: Rule, knob: float) -> str:
    """A knob's value in four digits: τ 0.24, or V $0.02."""
    shown = f"{knob:.4g}" if rule is Rule.SHORTFALL else usd(knob)
    return f"{SYMBOLS[rule]} {shown}"


def policy_text(policy: Policy) -> str:
    """The rule in force and its setting: τ 0.24 (shortfall rule), or V $0.02 (value rule)."""
    by_value = policy.rule is Rule.VALUE and policy.value_usd is not None
    knob = policy.value_usd if by_value else policy.tau
    return f"{knob_text(policy.rule, knob or 0.0)} ({RULES[policy.rule].lower()} rule)"


def pool_table(catalog: Catalog) -> pd.DataFrame:
    """One row per model, cheapest first: status, prices in USD per Mtok, capabilities."""
    values = capabilities(catalog)
    ratio = catalog.policy.price_ratio
    frame = pd.DataFrame(
        {
            "model": [model.id for model in catalog.models],
            "status": [model.status.value for model in catalog.models],
            "price": [blended_price(model, ratio) for model in catalog.models],
        }
    )
    for k, dimension in enumerate(catalog.dimensions):
        frame[dimension] = values[:, k]
    return frame.sort_values("price", ignore_index=True, kind="stable")
