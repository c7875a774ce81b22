"""Connections before anything of a request is understood: bounded heads, patience and numbers.

Whoever has no token can still open connections. A head (request line and headers) has a size and a
time, and what comes around a body (trailers, extensions of chunks) a size. Beyond so many
connections the oldest that has not sent a head yet makes room.
"""

from __future__ import annotations

import asyncio
import math
import resource
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Descriptors that are kept for upstreams, the log and the catalog.
_RESERVED: Final = 128
#: Most bytes on the wire of a byte in a body: a chunk of its own.
_CHUNKED: Final = 7
_END: Final = b"content-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _END
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\n" + _END


class GuardedProtocol(HttpToolsProtocol):
    """One connection.

    Attributes:
        most_head_bytes: A head may have so many.
        head_s: It must be there within so many seconds.
        most_connections: Of one process.
    """

    most_head_bytes = 64_000
    head_s = 10.0
    most_connections = 4_000

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 (uvicorn's own)
        super().__init__(*given, **named)
        self._head_bytes = self._body_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a head, and make room for it."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._make_room()
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Count what belongs to a head, and refuse one that is too large."""
        before = self.cycle
        in_body = before is not None and before.more_body
        if not in_body:
            if self._timer is None:
                self._begin()
            self._head_bytes += len(data)
        super().data_received(data)
        if in_body:
            self._body_bytes -= len(data)
            if self._body_bytes < -self.most_head_bytes:
                self._refuse(_TOO_LARGE)
                return
        if self.cycle is not before or in_body:
            self._end()
        elif self._head_bytes > self.most_head_bytes:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Begin to count anew what comes with a body and is none of it."""
        self._body_bytes = 0
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Allow for what chunks take beside what they hold, were each a single byte."""
        self._body_bytes += _CHUNKED * len(body)
        super().on_body(body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._end()
        super().connection_lost(exc)

    @property
    def waited_until(self) -> float:
        """When its head must be there, on the loop's clock; infinity where it is."""
        return math.inf if self._timer is None else self._timer.when()

    def _begin(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self._refuse, _TOO_SLOW)

    def _end(self) -> None:
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, answer: bytes) -> None:
        self._end()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has been waited for longest."""
        others = [one for one in self.connections if isinstance(one, GuardedProtocol)]
        oldest = min(others, key=lambda one: one.waited_until, default=self)
        (self if oldest.waited_until == math.inf else oldest).transport.abort()


def raise_limits() -> None:
    """Take as many descriptors as the system gives, and no more connections than they serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = max(16, (hard - _RESERVED) // 2)
    if hard != resource.RLIM_INFINITY:
        GuardedProtocol.most_connections = min(GuardedProtocol.most_connections, most)
