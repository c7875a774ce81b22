"""The workspace store: published revisions, and the way to drafts, pinned points and notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hydra_core.catalog.schema import parse_catalog
from hydra_core.errors import StoreError
from hydra_core.store import revision_rows as rows
from hydra_core.store import tables
from hydra_core.store.base import Journal, utc_now
from hydra_core.store.checks import (
    checked_line,
    checked_metrics,
    checked_name,
    checked_text,
)
from hydra_core.store.copying import copy_database
from hydra_core.store.database import Database, database_url, open_database, workspace_folder
from hydra_core.store.drafts import Drafts, close_draft
from hydra_core.store.pins import Notes, OperatingPoints
from hydra_core.store.ratings import Ratings
from hydra_core.store.records import AuditEntry, Revision
from hydra_core.store.roles import Action, Actor, require
from hydra_core.store.trail import TrailCheck, check_trail

__all__ = ["Store", "open_store"]


class Store:
    """Everything that outlives the process. Safe to share between threads.

    Every write checks the actor's role, then the content, then does all of it or nothing.

    Args:
        database: An open database.
        clock: The current moment, with a time zone.

    Attributes:
        drafts: Unpublished edits.
        points: Pinned operating points.
        notes: Notes on queries.
        ratings: Samples and how people rated them.
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
        with self._journal.database.reading() as connection:
            found = connection.execute(sa.select(tables.catalogs).order_by(tables.catalogs.c.name))
            return {row.name: row.head for row in found if row.head > 0}

    def newest(self, catalog: str) -> Revision | None:
        """The published revision, None where there is none yet."""
        with self._journal.database.reading() as connection:
            return rows.newest_of(connection, catalog)

    def revision(self, catalog: str, number: int) -> Revision:
        """One revision.

        Raises:
            StoreError: There is none with that number.
        """
        with self._journal.database.reading() as connection:
            return rows.revision_of(connection, catalog, number)

    def history(
        self, catalog: str, *, limit: int = 100, before: int | None = None
    ) -> tuple[Revision, ...]:
        """The revisions of a catalog, newest first, at most `limit`, those below `before`."""
        table = tables.revisions
        query = sa.select(table).where(table.c.catalog == catalog)
        if before is not None:
            query = query.where(table.c.number < before)
        with self._journal.database.reading() as connection:
            found = connection.execute(query.order_by(table.c.number.desc()).limit(limit))
            return tuple(rows.read(row) for row in found)

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
            catalog: The store's name for the catalog.
            text: Valid catalog YAML.
            base_revision: The revision the edit started from; 0 for a new catalog.
            note: Why.
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
            number: The revision to bring back.
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
        with self._journal.database.reading() as connection:
            return tuple(AuditEntry(**row._mapping) for row in connection.execute(query))

    def check_audit(self, kept: str = "") -> TrailCheck:
        """Read the whole audit trail; names the first record that was changed or is missing.

        Args:
            kept: A digest noted down earlier that must still be there.
        """
        with self._journal.database.reading() as connection:
            return check_trail(connection, kept)

    def tell(
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
                checked_name(name, connection.scalars(sa.select(tables.catalogs.c.name)))
            rows.lock(connection, name)
            newest = rows.newest_of(connection, name)
            rows.require_newest(newest, name, base_revision)
            if newest is not None and newest.yaml == text:
                raise StoreError(f"{name}: revision {newest.number} says the same already")
            revision = Revision(
                catalog=name,
                number=base_revision + 1,
                yaml=text,
                digest=rows.digest(text),
                parent=base_revision or None,
                restores=restores,
                author=actor.name,
                note=reason,
                created_at=self._journal.clock(),
                metrics=measured,
                bundle_fingerprint=parsed.predictor_fingerprint,
            )
            rows.write(connection, revision)
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
