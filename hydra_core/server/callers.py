"""Who is asking, and whether they may: by tokens, or this machine alone; how often, and how much.

Bearer tokens are kept as SHA-256 hashes with a name, a role, a team and required tags. A viewer may
ask for decisions, which spends nothing; an editor may also have requests answered and send
outcomes. `hydra-router token --name ci --role viewer` makes a token and its line of the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from hydra_core.base.addresses import is_forwarded, is_loopback
from hydra_core.base.digests import SHA256, text_sha256
from hydra_core.base.errors import AccessError, HydraError, Problem, ProblemsError
from hydra_core.base.reading.fields import Section, read_mapping
from hydra_core.catalog.schema import read_catalog_text
from hydra_core.server.settings import Settings
from hydra_core.store.roles import Action, Actor, Role, require

_LOG = logging.getLogger(__name__)


class TokenFileError(ProblemsError):
    """A token file that is not valid: nobody is let in."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Actors by the SHA-256 (hex) of their token."""

    by_hash: Mapping[str, Actor] = field(default_factory=dict)

    def actor(self, authorization: str) -> Actor:
        """Whom an Authorization header belongs to.

        Raises:
            AccessError: There is no bearer token in it, or nobody has that token.
        """
        kind, _, token = authorization.strip().partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise AccessError("a token is needed: send the header 'Authorization: Bearer TOKEN'")
        # looked up by the hash: what a comparison's time could tell is of no use to a guesser
        actor = self.by_hash.get(text_sha256(token.strip()))
        if actor is None:
            raise AccessError("this token is not known; ask whoever keeps the token file for one")
        return actor


class TokenFile:
    """A token file that is followed: a token that is taken out of it is gone at once.

    While it is not valid nobody is let in.

    Raises:
        ProblemsError: It cannot be read or is not valid; all problems are listed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._stamped()
        self._tokens = load_tokens(path)

    def actor(self, authorization: str) -> Actor:
        """Whom an Authorization header belongs to; AccessError where that is nobody."""
        stamp = self._stamped()
        if stamp is None or stamp != self._stamp:
            try:
                self._tokens = load_tokens(self._path)
            except ProblemsError as error:
                self._tokens = Tokens()
                _LOG.error("%s", error, extra={"event": "tokens_refused"})
            self._stamp = stamp
        return self._tokens.actor(authorization)

    def _stamped(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode


def load_tokens(path: Path) -> Tokens:
    """The tokens in a file; ProblemsError lists all that is wrong with it."""
    text = read_catalog_text(path)
    if path.stat().st_mode & stat.S_IWOTH:
        problem = Problem("", "can be written by everybody", f"chmod o-w {path.name}")
        raise TokenFileError(path.name, [problem])
    return parse_tokens(text, path.name)


def parse_tokens(text: str, source: str = "tokens") -> Tokens:
    """The tokens in `text`; TokenFileError where it is not valid, or names nobody."""
    remedy = "begin with 'tokens:' and a list of name, role and sha256"
    root, problems = read_mapping(text, remedy)
    actors: dict[str, Actor] = {}
    if root is not None:
        root.known(("tokens",))
        for section in root.sections("tokens", remedy, limit=10_000):
            _add(section, actors)
    if not actors and not problems.found:
        problems.add("tokens", None, "names nobody", "make one with the verb token")
    problems.refuse(TokenFileError, source)
    return Tokens(actors)


def new_token(
    name: str, role: Role, team: str = "", require: Sequence[str] = ()
) -> tuple[str, str]:
    """A fresh token, and the line of the token file that lets it in."""
    token = secrets.token_urlsafe(32)
    digest = text_sha256(token)
    more = f", team: {json.dumps(team)}" if team else ""
    more += f", require: [{', '.join(map(json.dumps, require))}]" if require else ""
    named = f"name: {json.dumps(name)}, role: {role.value}"
    return token, f'  - {{{named}, sha256: "{digest}"{more}}}'


def _add(section: Section, actors: dict[str, Actor]) -> None:
    section.known(("name", "role", "sha256", "team", "require"))
    name = section.text("name", "who has this token", limit=200)
    role = section.choice("role", Role, "viewer, editor or publisher")
    digest = section.text("sha256", "the token's SHA-256 in hex, in quotes", limit=64)
    team = section.text("team", "who pays, such as search", required=False, limit=100)
    require = section.words("require", "tags that a model must have, such as [eu]")
    if digest and not SHA256.fullmatch(digest):
        section.wrong("sha256", "must be 64 hex digits", "put the hash here, never the token")
    if digest in actors:
        section.wrong("sha256", "is given twice", "keep one")
    if name and role is not None:
        actors[digest] = Actor(name, role, proven=True, team=team, require=require)


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
        try:
            require(actor, action)
        except AccessError as error:
            known = "ask whoever keeps the token file for such a token"
            remedy = known if self.tokens else "give `serve` --tokens FILE, and send a token"
            raise AccessError(
                f"{actor.name} has the role {actor.role.value}, which gets decisions only: answers "
                f"and outcomes take {action.least.value}; {remedy}"
            ) from error
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
