"""Answers that come in one piece: read up to a bound, judged by what they hold, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from hydra_core.server.upstream.events import MOST_BYTES, Seen, written_in
from hydra_core.server.upstream.failures import MOST_ERROR_BYTES, NotAnsweredError, error_in
from hydra_core.server.wire.answering import whole_content
from hydra_core.server.wire.forms import Form

#: Answers beyond this are read as JSON beside the event loop.
_LARGE: Final = 200_000


async def read_whole(response: aiohttp.ClientResponse, form: Form) -> tuple[bytes, Seen]:
    """The body of an answer, and what it holds.

    Args:
        form: That the answer must have.

    Raises:
        NotAnsweredError: It is no answer, whatever its status says.
    """
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise NotAnsweredError("bad_answer", response.status)
    body = b"".join(pieces)
    if size > _LARGE:
        return body, await asyncio.to_thread(_judged, body, response.status, form)
    return body, _judged(body, response.status, form)


def as_events(body: bytes, *, usage: bool) -> bytes:
    """A whole answer as the stream that the client asked for.

    Args:
        usage: Whether the client asked for the tokens at its end.
    """
    found: dict[str, Any] = json.loads(body)
    choices = [
        {
            "index": choice.get("index", number),
            "delta": choice["message"],
            "finish_reason": choice.get("finish_reason") or "stop",
        }
        for number, choice in enumerate(found["choices"])
    ]
    head = {**found, "object": "chat.completion.chunk"}
    head.pop("usage", None)
    events = [{**head, "choices": choices}]
    if usage and "usage" in found:
        events.append({**head, "choices": [], "usage": found["usage"]})
    told = [f"data: {json.dumps(one)}\n\n".encode() for one in events]
    return b"".join((*told, b"data: [DONE]\n\n"))


def shown_error(status: int | None, body: bytes, key: str, form: Form) -> bytes:
    """An upstream's error as a client may see it: JSON of a bounded size, without our key."""
    try:
        found = json.loads(body) if len(body) <= MOST_ERROR_BYTES else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict | list):
        message = f"the upstream answered {status or 'nothing'}, without an error to show"
        found = form.error(500, message)
    text = json.dumps(found, ensure_ascii=False)
    for secret in filter(None, (key, json.dumps(key)[1:-1])):
        text = text.replace(secret, "***")
    return text.encode("utf-8", "replace")


def _judged(body: bytes, status: int, form: Form) -> Seen:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAnsweredError("bad_answer", status) from error
    if not isinstance(found, dict):
        raise NotAnsweredError("bad_answer", status)
    said = error_in(found)
    if said is not None:
        raise said
    usage = found.get("usage")
    counted = usage if isinstance(usage, dict) else None
    if form is not Form.CHAT:
        content = whole_content(found, form)
        if content is None:
            raise NotAnsweredError("bad_answer", status)
        return Seen(written_in(content), finished=True, usage=counted)
    choices = found.get("choices")
    listed = choices if isinstance(choices, list) else []
    messages = [one.get("message") if isinstance(one, Mapping) else None for one in listed]
    if not messages or not all(isinstance(one, Mapping) for one in messages):
        raise NotAnsweredError("bad_answer", status)
    return Seen(written_in(messages), finished=True, usage=counted)
