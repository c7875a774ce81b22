"""One request to one upstream: sent, and either answered or not, with the reason.

An answer counts by what it holds, not by its status line: a 200 with an error, a page of HTML or
nothing at all is none, and neither is a stream that ends before it says so.
"""

import asyncio
import json
import math
import os
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from hydra_core.server.chat import ChatRequest
from hydra_core.server.upstream.failures import (
    OF_REQUESTS,
    REJECTED,
    NotAnsweredError,
    error_in,
    refusal_of,
    shown_error,
    wait_of,
)
from hydra_core.server.upstream.file import Timeouts, Upstream, Upstreams
from hydra_core.server.upstream.reading import MOST_BYTES, EventStream, Seen, written_in
from hydra_core.server.wire import COUNT, Form, whole_content

#: Headers of an answer that go on to the client.
_PASSED: Final = ("retry-after", "x-request-id", "request-id", "openai-processing-ms")
_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-")
_MOST_HEADERS: Final = 40
_LONGEST_HEADER: Final = 400
_SENT: Final = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    "user-agent": "hydra-router",
}
#: An upstream such as Mistral takes no request for the tokens of a stream, and says them anyway.
_USAGE_REFUSED: Final = re.compile(rb"stream_options|include_usage")
#: What may stand before a body's first sign: a byte order mark too.
_BLANKS: Final = b"\xef\xbb\xbf \t\r\n"
#: Bodies beyond this are written and read as JSON beside the event loop, not in it.
_LARGE: Final = 200_000


@dataclass(slots=True)
class Answer:
    """An answer that has begun.

    Attributes:
        headers: Those that go on to the client.
        first: All of the body where it is not a stream, else its first events.
        rest: The events after it, None where `first` is all; raises BrokeOffError.
    """

    status: int
    headers: dict[str, str]
    first: bytes
    rest: AsyncGenerator[bytes, None] | None
    response: aiohttp.ClientResponse
    seen: Seen

    @property
    def rejected(self) -> bool:
        """Whether the upstream says that the request itself is wrong."""
        return self.status >= 400

    def close(self) -> None:
        """Let go of the connection; an unfinished answer is cancelled upstream."""
        self.response.close()


class Caller:
    """Calls upstreams over kept-open connections, with the keys that `environ` holds."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._session: aiohttp.ClientSession | None = None
        self._not_asked_usage: set[str] = set()  # models whose upstream refuses to be asked

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, upstreams: Upstreams, model: str, chat: ChatRequest) -> Answer:
        """Ask a model, and wait for the first content (a stream) or for all of the answer.

        Raises:
            NotAnsweredError: Another model may be asked: nothing was given to the client yet.
        """
        upstream = upstreams.by_model[model]
        asks = chat.stream and not chat.wants_usage and model not in self._not_asked_usage
        asks &= isinstance(chat.body.get("stream_options") or {}, Mapping)  # else it is to blame
        try:
            answer = await self._asked(upstream, upstreams.timeouts, model, chat, usage=asks)
            if not (asks and answer.rejected and _USAGE_REFUSED.search(answer.first)):
                return answer
        except NotAnsweredError as error:
            of_request = asks and error.kind in OF_REQUESTS
            if not (of_request and _USAGE_REFUSED.search(error.body)):
                raise
        again = await self._asked(upstream, upstreams.timeouts, model, chat, usage=False)
        if not again.rejected:
            self._not_asked_usage.add(model)
        return again

    async def _asked(
        self, upstream: Upstream, times: Timeouts, model: str, chat: ChatRequest, *, usage: bool
    ) -> Answer:
        """An answer; `usage`: HyDRA asks for the tokens of a stream, which the client did not."""
        served, form = upstream.models[model], chat.form
        body = {**chat.body, "model": served.name}
        if not chat.counts:
            body = served.asked(chat.body, form)
        if usage:
            options = chat.body.get("stream_options") or {}
            body["stream_options"] = {**options, "include_usage": True}
        large = chat.size > _LARGE
        content = await asyncio.to_thread(_json, body) if large else _json(body)
        key = upstream.key(self._environ)
        try:
            async with asyncio.timeout(times.first_byte_s) as limit:
                response = await self._opened().post(
                    f"{upstream.base_url}{form.path}{COUNT if chat.counts else ''}",
                    data=content,
                    headers={**_SENT, **chat.headers, **upstream.proof(form, key)},
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=times.connect_s),
                )
                return await _begun(response, chat, times.idle_s, limit, key)
        except NotAnsweredError as error:
            error.body = shown_error(error.status, error.body, key, form)
            raise
        except TimeoutError as error:
            raise NotAnsweredError("timeout") from error
        except aiohttp.ClientError as error:
            raise NotAnsweredError("connection") from error

    def _opened(self) -> aiohttp.ClientSession:
        """The session of this event loop; its idle connections are dropped before servers do."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _begun(
    response: aiohttp.ClientResponse,
    chat: ChatRequest,
    idle_s: float,
    limit: asyncio.Timeout,
    key: str,
) -> Answer:
    headers = _passed_on(response.headers, key)
    try:
        if not 200 <= response.status < 300:
            raise await _refusal(response, headers, chat)
        begun = await _begin(response) if chat.stream else b""
        if chat.stream:
            headers["content-type"] = "text/event-stream"
        if chat.stream and not begun.lstrip(_BLANKS).startswith(b"{"):
            stream = EventStream(response, idle_s, chat, key, begun)
            first = await stream.first(limit)
            return Answer(200, headers, first, stream.rest(), response, stream.seen)
        body, seen = await read_whole(response, chat, begun)
        if chat.stream:
            if chat.form is not Form.CHAT:  # its events cannot be made of it
                raise NotAnsweredError("bad_answer", response.status)
            body = as_events(body, usage=chat.wants_usage)
        return Answer(200, headers, body, None, response, seen)
    except BaseException as error:
        response.close()
        if not isinstance(error, NotAnsweredError) or error.kind != REJECTED:
            raise
        said = shown_error(error.status, error.body, key, chat.form)
        return Answer(error.status or 400, headers, said, None, response, Seen())


