"""The forms that clients and upstreams speak: Chat Completions, Messages and Responses.

Names, addresses and error shapes of each; its requests as Chat Completions would say them, for the
decision alone; and what its answers hold. What an upstream gets is the request as it came.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import compress
from typing import Any, Final

from hydra_core.base.json_values import mapping, objects
from hydra_core.base.tokens import cached_input, output_with_thinking
from hydra_core.routing.query import is_count

_TYPES: Final = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
_MESSAGES_TYPES: Final = {
    **_TYPES,
    402: "billing_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
#: Responses that came to an end, or that the upstream goes on with by itself.
_STATUSES: Final = ("completed", "incomplete", "queued", "in_progress")
_Message = dict[str, Any]
#: How coding agents name their session in the user's id.
_SESSION: Final = re.compile(r"session_(?:id\W{1,9})?[0-9a-zA-Z-]{8,64}")
#: Behind the address of Messages: only the tokens of a request are asked for.
COUNT: Final = "/count_tokens"
#: What only the upstream that made it knows: a routed request may go to another one.
STATE: Final = ("previous_response_id", "conversation", "background")


class Form(StrEnum):
    """A form of requests and answers, as an upstreams file names it."""

    CHAT = "chat"
    MESSAGES = "messages"
    RESPONSES = "responses"

    @property
    def path(self) -> str:
        """Its address below a base URL."""
        return "/chat/completions" if self is Form.CHAT else f"/{self.value}"

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """An error as clients of this form understand it."""
        types = _MESSAGES_TYPES if self is Form.MESSAGES else _TYPES
        kind = types.get(status, "invalid_request_error" if status < 500 else "api_error")
        if self is Form.MESSAGES:
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def error_event(self, message: str, rejected: bytes = b"") -> bytes:
        """An error in the middle of a stream of events, where no status can be said any more.

        Args:
            rejected: The upstream's own error, in place of the message; JSON.
        """
        found = json.loads(rejected) if rejected else self.error(502, message)
        if self is Form.RESPONSES:
            said = found["error"] if rejected else {"code": "server_error", "message": message}
            told = {name: said.get(name) for name in ("code", "message", "param")}
            found = {"type": "error", **told, "sequence_number": 0}
        named = b"" if self is Form.CHAT else b"event: error\n"
        return named + b"data: " + json.dumps(found).encode() + b"\n\n"


def form_of_path(path: str) -> Form:
    """The form whose address a request's path has; Chat Completions for every other."""
    return next((form for form in Form if f"{form.path}/" in f"{path}/"), Form.CHAT)


@dataclass(frozen=True, slots=True)
class Said:
    """One event of a stream.

    Attributes:
        finished: Whether it says why the model stopped.
        begun: The numbers of the choices that it belongs to, where there may be several.
        ended: Those of them that it ends.
        done: Whether nothing comes after it.
        usage: The tokens in it, as the upstream said them.
        error: What it says went wrong, None where nothing did.
        failed: Whether the model stopped for an error that it does not tell.
    """

    content: object = ""
    finished: bool = False
    done: bool = False
    usage: object = None
    error: object = None
    failed: bool = False
    begun: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()


def said_in(found: Mapping[str, Any], form: Form) -> Said:
    if form is Form.CHAT:
        return _chat_event(found)
    return _messages_event(found) if form is Form.MESSAGES else _responses_event(found)


def whole_content(found: Mapping[str, Any], form: Form) -> object:
    """What the model wrote in an answer in one piece, None where it is no answer."""
    if form is Form.CHAT:
        choices = found.get("choices")
        listed = choices if isinstance(choices, list) else []
        messages = [one.get("message") if isinstance(one, Mapping) else None for one in listed]
        known = messages and all(isinstance(one, Mapping) for one in messages)
        failed = any(one.get("finish_reason") == "error" for one in objects(choices))
        return messages if known and not failed else None
    if form is Form.MESSAGES:
        content = found.get("content")
        return content if found.get("type") == "message" and isinstance(content, list) else None
    output = found.get("output")
    is_answer = found.get("object") == "response" and found.get("status") in _STATUSES
    return output if is_answer and isinstance(output, list) else None


def counts_of(said: Mapping[str, Any], form: Form) -> tuple[object, object, object]:
    """Tokens read, of them from the prompt cache, and written; not yet checked.

    The Messages form counts what it read from the cache, and what it wrote into it, beside the
    other input; what was written into it is billed as other input here.
    """
    if form is Form.MESSAGES:
        cached = said.get("cache_read_input_tokens") or 0
        parts = (said.get("input_tokens"), cached, said.get("cache_creation_input_tokens") or 0)
        counted = [part for part in parts if isinstance(part, int) and part >= 0]
        read = sum(counted) if len(counted) == len(parts) else None
        return read, cached, said.get("output_tokens")
    names = ("prompt", "completion") if form is Form.CHAT else ("input", "output")
    cached = cached_input(said, f"{names[0]}_tokens_details")
    read, written = (said.get(f"{name}_tokens") for name in names)
    if is_count(read) and is_count(written):
        written = output_with_thinking(read, written, said.get("total_tokens"), cached)
    return read, cached, written


