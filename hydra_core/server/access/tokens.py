"""Who may ask: bearer tokens, kept as SHA-256 hashes with a name, a role, a team and required tags.

A viewer may ask for decisions, which spends nothing; an editor may also have requests answered and
send outcomes. `hydra-router token --name ci --role viewer` makes a token and its line of the file.
"""

from __future__ import annotations

import json
import logging
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra_core.base.digests import SHA256, text_sha256
from hydra_core.base.errors import AccessError, Problem, ProblemsError
from hydra_core.base.reading.fields import Section, read_mapping
from hydra_core.catalog.schema import read_catalog_text
from hydra_core.store.roles import Actor, Role

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
        """Whom an Authorization header belongs to.

        Raises:
            AccessError: Nobody has such a token, or the file is not valid any more.
        """
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
    """The tokens in a file.

    Raises:
        ProblemsError: It cannot be read or is not valid; all problems are listed.
    """
    text = read_catalog_text(path)
    if path.stat().st_mode & stat.S_IWOTH:
        problem = Problem("", "can be written by everybody", f"chmod o-w {path.name}")
        raise TokenFileError(path.name, [problem])
    return parse_tokens(text, path.name)


def parse_tokens(text: str, source: str = "tokens") -> Tokens:
    """The tokens in `text`.

    Raises:
        TokenFileError: It is not valid, or names nobody.
    """
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
