"""A store as the first release made it, to be migrated."""

import sqlalchemy as sa
from alembic import op
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext

from hydra_core.store import database, tables

# Frozen copies, which do not follow later edits of the table module.
_NAME = sa.String(200)
_DIGEST = sa.String(128)
_TIME = sa.DateTime(timezone=True)


def make(connection: sa.Connection) -> None:
    """Make the tables, and say which release they are of."""
    named = {"target_metadata": tables.metadata}
    with Operations.context(MigrationContext.configure(connection, opts=named)):
        _tables()
    database._VERSIONS.create(connection)
    connection.execute(database._VERSIONS.insert().values(version_num="0005"))


def _tables() -> None:
    op.create_table(
        "catalogs",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("head", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_catalogs"),
    )
    _revisions()
    op.create_table(
        "drafts",
        sa.Column("catalog", _NAME, nullable=False),
        sa.Column("author", _NAME, nullable=False),
        sa.Column("base_revision", sa.Integer, nullable=False),
        sa.Column("texts", sa.JSON, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "author", name="pk_drafts"),
    )
    _operating_points()
    _notes()
    _audit()
    _ratings()


def _revisions() -> None:
    op.create_table(
        "revisions",
        sa.Column("catalog", _NAME, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("yaml", sa.Text, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.Column("parent", sa.Integer),
        sa.Column("restores", sa.Integer),
        sa.Column("author", _NAME, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("bundle_fingerprint", _DIGEST, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "number", name="pk_revisions"),
        sa.ForeignKeyConstraint(["catalog"], ["catalogs.name"], name="fk_revisions_catalog"),
        sa.ForeignKeyConstraint(
            ["catalog", "parent"],
            ["revisions.catalog", "revisions.number"],
            name="fk_revisions_parent",
        ),
        sa.CheckConstraint("number >= 1", name="ck_revisions_number"),
    )


def _operating_points() -> None:
    op.create_table(
        "operating_points",
        sa.Column("catalog", _NAME, nullable=False),
        sa.Column("name", _NAME, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("evalset_digest", _DIGEST, nullable=False),
        sa.Column("rule", sa.String(20), nullable=False),
        sa.Column("tau", sa.Double, nullable=False),
        sa.Column("value_usd", sa.Double),
        sa.Column("weights", sa.JSON, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("author", _NAME, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "name", name="pk_operating_points"),
        sa.ForeignKeyConstraint(
            ["catalog", "revision"],
            ["revisions.catalog", "revisions.number"],
            name="fk_operating_points_revision",
        ),
    )


def _notes() -> None:
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("evalset_digest", _DIGEST, nullable=False),
        sa.Column("query_id", sa.String(500), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("author", _NAME, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notes"),
    )
    op.create_index("ix_notes_evalset_digest_query_id", "notes", ["evalset_digest", "query_id"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("actor", _NAME, nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("action", sa.String(60), nullable=False),
        sa.Column("subject", sa.String(800), nullable=False),
        sa.Column("catalog", _NAME),
        sa.Column("revision", sa.Integer),
        sa.Column("from_revision", sa.Integer),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("previous", _DIGEST, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_catalog_id", "audit", ["catalog", "id"])
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("digest", _DIGEST, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
        sa.CheckConstraint("id = 1", name="ck_audit_head_one"),
    )
    head = sa.table("audit_head", sa.column("id"), sa.column("entries"), sa.column("digest"))
    op.execute(head.insert().values(id=1, entries=0, digest=""))


def _ratings() -> None:
    op.create_table(
        "samples",
        sa.Column("name", _NAME, nullable=False),
        sa.Column("evalset", _NAME, nullable=False),
        sa.Column("evalset_digest", _DIGEST, nullable=False),
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
