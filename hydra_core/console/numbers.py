"""Numbers as every page spells them. No streamlit."""

from __future__ import annotations

import math

from hydra_core.base.spelling import usd
from hydra_core.base.types import Policy, Rule
from hydra_core.replay.significance import Interval

#: What people call a rule and its knob.
RULES = {Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"}
SYMBOLS = {Rule.SHORTFALL: "τ", Rule.VALUE: "V"}


def knob_text(rule: Rule, knob: float) -> str:
    """A knob's value in four digits: τ 0.24, or V $0.02."""
    shown = f"{knob:.4g}" if rule is Rule.SHORTFALL else usd(knob).rstrip("0").rstrip(".")
    return f"{SYMBOLS[rule]} {shown}"


def percent(interval: Interval) -> tuple[str, str]:
    """A share as the figure and, below it, its interval; '' where there is none, – for no share."""
    shown = interval.scaled(100.0)
    if math.isnan(shown.value):
        return "–", ""
    ends = f"{shown.lo:.1f} – {shown.hi:.1f} %" if math.isfinite(shown.hi) else ""
    return f"{shown.value:.1f} %", ends


def policy_text(policy: Policy) -> str:
    """The rule in force and its setting: τ 0.24 (shortfall rule), or V $0.02 (value rule)."""
    return f"{knob_text(policy.rule, policy.knob)} ({RULES[policy.rule].lower()} rule)"
