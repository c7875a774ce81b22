"""Numbers as every page spells them. No streamlit."""

from __future__ import annotations

import numpy as np

from hydra_core.types import Policy, Rule

__all__ = ["RULES", "SYMBOLS", "knob_text", "policy_text", "signed", "usd"]

#: What people call a rule and its knob.
RULES = {Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"}
SYMBOLS = {Rule.SHORTFALL: "τ", Rule.VALUE: "V"}


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign: +1.8, −0.7, and 0.0 for what rounds to nothing."""
    shown = f"{value:+.{digits}f}"
    if not float(shown):
        return shown[1:]
    return shown.replace("-", "−")


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
    return f"{knob_text(policy.rule, policy.knob)} ({RULES[policy.rule].lower()} rule)"
