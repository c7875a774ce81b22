"""The `teams` of a policy: their models, knob and budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra_core.base.reading.fields import POSITIVE, Bounds, Section
from hydra_core.base.types import Period, Team, TeamBudget, WhenSpent

_REMEDY: Final = "a team's name: {models, tau, value_usd, budget}"
_BUDGET: Final = "such as {usd: 50, per: month}"
_FROM: Final = Bounds(0.0, 0.99)
_UNTIL: Final = Bounds(0.01, 1.0)
_LEAST: Final = Bounds(1e-6, 1.0)
MOST_TEAMS: Final = 500


def read_teams(policy: Section) -> Mapping[str, Team]:
    """Every team without a fault; what is wrong with the others is recorded."""
    if policy.node.get("teams") is None:
        return {}
    section = policy.section("teams", _REMEDY)
    if section is None:
        return {}
    if len(section.node.entries) > MOST_TEAMS:
        policy.wrong("teams", f"has more than {MOST_TEAMS} teams", "leave out those without limits")
        return {}
    found = {}
    for name in section.node.entries:
        one = section.section(name, _REMEDY)
        if one is not None:
            found[name] = _team(one)
    return found


def _team(section: Section) -> Team:
    section.known(("models", "tau", "value_usd", "budget"))
    models = section.words("models", "ids of the catalog's models")
    return Team(
        models if section.node.get("models") is not None else None,
        section.number("tau", Bounds(0.0), "such as 0.24", required=False),
        section.number("value_usd", POSITIVE, "USD, such as 0.02", required=False),
        _budget(section),
    )


def _budget(team: Section) -> TeamBudget | None:
    if team.node.get("budget") is None:
        return None
    section = team.section("budget", _BUDGET)
    if section is None:
        return None
    section.known(TeamBudget.__slots__)
    usd = section.number("usd", POSITIVE, _BUDGET)
    given = {
        "per": section.choice("per", Period, "day or month", required=False),
        "falls_from": section.number("falls_from", _FROM, "such as 0.5", required=False),
        "cheapest_from": section.number("cheapest_from", _UNTIL, "such as 0.9", required=False),
        "least": section.number("least", _LEAST, "such as 0.1", required=False),
        "when_spent": section.choice("when_spent", WhenSpent, "refuse or cheapest", required=False),
    }
    if usd is None:
        return None
    budget = TeamBudget(usd, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
    if budget.falls_from >= budget.cheapest_from:
        message = f"must be above falls_from, {budget.falls_from:g}; is {budget.cheapest_from:g}"
        section.wrong("cheapest_from", message, "such as 0.9")
        return None
    return budget
