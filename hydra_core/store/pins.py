"""Pinned operating points, and notes on single queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from hydra_core.base.errors import ConflictError, StoreError
from hydra_core.base.types import Rule
from hydra_core.store import tables
from hydra_core.store.base import (
    Journal,
    checked_line,
    checked_metrics,
    checked_text,
    columns_of,
    fields_of,
    finite,
)
from hydra_core.store.records import Note, OperatingPoint
from hydra_core.store.roles import Action, Actor, require


class OperatingPoints:
    """Policies that somebody chose and named. Writes raise AccessError where the actor may not."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def all(self, catalog: str) -> tuple[OperatingPoint, ...]:
        """The points of a catalog, newest first."""
        table = tables.operating_points
        query = sa.select(table).where(table.c.catalog == catalog)
        with self._journal.database.reading() as connection:
            rows = connection.execute(query.order_by(table.c.created_at.desc(), table.c.name))
            return tuple(OperatingPoint(**{**fields_of(r), "rule": Rule(r.rule)}) for r in rows)

    def pin(
        self,
        catalog: str,
        name: str,
        *,
        actor: Actor,
        revision: int,
        evalset_digest: str,
        tau: float,
        weights: Sequence[float],
        rule: Rule = Rule.SHORTFALL,
        value_usd: float | None = None,
        metrics: Mapping[str, Any] | None = None,
    ) -> OperatingPoint:
        """Keep a policy's rule, knobs and stored weights under a name.

        Raises:
            ConflictError: The name is taken.
            StoreError: No such revision, or a number is out of range.
        """
        require(actor, Action.PIN)
        if value_usd is not None:
            value_usd = finite([value_usd], "V", above_zero=True)[0]
        elif rule is Rule.VALUE:
            raise StoreError("an operating point of the value rule needs V, in USD")
        point = OperatingPoint(
            catalog=catalog,
            name=checked_line(name, "the operating point's name"),
            revision=revision,
            evalset_digest=checked_line(evalset_digest, "the eval set's digest", 128),
            tau=finite([tau], "tau", above_zero=False)[0],
            weights=finite(weights, "a weight", above_zero=True),
            metrics=checked_metrics(metrics),
            author=actor.name,
            created_at=self._journal.clock(),
            rule=rule,
            value_usd=value_usd,
        )
        with self._journal.database.writing() as connection:
            self._insert(connection, point)
            self._journal.record(
                connection,
                actor,
                Action.PIN,
                f"operating point {point.name}",
                catalog=catalog,
                revision=revision,
                metrics=point.metrics,
            )
        return point

    def remove(self, point: OperatingPoint, *, actor: Actor) -> None:
        """Forget a point; another person's takes a publisher.

        Raises:
            StoreError: It is gone already.
        """
        require(actor, Action.PIN)
        table = tables.operating_points
        this = sa.and_(table.c.catalog == point.catalog, table.c.name == point.name)
        with self._journal.database.writing() as connection:
            gone = f"the operating point {point.name!r} is gone already"
            row, action = _take_out(connection, table, this, actor, Action.PIN, gone)
            kept = ("author", "tau", "weights", "rule", "value_usd")
            before = {name: row._mapping[name] for name in kept}
            subject = f"operating point {point.name} removed"
            self._journal.record(
                connection, actor, action, subject, catalog=row.catalog, metrics={"before": before}
            )

    @staticmethod
    def _insert(connection: sa.Connection, point: OperatingPoint) -> None:
        table, published = tables.operating_points, tables.revisions
        same = sa.and_(published.c.catalog == point.catalog, published.c.number == point.revision)
        if connection.execute(sa.select(published.c.number).where(same)).first() is None:
            raise StoreError(
                f"{point.catalog}: there is no revision {point.revision}; publish first"
            )
        try:
            connection.execute(table.insert().values(columns_of(table, point)))
        except sa.exc.IntegrityError as error:
            raise ConflictError(
                f"{point.catalog}: an operating point {point.name!r} exists; choose another name "
                "or remove it first"
            ) from error


class Notes:
    """What people wrote about single queries. Writes raise AccessError where the actor may not."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def all(self, evalset_digest: str, query_id: str | None = None) -> tuple[Note, ...]:
        """The notes on an eval set or on one of its queries, oldest first."""
        table = tables.notes
        query = sa.select(table).where(table.c.evalset_digest == evalset_digest)
        if query_id is not None:
            query = query.where(table.c.query_id == query_id)
        with self._journal.database.reading() as connection:
            rows = connection.execute(query.order_by(table.c.id))
            return tuple(Note(**row._mapping) for row in rows)

    def add(self, evalset_digest: str, query_id: str, text: str, *, actor: Actor) -> Note:
        """Write a note.

        Raises:
            StoreError: It is empty or too long.
        """
        require(actor, Action.NOTE)
        values: dict[str, Any] = {
            "evalset_digest": checked_line(evalset_digest, "the eval set's digest", 128),
            "query_id": checked_line(query_id, "the query's id", 500),
            "text": checked_text(text, "the note", required=True),
            "author": actor.name,
            "created_at": self._journal.clock(),
        }
        with self._journal.database.writing() as connection:
            made = connection.execute(tables.notes.insert().values(values))
            subject, after = f"note on {values['query_id']}", {"after": {"text": values["text"]}}
            self._journal.record(connection, actor, Action.NOTE, subject, metrics=after)
            key = made.inserted_primary_key
        assert key is not None
        return Note(id=int(key[0]), **values)

    def remove(self, note: Note, *, actor: Actor) -> None:
        """Delete a note; another person's takes a publisher.

        Raises:
            StoreError: It is gone already.
        """
        require(actor, Action.NOTE)
        table = tables.notes
        this = table.c.id == note.id
        with self._journal.database.writing() as connection:
            gone = "the note is gone already"
            row, action = _take_out(connection, table, this, actor, Action.NOTE, gone)
            before = {"author": row.author, "text": row.text}
            subject = f"note on {row.query_id} removed"
            self._journal.record(connection, actor, action, subject, metrics={"before": before})


def _take_out(
    connection: sa.Connection,
    table: sa.Table,
    this: sa.ColumnElement[bool],
    actor: Actor,
    own: Action,
    gone: str,
) -> tuple[sa.Row[Any], Action]:
    """Delete a row, and what that is: by the author that the database names, not the caller."""
    row = connection.execute(sa.select(table).where(this).with_for_update()).one_or_none()
    if row is None:
        raise StoreError(gone)
    action = own if row.author == actor.name else Action.MODERATE
    require(actor, action)
    connection.execute(table.delete().where(this))
    return row, action
