"""Import of spans of model calls: OpenTelemetry's GenAI names, or OpenInference's.

Spans are JSONL: a line is one span with its attributes as an object, or an OTLP export request with
many. Feedback is an annotation (OpenInference) or an event `gen_ai.evaluation.result` (GenAI): on
the same span, or in a row with the span's id, as log records and Phoenix's annotations have it.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.base.json_values import objects
from hydra_core.base.spelling import counted_that
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import NO_MESSAGE, Asked, asked_in
from hydra_core.evalsets.importers.traffic.rows import (
    decoded,
    first_number,
    number,
    rows_of,
    seconds_between,
    text,
)
from hydra_core.evalsets.importers.traffic.served import Served, Traffic, whole_tokens

_CHAT: Final = (
    *("chat", "text_completion", "completion", "generate_content", "response", "responses"),
)
_MOST_ANNOTATIONS: Final = 1_000
_SPAN_INPUT: Final = (
    *("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "gen_ai.usage.prompt_tokens",
)
_SPAN_OUTPUT: Final = (
    *("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "gen_ai.usage.completion_tokens",
)
_SPAN_CACHED: Final = (
    *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
    *("llm.token_count.prompt_details.cache_read", "gen_ai.usage.details.cache_read_tokens"),
    *("gen_ai.usage.cached_tokens", "gen_ai.usage.input_tokens.cached"),
    *("gen_ai.usage.details.cached_tokens", "ai.usage.cachedInputTokens"),
    *("ai.usage.inputTokenDetails.cacheReadTokens", "llm.token_count.prompt_details.cache_input"),
)
_WRITTEN: Final = (
    *("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens"),
    *("llm.token_count.prompt_details.cache_write", "ai.usage.inputTokenDetails.cacheWriteTokens"),
)
_THOUGHT: Final = (
    *("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
    *("llm.token_count.completion_details.reasoning", "ai.usage.reasoningTokens"),
    "ai.usage.outputTokenDetails.reasoningTokens",
)
_TOTAL: Final = (
    *("gen_ai.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"),
    "llm.usage.total_tokens",
)
_COST: Final = (
    *("llm.cost.total", "gen_ai.usage.cost", "operation.cost", "gen_ai.usage.total_cost"),
    *("gen_ai.cost.total_cost", "litellm.cost.total", "llm.usage.total_cost"),
)
_MOST_NAMES: Final = 50_000
_DEPTH: Final = 10
_PREFIX: Final = "attributes."
_LISTED: Final = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.messages",
                  "ai.prompt.messages")  # fmt: skip
#: Where a message may stand that has no role of its own, or under a writer's own name.
_ELSEWHERE: Final = (
    *("llm.prompts", "llm.prompts.0.prompt.text", "gen_ai.prompt.0.content"),
    *("gen_ai.prompt.0.user", "events", "request_data", "langfuse.observation.input"),
    "input.value",
)
_NUMBERED: Final = (("llm.input_messages", ".message"), ("gen_ai.prompt", ""))
_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
#: Events that hold what else stands in attributes of the span.
_INSIDE: Final = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt")
#: Where spans and log records lie in an export request.
_GROUPS: Final = (
    ("resourceSpans", "scopeSpans", "spans"),
    ("resourceLogs", "scopeLogs", "logRecords"),
    ("resource_spans", "scope_spans", "spans"),
)
#: A column that a table of spans has for an evaluation: `eval.correctness.score`.
_EVALUATED: Final = re.compile(r"((?:eval|annotation)\.(.+))\.(?:score|label)")


def read_spans(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Spans of model calls with feedback; each becomes a query. Few carry a cost of their own.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic(given)
    rows: list[tuple[Served, dict[str, Feedback]]] = []
    answers: list[str] = []
    differing: list[str] = []
    apart: dict[str, dict[str, list[Any]]] = {}
    for place, row in rows_of(files, Budget(), traffic.unread):
        for span in _spans(row):
            facts = _facts_of(span)
            if (name := _event_name(span, facts)) or _is_annotation(span):
                _take_apart(span, name, facts, apart)
            elif not _is_model_call(span, facts):
                traffic.skip("not a model call", _span_id(span, place))
            elif _failed(span, facts):
                traffic.skip("the request failed", _span_id(span, place))
            else:
                scores = _newest(_span_feedback(span, facts), {}, differing)
                rows.append((_served_span(place, span, facts), scores))
                answers.append(text(facts.get("gen_ai.response.id")))
    _join(rows, answers, apart, differing)
    known = {row.query_id for row, _ in rows} | {*answers} - {""}
    for name, own in apart.items():
        if name not in known and list(_span_feedback(own, {})):
            traffic.skip("feedback of a model call that these files do not hold", name)
    if differing:
        differ = counted_that(len(differing), "score", "differs", "differ")
        traffic.warnings.append(
            f"{differ} from an earlier one of the same span and name, such as {differing[0]}; the "
            "last counts"
        )
    if rows and not any(scores for _, scores in rows):
        remedy = (
            "give annotations, or events gen_ai.evaluation.result, on the spans or as rows with "
            "their span_id in a file beside"
        )
        raise EvalSetError.of("spans", "no model call has feedback", remedy)
    traffic.add_scored(rows, "spans")
    return traffic.draft("spans")


def _spans(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The spans and log records of a row, which is one itself or an export request of many."""
    grouped = [names for names in _GROUPS if names[0] in row or names[1] in row]
    if not grouped:
        yield row
    for outer, middle, inner in grouped:
        for resource in objects(row.get(outer, [row])):
            for scope in objects(resource.get(middle)):
                yield from objects(scope.get(inner))


