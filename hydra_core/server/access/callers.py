"""Who is asking, and whether they may: tokens, or this machine alone; how often, and how much."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from hydra_core.base.addresses import is_forwarded, is_loopback
from hydra_core.base.errors import AccessError, HydraError
from hydra_core.server.access.tokens import TokenFile
from hydra_core.server.settings import Settings
from hydra_core.store.roles import Action, Actor, Role, require

_LOCAL: Final = Actor("local", Role.PUBLISHER)
_ANYBODY: Final = Actor("anybody", Role.VIEWER)
_MOST_CALLERS: Final = 10_000
#: A body must be there within so many seconds.
BODY_S: Final = 60.0


class UnknownCallerError(AccessError):
    """Nobody knows who is asking (401)."""


class TooOftenError(AccessError):
    """A caller is over its rate (429), and may ask again after `wait_s`."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(f"too many requests; ask again in {wait_s:.1f} s")


@dataclass(frozen=True, slots=True)
class CallerCheck:
    """Who may ask, and how often; `tokens` is None where the service asks for none."""

    settings: Settings
    tokens: TokenFile | None
    rate: RateLimit

    def admit(self, request: Request, action: Action) -> Actor:
        """Whoever is asking, if they may do `action` now.

        Raises:
            UnknownCallerError: A token is needed, or is not known.
            AccessError: The role does not allow it, or a web page of another site is asking.
            TooOftenError: Over the rate.
        """
        actor = self._actor(request)
        require(actor, action)
        address = request.client.host if request.client else ""
        wait_s = self.rate.wait_s(actor.name if self.tokens else address)
        if wait_s > 0:
            raise TooOftenError(wait_s)
        return actor

    def _actor(self, request: Request) -> Actor:
        if self.tokens is not None:
            try:
                bare = request.headers.get("x-api-key")  # as clients of the Messages form send it
                sent = request.headers.get("authorization") or (f"Bearer {bare}" if bare else "")
                return self.tokens.actor(sent)
            except AccessError as error:
                raise UnknownCallerError(str(error)) from error
        self._refuse_foreign_pages(request)
        local = is_loopback(self.settings.host) and not is_forwarded(request.headers)
        return _LOCAL if local else _ANYBODY

    def _refuse_foreign_pages(self, request: Request) -> None:
        """Without tokens, a web page in somebody's browser must not ask in their name."""
        named = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        origin = request.headers.get("origin")
        known = is_loopback(named) or named in ("", self.settings.host) or self.settings.insecure
        if not known or (origin and (urlsplit(origin).hostname or "") != named):
            raise AccessError(
                "this service has no tokens and answers programs on its own machine only; give it "
                "--tokens FILE to be asked from elsewhere"
            )


class BodyTooLargeError(HydraError):
    """A request's body is over the limit."""


class BodyTooSlowError(HydraError):
    """A request's body did not come in time (408)."""


class RateLimit:
    """Requests a second of each caller, 0 for no limit, with bursts of two seconds' worth."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, 2.0 * rate)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """0 where the caller may go on, else the seconds until it may."""
        if not self._rate:
            return 0.0
        now = time.monotonic()
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
