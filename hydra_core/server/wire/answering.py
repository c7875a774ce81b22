"""What an answer of the Messages or the Responses form holds: content, its end, its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hydra_core.server.wire.forms import Form

#: Responses that came to an end, or that the upstream goes on with by itself.
_STATUSES: Final = ("completed", "incomplete", "queued", "in_progress")


@dataclass(frozen=True, slots=True)
class Said:
    """One event of a stream.

    Attributes:
        content: What the model wrote in it.
        finished: Whether it says why the model stopped.
        done: Whether nothing comes after it.
        usage: The tokens in it, as the upstream said them.
        error: What it says went wrong, None where nothing did.
    """

    content: object = ""
    finished: bool = False
    done: bool = False
    usage: object = None
    error: object = None


def said_in(found: Mapping[str, Any], form: Form) -> Said:
    """What a decoded event says."""
    return _messages_event(found) if form is Form.MESSAGES else _responses_event(found)


def whole_content(found: Mapping[str, Any], form: Form) -> object:
    """What the model wrote in an answer in one piece, None where it is no answer."""
    if form is Form.MESSAGES:
        content = found.get("content")
        return content if found.get("type") == "message" and isinstance(content, list) else None
    output = found.get("output")
    known = found.get("object") == "response" and found.get("status") in _STATUSES
    return output if known and isinstance(output, list) else None


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
    details = said.get(f"{names[0]}_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    read, written = (said.get(f"{name}_tokens") for name in names)
    return read, 0 if cached is None else cached, written


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
    held: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
    if kind in ("response.completed", "response.incomplete"):
        return Said(finished=True, done=True, usage=held.get("usage"))
    if kind in ("response.failed", "response.cancelled"):
        return Said(error=held.get("error") or {"code": "server_error"})
    if kind == "error":
        return Said(error={name: found.get(name) for name in ("code", "message")})
    if kind == "response.output_item.added":
        item = found.get("item")
        return Said(item.get("name") if isinstance(item, Mapping) else "")
    return Said(found.get("delta") if kind.endswith(".delta") else "")
