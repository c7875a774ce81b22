"""Each record of the audit trail carries the digest of the one before; records so far are chained
as they stand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Frozen copies: a migration must not follow later edits of the store's modules.
_DIGEST = sa.String(128)
_TOLD = (
    ("at", "actor", "role", "action", "subject", "catalog", "revision", "from_revision")
    + ("reason", "metrics", "previous")
)  # fmt: skip
_AUDIT = sa.table(
    "audit",
    sa.column("id", sa.Integer),
    sa.column("at", sa.DateTime(timezone=True)),
    *(sa.column(name) for name in ("actor", "role", "action", "subject", "catalog")),
    *(sa.column(name, sa.Integer) for name in ("revision", "from_revision")),
    sa.column("reason"),
    sa.column("metrics", sa.JSON),
    sa.column("previous"),
    sa.column("digest"),
)


def upgrade() -> None:
    """Add the columns and the row that holds the newest record, and fill them."""
    for name in ("previous", "digest"):
        op.add_column("audit", sa.Column(name, _DIGEST, nullable=False, server_default=""))
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
        sa.CheckConstraint("id = 1", name="ck_audit_head_one"),
    )
    connection, last, count = op.get_bind(), "", 0
    for row in connection.execute(sa.select(_AUDIT).order_by(_AUDIT.c.id)).all():
        digest = _digest({**row._mapping, "previous": last})
        change = _AUDIT.update().where(_AUDIT.c.id == row.id)
        connection.execute(change.values(previous=last, digest=digest))
        last, count = digest, count + 1
    head = sa.table("audit_head", sa.column("id"), sa.column("entries"), sa.column("digest"))
    connection.execute(head.insert().values(id=1, entries=count, digest=last))


def _digest(values: Mapping[str, Any]) -> str:
    at = values["at"]
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    told = {name: values[name] for name in _TOLD}
    told["at"] = at.isoformat(timespec="microseconds")
    text = json.dumps(told, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
