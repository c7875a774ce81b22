"""Hard gates: what a model must be able to do before shortfall is looked at at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hydra_core.base.errors import RoutingError
from hydra_core.base.spelling import set_usd
from hydra_core.base.types import FloatArray, ModelSpec
from hydra_core.routing.query import Query

#: A reason is a sentence for each model: of a request's own words it repeats only so many.
_MOST_WORDS: Final = 10
_LONGEST_WORD: Final = 60
#: How the reason of a request ends whose conversation or team has spent its budget.
ONLY_CHEAPEST: Final = "only the cheapest model is left."


class Gate(StrEnum):
    """What a model failed at."""

    DENIED = "denied"
    NOT_ALLOWED = "not_allowed"
    VISION = "vision"
    TOOLS = "tools"
    WINDOW = "window"
    TAGS = "tags"
    ABILITY = "ability"
    TIME = "time"
    FORM = "form"


@dataclass(frozen=True, slots=True)
class Common:
    """What every model of a pool allows, so that an ordinary query need not look at each.

    Attributes:
        window: The smallest context window.
        lacks: Abilities that one of them lacks.
    """

    vision: bool
    tools: bool
    window: int
    tags: frozenset[str]
    lacks: frozenset[str]

    def passes(self, query: Query) -> bool:
        """Whether every model passes every gate; False where each has to be looked at."""
        return not (
            query.deny
            or query.allow is not None
            or query.unspoken
            or (query.has_image and not self.vision)
            or (query.needs_tools and not self.tools)
            or query.max_s is not None
            or query.max_ttft_s is not None
            or query.window_tokens > self.window
            or query.needs & self.lacks
            or not query.require <= self.tags
        )


def common_of(models: Sequence[ModelSpec]) -> Common:
    """What all of these models allow."""
    return Common(
        vision=all(model.vision for model in models),
        tools=all(model.tools for model in models),
        window=min(model.context_window for model in models),
        tags=frozenset.intersection(*(model.tags for model in models)),
        lacks=frozenset().union(*(model.lacks for model in models)),
    )


def gate_reasons(models: Sequence[ModelSpec], query: Query) -> dict[str, str]:
    """Model id -> why it cannot serve this query; models that can are not in it."""
    found = ((model.id, _reason(model, query)) for model in models)
    return {name: reason for name, reason in found if reason}


def within_budget(
    reasons: dict[str, str], ids: Sequence[str], cost: FloatArray, budget_usd: float | None,
    query: Query,
) -> dict[str, str]:  # fmt: skip
    """The gates of a request whose conversation or team has spent: only the cheapest is left.

    Args:
        reasons: What the hard gates said.
        cost: (m,) what orders the models `ids`.
        budget_usd: None for no limit.
    """
    spent = (
        ""
        if budget_usd is None or query.spent_usd < budget_usd
        else (
            f"The conversation has spent {set_usd(query.spent_usd)} of its budget of "
            f"{set_usd(budget_usd)}: {ONLY_CHEAPEST}"
        )
    )
    if not (spent or query.only_cheapest):
        return reasons
    left = [i for i, name in enumerate(ids) if name not in reasons]
    if not left:
        return reasons
    cheapest = ids[min(left, key=lambda i: cost[i])]
    reason = query.only_cheapest or spent
    return {**reasons, **{ids[i]: reason for i in left if ids[i] != cheapest}}


def require_open(models: Sequence[ModelSpec], reasons: dict[str, str], query: Query) -> None:
    """Refuse a query that no model can serve; never a silent text-only route for an image.

    Raises:
        RoutingError: With the HTTP status a gateway should answer (400; 413 for length).
    """
    if len(reasons) < len(models):
        return
    if query.has_image and not any(model.vision for model in models):
        raise RoutingError(
            "the query has an image and no routable model has vision: send it without the image, "
            "or add a model with vision: true",
            http_status=400,
        )
    too_long = all(model.context_window < query.window_tokens for model in models)
    listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise RoutingError(
        f"no routable model can serve this query. {listed}", http_status=413 if too_long else 400
    )


def gate_of(model: ModelSpec, query: Query) -> Gate | None:
    """The first gate that this model does not pass, None when it passes all."""
    if model.id in query.deny:
        return Gate.DENIED
    if query.allow is not None and model.id not in query.allow:
        return Gate.NOT_ALLOWED
    if model.id in query.unspoken:
        return Gate.FORM
    if query.has_image and not model.vision:
        return Gate.VISION
    if query.needs_tools and not model.tools:
        return Gate.TOOLS
    if not query.require <= model.tags:
        return Gate.TAGS
    if query.needs & model.lacks:
        return Gate.ABILITY
    if (query.max_s is not None or query.max_ttft_s is not None) and _is_late(model, query):
        return Gate.TIME
    return Gate.WINDOW if model.context_window < query.window_tokens else None


def _reason(model: ModelSpec, query: Query) -> str:
    gate = gate_of(model, query)
    if gate is Gate.WINDOW:
        return (
            f"Context window {model.context_window:,} is smaller than the "
            f"{query.window_tokens:,} tokens needed."
        )
    if gate is Gate.TAGS:
        return f"Does not have the required tags {_listed(query.require - model.tags)}."
    if gate is Gate.ABILITY:
        return f"Lacks what the request needs: {_listed(query.needs & model.lacks)}."
    if gate is Gate.TIME:
        first, whole = expected_s(model, query)
        if query.max_s is not None and whole > query.max_s:
            return f"Takes {whole:.3g} s as expected, and the request allows {query.max_s:g} s."
        return (
            f"Takes {first:.3g} s to its first token as expected, and the request allows "
            f"{query.max_ttft_s:g} s."
        )
    return "" if gate is None else SENTENCES[gate]


def expected_s(model: ModelSpec, query: Query) -> tuple[float, float]:
    """Expected seconds to the first piece of an answer and to its end; NaN where unknown."""
    nan = float("nan")
    return query.expected.get(model.id, (model.ttft_s or nan, model.latency_s or nan))


def _is_late(model: ModelSpec, query: Query) -> bool:
    """Whether it is expected to take longer than allowed; what is not known is not late."""
    first, whole = expected_s(model, query)
    most, most_first = query.max_s, query.max_ttft_s
    return (most is not None and whole > most) or (most_first is not None and first > most_first)


def _listed(words: frozenset[str]) -> str:
    shown = [word[:_LONGEST_WORD].replace("_", " ") for word in sorted(words)[:_MOST_WORDS]]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


#: Gate -> why it keeps a model out, where that is one sentence.
SENTENCES: Final = {
    Gate.DENIED: "Denied for this request.",
    Gate.NOT_ALLOWED: "Not among the models that are allowed for this request.",
    Gate.FORM: "Its upstream does not speak the form of this request.",
    Gate.VISION: "Has no vision, and an image is attached.",
    Gate.TOOLS: "Cannot use tools, and the request declares some.",
}
