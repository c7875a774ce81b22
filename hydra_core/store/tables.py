"""The tables of the workspace store. A change here needs a migration in `migrations`."""

from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

_NAME: Final = sa.String(200)
_DIGEST: Final = sa.String(128)


class UtcTime(sa.types.TypeDecorator[datetime]):
    """A moment in UTC. SQLite keeps no zone: it is put back on reading."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """A moment with a zone -> UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a moment needs a time zone, got {value.isoformat()}")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:  # noqa: ANN401
        """What the database keeps -> a moment in UTC."""
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


metadata: Final = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

#: One row per catalog; its `head` is the newest revision, and the row is what a publisher locks.
catalogs: Final = sa.Table(
    "catalogs",
    metadata,
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("head", sa.Integer, nullable=False),
)

revisions: Final = sa.Table(
    "revisions",
    metadata,
    sa.Column("catalog", _NAME, sa.ForeignKey("catalogs.name"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("yaml", sa.Text, nullable=False),
    sa.Column("digest", _DIGEST, nullable=False),
    sa.Column("parent", sa.Integer),
    sa.Column("restores", sa.Integer),
    sa.Column("author", _NAME, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
    sa.Column("bundle_fingerprint", _DIGEST, nullable=False),
    sa.ForeignKeyConstraint(
        ["catalog", "parent"], ["revisions.catalog", "revisions.number"], name="fk_revisions_parent"
    ),
    sa.CheckConstraint("number >= 1", name="ck_revisions_number"),  # as the migration named it
)

drafts: Final = sa.Table(
    "drafts",
    metadata,
    sa.Column("catalog", _NAME, primary_key=True),
    sa.Column("author", _NAME, primary_key=True),
    sa.Column("base_revision", sa.Integer, nullable=False),
    sa.Column("texts", sa.JSON, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
)

operating_points: Final = sa.Table(
    "operating_points",
    metadata,
    sa.Column("catalog", _NAME, primary_key=True),
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("evalset_digest", _DIGEST, nullable=False),
    sa.Column("rule", sa.String(20), nullable=False),
    sa.Column("tau", sa.Double, nullable=False),
    sa.Column("value_usd", sa.Double),
    sa.Column("weights", sa.JSON, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
    sa.Column("author", _NAME, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.ForeignKeyConstraint(
        ["catalog", "revision"],
        ["revisions.catalog", "revisions.number"],
        name="fk_operating_points_revision",
    ),
)

notes: Final = sa.Table(
    "notes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("evalset_digest", _DIGEST, nullable=False),
    sa.Column("query_id", sa.String(500), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("author", _NAME, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_notes_evalset_digest_query_id", "evalset_digest", "query_id"),
)

#: Queries drawn for people to rate.
samples: Final = sa.Table(
    "samples",
    metadata,
    sa.Column("name", _NAME, primary_key=True),
    sa.Column("evalset", _NAME, nullable=False),
    sa.Column("evalset_digest", _DIGEST, nullable=False),
    sa.Column("dimensions", sa.JSON, nullable=False),
    sa.Column("query_ids", sa.JSON, nullable=False),
    sa.Column("author", _NAME, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

#: Ratings are only ever added; of one rater's on one query the newest counts.
ratings: Final = sa.Table(
    "ratings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("sample", _NAME, sa.ForeignKey("samples.name"), nullable=False),
    sa.Column("query_id", sa.String(500), nullable=False),
    sa.Column("rater", _NAME, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("scores", sa.JSON, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_ratings_sample_rater", "sample", "rater"),
)

audit: Final = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", UtcTime, nullable=False),
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
    sa.Index("ix_audit_catalog_id", "catalog", "id"),
)

#: One row: the newest record of the audit trail; it is what a writer of records locks.
audit_head: Final = sa.Table(
    "audit_head",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("entries", sa.Integer, nullable=False),
    sa.Column("digest", _DIGEST, nullable=False),
    sa.CheckConstraint("id = 1", name="ck_audit_head_one"),
)
