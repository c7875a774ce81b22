"""The workspace store: published revisions, and the way to drafts, pinned points and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import StoreError
from hydra_core.base.workspace import workspace_folder
from hydra_core.catalog.schema import parse_catalog
from hydra_core.store import tables
from hydra_core.store.base import (
    Journal,
    TrailCheck,
    check_trail,
    checked_line,
    checked_metrics,
    checked_text,
    columns_of,
    require_name,
    utc_now,
)
from hydra_core.store.contributions import Drafts, Notes, OperatingPoints, Ratings, close_draft
from hydra_core.store.database import Database, database_url, open_database, sqlite_url
from hydra_core.store.records import AuditEntry, NewerRevisionError, Revision
from hydra_core.store.roles import Action, Actor, require

_CHUNK: Final = 500


def copy_database(source: Database, folder: Path) -> Database:
    """Every row of `source`, as it is in one snapshot, in a new database below `folder`.

    The audit trail keeps its digests, so it can be checked in the copy as well.

    Raises:
        StoreError: `source` cannot be read, or the copy cannot be written.
    """
    copy = open_database(sqlite_url(folder))
    try:
        with source.reading() as read, copy.writing() as write:
            for table in tables.metadata.sorted_tables:
                write.execute(table.delete())  # a new store has the head of an empty trail
                ordered = sa.select(table).order_by(*table.primary_key.columns)
                for rows in read.execute(ordered).partitions(_CHUNK):
                    write.execute(table.insert(), [dict(row._mapping) for row in rows])
    except BaseException:
        copy.close()
        raise
    return copy


def _digest(text: str) -> str:
    """As `Catalog.digest`: a leading byte order mark does not count."""
    return text_sha256(text.removeprefix("\ufeff"))


def lock(connection: sa.Connection, catalog: str) -> None:
    """Let nobody else publish this catalog until the transaction ends."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = insert(tables.catalogs).values(name=catalog, head=0)
    connection.execute(row.on_conflict_do_nothing(index_elements=["name"]))
    held = sa.select(tables.catalogs.c.head).where(tables.catalogs.c.name == catalog)
    connection.execute(held.with_for_update())  # SQLite holds the whole file already


def _require_newest(newest: Revision | None, catalog: str, base_revision: int) -> None:
    head = 0 if newest is None else newest.number
    if head == base_revision:
        return
    if newest is None or base_revision > head:
        raise StoreError(f"{catalog}: there is no revision {base_revision}; the newest is {head}")
    raise NewerRevisionError(newest, base_revision)


def newest_of(connection: sa.Connection, catalog: str) -> Revision | None:
    """The newest revision of a catalog, None where there is none."""
    table = tables.revisions
    query = sa.select(table).where(table.c.catalog == catalog).order_by(table.c.number.desc())
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else read(row)


def read(row: sa.Row[Any]) -> Revision:
    """A row as a revision.

    Raises:
        StoreError: Its text was changed outside HyDRA.
    """
    revision = Revision(**row._mapping)
    if _digest(revision.yaml) != revision.digest:
        raise StoreError(
            f"{revision.catalog}: revision {revision.number} was changed outside HyDRA: its text "
            "does not have the digest it was published with; restore the database from a backup"
        )
    return revision


