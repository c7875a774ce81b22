"""What goes back to the client: answers piece by piece, errors, our headers."""

import asyncio
import json
import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, TypeVar
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from hydra_core.server.deciding import Decided

_T = TypeVar("_T")
#: What a percent-encoded model id keeps as it is: all signs of ASCII but %.
_SAFE: Final = "".join(sign for sign in map(chr, range(33, 127)) if sign != "%")
#: Told at the end of an answer whether the client went away before it.
Closed = Callable[[bool], None]
#: Signs of our own sentences, as ASCII has them.
_ASCII = str.maketrans(
    {"τ": "tau", "≤": "<=", "≥": ">=", "–": "-", "−": "-", "→": "->", "×": "x", "’": "'", "“": '"',
     "”": '"'}
)  # fmt: skip


class ClientGoneError(Exception):
    """The client closed the connection before it was answered."""


class JsonAnswer(JSONResponse):
    """JSON in which half a character that a client sent (a lone surrogate) becomes `?`."""

    def render(self, content: object) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def our_headers(decided: Decided, model: str) -> dict[str, str]:
    """Who answers (`model`), why, by which rule and revision."""
    reason = decided.reason
    if model != decided.model:
        reason = f"Fallback: {decided.model} did not answer."
    values = {
        "x-hydra-model": model if model.isascii() else quote(model, safe=_SAFE),
        "x-hydra-decision-id": decided.id,
        "x-hydra-rule": decided.rule,
        "x-hydra-reason": reason,
        "x-hydra-catalog-revision": decided.serving.label,
    }
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: str) -> str:
    """As a header can hold it: readable in ASCII."""
    spelt = value if value.isascii() else value.translate(_ASCII)
    if spelt.isascii() and spelt.isprintable():
        return spelt[:400]
    spelt = unicodedata.normalize("NFKD", spelt)
    plain = (sign for sign in spelt if not unicodedata.combining(sign))
    return "".join(sign if " " <= sign <= "~" else "?" for sign in plain)[:400]


class WholeAnswer(Response):
    """An answer that is recorded once it is with the client, who need not wait for that.

    Args:
        closed: Called at the end, with whether the client went away.
    """

    def __init__(
        self, content: bytes, status: int, headers: Mapping[str, str], closed: Closed
    ) -> None:
        super().__init__(content, status, headers)
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = True
        try:
            await self._deliver(scope, receive, send)
            gone = False
        except (ClientGoneError, OSError):
            pass
        finally:
            self._closed(gone)

    async def _deliver(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)


class StreamedAnswer(WholeAnswer):
    """A stream that goes on as it comes, and ends at once when the client goes away."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes, None],
        closed: Closed,
    ) -> None:
        super().__init__(b"", status, headers, closed)
        del self.headers["content-length"]
        self._pieces = pieces

    async def _deliver(self, scope: Scope, receive: Receive, send: Send) -> None:
        await until_gone(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        async with aclosing(self._pieces):
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_gone(receive: Receive, work: Awaitable[_T]) -> _T:
    """The result of `work`, cancelled with ClientGoneError once the client went away."""
    task = asyncio.current_task()
    assert task is not None
    gone = False

    def left(watch: asyncio.Task[None]) -> None:
        nonlocal gone
        if not watch.cancelled():
            watch.exception()  # a server that cannot say has lost its client as well
        gone = True
        task.cancel()

    watch = asyncio.ensure_future(_disconnected(receive))
    watch.add_done_callback(left)
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not task.uncancel():
            raise ClientGoneError from None
        raise  # somebody else stops this request
    finally:
        watch.remove_done_callback(left)
        watch.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
