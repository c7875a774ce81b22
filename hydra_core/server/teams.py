"""A team's own models, knob and budget, as they apply to one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from hydra_core.base.errors import RoutingError
from hydra_core.base.spelling import usd
from hydra_core.base.types import Policy, Rule, Team, TeamBudget, WhenSpent
from hydra_core.routing.decision import Decision
from hydra_core.routing.query import Query
from hydra_core.server.access.team_budgets import Reservation, TeamBudgets, period_of
from hydra_core.server.chat import ChatRequest
from hydra_core.server.exploration import Draw
from hydra_core.server.live import Serving

#: Tokens of an answer whose length nobody limits.
_ANSWER_TOKENS: Final = 1_000


class BudgetSpentError(RoutingError):
    """A team has used its budget (429); the next period begins after `wait_s`."""

    def __init__(self, message: str, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(message, http_status=429)


@dataclass(frozen=True, slots=True)
class Share:
    """What a team's policy made of one request.

    Attributes:
        knob: tau, or V in USD, in force for it.
        used: Share of the budget that was used before it, None without a budget.
        note: What the budget has changed, '' for nothing.
        reservation: What is held back for it, None for nothing.
    """

    knob: float
    used: float | None = None
    note: str = ""
    reservation: Reservation | None = None


#: Decides a query with this tau or V, and draws the model that is served.
Route = Callable[[Query, float], tuple[Decision, Draw]]


@dataclass(frozen=True, slots=True)
class Teams:
    """Applies what the policy says of teams.

    Attributes:
        ledger: What was spent; None where there is no log folder to keep it in.
    """

    ledger: TeamBudgets | None = None

    def decide(
        self, serving: Serving, request: ChatRequest, query: Query, route: Route, *, spend: bool
    ) -> tuple[Decision, Draw, Share]:
        """The decision for a team that the policy names; with `spend` it is going to be answered.

        Raises:
            BudgetSpentError: The budget does not hold what the cheapest model may cost.
            RoutingError: No model can serve the query.
        """
        policy, name = serving.catalog.policy, request.team
        team = policy.teams[name]
        if team.models is not None:
            allowed = team.models if query.allow is None else query.allow & team.models
            query = replace(query, allow=allowed)
        budget, ledger = team.budget, self.ledger
        if budget is None or ledger is None:
            knob = team.knob(policy)
            return (*route(query, knob), Share(knob))
        used = ledger.used(name, budget)
        share = _share_at(policy, team, budget, name, used)
        refuses = budget.when_spent is WhenSpent.REFUSE
        if refuses and used >= 1.0:
            raise _spent(name, budget)
        if used >= budget.cheapest_from:
            query = replace(query, only_cheapest=_cheapest_left(name, budget, used))
        decision, draw = route(query, share.knob)
        if not spend:
            return decision, draw, share
        limited = refuses or not query.only_cheapest
        held = ledger.take(name, budget, _expected(serving, draw, request), most=limited)
        if held is None and not query.only_cheapest:
            query = replace(query, only_cheapest=_cheapest_left(name, budget, used))
            decision, draw = route(query, share.knob)
            held = ledger.take(name, budget, _expected(serving, draw, request), most=refuses)
        if held is None:
            raise _spent(name, budget)
        return decision, draw, replace(share, reservation=held)

    def settle(self, share: Share | None, cost_usd: float | None) -> None:
        """Count what a request cost; where nobody knows, what was held back for it."""
        if share is not None and share.reservation is not None and self.ledger is not None:
            held = share.reservation
            self.ledger.settle(held, held.usd if cost_usd is None else cost_usd)


def _share_at(policy: Policy, team: Team, budget: TeamBudget, name: str, used: float) -> Share:
    own = team.knob(policy)
    knob = budget.knob(policy.rule, own, used)
    if knob == own:
        return Share(knob, used)
    now, before = (
        (f"V is {usd(knob)}", usd(own))
        if policy.rule is Rule.VALUE
        else (f"tau is {knob:.4g}", f"{own:.4g}")
    )
    note = f"Team {name} has used {100 * used:.0f} % of its budget: {now} instead of {before}."
    return Share(knob, used, note)


def _cheapest_left(name: str, budget: TeamBudget, used: float) -> str:
    return (
        f"Team {name} has used {100 * used:.0f} % of its budget of ${budget.usd:g} a "
        f"{budget.per.value}: only the cheapest model is left."
    )


def _spent(name: str, budget: TeamBudget) -> BudgetSpentError:
    period, wait_s = period_of(budget.per, datetime.now(UTC))
    message = (
        f"team {name} has used its budget of ${budget.usd:g} for {period} (UTC); raise it in the "
        "policy, or wait for the next period"
    )
    return BudgetSpentError(message, wait_s)


def _expected(serving: Serving, draw: Draw, request: ChatRequest) -> float:
    """What the drawn model may cost: every input token fresh, and the longest answer."""
    answer = request.query.output_tokens or _ANSWER_TOKENS
    return serving.catalog.model(draw.model).price.usd_of_one(request.input_tokens, answer)