def _event_name(row: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The name of a log record, '' of what is none."""
    names = (row.get("eventName"), row.get("event_name"), facts.get("event.name"))
    return next(filter(None, map(text, names)), "")


def _is_annotation(row: Mapping[str, Any]) -> bool:
    """Whether it judges a span that stands elsewhere."""
    return "span_id" in row and "attributes" not in row and not {"result", "score"}.isdisjoint(row)


def _take_apart(
    row: Mapping[str, Any],
    event: str,
    facts: Mapping[str, Any],
    apart: dict[str, dict[str, list[Any]]],
) -> None:
    """Keep an event or an annotation under the id of its span, else of its answer."""
    body = row.get("body")
    inner = _untyped(body) if isinstance(body, Mapping) and "kvlistValue" in body else body
    key = _span_id(row) or text(facts.get("gen_ai.response.id"))
    own = apart.setdefault(key, {"events": [], "annotations": []})
    if event:
        attributes = {**(inner if isinstance(inner, Mapping) else {}), **facts}
        own["events"].append({"name": event, "attributes": attributes})
    else:
        own["annotations"].append(row)


def _join(
    rows: list[tuple[Served, dict[str, Feedback]]],
    answers: Sequence[str],
    apart: Mapping[str, Mapping[str, list[Any]]],
    differing: list[str],
) -> None:
    """Give spans what other rows hold of them: feedback, and a message where they have none."""
    for at, (answer, (served, scores)) in enumerate(zip(answers, rows, strict=True)):
        for own in (apart[key] for key in (served.query_id, answer) if key and key in apart):
            if served.asked.problem == NO_MESSAGE:
                served = replace(served, asked=_asked_of(own, {}))
            scores = _newest(_span_feedback(own, {}), scores, differing)
        rows[at] = served, scores


def _newest(
    found: Iterable[tuple[str, Feedback]], before: Mapping[str, Feedback], differing: list[str]
) -> dict[str, Feedback]:
    """The scores of a span, the last of each name; names of which others differ are noted."""
    scores = dict(before)
    for name, feedback in found:
        differing += [name] if scores.get(name, feedback) != feedback else []
        scores[name] = feedback
    return scores


def _is_model_call(span: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """By its kind (a table of spans has a column for it) or operation, else by its tokens."""
    kind = text(facts.get("openinference.span.kind") or span.get("span_kind")).upper()
    named = facts.get("gen_ai.operation.name", facts.get("llm.request.type"))
    unnamed = named is None and not math.isnan(first_number(facts, _SPAN_OUTPUT))
    return kind == "LLM" or named in _CHAT or (unnamed and not kind)


def _failed(span: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """By its status, however an exporter writes it, or by the type of its error."""
    status = decoded(span.get("status"))
    code = span.get("status_code", status)
    if isinstance(status, Mapping):
        code = status.get("code", status.get("status_code"))
    failed = str(code).upper().rpartition(".")[2] in ("2", "ERROR", "STATUS_CODE_ERROR")
    return failed or bool(text(facts.get("error.type")))


def _served_span(
    place: tuple[str, int], span: Mapping[str, Any], facts: Mapping[str, Any]
) -> Served:
    model = facts.get("gen_ai.response.model") or facts.get("gen_ai.request.model")
    conversation = facts.get("gen_ai.conversation.id") or facts.get("session.id")
    cached = first_number(facts, _SPAN_CACHED)
    read, written = whole_tokens(
        first_number(facts, _SPAN_INPUT),
        first_number(facts, _SPAN_OUTPUT),
        cached=cached,
        stored=first_number(facts, _WRITTEN),
        thought=first_number(facts, _THOUGHT),
        total=first_number(facts, _TOTAL),
    )
    cost_usd = first_number(facts, _COST)
    parts = number(facts.get("llm.cost.prompt")) + number(facts.get("llm.cost.completion"))
    return Served(
        place,
        _span_id(span, place),
        _asked_of(span, facts),
        text(model or facts.get("llm.model_name")),
        cost_usd=parts if math.isnan(cost_usd) else cost_usd,
        input_tokens=read,
        output_tokens=written,
        latency_s=_seconds(span),
        conversation_id=text(conversation),
        cached_input_tokens=cached,
    )


def _span_id(span: Mapping[str, Any], place: tuple[str, int] | None = None) -> str:
    """The id of a span, else its line where one is given."""
    context = span.get("context")
    inside = context.get("span_id") if isinstance(context, Mapping) else span.get("context.span_id")
    ids = (text(span.get("spanId")), text(span.get("span_id")), text(inside))
    return next(filter(None, ids), "" if place is None else str(place[1]))


def _span_feedback(
    span: Mapping[str, Any], facts: Mapping[str, Any]
) -> Iterator[tuple[str, Feedback]]:
    """Name -> the span's feedback: its score, else its label."""
    for one in objects(decoded(span.get("annotations"))):
        result = one["result"] if isinstance(one.get("result"), Mapping) else one
        name = text(one.get("name")) or text(one.get("annotation_name"))
        yield name, _scored(result.get("score"), result.get("label"))
    for base, name in {m[1]: m[2] for one in span if (m := _EVALUATED.fullmatch(one))}.items():
        scored = _scored(span.get(f"{base}.score"), span.get(f"{base}.label"))
        if not scored.absent:
            yield name, scored
    for at in range(_MOST_ANNOTATIONS):
        base = f"annotations.{at}.annotation"
        if f"{base}.name" not in facts:
            break
        scored = _scored(facts.get(f"{base}.score"), facts.get(f"{base}.label"))
        yield text(facts[f"{base}.name"]), scored
    for event in objects(decoded(span.get("events"))):
        if text(event.get("name")) == "gen_ai.evaluation.result":
            result = _attributes(event.get("attributes"))
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
    start, end = (
        first_number(span, (f"{side}TimeUnixNano", f"{side}_time_unix_nano"))
        for side in ("start", "end")
    )
    if math.isnan(end - start):
        return seconds_between(span.get("start_time"), span.get("end_time"))
    return (end - start) / 1e9 if end >= start else math.nan


def _attributes(value: object) -> dict[str, Any]:
    """Attributes by their dotted names, from OTLP's typed values and from nested ones as well."""
    if not isinstance(value, Mapping):
        return {text(one.get("key")): _untyped(one.get("value")) for one in objects(value)}
    inner = dict(itertools.islice(_inside(value, "", _DEPTH), _MOST_NAMES))
    return {**inner, **value}


def _inside(value: object, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of everything in nested objects and lists."""
    named: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        named = value.items()
    elif isinstance(value, list):
        named = enumerate(value)
    for key, one in named:
        full = f"{name}.{key}" if name else str(key)
        yield full, one
        if depth > 1:
            yield from _inside(one, full, depth - 1)


def _facts_of(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span's attributes; a table of spans has a column for each, `attributes.llm.model_name`."""
    if "attributes" in span:
        return _attributes(decoded(span["attributes"]))
    own = {n[len(_PREFIX) :]: decoded(v) for n, v in span.items() if n.startswith(_PREFIX)}
    return _attributes(own)


def _untyped(value: object) -> object:
    """The value inside OTLP's {"stringValue": ...}."""
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue" and isinstance(inner, Mapping):
        return [_untyped(one) for one in objects(inner.get("values"))]
    if kind == "kvlistValue" and isinstance(inner, Mapping):
        return _attributes(inner.get("values"))
    return inner


def _asked_of(span: Mapping[str, Any], facts: Mapping[str, Any]) -> Asked:
    """The request's last user message, in whatever form the span has it."""
    first = Asked(problem=NO_MESSAGE)
    for stored in _stored(span, facts):
        asked = asked_in(stored)
        if not asked.problem:
            return asked
        first = asked if first.problem == NO_MESSAGE else first
    return first


def _stored(span: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[object]:
    """What may hold the messages, the surest first."""
    events = objects(decoded(span.get("events")))
    inside = [_attributes(e.get("attributes")) for e in events if text(e.get("name")) in _INSIDE]
    for holder in (facts, *inside):
        yield from (holder[name] for name in _LISTED if name in holder)
    yield from (_numbered(facts, base, tail) for base, tail in _NUMBERED)
    yield _said(events)
    yield from (facts[name] for name in _ELSEWHERE if name in facts)


def _numbered(facts: Mapping[str, Any], base: str, tail: str) -> list[dict[str, Any]]:
    """Messages whose fields are attributes: `llm.input_messages.0.message.content`.

    Where a number is left out an answer without words stands, so that the user messages around it
    do not become one.
    """
    messages: list[dict[str, Any]] = []
    inside = {name: value for name, value in facts.items() if ".contents." in name}
    before = -1
    for at, numbered in _places(facts, base, rf"{re.escape(tail)}\.role$").items():
        place = f"{numbered}{tail}"
        content = decoded(facts.get(f"{place}.content"))
        parts = content if isinstance(content, list) else facts.get(f"{place}.content")
        messages += [{"role": "assistant", "content": ""}] if at > before + 1 else []
        messages.append(
            {"role": facts[f"{place}.role"], "content": parts or _pieces(inside, place)}
        )
        before = at
    return messages


def _places(facts: Mapping[str, Any], base: str, tail: str) -> dict[int, str]:
    """Number -> `base.NUMBER` of the attributes that go on with `tail`, by number."""
    numbered = re.compile(rf"({re.escape(base)}\.([0-9]{{1,9}})){tail}")
    found = {int(match[2]): match[1] for name in facts if (match := numbered.match(name))}
    return dict(sorted(found.items()))


def _pieces(facts: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """The parts of one message: `message.contents.0.message_content.text`."""
    parts = []
    for part in _places(facts, f"{place}.contents", r"\.message_content\.").values():
        base = f"{part}.message_content."
        own = {name[len(base) :]: v for name, v in facts.items() if name.startswith(base)}
        image = any(name.startswith("image") for name in own)
        kind = "image" if image else text(own.get("type"))
        parts.append({"type": kind, "text": own.get("text")})
    return parts


def _said(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages that were written as events of the span."""
    messages = []
    for event in events:
        role = _EVENTS.get(text(event.get("name")))
        if role is not None:
            facts = _attributes(event.get("attributes"))
            messages.append({"role": role, "content": decoded(facts.get("content"))})
    return messages
