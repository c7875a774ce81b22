"""The workspace store: revisions, drafts, operating points, notes, audit trail, and roles."""

from typing import TYPE_CHECKING, Any

from hydra_core.store.merge import Conflict, MergeResult, three_way
from hydra_core.store.records import (
    AuditEntry,
    Draft,
    NewerRevisionError,
    Note,
    OperatingPoint,
    Rating,
    RatingState,
    Revision,
    Sample,
)
from hydra_core.store.roles import (
    Action,
    Actor,
    Role,
    Roles,
    load_roles,
    require,
    roles_of,
    roles_path,
)

if TYPE_CHECKING:
    from hydra_core.store.store import Store, open_store

__all__ = [
    "Action",
    "Actor",
    "AuditEntry",
    "Conflict",
    "Draft",
    "MergeResult",
    "NewerRevisionError",
    "Note",
    "OperatingPoint",
    "Rating",
    "RatingState",
    "Revision",
    "Role",
    "Roles",
    "Sample",
    "Store",
    "load_roles",
    "open_store",
    "require",
    "roles_of",
    "roles_path",
    "three_way",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """`Store` and `open_store`: SQLAlchemy is loaded when one of them is asked for."""
    if name in ("Store", "open_store"):
        from hydra_core.store import store

        return getattr(store, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
