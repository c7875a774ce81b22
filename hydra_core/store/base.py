"""What all parts of the store share: the database, the clock and the audit trail.

Each record of the trail has the digest of the one before, the newest are held by a row of their
own: a changed or missing record shows. Against whoever writes the whole chain anew helps a digest
kept elsewhere (`audit verify` prints the newest and takes one to look for).
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa

from hydra_core.base.digests import text_sha256
from hydra_core.base.errors import CatalogError, StoreError
from hydra_core.base.reading.yaml_reader import MAX_BYTES
from hydra_core.catalog.identifiers import id_problem, skeleton
from hydra_core.store import tables
from hydra_core.store.database import Database
from hydra_core.store.roles import Action, Actor

MAX_NAME: Final = 200
_MAX_TEXT: Final = 20_000
_MAX_METRICS: Final = 1_000_000
_DIGESTED: Final = (
    ("at", "actor", "role", "action", "subject", "catalog", "revision", "from_revision")
    + ("reason", "metrics", "previous")
)  # fmt: skip
_CHUNK: Final = 1_000


def checked_line(value: str, what: str, limit: int = MAX_NAME) -> str:
    """A name on one line, without surrounding space; StoreError where it cannot be shown."""
    line = value.strip()
    if not line or len(line) > limit or not line.isprintable():
        raise StoreError(f"{what} must be 1 to {limit} visible characters, got {value[:60]!r}")
    return line


def require_name(value: str, taken: Iterable[str]) -> None:
    """Refuse a new catalog's name that is no id, or looks like another's (StoreError)."""
    problem = id_problem(value)
    if problem is not None:
        message, remedy = problem
        raise StoreError(f"the catalog's name {message}; {remedy}")
    twin = next((name for name in taken if skeleton(name) == skeleton(value)), None)
    if twin is not None and twin != value:
        raise StoreError(f"the catalog's name {value!r} looks like {twin!r}; choose another")


def checked_text(value: str, what: str, *, required: bool = False) -> str:
    """Free text of several lines; StoreError where it is too long or holds control characters."""
    text = value.strip()
    if len(text) > _MAX_TEXT or (required and not text):
        allowed = f"{int(required)} to {_MAX_TEXT:,} characters"
        raise StoreError(f"{what} must be {allowed}, got {len(text)}")
    if any(not (char.isprintable() or char in "\n\t\r\u00a0\u2028\u2029") for char in text):
        bad = next(char for char in text if not (char.isprintable() or char in "\n\t\r"))
        raise StoreError(f"{what} holds the control character U+{ord(bad):04X}; remove it")
    return text


def checked_unfinished(text: str, source: str) -> None:
    """Hold a draft that need not be a valid catalog yet to its size and to plain characters.

    Raises:
        CatalogError: It is too large or cannot be stored as UTF-8.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise CatalogError.of(source, f"is not text: {error.reason}") from error
    if size > MAX_BYTES or "\x00" in text:
        message = f"has {size:,} bytes, at most {MAX_BYTES:,}, none of them 0"
        raise CatalogError.of(source, message, "a catalog is a few kB")


def checked_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of `metrics` as plain JSON values; StoreError for others, and above 1 MB."""
    try:
        text = json.dumps(dict(metrics or {}), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"metrics must be plain JSON numbers and text: {error}") from error
    if len(text) > _MAX_METRICS or "\\u0000" in text:
        raise StoreError(f"metrics take {len(text):,} characters, at most {_MAX_METRICS:,}")
    copy: dict[str, Any] = json.loads(text)
    return copy


def finite(values: Sequence[float], what: str, *, above_zero: bool) -> tuple[float, ...]:
    """Numbers >= 0, or > 0; StoreError where one is not."""
    for value in values:
        if not math.isfinite(value) or value < 0 or (above_zero and value == 0):
            raise StoreError(f"{what} must be {'>' if above_zero else '>='} 0, got {value}")
    return tuple(float(value) for value in values)


def columns_of(table: sa.Table, record: object) -> dict[str, Any]:
    """A record's values for the columns of its table."""
    return {name: getattr(record, name) for name in table.c.keys()}  # noqa: SIM118


def fields_of(row: sa.Row[Any]) -> dict[str, Any]:
    """A row's values for the fields of its record: lists as tuples."""
    values = row._mapping.items()
    return {name: tuple(one) if isinstance(one, list) else one for name, one in values}


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Journal:
    """The database and the clock that one store works with."""

    database: Database
    clock: Callable[[], datetime]

    def rows(self, query: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
        """Every row that a query finds, as they are in one snapshot."""
        with self.database.reading() as connection:
            return connection.execute(query).all()

    def record(
        self,
        connection: sa.Connection,
        actor: Actor,
        action: Action,
        subject: str,
        *,
        catalog: str | None = None,
        revision: int | None = None,
        from_revision: int | None = None,
        reason: str = "",
        metrics: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a line to the audit trail, in the transaction of what it tells of.

        Until that ends nobody else can add one.
        """
        head = tables.audit_head
        count, previous = connection.execute(
            sa.select(head.c.entries, head.c.digest).with_for_update()
        ).one()
        record = {
            "at": self.clock(),
            "actor": actor.name,
            "role": actor.role.value,
            "action": action.value,
            "subject": subject[:800],
            "catalog": catalog,
            "revision": revision,
            "from_revision": from_revision,
            "reason": reason,
            "metrics": dict(metrics or {}),
            "previous": previous,
        }
        record["digest"] = digest_of(record)
        connection.execute(tables.audit.insert().values(record))
        connection.execute(head.update().values(entries=count + 1, digest=record["digest"]))


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


def check_trail(connection: sa.Connection, kept: str = "") -> TrailCheck:
    """Read every record and name the first that was changed or is missing.

    The trail must still hold `kept`, a digest noted down earlier; '' for none.
    """
    entries, last, number, seen = 0, "", 0, not kept  # the first record has '' before it
    query = sa.select(tables.audit).order_by(tables.audit.c.id)
    with connection.execution_options(yield_per=_CHUNK).execute(query) as rows:
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
