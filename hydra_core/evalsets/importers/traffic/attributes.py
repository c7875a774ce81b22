"""A span's attributes as plain values, and what they say of the request."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hydra_core.evalsets.importers.reading.json_document import objects
from hydra_core.evalsets.importers.traffic.messages import NO_MESSAGE, Asked, asked_in
from hydra_core.evalsets.importers.traffic.rows import decoded, text

_MOST: Final = 1_000
_MOST_NAMES: Final = 50_000
_DEPTH: Final = 10
_PREFIX: Final = "attributes."
_LISTED: Final = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "input.messages")
_NUMBERED: Final = (("llm.input_messages", ".message"), ("gen_ai.prompt", ""))
_EVENTS: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_INSIDE: Final = "gen_ai.client.inference.operation.details"


def attributes(value: object) -> dict[str, Any]:
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


def facts_of(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span's attributes; a table of spans has a column for each, `attributes.llm.model_name`."""
    if "attributes" in span:
        return attributes(decoded(span["attributes"]))
    own = {n[len(_PREFIX) :]: decoded(v) for n, v in span.items() if n.startswith(_PREFIX)}
    return attributes(own)


def _untyped(value: object) -> object:
    """The value inside OTLP's {"stringValue": ...}."""
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue" and isinstance(inner, Mapping):
        return [_untyped(one) for one in objects(inner.get("values"))]
    if kind == "kvlistValue" and isinstance(inner, Mapping):
        return attributes(inner.get("values"))
    return inner


def asked_of(span: Mapping[str, Any], facts: Mapping[str, Any]) -> Asked:
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
    events = objects(span.get("events"))
    inside = [attributes(e.get("attributes")) for e in events if text(e.get("name")) == _INSIDE]
    for holder in (facts, *inside):
        yield from (holder[name] for name in _LISTED if name in holder)
    yield from (_numbered(facts, base, tail) for base, tail in _NUMBERED)
    yield _said(events)
    if "input.value" in facts:
        yield facts["input.value"]


def _numbered(facts: Mapping[str, Any], base: str, tail: str) -> list[dict[str, Any]]:
    """Messages whose fields are attributes: `llm.input_messages.0.message.content`."""
    messages = []
    inside = {name: value for name, value in facts.items() if ".contents." in name}
    for at in range(_MOST):
        place = f"{base}.{at}{tail}"
        if f"{place}.role" not in facts:
            break
        content = decoded(facts.get(f"{place}.content"))
        parts = content if isinstance(content, list) else facts.get(f"{place}.content")
        messages.append(
            {"role": facts[f"{place}.role"], "content": parts or _pieces(inside, place)}
        )
    return messages


def _pieces(facts: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    """The parts of one message: `message.contents.0.message_content.text`."""
    parts = []
    for at in range(_MOST):
        base = f"{place}.contents.{at}.message_content"
        own = {name[len(base) + 1 :]: v for name, v in facts.items() if name.startswith(f"{base}.")}
        if not own:
            break
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
            facts = attributes(event.get("attributes"))
            messages.append({"role": role, "content": decoded(facts.get("content"))})
    return messages