class Store:
    """Everything that outlives the process. Safe to share between threads.

    Every write checks the actor's role, then the content, then does all of it or nothing.

    Args:
        clock: The current moment, with a time zone.
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] = utc_now) -> None:
        self._journal = Journal(database, clock)
        self.drafts = Drafts(self._journal)
        self.points = OperatingPoints(self._journal)
        self.notes = Notes(self._journal)
        self.ratings = Ratings(self._journal)

    @property
    def where(self) -> str:
        """Which database this is, without its password."""
        return self._journal.database.where

    def close(self) -> None:
        """Give the connections back."""
        self._journal.database.close()

    def copied_to(self, folder: Path) -> Store:
        """A store of its own below `folder` that says the same; what it is told stays there.

        Raises:
            StoreError: This one cannot be read, or the copy cannot be written.
        """
        return Store(copy_database(self._journal.database, folder), self._journal.clock)

    def catalogs(self) -> dict[str, int]:
        """Name of each published catalog -> its newest revision's number."""
        rows = self._journal.rows(sa.select(tables.catalogs).order_by(tables.catalogs.c.name))
        return {row.name: row.head for row in rows if row.head > 0}

    def newest(self, catalog: str) -> Revision | None:
        """The published revision, None where there is none yet."""
        with self._journal.database.reading() as connection:
            return newest_of(connection, catalog)

    def revision(self, catalog: str, number: int) -> Revision:
        """One revision.

        Raises:
            StoreError: There is none with that number.
        """
        table = tables.revisions
        query = sa.select(table).where(table.c.catalog == catalog, table.c.number == number)
        found = self._journal.rows(query)
        if not found:
            raise StoreError(f"{catalog}: there is no revision {number}")
        return read(found[0])

    def history(
        self, catalog: str, *, limit: int = 100, before: int | None = None
    ) -> tuple[Revision, ...]:
        """The revisions of a catalog, newest first, at most `limit`, those below `before`.

        A text that was changed outside HyDRA is listed as it is; `revision` refuses it.
        """
        table = tables.revisions
        query = sa.select(table).where(table.c.catalog == catalog)
        if before is not None:
            query = query.where(table.c.number < before)
        rows = self._journal.rows(query.order_by(table.c.number.desc()).limit(limit))
        return tuple(Revision(**row._mapping) for row in rows)

    def publish(
        self,
        catalog: str,
        text: str,
        *,
        actor: Actor,
        base_revision: int,
        note: str,
        metrics: Mapping[str, Any] | None = None,
    ) -> Revision:
        """Make `text` the next revision; a draft of the actor that says the same is closed.

        Args:
            base_revision: The revision the edit started from; 0 for a new catalog.
            metrics: What was measured with it, plain JSON values.

        Raises:
            AccessError: The actor may not publish.
            CatalogError: `text` is not a valid catalog.
            NewerRevisionError: Somebody published since; nothing was changed.
            StoreError: `text` is what is published already, or the database failed.
        """
        require(actor, Action.PUBLISH)
        return self._add(catalog, text, actor, Action.PUBLISH, base_revision, note, metrics, None)

    def roll_back(
        self,
        catalog: str,
        number: int,
        *,
        actor: Actor,
        base_revision: int,
        note: str,
        metrics: Mapping[str, Any] | None = None,
    ) -> Revision:
        """Publish the text of an earlier revision again, as a new one.

        Args:
            base_revision: The newest revision that the actor has seen.

        Raises:
            AccessError: The actor may not roll back.
            NewerRevisionError: Somebody published since.
            StoreError: No such revision, or it says what is published already.
        """
        require(actor, Action.ROLL_BACK)
        text = self.revision(catalog, number).yaml
        action = Action.ROLL_BACK
        return self._add(catalog, text, actor, action, base_revision, note, metrics, number)

    def audit(self, catalog: str | None = None, *, limit: int = 200) -> tuple[AuditEntry, ...]:
        """The newest entries of the audit trail, newest first; of one catalog or of all."""
        table = tables.audit
        query = sa.select(table).order_by(table.c.id.desc()).limit(limit)
        if catalog is not None:
            query = query.where(table.c.catalog == catalog)
        return tuple(AuditEntry(**row._mapping) for row in self._journal.rows(query))

    def check_audit(self, kept: str = "") -> TrailCheck:
        """Read the whole audit trail, as `check_trail` does."""
        with self._journal.database.reading() as connection:
            return check_trail(connection, kept)

    def changed_revisions(self) -> list[tuple[str, int]]:
        """Catalog and number of every revision whose text was changed outside HyDRA."""
        table = tables.revisions.c
        query = sa.select(table.catalog, table.number, table.yaml, table.digest)
        with self._journal.database.reading() as connection:
            rows = connection.execution_options(yield_per=_CHUNK).execute(query)
            return sorted((row[0], row[1]) for row in rows if _digest(row.yaml) != row.digest)

    @property
    def empty(self) -> bool:
        """Whether nothing was ever written to it."""
        written = [one for one in tables.metadata.sorted_tables if one is not tables.audit_head]
        with self._journal.database.reading() as connection:
            looks = (sa.select(sa.literal(1)).select_from(table).limit(1) for table in written)
            return not any(connection.scalar(look) for look in looks)

    def record_event(
        self,
        actor: Actor,
        action: Action,
        subject: str,
        *,
        before: str = "",
        after: str = "",
        reason: str = "",
    ) -> None:
        """Record a write to something that the database does not hold, such as an eval set.

        Args:
            before, after: Digests of what it was and is, '' for nothing.

        Raises:
            AccessError: The actor may not do that.
        """
        require(actor, action)
        what = checked_line(subject, "what was changed", 800)
        why = checked_text(reason, "the reason")
        with self._journal.database.writing() as connection:
            states = {"before": before, "after": after}
            self._journal.record(connection, actor, action, what, reason=why, metrics=states)

    def _add(
        self,
        catalog: str,
        text: str,
        actor: Actor,
        action: Action,
        base_revision: int,
        note: str,
        metrics: Mapping[str, Any] | None,
        restores: int | None,
    ) -> Revision:
        name = checked_line(catalog, "the catalog's name")
        parsed = parse_catalog(text, source=name)
        reason, measured = checked_text(note, "the note"), checked_metrics(metrics)
        with self._journal.database.writing() as connection:
            if base_revision == 0:
                require_name(name, connection.scalars(sa.select(tables.catalogs.c.name)))
            lock(connection, name)
            newest = newest_of(connection, name)
            _require_newest(newest, name, base_revision)
            if newest is not None and newest.yaml == text:
                raise StoreError(f"{name}: revision {newest.number} says the same already")
            revision = Revision(
                catalog=name,
                number=base_revision + 1,
                yaml=text,
                digest=_digest(text),
                parent=base_revision or None,
                restores=restores,
                author=actor.name,
                note=reason,
                created_at=self._journal.clock(),
                metrics=measured,
                bundle_fingerprint=parsed.predictor_fingerprint,
            )
            values = columns_of(tables.revisions, revision)
            connection.execute(tables.revisions.insert().values(values))
            heads = tables.catalogs
            change = heads.update().where(heads.c.name == name).values(head=revision.number)
            connection.execute(change)
            close_draft(connection, name, actor.name, text)
            self._journal.record(
                connection,
                actor,
                action,
                f"revision {revision.number}" + (f" = {restores}" if restores else ""),
                catalog=name,
                revision=revision.number,
                from_revision=revision.parent,
                reason=reason,
                metrics=measured,
            )
        return revision


def open_store(
    workspace: Path | None = None,
    *,
    url: sa.URL | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> Store:
    """The store of a workspace, migrated to this version.

    Args:
        workspace: Its folder; None: HYDRA_WORKSPACE, else ./workspace.
        url: The database; None: HYDRA_DATABASE_URL, else SQLite in the workspace.

    Raises:
        StoreError: It cannot be opened.
    """
    folder = workspace or workspace_folder()
    return Store(open_database(url or database_url(folder)), clock)
