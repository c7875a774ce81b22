"""Playing a conversation through the router: which model each turn gets, why, and what it costs.

The router and its session store are the real ones; only time stands still. Token counts are
estimates, so costs are as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from hydra_core.base.errors import RoutingError
from hydra_core.base.tokens import IMAGE_TOKENS
from hydra_core.base.types import Catalog, ModelSpec, StickyMode
from hydra_core.routing.conversations.context import context_at
from hydra_core.routing.conversations.messages import Conversation
from hydra_core.routing.decision import Decision
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router, Scorer
from hydra_core.routing.sessions import MemorySessions, TurnCost, TurnTokens, conversation_cost

#: A compaction leaves this share of the history's tokens.
COMPACTED_SHARE: Final = 0.2
_NAME: Final = "played"


class Event(StrEnum):
    """What happened to the model on one turn."""

    FIRST = "first"
    KEPT = "kept"
    SAME = "same"
    CHANGED = "changed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Options:
    """How a conversation is played.

    Attributes:
        images: Numbers of the turns that get an image besides those of the conversation.
        compacted: Numbers of the turns before which the history is compacted.
        health: Model id -> health in [0, 1], from turn `health_from` on.
        answer_tokens: Tokens of an answer that the conversation does not contain, by model and
            query; 0 leaves such answers out of every cost.
    """

    mode: StickyMode = StickyMode.PER_SESSION
    images: frozenset[int] = frozenset()
    compacted: frozenset[int] = frozenset()
    health: Mapping[str, float] = field(default_factory=dict)
    health_from: int = 1
    answer_tokens: Callable[[str, Query], float] = lambda model, query: 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TurnOutcome:
    """One turn as it was played.

    Attributes:
        number: From 1.
        model: None when no model could serve it; `why` then says so.
        has_image: Whether an image is in what the model must read.
        cost: None when the turn was refused.
    """

    number: int
    model: str | None
    event: Event
    why: str
    tokens: TurnTokens
    has_image: bool
    compacted: bool
    decision: Decision | None
    cost: TurnCost | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """A conversation played in one mode."""

    mode: StickyMode
    turns: tuple[TurnOutcome, ...]

    @property
    def cost_usd(self) -> float:
        """What all served turns cost."""
        return sum(turn.cost.cost_usd for turn in self.turns if turn.cost)

    @property
    def switches(self) -> int:
        """How often a turn is served by another model than the turn before."""
        served = [turn.model for turn in self.turns if turn.model]
        return sum(a != b for a, b in zip(served, served[1:], strict=False))

    @property
    def cached_tokens(self) -> int:
        """History tokens billed at the cached price."""
        return sum(turn.tokens.history for turn in self.turns if turn.cost and turn.cost.cached)

    @property
    def input_tokens(self) -> int:
        """Tokens that served turns took in."""
        return sum(t.tokens.history + t.tokens.message for t in self.turns if t.cost)

    @property
    def lost_usd(self) -> float:
        """What switches cost: the difference that a warm cache would have made after them."""
        pairs = zip(self.turns, self.turns[1:], strict=False)
        return sum(
            now.cost.lost_usd
            for before, now in pairs
            if now.cost and before.model != now.model and not now.compacted
        )


def play(
    catalog: Catalog,
    predictor: Scorer,
    conversation: Conversation,
    options: Options,
    count: Callable[[str], int],
) -> Simulation:
    """Route every turn of a conversation in order.

    Args:
        predictor: A `Memo`, when several modes are played.
        count: Tokens of a text, estimated.
    """
    sticky = replace(catalog.policy.sticky, mode=options.mode)
    router = Router(
        replace(catalog, policy=replace(catalog.policy, sticky=sticky)),
        predictor,
        sessions=MemorySessions(clock=lambda: 0.0),
    )
    turns: list[TurnOutcome] = []
    history, prefix, current = _opening(conversation, count), tuple[str, ...](), None
    image_seen, since = conversation.images > 0, 1
    for number, turn in enumerate(conversation.turns, 1):
        fresh = number in options.compacted and number > 1
        if fresh:
            history = round(history * COMPACTED_SHARE)
            prefix, image_seen, since = (f"(summary before turn {number})",), False, number
        images = turn.images + (number in options.images)
        image_seen = image_seen or images > 0
        message = count(turn.text) + count(turn.results) + images * IMAGE_TOKENS
        message += turn.harness_tokens
        query = Query(
            turn.text,
            number,
            _NAME,
            prefix,
            has_image=image_seen,
            needs_tools=conversation.tools,
            context_tokens=history + message,
            compacted=fresh,
            current=current,
            context=context_at(conversation.turns, number, since),
            harness_tokens=turn.harness_tokens,
            needs=conversation.needs,
        )
        tokens = TurnTokens(history, message, count(turn.answer))
        one = _played(router, query, tokens, options)
        turns.append(one)
        current = one.model or current
        history += message + one.tokens.answer
        prefix = (*prefix, turn.text)
    return Simulation(options.mode, _priced(catalog, turns))


def _opening(conversation: Conversation, count: Callable[[str], int]) -> int:
    """Tokens before the first turn, with those of parts whose turn is not known."""
    seen = conversation.images * IMAGE_TOKENS + conversation.unread_tokens
    return count(conversation.opening) + seen


def _played(router: Router, query: Query, tokens: TurnTokens, options: Options) -> TurnOutcome:
    health = options.health if query.turn >= options.health_from else {}
    decision, model = None, None
    try:
        decision = router.route(query, health=health)
    except RoutingError as error:
        event, why = Event.REFUSED, f"Refused with HTTP {error.http_status}: {error}"
    else:
        model, (event, why) = decision.model, _event_of(decision, query)
        written = tokens.answer or round(options.answer_tokens(model, query))
        tokens = replace(tokens, answer=written)
    return TurnOutcome(
        query.turn, model, event, why, tokens, query.has_image, query.compacted, decision
    )


def _event_of(decision: Decision, query: Query) -> tuple[Event, str]:
    """What happened to the model, and why in one or two sentences."""
    reason = decision.reason
    before = query.current
    if decision.cause.keeps:
        return Event.KEPT, reason
    if before is None:
        return Event.FIRST, reason
    event = Event.SAME if before == decision.model else Event.CHANGED
    if query.compacted:
        return event, f"The history was compacted, so no cache is lost: routed anew. {reason}"
    if before in decision.gates:
        gate = decision.gates[before]
        gate = gate[:1].lower() + gate[1:]
        return event, f"{before} cannot serve this turn: {gate} {reason}"
    health = dict(zip(decision.pool.ids, decision.health.tolist(), strict=True)).get(before, 0.0)
    if health < decision.health_floor:
        floor = decision.health_floor
        return event, f"{before} has health {health:.2f}, below the floor {floor:.2f}. {reason}"
    return event, f"Routed anew. {reason}"


def _priced(catalog: Catalog, turns: list[TurnOutcome]) -> tuple[TurnOutcome, ...]:
    models: dict[str, ModelSpec] = {model.id: model for model in catalog.models}
    served = [turn for turn in turns if turn.model is not None]
    costs = iter(
        conversation_cost(
            models,
            [str(turn.model) for turn in served],
            [turn.tokens for turn in served],
            [turn.compacted for turn in served],
        )
    )
    return tuple(turn if turn.model is None else replace(turn, cost=next(costs)) for turn in turns)