async def _refusal(
    response: aiohttp.ClientResponse, headers: dict[str, str], chat: ChatRequest
) -> NotAnsweredError:
    """What an answer whose status is no success says."""
    status = response.status
    body = (await _at_most(_LARGE, response))[0] if status >= 400 else b""
    lowered = {name.lower(): value for name, value in response.headers.items()}
    kind, wait_s = refusal_of(status, body, chat.body) or REJECTED, wait_of(lowered, body)
    if wait_s:
        headers.setdefault("retry-after", str(math.ceil(wait_s)))
    return NotAnsweredError(kind, status, body, headers, wait_s)


async def _begin(response: aiohttp.ClientResponse) -> bytes:
    """The beginning of a body, with its first sign that is no blank.

    It says whether a stream came, or JSON in its place: upstreams and proxies name wrong types.
    """
    begun = b""
    while not begun.lstrip(_BLANKS) and len(begun) < _LARGE:
        if not (piece := await response.content.readany()):
            break
        begun += piece
    return begun


async def _at_most(
    most: int, response: aiohttp.ClientResponse, begun: bytes = b""
) -> tuple[bytes, aiohttp.ClientError | None]:
    """A body, or a piece more than `most` bytes of it, and why it ended before its end."""
    pieces, size = [begun], len(begun)
    try:
        async for piece in response.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > most:
                break
    except aiohttp.ClientError as error:
        return b"".join(pieces), error
    return b"".join(pieces), None


def _passed_on(found: Mapping[str, str], key: str) -> dict[str, str]:
    """The headers that go on to the client, as a header may hold them."""
    headers = {"content-type": "application/json"}
    for name, value in found.items():
        lowered = name.lower()
        passes = lowered.isascii() and (lowered in _PASSED or lowered.startswith(_PREFIXES))
        if passes and len(headers) < _MOST_HEADERS:
            plain = "".join(sign if " " <= sign <= "~" else "?" for sign in value)
            masked = plain.replace(key, "***") if key else plain
            headers[lowered] = masked[:_LONGEST_HEADER]
    return headers


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


async def read_whole(
    response: aiohttp.ClientResponse, chat: ChatRequest, begun: bytes = b""
) -> tuple[bytes, Seen]:
    """The body of the answer to `chat`, and what it holds; `begun`: what was read of it.

    A connection that ends early takes nothing from an answer that is whole.

    Raises:
        NotAnsweredError: It is no answer, whatever its status says.
        ClientError: It ended in the middle.
    """
    body, cut = await _at_most(MOST_BYTES, response, begun)
    if len(body) > MOST_BYTES:
        raise NotAnsweredError("bad_answer", response.status)
    try:
        if len(body) > _LARGE:
            return body, await asyncio.to_thread(_judged, body, response.status, chat)
        return body, _judged(body, response.status, chat)
    except NotAnsweredError as error:
        raise cut if cut and error.kind == "bad_answer" else error from None


def as_events(body: bytes, *, usage: bool) -> bytes:
    """A whole answer as the stream that the client asked for; `usage`: with tokens at its end."""
    found: dict[str, Any] = json.loads(body)
    choices = [
        {
            **{key: value for key, value in choice.items() if key != "message"},
            "index": choice.get("index", number),
            "delta": _delta(choice["message"]),
            "finish_reason": choice.get("finish_reason") or "stop",
        }
        for number, choice in enumerate(found["choices"])
    ]
    head = {**found, "object": "chat.completion.chunk"}
    head.pop("usage", None)
    events = [{**head, "choices": choices}]
    if usage and "usage" in found:
        events.append({**head, "choices": [], "usage": found["usage"]})
    sent = [f"data: {json.dumps(one)}\n\n".encode() for one in events]
    return b"".join((*sent, b"data: [DONE]\n\n"))


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message as a stream has it: clients put tool calls together by their numbers."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return {**message}
    numbered = [{"index": n, **one} if isinstance(one, Mapping) else one
                for n, one in enumerate(calls)]  # fmt: skip
    return {**message, "tool_calls": numbered}


def _judged(body: bytes, status: int, chat: ChatRequest) -> Seen:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAnsweredError("bad_answer", status) from error
    if not isinstance(found, dict):
        raise NotAnsweredError("bad_answer", status)
    said = error_in(found, chat.body)
    if said is not None:
        raise said
    content, usage = whole_content(found, chat.form), found.get("usage")
    content = found.get("input_tokens") if chat.counts else content
    if content is None:
        raise NotAnsweredError("bad_answer", status)
    counted = usage if isinstance(usage, dict) else None
    return Seen(written_in(content), finished=True, usage=counted)
