"""Import of spans: OpenTelemetry's GenAI names and OpenInference's, as JSONL.

A line is one span with its attributes as an object, or an OTLP export request with many. Feedback
is an annotation (OpenInference) or an event `gen_ai.evaluation.result` (GenAI) on the same span.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.rows import Row, decoded, number, rows_of, text
from hydra_core.evalsets.importers.traffic.served import Served, Traffic, last_message
from hydra_core.routing.conversations.context import LastTurn

_CHAT: Final = ("chat", "text_completion", "generate_content")
_MOST_MESSAGES: Final = 1_000


def read_spans(
    files: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    prices: PriceCard | None = None,
    *,
    score: str = "",
    scale: float = 1.0,
) -> Draft:
    """Spans of model calls with feedback; each becomes a query.

    Args:
        models: Model id -> the model as spans name it.
        prices: Spans seldom carry a cost: it is estimated where a price is given.
        score: Name of the feedback to take, '' takes any.
        scale: The score that means 1.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic()
    for place, row in rows_of(files, Budget()):
        for span in _spans(row):
            facts = _attributes(span.get("attributes"))
            query_id = text(span.get("spanId")) or text(span.get("span_id")) or str(place[1])
            if _is_model_call(facts):
                traffic.add(_served((place, span), facts, query_id, _quality(span, facts, score)))
            else:
                traffic.skip("not a model call", query_id)
    return traffic.draft("spans", models or {}, prices or PriceCard(), scale=scale)


def _spans(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "resourceSpans" not in row:
        yield row
        return
    for resource in _objects(row["resourceSpans"]):
        for scope in _objects(resource.get("scopeSpans")):
            yield from _objects(scope.get("spans"))


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _attributes(value: object) -> dict[str, Any]:
    """Attributes as an object, from OTLP's list of typed values as well."""
    if isinstance(value, Mapping):
        return dict(value)
    found = {}
    for one in _objects(value):
        typed = one.get("value")
        if isinstance(typed, Mapping) and typed:
            found[text(one.get("key"))] = next(iter(typed.values()))
    return found


def _is_model_call(facts: Mapping[str, Any]) -> bool:
    kind = text(facts.get("openinference.span.kind")).upper()
    return kind == "LLM" or facts.get("gen_ai.operation.name") in _CHAT


def _served(
    origin: Row | tuple[Any, Mapping[str, Any]],
    facts: Mapping[str, Any],
    query_id: str,
    quality: float,
) -> Served:
    place, span = origin
    last = _message(facts)
    model = facts.get("gen_ai.response.model") or facts.get("gen_ai.request.model")
    conversation = facts.get("gen_ai.conversation.id") or facts.get("session.id")
    return Served(
        place,
        query_id,
        last.text,
        text(model or facts.get("llm.model_name")),
        quality,
        number(facts.get("llm.cost.total")),
        number(facts.get("gen_ai.usage.input_tokens", facts.get("llm.token_count.prompt"))),
        number(facts.get("gen_ai.usage.output_tokens", facts.get("llm.token_count.completion"))),
        _seconds(span),
        text(conversation),
        last.turn,
        number(facts.get("gen_ai.usage.cache_read.input_tokens")),
        last.context,
    )


def _message(facts: Mapping[str, Any]) -> LastTurn:
    given = decoded(facts.get("gen_ai.input.messages"))
    if isinstance(given, list):
        return last_message([_plain(one) for one in _objects(given)])
    listed = []
    for at in range(_MOST_MESSAGES):
        base = f"llm.input_messages.{at}.message"
        role = facts.get(f"{base}.role")
        if role is None:
            break
        listed.append({"role": role, "content": text(facts.get(f"{base}.content"))})
    return last_message(listed)


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A GenAI message (role, parts) in the OpenAI form."""
    parts = _objects(message.get("parts"))
    words = [text(part.get("content")) for part in parts if part.get("type") == "text"]
    return {"role": message.get("role"), "content": "\n".join(words)}


def _quality(span: Mapping[str, Any], facts: Mapping[str, Any], wanted: str) -> float:
    """The span's feedback, NaN where it has none."""
    for at in range(_MOST_MESSAGES):
        base = f"annotations.{at}.annotation"
        if f"{base}.name" not in facts:
            break
        if not wanted or facts[f"{base}.name"] == wanted:
            return number(facts.get(f"{base}.score"))
    for event in _objects(span.get("events")):
        told = _attributes(event.get("attributes"))
        if text(event.get("name")) == "gen_ai.evaluation.result" and (
            not wanted or told.get("gen_ai.evaluation.name") == wanted
        ):
            return number(told.get("gen_ai.evaluation.score.value"))
    return math.nan


def _seconds(span: Mapping[str, Any]) -> float:
    start, end = number(span.get("startTimeUnixNano")), number(span.get("endTimeUnixNano"))
    return max(end - start, 0.0) / 1e9
