"""Samples that people rate, and their ratings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NAME = sa.String(200)
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "samples",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("evalset", _NAME, nullable=False),
        sa.Column("evalset_digest", sa.String(128), nullable=False),
        sa.Column("dimensions", sa.JSON, nullable=False),
        sa.Column("query_ids", sa.JSON, nullable=False),
        sa.Column("author", _NAME, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_samples"),
    )
    op.create_table(
        "ratings",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("sample", _NAME, nullable=False),
        sa.Column("query_id", sa.String(500), nullable=False),
        sa.Column("rater", _NAME, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("scores", sa.JSON, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ratings"),
        sa.ForeignKeyConstraint(["sample"], ["samples.name"], name="fk_ratings_sample"),
    )
    op.create_index("ix_ratings_sample_rater", "ratings", ["sample", "rater"])
