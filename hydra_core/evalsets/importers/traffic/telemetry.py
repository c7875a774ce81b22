"""Import of spans: OpenTelemetry's GenAI names and OpenInference's, as JSONL.

A line is one span with its attributes as an object, or an OTLP export request with many. Feedback
is an annotation (OpenInference) or an event `gen_ai.evaluation.result` (GenAI) on the same span.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.json_document import objects
from hydra_core.evalsets.importers.records import AskNames
from hydra_core.evalsets.importers.traffic.attributes import asked_of, attributes, facts_of
from hydra_core.evalsets.importers.traffic.feedback import Feedback, Labels, require_score
from hydra_core.evalsets.importers.traffic.rows import number, rows_of, seconds_between, text
from hydra_core.evalsets.importers.traffic.served import Served, Traffic

_CHAT: Final = ("chat", "text_completion", "generate_content")
_MOST_ANNOTATIONS: Final = 1_000
_INPUT: Final = (
    *("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "gen_ai.usage.prompt_tokens",
)
_OUTPUT: Final = (
    *("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "gen_ai.usage.completion_tokens",
)
_CACHED: Final = (
    *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    "llm.token_count.prompt_details.cache_read",
)
_COST: Final = ("llm.cost.total", "gen_ai.usage.cost")


def read_spans(
    files: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    prices: PriceCard | None = None,
    *,
    score: str = "",
    scale: float = 1.0,
    labels: Mapping[str, float] | None = None,
) -> Draft:
    """Spans of model calls with feedback; each becomes a query.

    Args:
        models: Model id -> the model as spans name it.
        prices: Spans seldom carry a cost: it is estimated where a price is given.
        score: Name of the feedback to take; needed where there are several.
        scale: The score that means 1.
        labels: Label -> quality, where feedback is a label alone.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic(labels=Labels(labels or {}))
    rows: list[tuple[Served, dict[str, Feedback]]] = []
    for place, row in rows_of(files, Budget(), traffic.unread):
        for span in _spans(row):
            facts = facts_of(span)
            if not _is_model_call(facts):
                traffic.skip("not a model call", _span_id(place, span))
            elif _failed(span):
                traffic.skip("the request failed", _span_id(place, span))
            else:
                rows.append((_served(place, span, facts), dict(_feedback(span, facts))))
    traffic.scores = sorted({name for _, scores in rows for name in scores if name})
    if not isinstance(models, AskNames):
        require_score(traffic.scores, score, "spans")
    for served, scores in rows:
        rated = scores.get(score, scores.get("")) if score else next(iter(scores.values()), None)
        traffic.add(replace(served, feedback=rated or Feedback()))
    return traffic.draft("spans", models or {}, prices or PriceCard(), scale=scale)


def _spans(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "resourceSpans" not in row:
        yield row
        return
    for resource in objects(row["resourceSpans"]):
        for scope in objects(resource.get("scopeSpans")):
            yield from objects(scope.get("spans"))


def _is_model_call(facts: Mapping[str, Any]) -> bool:
    kind = text(facts.get("openinference.span.kind")).upper()
    named = facts.get("gen_ai.operation.name", facts.get("llm.request.type"))
    return kind == "LLM" or named in _CHAT


def _failed(span: Mapping[str, Any]) -> bool:
    status = span.get("status")
    code = status.get("code") if isinstance(status, Mapping) else span.get("status_code", status)
    return str(code).upper() in ("2", "ERROR", "STATUS_CODE_ERROR")


def _served(place: tuple[str, int], span: Mapping[str, Any], facts: Mapping[str, Any]) -> Served:
    model = facts.get("gen_ai.response.model") or facts.get("gen_ai.request.model")
    conversation = facts.get("gen_ai.conversation.id") or facts.get("session.id")
    read, cached = _first(facts, _INPUT), _first(facts, _CACHED)
    return Served(
        place,
        _span_id(place, span),
        asked_of(span, facts),
        text(model or facts.get("llm.model_name")),
        cost_usd=_first(facts, _COST),
        input_tokens=read + cached if cached > read else read,
        output_tokens=_first(facts, _OUTPUT),
        latency_s=_seconds(span),
        conversation_id=text(conversation),
        cached_input_tokens=cached,
    )


def _span_id(place: tuple[str, int], span: Mapping[str, Any]) -> str:
    context = span.get("context")
    inside = context.get("span_id") if isinstance(context, Mapping) else span.get("context.span_id")
    return text(span.get("spanId")) or text(span.get("span_id")) or text(inside) or str(place[1])


def _first(facts: Mapping[str, Any], names: Sequence[str]) -> float:
    """The first of these attributes that holds a number."""
    counts = (number(facts.get(name)) for name in names)
    return next((value for value in counts if not math.isnan(value)), math.nan)


def _feedback(span: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[tuple[str, Feedback]]:
    """Name -> the span's feedback: its score, else its label."""
    for at in range(_MOST_ANNOTATIONS):
        base = f"annotations.{at}.annotation"
        if f"{base}.name" not in facts:
            break
        scored = _scored(facts.get(f"{base}.score"), facts.get(f"{base}.label"))
        yield text(facts[f"{base}.name"]), scored
    for event in objects(span.get("events")):
        if text(event.get("name")) == "gen_ai.evaluation.result":
            result = attributes(event.get("attributes"))
            yield (
                text(result.get("gen_ai.evaluation.name")),
                _scored(
                    result.get("gen_ai.evaluation.score.value"),
                    result.get("gen_ai.evaluation.score.label"),
                ),
            )


def _scored(value: object, label: object) -> Feedback:
    worth = number(value)
    return Feedback(label=text(label).strip()) if math.isnan(worth) else Feedback(worth)


def _seconds(span: Mapping[str, Any]) -> float:
    start, end = number(span.get("startTimeUnixNano")), number(span.get("endTimeUnixNano"))
    if math.isnan(end - start):
        return seconds_between(span.get("start_time"), span.get("end_time"))
    return (end - start) / 1e9 if end >= start else math.nan
