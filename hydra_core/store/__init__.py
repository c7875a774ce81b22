"""The workspace store: revisions, drafts, operating points, notes, audit trail, and roles."""

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
