"""A pinned operating point keeps its rule, and V under the value rule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Points kept so far were all of the shortfall rule."""
    rule = sa.Column("rule", sa.String(20), nullable=False, server_default="shortfall")
    op.add_column("operating_points", rule)
    op.add_column("operating_points", sa.Column("value_usd", sa.Double, nullable=True))
