"""Requests of the other forms as Chat Completions would say them, for the decision alone.

What an upstream gets is the request as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from hydra_core.server.wire.forms import Form

_Message = dict[str, Any]
#: How coding agents name their session in the user's id.
_SESSION: Final = re.compile(r"session_(?:id\W{1,9})?[0-9a-zA-Z-]{8,64}")
#: What only the upstream that made it knows: a routed request may go to another one.
STATE: Final = ("previous_response_id", "conversation", "background")
_LIMITS: Final = {
    Form.CHAT: ("max_completion_tokens", "max_tokens"),
    Form.MESSAGES: ("max_tokens",),
    Form.RESPONSES: ("max_output_tokens",),
}


def as_chat(found: Mapping[str, Any], form: Form) -> Mapping[str, Any]:
    """The messages and tools of a request, in the form of Chat Completions."""
    if form is Form.CHAT:
        return found
    said = _of_messages(found) if form is Form.MESSAGES else _of_responses(found)
    return {"messages": list(said), "tools": found.get("tools")}


def output_limit(found: Mapping[str, Any], form: Form) -> object:
    """What the request says of the longest answer, None where it says nothing."""
    return next((found[name] for name in _LIMITS[form] if name in found), None)


def schemas(found: Mapping[str, Any], form: Form) -> list[Any]:
    """What a model reads beside the messages."""
    declared = [found.get("tools"), found.get("functions"), answer_format(found, form)]
    return [one for one in declared if one]


def answer_format(found: Mapping[str, Any], form: Form) -> object:
    """The shape that the request asks its answer to have, None where it asks for none."""
    if form is Form.CHAT:
        return found.get("response_format")
    holder = found.get("text" if form is Form.RESPONSES else "output_config")
    return holder.get("format") if isinstance(holder, Mapping) else None


def session_of(found: Mapping[str, Any], form: Form) -> str | None:
    """The conversation that a Messages request names in its user's id, if it does."""
    metadata = found.get("metadata") if form is Form.MESSAGES else None
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return user if isinstance(user, str) and _SESSION.search(user[:2_000]) else None


def _of_messages(found: Mapping[str, Any]) -> Iterator[_Message]:
    if found.get("system"):
        yield {"role": "system", "content": found["system"]}
    for message in _listed(found.get("messages")):
        content = message.get("content")
        if not isinstance(content, list):
            yield dict(message)
            continue
        rest, calls, results = [], [], []
        for part in content:
            kind = str(part.get("type")) if isinstance(part, Mapping) else ""
            if kind.endswith("tool_use"):
                calls.append(_call(part.get("name"), part.get("input")))
            elif kind.endswith("tool_result"):
                content, failed = part.get("content") or "", part.get("is_error")
                results.append({"role": "tool", "content": content, "is_error": failed})
            else:
                rest.append(part)
        yield from results
        if rest or calls or not results:
            more = {"tool_calls": calls} if calls else {}
            yield {"role": message.get("role"), "content": rest, **more}


def _of_responses(found: Mapping[str, Any]) -> Iterator[_Message]:
    if isinstance(found.get("instructions"), str):
        yield {"role": "system", "content": found["instructions"]}
    given = found.get("input")
    if isinstance(given, str):
        yield {"role": "user", "content": given}
    for item in _listed(given):
        kind = str(item.get("type", "message"))
        if kind == "message":
            yield {"role": item.get("role"), "content": item.get("content")}
        elif kind.endswith("_call_output"):
            yield {"role": "tool", "content": item.get("output") or ""}
        elif kind.endswith("_call"):
            said = item.get("arguments", item.get("input", item.get("action")))
            call = _call(item.get("name", kind), said)
            yield {"role": "assistant", "content": None, "tool_calls": [call]}


def _call(name: object, said: object) -> dict[str, Any]:
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return {"function": {"name": str(name or ""), "arguments": text}}


def _listed(found: object) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
