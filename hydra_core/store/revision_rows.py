"""Published revisions as rows: locking a catalog, writing one, reading one back with its digest."""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from hydra_core.errors import StoreError
from hydra_core.store import tables
from hydra_core.store.records import NewerRevisionError, Revision

__all__ = ["digest", "lock", "newest_of", "read", "require_newest", "revision_of", "write"]


def digest(text: str) -> str:
    """As `Catalog.digest`: a leading byte order mark does not count."""
    return hashlib.sha256(text.removeprefix("\ufeff").encode()).hexdigest()


def lock(connection: sa.Connection, catalog: str) -> None:
    """Let nobody else publish this catalog until the transaction ends."""
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    row = insert(tables.catalogs).values(name=catalog, head=0)
    connection.execute(row.on_conflict_do_nothing(index_elements=["name"]))
    held = sa.select(tables.catalogs.c.head).where(tables.catalogs.c.name == catalog)
    connection.execute(held.with_for_update())  # SQLite holds the whole file already


def require_newest(newest: Revision | None, catalog: str, base_revision: int) -> None:
    """Make sure that nobody published since `base_revision`.

    Raises:
        NewerRevisionError: Somebody did.
        StoreError: There is no such revision.
    """
    head = 0 if newest is None else newest.number
    if head == base_revision:
        return
    if newest is None or base_revision > head:
        raise StoreError(f"{catalog}: there is no revision {base_revision}; the newest is {head}")
    raise NewerRevisionError(newest, base_revision)


def write(connection: sa.Connection, revision: Revision) -> None:
    """Add a revision and make it the newest."""
    values = {name: getattr(revision, name) for name in tables.revisions.c.keys()}  # noqa: SIM118
    connection.execute(tables.revisions.insert().values(values))
    table = tables.catalogs
    head = table.update().where(table.c.name == revision.catalog).values(head=revision.number)
    connection.execute(head)


def newest_of(connection: sa.Connection, catalog: str) -> Revision | None:
    """The newest revision of a catalog, None where there is none."""
    table = tables.revisions
    query = sa.select(table).where(table.c.catalog == catalog).order_by(table.c.number.desc())
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else read(row)


def revision_of(connection: sa.Connection, catalog: str, number: int) -> Revision:
    """One revision.

    Raises:
        StoreError: There is none with that number.
    """
    table = tables.revisions
    query = sa.select(table).where(table.c.catalog == catalog, table.c.number == number)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise StoreError(f"{catalog}: there is no revision {number}")
    return read(row)


def read(row: sa.Row[Any]) -> Revision:
    """A row as a revision.

    Raises:
        StoreError: Its text was changed outside HyDRA.
    """
    revision = Revision(**row._mapping)
    if digest(revision.yaml) != revision.digest:
        raise StoreError(
            f"{revision.catalog}: revision {revision.number} was changed outside HyDRA: its text "
            "does not have the digest it was published with; restore the database from a backup"
        )
    return revision
