"""A store copied whole into a SQLite file of its own, whatever database it lies in."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import sqlalchemy as sa

from hydra_core.store import tables
from hydra_core.store.database import Database, open_database, sqlite_url

__all__ = ["copy_database"]

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