def _chat_event(found: Mapping[str, Any]) -> Said:
    choices = objects(found.get("choices"))
    ends = [one.get("finish_reason") for one in choices]
    content = [one.get("delta") or one.get("message") for one in choices]
    numbers = [one["index"] if is_count(one.get("index")) else 0 for one in choices]
    return Said(
        content,
        finished=any(ends),
        usage=found.get("usage"),
        failed="error" in ends,
        begun=frozenset(numbers),
        ended=frozenset(compress(numbers, ends)),
    )


def _messages_event(found: Mapping[str, Any]) -> Said:
    kind, delta = found.get("type"), found.get("delta")
    if kind == "message_start":
        message = found.get("message")
        return Said(usage=message.get("usage") if isinstance(message, Mapping) else None)
    if kind == "content_block_start":
        return Said(found.get("content_block"))
    if kind == "content_block_delta":
        return Said(delta)
    if kind == "message_delta":
        stopped = isinstance(delta, Mapping) and bool(delta.get("stop_reason"))
        return Said(finished=stopped, usage=found.get("usage"))
    return Said(done=kind == "message_stop")


def _responses_event(found: Mapping[str, Any]) -> Said:
    kind, response = str(found.get("type")), found.get("response")
    held = mapping(response)
    if kind in ("response.completed", "response.incomplete"):
        return Said(finished=True, done=True, usage=held.get("usage"))
    if kind in ("response.failed", "response.cancelled"):
        return Said(error=held.get("error") or {"code": "server_error"}, usage=held.get("usage"))
    if kind == "error":
        flat = {name: found.get(name) for name in ("code", "message", "param")}
        return Said(error=found.get("error") or flat)
    if kind == "response.output_item.added":
        added = mapping(found.get("item"))
        called = str(added.get("type"))  # the upstream's own tools have no name
        return Said(added.get("name") or (called if called.endswith("_call") else ""))
    return Said(found.get("delta") if kind.endswith(".delta") else "")


def as_chat(found: Mapping[str, Any], form: Form) -> Mapping[str, Any]:
    """The messages and tools of a request, in the form of Chat Completions."""
    if form is Form.CHAT:
        return found
    said = _of_messages(found) if form is Form.MESSAGES else _of_responses(found)
    return {"messages": list(said), "tools": _tools(found)}


def _tools(found: Mapping[str, Any]) -> list[Any]:
    """What a request declares as tools: also in its input, and as servers of tools."""
    added = [one.get("tools") for one in objects(found.get("input"))
             if one.get("type") == "additional_tools"]  # fmt: skip
    return [one for one in (found.get("tools"), found.get("mcp_servers"), *added) if one]


_LIMITS: Final = {
    Form.CHAT: ("max_completion_tokens", "max_tokens"),
    Form.MESSAGES: ("max_tokens",),
    Form.RESPONSES: ("max_output_tokens",),
}


def output_limit(found: Mapping[str, Any], form: Form) -> object:
    """What the request says of the longest answer, None where it says nothing."""
    return next((found[name] for name in _LIMITS[form] if found.get(name) is not None), None)


def schemas(found: Mapping[str, Any], form: Form) -> list[Any]:
    """What a model reads beside the messages."""
    declared = [*_tools(found), found.get("functions"), answer_format(found, form)]
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
    for message in objects(found.get("messages")):
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
                content, failed = _parts(part.get("content")), part.get("is_error")
                results.append({"role": "tool", "content": content, "is_error": failed})
            else:
                rest.append(part)
        yield from results
        if rest or calls or not results:
            more = {"tool_calls": calls} if calls else {}
            yield {"role": message.get("role"), "content": rest, **more}


#: What a call of a tool was told, by the kinds of tools.
_CALLED_WITH: Final = ("arguments", "input", "action", "actions", "operation", "code", "queries")


def _of_responses(found: Mapping[str, Any]) -> Iterator[_Message]:
    if isinstance(found.get("instructions"), str):
        yield {"role": "system", "content": found["instructions"]}
    given = found.get("input")
    if isinstance(given, str):
        yield {"role": "user", "content": given}
    for item in objects(given):
        kind = str(item.get("type", "message"))
        if kind == "message":
            yield {"role": item.get("role"), "content": item.get("content")}
        elif kind.endswith("_call_output"):
            yield {"role": "tool", "content": _parts(item.get("output"))}
        elif kind.endswith("_call"):
            said = next((item[name] for name in _CALLED_WITH if item.get(name)), None)
            call = _call(item.get("name", kind), said)
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
            if item.get("output"):  # the upstream has called it
                yield {"role": "tool", "content": _parts(item["output"])}


def _call(name: object, said: object) -> dict[str, Any]:
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return {"function": {"name": str(name or ""), "arguments": text}}


def _parts(content: object) -> object:
    return [content] if isinstance(content, Mapping) else content or ""
