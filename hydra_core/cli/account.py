"""Who runs a verb: the account of this machine, with the role that the roles file gives it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hydra_core.evalsets.changes import EvalSetChanges
    from hydra_core.store import Actor, Store


def acting() -> Actor:
    """The account, by its number: variables such as USER can say anything.

    Raises:
        AccessError: The roles file cannot be read or is missing though HYDRA_ROLES names one.
    """
    import pwd

    from hydra_core.base.workspace import workspace_folder
    from hydra_core.store import roles_of

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return roles_of(workspace_folder()).account(name)


def require_account(asks: str) -> None:
    """Make sure that the account may do what a verb is about to do.

    Args:
        asks: Name of an `Action`, '' for verbs that only read.

    Raises:
        AccessError: It may not.
    """
    if asks:
        from hydra_core.store import Action, require

        require(acting(), Action[asks])


def store_of(*paths: Path) -> Store | None:
    """The workspace's store if one of `paths` lies in the workspace, else None.

    A link from the workspace to elsewhere counts as inside, and so does one into the workspace.
    """
    from hydra_core.base.workspace import workspace_folder
    from hydra_core.store import open_store

    folder = workspace_folder().resolve()
    named = [path.parent.resolve() / path.name for path in paths]
    inside = any(place.is_relative_to(folder) for p in named for place in (p, p.resolve()))
    return open_store(folder) if inside else None


def changes(path: Path) -> EvalSetChanges:
    """How the account changes the eval set at `path`."""
    from hydra_core.evalsets.changes import EvalSetChanges

    return EvalSetChanges(acting(), store_of(path))
