"""What a team's budget does to quality and cost as it is used up. No streamlit."""

from __future__ import annotations

from typing import Final

import pandas as pd

from hydra_core.base.types import Rule, Team, TeamBudget, WhenSpent
from hydra_core.console.numbers import knob_text
from hydra_core.replay.metrics import ConstantPolicy
from hydra_core.replay.step_curve import CurvePoint
from hydra_core.replay.sweep import Sweep

_USED: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def budget_frame(sweep: Sweep, knob: float, team: Team, budget: TeamBudget) -> pd.DataFrame:
    """One row a share of the budget: the setting, quality in percent, its change, USD per query.

    Exact figures of the curve that Tune draws; the cheapest measured model from `cheapest_from`.

    Args:
        knob: tau or V of a team that has none of its own.
    """
    rule = sweep.rule
    own = team.value_usd if rule is Rule.VALUE else team.tau
    start = knob if own is None else own
    first = sweep.curve.at(start).quality
    cheapest = min(sweep.singles, key=lambda one: sweep.data.pool.cost[one.index])
    rows = []
    for used in sorted({*_USED, budget.falls_from, budget.cheapest_from}):
        now = budget.knob(rule, start, used)
        at: CurvePoint | ConstantPolicy = sweep.curve.at(now)
        setting = knob_text(rule, now)
        if used >= budget.cheapest_from:
            at, setting = cheapest, f"only {cheapest.model}"
        rows.append(
            {
                "used": 100 * used,
                "setting": setting,
                "quality": 100 * at.quality,
                "change": 100 * (at.quality - first),
                "cost": at.mean_cost_usd,
            }
        )
    return pd.DataFrame(rows)


def budget_text(frame: pd.DataFrame, budget: TeamBudget) -> str:
    """What the table says of 80 % of the budget, and what comes after 100 %."""
    row = frame[frame["used"] == 80.0].iloc[0]
    then = (
        "requests are refused with error 429"
        if budget.when_spent is WhenSpent.REFUSE
        else "the cheapest model goes on"
    )
    change = f"{row['change']:+.1f}".replace("-", "−")
    return (
        f"At 80 % of the budget: {row['setting']}, quality {change} points. At 100 % {then} until "
        f"the next {budget.per.value}."
    )
