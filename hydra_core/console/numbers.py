"""Numbers as every page spells them. No streamlit."""

from __future__ import annotations

import math

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import set_usd, short_number, signed, usd
from hydra_core.base.types import Policy, Rule

#: A higher cost than this much more is given as a multiple.
_MOST_PERCENT = 300.0

#: What people call a rule and its knob.
RULES = {Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"}
SYMBOLS = {Rule.SHORTFALL: "τ", Rule.VALUE: "V"}


def knob_text(rule: Rule, knob: float) -> str:
    """A knob's value in four digits: τ 0.24, or V $0.02."""
    shown = short_number(knob) if rule is Rule.SHORTFALL else set_usd(knob)
    return f"{SYMBOLS[rule]} {shown}"


def per_resolved_text(cost: Interval) -> str:
    """What one resolved query costs, with its interval."""
    if math.isnan(cost.value):
        return "no resolved query"
    ends = f" ({cost.bounds(usd, ' – ')})" if cost.known else ""
    return f"{usd(cost.value)} per resolved query{ends}"


def percent(interval: Interval) -> tuple[str, str]:
    """A share as the figure and, below it, its interval or why there is none; – for no share."""
    shown = interval.scaled(100.0)
    if math.isnan(shown.value):
        return "–", ""
    return f"{shown.value:.1f} %", shown.bounds(between=" – ") + (" %" if shown.known else "")


def is_multiple(percent_more: float) -> bool:
    """Whether `cost_change` gives the change as a multiple."""
    return percent_more > _MOST_PERCENT


def cost_change(percent_more: float) -> str:
    """How one cost compares with another: 12.3 % more, about 25 times as much, the same."""
    if is_multiple(percent_more):
        return f"about {short_number(1 + percent_more / 100, 3)} times as much"
    more = f"{abs(percent_more):.1f} % {'less' if percent_more < 0 else 'more'}"
    return "the same" if more.startswith("0.0 %") else more


def points(share: float, digits: int = 1) -> str:
    """A difference of shares: +1.8 pp; "not known" where it is NaN."""
    return "not known" if math.isnan(share) else f"{signed(100 * share, digits)} pp"


def policy_text(policy: Policy) -> str:
    """The rule in force and its setting: τ 0.24 (shortfall rule), or V $0.02 (value rule)."""
    return f"{knob_text(policy.rule, policy.knob)} ({RULES[policy.rule].lower()} rule)"
