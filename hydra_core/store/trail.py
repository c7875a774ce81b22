"""The audit trail: every write, in order, each record carrying the digest of the one before.

A record that is changed no longer has its own digest; one that is removed leaves its follower
pointing at nothing; the newest ones are held by a row of their own. Who can write the database can
also write the whole chain anew: against that helps a digest kept elsewhere (`audit verify` prints
the newest and takes one to look for).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from hydra_core.base.digests import text_sha256
from hydra_core.store import tables

#: What the first record has for the digest of the one before.
FIRST: Final = ""
_DIGESTED: Final = (
    ("at", "actor", "role", "action", "subject", "catalog", "revision", "from_revision")
    + ("reason", "metrics", "previous")
)  # fmt: skip
_CHUNK: Final = 1_000


@dataclass(frozen=True, slots=True)
class TrailCheck:
    """What reading the whole trail found.

    Attributes:
        entries: Records that were read before the first fault.
        head: Digest of the newest good record, '' where there is none.
        fault: The first thing wrong, '' when the trail is whole.
    """

    entries: int
    head: str
    fault: str = ""


def digest_of(values: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a record, the digest of the one before included."""
    at: datetime = values["at"]
    record = {name: values[name] for name in _DIGESTED}
    record["at"] = at.astimezone(UTC).isoformat(timespec="microseconds")
    text = json.dumps(record, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return text_sha256(text)


def append(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    """Add a record; until the transaction ends nobody else can add one."""
    head = tables.audit_head
    count, previous = connection.execute(
        sa.select(head.c.entries, head.c.digest).with_for_update()
    ).one()
    record = {**values, "previous": previous}
    record["digest"] = digest_of(record)
    connection.execute(tables.audit.insert().values(record))
    connection.execute(head.update().values(entries=count + 1, digest=record["digest"]))


def check_trail(connection: sa.Connection, kept: str = "") -> TrailCheck:
    """Read every record and name the first that was changed or is missing.

    Args:
        kept: A digest noted down earlier, which the trail must still hold; '' for none.
    """
    entries, last, number, seen = 0, FIRST, 0, not kept
    with _rows(connection) as rows:
        for row in rows:
            fault = _fault(row, last, number)
            if fault:
                return TrailCheck(entries, last, fault)
            entries, last, number = entries + 1, row.digest, row.id
            seen = seen or row.digest == kept
    count, digest = connection.execute(
        sa.select(tables.audit_head.c.entries, tables.audit_head.c.digest)
    ).one_or_none() or (-1, "")
    if (count, digest) != (entries, last):
        return TrailCheck(entries, last, f"records after {_named(number)} are missing")
    lost = f"the record with digest {kept[:12]}... is missing: the trail was rewritten"
    return TrailCheck(entries, last, "" if seen else lost)


def _fault(row: sa.Row[Any], last: str, number: int) -> str:
    if digest_of(row._asdict()) != row.digest:
        return f"record {row.id} ({row.at:%Y-%m-%d %H:%M:%S} UTC, {row.action}) was changed"
    if row.previous != last:
        return f"a record between {_named(number)} and record {row.id} is missing or was replaced"
    return ""


def _named(number: int) -> str:
    return f"record {number}" if number else "the beginning"


def _rows(connection: sa.Connection) -> sa.CursorResult[Any]:
    query = sa.select(tables.audit).order_by(tables.audit.c.id)
    return connection.execution_options(yield_per=_CHUNK).execute(query)
