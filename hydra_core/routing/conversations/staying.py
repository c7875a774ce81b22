"""Why a turn that was scored stays on its conversation's model, or leaves it."""

from __future__ import annotations

from hydra_core.routing.conversations.economics import TurnTokens, switch_cost_usd
from hydra_core.routing.decision import Cause, Decision
from hydra_core.types import Catalog, StickyMode

__all__ = ["kept_because"]


def kept_because(
    decision: Decision, current: str, catalog: Catalog, *, fresh: bool
) -> Cause | None:
    """Why this turn stays on `current`, None when it goes where the rule says.

    Below the sticky threshold it stays (the paper's gamma). In the mode adaptive it also stays
    while the shortfall is within tau and the margin, or, under the value rule, while the other
    model is not worth more than the prompt cache that is lost, at the catalog's prices.

    Args:
        decision: What the rule says, for another model than `current`.
        fresh: The history was rewritten, so there is no prompt cache to lose.
    """
    sticky = catalog.policy.sticky
    if float(decision.requirements.max()) < sticky.threshold:
        return Cause.KEPT_BELOW_THRESHOLD
    if sticky.mode is not StickyMode.ADAPTIVE or fresh:
        return None
    i = decision.pool.ids.index(current)
    if decision.valuation is None:
        near = float(decision.shortfalls[i]) <= decision.tau + sticky.margin
    else:
        net, lost_usd = decision.valuation.net, _cache_usd(decision, current, catalog)
        gain = float(net[decision.index] - net[i])
        near = gain <= lost_usd / decision.valuation.value_usd
    return Cause.KEPT_WITHIN_MARGIN if near else None


def _cache_usd(decision: Decision, current: str, catalog: Catalog) -> float:
    """What reading the history anew costs on the decision's model, above the cache of `current`."""
    if decision.query is None or decision.reading is None:
        return 0.0
    history = max(0, decision.query.context_tokens - decision.reading.tokens)
    kept, other = catalog.model(current), catalog.model(decision.model)
    return switch_cost_usd(kept, other, TurnTokens(history, 0, 0))
