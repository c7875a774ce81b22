"""A stream from an upstream: held until its first content, then passed on as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import Final

import aiohttp

from hydra_core.server.upstream.events import EventReader, Seen
from hydra_core.server.upstream.failures import NotAnsweredError
from hydra_core.server.wire.forms import Form

#: Bytes of events without content that are kept until there is some.
_MOST_HELD: Final = 1 << 20
#: After its last event a stream has this long to end.
_DRAIN_S: Final = 0.2


class BrokeOffError(Exception):
    """An answer ended in the middle."""


class EventStream:
    """A stream of events from an upstream.

    Args:
        strip: Take out the event that holds nothing but the usage, which HyDRA asked for and the
            client did not.
        form: The form that the events have.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, idle_s: float, form: Form, *, strip: bool
    ) -> None:
        self.seen = Seen()
        self._response, self._idle_s, self._strip = response, idle_s, strip
        self._reader = EventReader(form)
        self._error: NotAnsweredError | None = None
        self._ended = False

    async def first(self, limit: asyncio.Timeout) -> bytes:
        """The events up to the first that has content.

        Args:
            limit: Of the first byte; moved once, by the first event that is no comment.

        Raises:
            NotAnsweredError: The stream held no content, or an error came before it.
        """
        held, size, begun = [], 0, False
        while True:
            data, content, ready = await self._next()
            if data and not begun:
                begun = True
                limit.reschedule(asyncio.get_running_loop().time() + self._idle_s)
            if begun:  # comments before the first event are of no use to anybody
                held.append(ready)
                size += len(ready)
            if content or size > _MOST_HELD:
                return b"".join(held)
            if self._error is not None:
                raise self._error
            if self._ended:
                raise NotAnsweredError("bad_answer", self._response.status)

    async def rest(self) -> AsyncGenerator[bytes, None]:
        """The events after the first content, as they come.

        Raises:
            BrokeOffError: The stream stalled, broke off, or ended before it said so.
        """
        left_s = self._idle_s
        try:
            while self._error is None and not self._ended:
                began = time.monotonic()
                async with asyncio.timeout(max(left_s, 0.0)):
                    _, content, ready = await self._next()
                left_s = self._idle_s if content else left_s - (time.monotonic() - began)
                if ready:
                    yield ready
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BrokeOffError from error
        if self._error is not None or not self.seen.whole:
            raise BrokeOffError
        await self._drain()

    async def _next(self) -> tuple[bool, bool, bytes]:
        """Whether the next piece had data, whether it had content, and what of it goes on."""
        piece = await self._response.content.readany()
        data = content = False
        ready = []
        for event in self._reader.feed(piece) if piece else self._reader.end():
            if event.error is not None:
                self._error = event.error
                break
            self.seen.note(event)
            data |= event.data
            content |= event.content
            if not (self._strip and event.bare_usage):
                ready.append(event.raw)
            if event.done:
                break
        self._ended = not piece or self.seen.done
        return data, content, b"".join(ready)

    async def _drain(self) -> None:
        """Read to the end, so that the connection can be used again; not for long."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                while await self._response.content.readany():
                    pass
