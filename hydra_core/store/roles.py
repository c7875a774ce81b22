"""Who may do what: three roles, decided here from one file, whatever page or script asks.

The file (`roles.yaml` in the workspace, or HYDRA_ROLES; docs/security.md) has `default`, `users` by
e-mail address, `sub:` and subject, or account of this machine, and `trusted_issuers`. Without it,
whoever signed in may look, and somebody on this machine may publish. A stated name proves nothing,
so it never has a role of the file. A file that cannot be read, or that HYDRA_ROLES names and that
is not there, lets nobody in.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from hydra_core.base.errors import AccessError, ProblemsError
from hydra_core.base.reading.fields import Section, read_mapping
from hydra_core.catalog.identifiers import skeleton

_MAX_BYTES: Final = 1_000_000
_MAX_NAME: Final = 200
#: Characters without a shape that Python counts as printable.
_SHAPELESS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_ASCII_TWINS: Final = str.maketrans("1i0", "llo")


class Role(StrEnum):
    """What somebody may do; each role includes the ones before it."""

    VIEWER = "viewer"
    EDITOR = "editor"
    PUBLISHER = "publisher"


class Action(StrEnum):
    """What is asked for, as a message names it, and the least role that may."""

    READ = "look", Role.VIEWER
    DRAFT = "edit a draft", Role.EDITOR
    NOTE = "write a note", Role.EDITOR
    RATE = "rate messages", Role.EDITOR
    PIN = "pin an operating point", Role.EDITOR
    PUBLISH = "publish a revision", Role.PUBLISHER
    ROLL_BACK = "roll back to an earlier revision", Role.PUBLISHER
    CANARY = "begin, stop or resume a canary", Role.PUBLISHER
    MODERATE = "change what another person wrote or began", Role.PUBLISHER
    IMPORT = "import an eval set", Role.EDITOR
    SCORE = "score an eval set", Role.EDITOR
    LEARN = "learn an outcome model", Role.EDITOR
    REPLACE = "replace an eval set", Role.PUBLISHER
    DELETE = "remove an eval set", Role.PUBLISHER
    REBIND = "move a catalog file to another predictor", Role.PUBLISHER
    MAKE_CATALOG = "make a catalog file", Role.EDITOR
    REPLACE_CATALOG = "replace a catalog file", Role.PUBLISHER
    LABEL = "have messages labelled", Role.EDITOR
    KEEP_FLIGHT = "keep a flight", Role.EDITOR
    WRITE = "write files", Role.EDITOR
    DEMO = "begin a demo", Role.EDITOR

    least: Role

    def __new__(cls, words: str, least: Role) -> Self:
        made = str.__new__(cls, words)
        made._value_, made.least = words, least
        return made


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts.

    Attributes:
        name: E-mail address, subject, account or stated name, not empty.
        proven: Whether a sign-in or this machine vouches for the name.
        team: Who pays for what it asks, '' for nobody in particular.
        require: Tags that a model must have to serve it.
    """

    name: str
    role: Role
    proven: bool = False
    team: str = ""
    require: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Roles:
    """Names and their roles.

    Attributes:
        default: The role of anybody who is not named; None: there is no file.
        trusted_issuers: Identity providers whose addresses count without `email_verified`.
    """

    users: Mapping[str, Role] = field(default_factory=dict)
    default: Role | None = None
    trusted_issuers: frozenset[str] = frozenset()

    def signed_in(self, claims: Mapping[str, object]) -> Actor:
        """Whom an identity provider vouches for.

        Raises:
            AccessError: The claims name nobody.
        """
        name = _visible(_claimed_name(claims, self.trusted_issuers))
        return Actor(name, self.users.get(_folded(name), self.default or Role.VIEWER), proven=True)

    def account(self, name: str) -> Actor:
        """Somebody whom this machine vouches for: the account that runs a command.

        Raises:
            AccessError: The name is empty, too long or holds invisible characters.
        """
        shown_name = _visible(name)
        fallback = self.default or Role.PUBLISHER
        return Actor(shown_name, self.users.get(_folded(shown_name), fallback), proven=True)

    def stated(self, name: str) -> Actor:
        """Somebody who only says a name, on a console without a sign-in.

        Raises:
            AccessError: The name is not visible text, or it is, or looks like, one of the file.
        """
        shown_name = _visible(name)
        seen = _at_a_glance(shown_name)
        if any(_at_a_glance(user) == seen for user in self.users):
            raise AccessError(
                f"{shown_name!r} stands in the roles file, and nothing here proves that it is you; "
                "sign in, or state another name"
            )
        return Actor(shown_name, self.default or Role.PUBLISHER)


