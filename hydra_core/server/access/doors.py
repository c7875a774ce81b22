"""Who is asking, and whether they may: tokens, or this machine alone; and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from hydra_core.base.addresses import is_forwarded, is_loopback
from hydra_core.base.errors import AccessError
from hydra_core.server.access.limits import RateLimit
from hydra_core.server.access.tokens import TokenFile
from hydra_core.server.settings import Settings
from hydra_core.store.roles import Action, Actor, Role, require

_LOCAL: Final = Actor("local", Role.PUBLISHER)
_STRANGER: Final = Actor("anybody", Role.VIEWER)


class StrangerError(AccessError):
    """Nobody knows who is asking (401)."""


class TooOftenError(AccessError):
    """A caller is over its rate (429).

    Args:
        wait_s: Seconds until it may ask again.
    """

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(f"too many requests; ask again in {wait_s:.1f} s")


@dataclass(frozen=True, slots=True)
class Doors:
    """Lets callers in.

    Attributes:
        tokens: None where the service asks for none.
    """

    settings: Settings
    tokens: TokenFile | None
    rate: RateLimit

    def enter(self, request: Request, action: Action) -> Actor:
        """Whoever is asking, if they may do `action` now.

        Raises:
            StrangerError: A token is needed, or is not known.
            AccessError: The role does not allow it, or a web page of another site is asking.
            TooOftenError: Over the rate.
        """
        actor = self._actor(request)
        require(actor, action)
        wait_s = self.rate.wait_s(actor.name if self.tokens else _address(request))
        if wait_s > 0:
            raise TooOftenError(wait_s)
        return actor

    def _actor(self, request: Request) -> Actor:
        if self.tokens is not None:
            try:
                return self.tokens.actor(_authorization(request.headers))
            except AccessError as error:
                raise StrangerError(str(error)) from error
        self._refuse_foreign_pages(request)
        local = is_loopback(self.settings.host) and not is_forwarded(request.headers)
        return _LOCAL if local else _STRANGER

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


def _authorization(headers: Headers) -> str:
    """The caller's token as a bearer; clients of the Messages form send it as x-api-key."""
    bare = headers.get("x-api-key")
    return headers.get("authorization") or (f"Bearer {bare}" if bare else "")


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
