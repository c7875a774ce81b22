"""What all parts of the store share: the database, the clock and the audit trail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from hydra_core.store.database import Database
from hydra_core.store.roles import Action, Actor
from hydra_core.store.trail import append

__all__ = ["Journal", "utc_now"]


def utc_now() -> datetime:
    """The current moment in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Journal:
    """The database and the clock that one store works with."""

    database: Database
    clock: Callable[[], datetime]

    def record(
        self,
        connection: sa.Connection,
        actor: Actor,
        action: Action,
        subject: str,
        *,
        catalog: str | None = None,
        revision: int | None = None,
        from_revision: int | None = None,
        reason: str = "",
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a line to the audit trail, in the transaction of what it tells of."""
        append(
            connection,
            {
                "at": self.clock(),
                "actor": actor.name,
                "role": actor.role.value,
                "action": action.value,
                "subject": subject[:800],
                "catalog": catalog,
                "revision": revision,
                "from_revision": from_revision,
                "reason": reason,
                "metrics": dict(metrics or {}),
            },
        )
