"""What goes back to the client: answers piece by piece, errors in the OpenAI form, our headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hydra_core.server.deciding import Decided

__all__ = [
    "ClientGoneError",
    "StreamedAnswer",
    "error_event",
    "error_response",
    "our_headers",
    "until_gone",
]

_T = TypeVar("_T")
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}


class ClientGoneError(Exception):
    """The client closed the connection before it was answered."""


def error_response(
    status: int, message: str, headers: Mapping[str, str] | None = None, *, code: str | None = None
) -> JSONResponse:
    """An error as OpenAI's clients understand it."""
    return JSONResponse(_error(status, message, code), status, headers=dict(headers or {}))


def error_event(message: str) -> bytes:
    """An error in the middle of a stream of events, where no status can be said any more."""
    return b"data: " + json.dumps(_error(502, message, None)).encode() + b"\n\n"


def _error(status: int, message: str, code: str | None) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def our_headers(decided: Decided, model: str) -> dict[str, str]:
    """Who served, why, by which rule and revision.

    Args:
        model: The model that answers.
    """
    reason = decided.reason
    if model != decided.model:
        reason = f"Fallback: {decided.model} did not answer."
    values = {
        "x-hydra-model": model,
        "x-hydra-decision-id": decided.id,
        "x-hydra-rule": decided.rule,
        "x-hydra-reason": reason,
        "x-hydra-catalog-revision": decided.serving.label,
    }
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: str) -> str:
    """As a header can hold it."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in value)[:400]


class StreamedAnswer(Response):
    """A stream that goes on as it comes, and ends at once when the client goes away.

    Args:
        pieces: The body.
        closed: Awaited at the end, with whether the client went away.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes],
        closed: Callable[[bool], Awaitable[None]],
    ) -> None:
        super().__init__(None, status, headers=headers)
        del self.headers["content-length"]
        self._pieces, self._closed = pieces, closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        gone = False
        try:
            await _first_of(self._send(send), _disconnected(receive))
        except (ClientGoneError, OSError):
            gone = True
        except asyncio.CancelledError:
            gone = True
            raise
        finally:
            await asyncio.shield(self._closed(gone))

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of `work`, which is cancelled when the client goes away.

    Raises:
        ClientGoneError: It went away.
    """
    return await _first_of(work, _disconnected(request.receive))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first_of(work: Coroutine[Any, Any, _T], gone: Coroutine[Any, Any, None]) -> _T:
    """The result of `work` unless `gone` ends first."""
    watch = asyncio.ensure_future(gone)
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGoneError
    finally:
        for one in (task, watch):
            one.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)
