"""Who may do what: three roles, decided here from one file, whatever page or script asks.

The file (`roles.yaml` in the workspace, or HYDRA_ROLES)::

    default: viewer            # anybody not named below
    users:
      ana@example.org: publisher

Without a file, whoever signed in may look, and somebody on this machine who only states a name
(local mode) may publish: there, a name is a label and proves nothing. A file that cannot be read
lets nobody in, rather than everybody.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from hydra_core.catalog.reading.fields import Problems, Section, did_you_mean
from hydra_core.catalog.reading.nodes import MapNode, ScalarNode, shown
from hydra_core.catalog.reading.yaml_reader import read_yaml
from hydra_core.errors import AccessError, ProblemsError

__all__ = ["Action", "Actor", "Role", "Roles", "load_roles", "require", "roles_path"]

_MAX_BYTES: Final = 1_000_000
_MAX_NAME: Final = 200


class Role(StrEnum):
    """What somebody may do; each role includes the ones before it."""

    VIEWER = "viewer"
    EDITOR = "editor"
    PUBLISHER = "publisher"


class Action(StrEnum):
    """What is asked for, as a message names it."""

    READ = "look"
    DRAFT = "edit a draft"
    NOTE = "write a note"
    PIN = "pin an operating point"
    PUBLISH = "publish a revision"
    ROLL_BACK = "roll back to an earlier revision"
    MODERATE = "change what another person wrote"


_LEAST: Final[Mapping[Action, Role]] = {
    Action.READ: Role.VIEWER,
    Action.DRAFT: Role.EDITOR,
    Action.NOTE: Role.EDITOR,
    Action.PIN: Role.EDITOR,
    Action.PUBLISH: Role.PUBLISHER,
    Action.ROLL_BACK: Role.PUBLISHER,
    Action.MODERATE: Role.PUBLISHER,
}


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts.

    Attributes:
        name: E-mail address or stated name, not empty.
        proven: Whether a sign-in vouches for the name; False in local mode.
    """

    name: str
    role: Role
    proven: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """Names and their roles. Names are compared without regard to case.

    Attributes:
        default: The role of anybody who is not named; None: what the module says.
    """

    users: Mapping[str, Role] = field(default_factory=dict)
    default: Role | None = None

    def actor(self, name: str, *, proven: bool) -> Actor:
        """The actor with this name and the role that is theirs.

        Raises:
            AccessError: The name is empty, too long or holds invisible characters.
        """
        shown_name = name.strip()
        if not shown_name or len(shown_name) > _MAX_NAME or not shown_name.isprintable():
            raise AccessError(
                f"a name of 1 to {_MAX_NAME} visible characters is needed, got {name[:60]!r}"
            )
        fallback = self.default or (Role.VIEWER if proven else Role.PUBLISHER)
        return Actor(shown_name, self.users.get(_folded(shown_name), fallback), proven)


def require(actor: Actor, action: Action) -> None:
    """Make sure that `actor` may do `action`.

    Raises:
        AccessError: The role does not allow it; the message names the role that does.
    """
    least = _LEAST[action]
    order = list(Role)
    if order.index(actor.role) < order.index(least):
        raise AccessError(
            f"{actor.name} is a {actor.role.value} and may not {action.value}: that takes the role "
            f"{least.value}; ask whoever keeps the roles file to grant it"
        )


def load_roles(path: Path) -> Roles:
    """The roles in a file; the defaults where there is none.

    Raises:
        AccessError: The file is there and cannot be read or is not valid. All problems are listed.
    """
    try:
        text = path.read_bytes()[: _MAX_BYTES + 1].decode("utf-8-sig")
    except FileNotFoundError:
        return Roles()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{path.name}: cannot be read, so nobody is let in: {error}") from error
    root, found = read_yaml(text)
    problems = Problems(list(found))
    roles = Roles() if root is None else _roles(root, problems)
    if problems.found or len(text) > _MAX_BYTES:
        listed = ProblemsError(path.name, problems.listed()) if problems.found else "is too large"
        raise AccessError(f"nobody is let in until the roles file is mended. {listed}")
    return roles


def roles_path(workspace: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the roles file lies: HYDRA_ROLES, else `roles.yaml` in the workspace."""
    return Path(environ.get("HYDRA_ROLES") or workspace / "roles.yaml")


def _roles(root: object, problems: Problems) -> Roles:
    if not isinstance(root, MapNode):
        problems.add("", None, f"must be a mapping, got {shown(root)}", "begin with 'users:'")
        return Roles()
    section = Section(root, "", problems)
    section.known(("default", "users"))
    default = section.choice("default", Role, "such as viewer", required=False)
    listed = section.section("users", "name: role, such as ana@example.org: editor", required=False)
    users: dict[str, Role] = {}
    for name, (key, value) in ({} if listed is None else listed.node.entries).items():
        role = value.value if isinstance(value, ScalarNode) else None
        words = [item.value for item in Role]
        if not isinstance(role, str) or role not in words:
            hint = did_you_mean(role, words) if isinstance(role, str) else ""
            message = f"must be one of {', '.join(words)}; got {shown(value)}"
            problems.add(f"users.{name[:60]}", key.line, message, hint)
        elif _folded(name) in users:
            problems.add(f"users.{name[:60]}", key.line, "is given twice", "keep one")
        else:
            users[_folded(name)] = Role(role)
    return Roles(users, default)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()