def require(actor: Actor, action: Action) -> None:
    """Make sure that `actor` may do `action`.

    Raises:
        AccessError: The role does not allow it; the message names the role that does.
    """
    order = list(Role)
    if order.index(actor.role) < order.index(action.least):
        raise AccessError(
            f"{actor.name} has the role {actor.role.value} and may not {action.value}: that takes "
            f"{action.least.value}; ask whoever keeps the roles file to grant it"
        )


def load_roles(path: Path) -> Roles:
    """The roles in a file; the defaults where there is none.

    Raises:
        AccessError: The file is there and cannot be read or is not valid. All problems are listed.
    """
    try:
        text = path.read_bytes()[: _MAX_BYTES + 1].decode("utf-8-sig")
    except FileNotFoundError as error:
        if path.is_symlink():
            raise AccessError(f"{path.name}: leads nowhere, so nobody is let in") from error
        return Roles()
    except (OSError, ValueError) as error:
        raise AccessError(f"{path.name}: cannot be read, so nobody is let in: {error}") from error
    root, problems = read_mapping(text, "begin with 'users:'")
    roles = Roles() if root is None else _roles(root)
    if problems.found or len(text) > _MAX_BYTES:
        listed = ProblemsError(path.name, problems.listed()) if problems.found else "is too large"
        raise AccessError(f"nobody is let in until the roles file is corrected. {listed}")
    return roles


def roles_path(workspace: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the roles file lies: HYDRA_ROLES, else `roles.yaml` in the workspace."""
    return Path(environ.get("HYDRA_ROLES") or workspace / "roles.yaml")


def roles_of(workspace: Path, environ: Mapping[str, str] = os.environ) -> Roles:
    """The roles of a workspace; a file that HYDRA_ROLES asks for must be there.

    Raises:
        AccessError: HYDRA_ROLES is empty or names no file, or the file is not valid.
    """
    path = roles_path(workspace, environ)
    if "HYDRA_ROLES" in environ and not (environ["HYDRA_ROLES"] and os.path.lexists(path)):
        named = repr(environ["HYDRA_ROLES"]) if environ["HYDRA_ROLES"] else "nothing"
        raise AccessError(
            f"HYDRA_ROLES names {named}, where there is no roles file, so nobody is let in; give "
            "the path of one, or unset the variable"
        )
    return load_roles(path)


def _roles(section: Section) -> Roles:
    section.known(("default", "trusted_issuers", "users"))
    default = section.choice("default", Role, "such as viewer", required=False)
    listed = section.section("users", "name: role, such as ana@example.org: editor", required=False)
    users: dict[str, Role] = {}
    if listed is not None:
        for name in listed.node.entries:
            role = listed.choice(name, Role, "such as viewer")
            if role is not None and _folded(name) in users:
                listed.wrong(name, "is given twice", "keep one")
            elif role is not None:
                users[_folded(name)] = role
    issuers = section.texts(
        "trusted_issuers",
        "such as [https://login.example.org]",
        lambda address: address.startswith(("https://", "http://127.0.0.1")),
        "must hold https addresses, got {}",
        limit=20,
    )
    return Roles(users, default or Role.VIEWER, frozenset(issuers))


def _claimed_name(claims: Mapping[str, object], trusted_issuers: frozenset[str]) -> str:
    """The address that a provider says it has verified, else `sub:` and the subject.

    Anybody may write another person's address into a profile, so an address nobody verified names
    nobody; and a subject is any text at all, so it is never taken for an address.
    """
    email, verified = claims.get("email"), claims.get("email_verified")
    vouched = verified is True or (verified is None and claims.get("iss") in trusted_issuers)
    if vouched and isinstance(email, str) and "@" in email:
        return email
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.strip():
        raise AccessError("the sign-in names neither a verified e-mail address nor a subject")
    return f"sub:{subject.strip()}"


def _visible(name: str) -> str:
    text = name.strip()
    shown_all = text.isprintable() and not _SHAPELESS.search(text)
    if not text or len(text) > _MAX_NAME or not shown_all:
        raise AccessError(
            f"a name of 1 to {_MAX_NAME} visible characters is needed, got {name[:60]!r}"
        )
    return text


def _at_a_glance(name: str) -> str:
    """What a hurried reader takes a name for: letters and digits alone, twins as one."""
    letters = unicodedata.normalize("NFKD", skeleton(name))
    return "".join(char for char in letters if char.isalnum()).translate(_ASCII_TWINS)


def _folded(name: str) -> str:
    """How names are compared: case does not count in ASCII; other letters are never merged."""
    text = unicodedata.normalize("NFC", name.strip())
    return text.lower() if text.isascii() else text
