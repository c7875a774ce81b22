"""One request to one upstream: sent, and either answered or not, with the reason."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from hydra_core.server.chat import ChatRequest
from hydra_core.server.upstream.file import Upstream, Upstreams

#: Statuses after which another model is asked: its own trouble, or our key for it.
_TRY_NEXT: Final = frozenset({401, 403, 408, 425, 429})
#: Headers of an answer that go on to the client.
_PASSED: Final = (
    "content-type",
    "content-encoding",
    "retry-after",
    "x-request-id",
    "openai-processing-ms",
)
_PREFIXES: Final = ("x-ratelimit-",)
_SENT: Final = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    "user-agent": "hydra-router",
}
#: Bodies beyond this are written as JSON beside the event loop, not in it.
_LARGE: Final = 200_000


class NotAnsweredError(Exception):
    """A model did not answer.

    Args:
        kind: rate_limited, server_error, refused_key, timeout, connection.
        status: What the upstream said, None where it said nothing.
        body: Its answer, for the client when no model answers.
    """

    def __init__(
        self,
        kind: str,
        status: int | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.status, self.body, self.headers = kind, status, body, headers or {}
        super().__init__(kind)


class BrokeOffError(Exception):
    """An answer ended in the middle."""


@dataclass(slots=True)
class Answer:
    """An answer that has begun.

    Attributes:
        headers: Those that go on to the client.
        first: All of the body where it is not a stream, else its first piece.
        rest: The pieces after it, None where `first` is all; raises BrokeOffError.
    """

    status: int
    headers: dict[str, str]
    first: bytes
    rest: AsyncGenerator[bytes, None] | None
    response: aiohttp.ClientResponse

    def close(self) -> None:
        """Let go of the connection; an unfinished answer is cancelled upstream."""
        self.response.close()


class Caller:
    """Calls upstreams over kept-open connections.

    Args:
        upstreams: Which server each model is asked of.
        environ: Where the variables of the keys are.
    """

    def __init__(self, upstreams: Upstreams, environ: Mapping[str, str] = os.environ) -> None:
        self.upstreams, self._environ = upstreams, environ
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, model: str, chat: ChatRequest, size: int) -> Answer:
        """Ask a model, and wait for the first byte (a stream) or for all of the answer.

        Args:
            model: Catalog id.
            chat: What was asked.
            size: Bytes of the request as it came.

        Raises:
            NotAnsweredError: Another model may be asked: nothing was given to the client yet.
        """
        upstream = self.upstreams.by_model[model]
        body = _body(upstream, model, chat)
        content = await asyncio.to_thread(_json, body) if size > _LARGE else _json(body)
        try:
            async with asyncio.timeout(self.upstreams.timeouts.first_byte_s):
                response = await self._opened().post(
                    f"{upstream.base_url}/chat/completions",
                    data=content,
                    headers={**_SENT, **upstream.headers(self._environ)},
                    allow_redirects=False,
                )
                return await _begun(response, self.upstreams.timeouts.idle_s, stream=chat.stream)
        except TimeoutError as error:
            raise NotAnsweredError("timeout") from error
        except aiohttp.ClientError as error:
            raise NotAnsweredError("connection") from error

    def _opened(self) -> aiohttp.ClientSession:
        """The session of this event loop; its idle connections are dropped before servers do."""
        if self._session is None:
            connect_s = self.upstreams.timeouts.connect_s
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _begun(response: aiohttp.ClientResponse, idle_s: float, *, stream: bool) -> Answer:
    try:
        headers = {
            name.lower(): value
            for name, value in response.headers.items()
            if name.lower() in _PASSED or name.lower().startswith(_PREFIXES)
        }
        status = response.status
        if status in _TRY_NEXT or status >= 500:
            raise NotAnsweredError(_kind(status), status, await response.read(), headers)
        if not stream or status != 200:
            return Answer(status, headers, await response.read(), None, response)
        first = await response.content.readany()
        if not first:
            raise NotAnsweredError("connection")
        return Answer(status, headers, first, _rest(response, idle_s), response)
    except BaseException:
        response.close()
        raise


async def _rest(response: aiohttp.ClientResponse, idle_s: float) -> AsyncGenerator[bytes, None]:
    try:
        while True:
            async with asyncio.timeout(idle_s):
                piece = await response.content.readany()
            if not piece:
                return
            yield piece
    except (aiohttp.ClientError, TimeoutError) as error:
        raise BrokeOffError from error


def _kind(status: int) -> str:
    if status in (401, 403):
        return "refused_key"
    return {429: "rate_limited", 408: "timeout"}.get(status, "server_error")


def _body(upstream: Upstream, model: str, chat: ChatRequest) -> dict[str, Any]:
    body = {**chat.body, "model": upstream.models[model]}
    if chat.stream and not chat.wants_usage:
        options = chat.body.get("stream_options") or {}
        if isinstance(options, Mapping):  # else the upstream says what is wrong with it
            body["stream_options"] = {**options, "include_usage": True}
    return body


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
