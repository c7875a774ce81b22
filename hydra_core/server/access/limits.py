"""How much a caller may send, and how often."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from starlette.requests import Request

from hydra_core.base.errors import HydraError

_MOST_CALLERS: Final = 10_000
#: A body must be there within so many seconds.
BODY_S: Final = 60.0


class BodyTooLargeError(HydraError):
    """A request's body is over the limit."""


class BodyTooSlowError(HydraError):
    """A request's body did not come in time (408)."""


class RateLimit:
    """Requests a second of each caller, with bursts of two seconds' worth.

    Args:
        rate: Requests a second; 0 for no limit.
        clock: Seconds, monotonic.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, 2.0 * rate)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """0 where the caller may go on, else the seconds until it may."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, since = self._left.pop(caller, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        allowed = left >= 1.0
        self._left[caller] = (left - 1.0 if allowed else left, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._rate


async def read_body(request: Request, most_bytes: int) -> bytes:
    """A request's body.

    Raises:
        BodyTooLargeError: It has more than `most_bytes`; the rest is not read.
        BodyTooSlowError: It did not come in time.
    """
    message = f"the body has more than {most_bytes:,} bytes, the limit of this service"
    length = request.headers.get("content-length") or "0"
    if not length.isdecimal() or int(length[:20]) > most_bytes:
        raise BodyTooLargeError(message)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                size += len(piece)
                if size > most_bytes:
                    raise BodyTooLargeError(message)
                pieces.append(piece)
    except TimeoutError as error:
        raise BodyTooSlowError(f"the body did not come within {BODY_S:g} s") from error
    return b"".join(pieces)
