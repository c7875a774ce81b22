"""What a conversation costs on the models it was routed to, prompt cache included.

On the same model the history is billed at the cached input price, after a switch in full (paper
section "Prompt-cache-preserving sticky routing"). Effort levels that share their base's prompt
cache count as one model here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hydra_core.base.types import Catalog, ModelSpec, StickyMode
from hydra_core.routing.decision import Cause, Decision


def kept_because(
    decision: Decision, current: str, catalog: Catalog, *, fresh: bool
) -> Cause | None:
    """Why this turn stays on `current`, None when it goes where the rule says (`decision`).

    Below the sticky threshold it stays (the paper's gamma). In the mode adaptive it also stays
    while the shortfall is within tau and the margin, or, under the value rule, while the other
    model is not worth more than the prompt cache that is lost, at the catalog's prices. A `fresh`
    history was rewritten, so there is no prompt cache to lose.
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
    whole = decision.query.input_tokens
    return switch_cost_usd(kept, other, TurnTokens(history, 0, 0), size=whole)


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """Tokens of one turn: history before it, the new message, and the answer."""

    history: int
    message: int
    answer: int


@dataclass(frozen=True, slots=True)
class TurnCost:
    """USD of one turn.

    Attributes:
        cached: Whether the history was billed at the cached price.
        lost_usd: What a warm cache would have saved on this turn, 0 where it was warm.
    """

    model: str
    cached: bool
    cost_usd: float
    lost_usd: float


def conversation_cost(
    models: Mapping[str, ModelSpec],
    routed: Sequence[str],
    turns: Sequence[TurnTokens],
    compacted: Sequence[bool] | None = None,
) -> tuple[TurnCost, ...]:
    """Cost of each turn of a conversation.

    Args:
        routed: (t,) the model of each turn.
        turns: (t,) tokens of each turn.
        compacted: (t,) whether the history was rewritten before this turn (no cache survives).
    """
    rewritten = compacted or [False] * len(routed)
    costs: list[TurnCost] = []
    warm: str | None = None
    for name, tokens, fresh in zip(routed, turns, rewritten, strict=True):
        spec = models[name]
        cached = spec.cache_key == warm and not fresh and spec.cached_input_usd_per_mtok is not None
        full, kept = _turn_usd(spec, tokens, cached=False), _turn_usd(spec, tokens, cached=True)
        costs.append(
            TurnCost(name, cached, kept if cached else full, 0.0 if cached else full - kept)
        )
        warm = spec.cache_key
    return tuple(costs)


def switch_cost_usd(
    current: ModelSpec, other: ModelSpec, tokens: TurnTokens, *, size: float | None = None
) -> float:
    """How much dearer (> 0) or cheaper this turn is on `other`, cold, than on `current`, warm.

    `other` is warm where it reads the same prompt cache. `size` has the input tokens of the whole
    request where `tokens` is a part of it.
    """
    warm = other.cache_key == current.cache_key
    on_other = _turn_usd(other, tokens, cached=warm, size=size)
    return on_other - _turn_usd(current, tokens, cached=True, size=size)


def assumed_cache(catalog: Catalog, share: float) -> Catalog:
    """The catalog with a cached input price of `share` x the input price where it names none."""
    models = tuple(
        model
        if model.cached_input_usd_per_mtok is not None
        else replace(model, cached_input_usd_per_mtok=model.input_usd_per_mtok * share)
        for model in catalog.models
    )
    return replace(catalog, models=models)


def _turn_usd(
    spec: ModelSpec, tokens: TurnTokens, *, cached: bool, size: float | None = None
) -> float:
    """A model without a cached price bills the history in full either way."""
    warm = tokens.history if cached else 0
    read = tokens.history + tokens.message
    return spec.price.usd_of_one(read, tokens.answer, warm, size=size)
