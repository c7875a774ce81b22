"""Samples that people rate, and their ratings: only ever added, the newest one counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from hydra_core.base.errors import ConflictError, StoreError
from hydra_core.store import tables
from hydra_core.store.base import Journal, checked_line, checked_text, columns_of, fields_of
from hydra_core.store.records import Rating, RatingState, Sample
from hydra_core.store.roles import Action, Actor, require

_LOWEST, _HIGHEST = 1.0, 5.0


class Ratings:
    """Samples and how people rated them. A write raises AccessError where the actor may not."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def samples(self) -> tuple[Sample, ...]:
        """Every sample, newest first."""
        table = tables.samples
        with self._journal.database.reading() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.created_at.desc()))
            return tuple(Sample(**fields_of(row)) for row in rows)

    def draw(
        self,
        name: str,
        *,
        actor: Actor,
        evalset: str,
        evalset_digest: str,
        dimensions: Sequence[str],
        query_ids: Sequence[str],
    ) -> Sample:
        """Keep a sample under a name.

        Raises:
            ConflictError: The name is taken.
            StoreError: There is nothing in it.
        """
        require(actor, Action.RATE)
        if not query_ids:
            raise StoreError("a sample needs at least one query")
        found = Sample(
            checked_line(name, "the sample's name"), evalset, evalset_digest, tuple(dimensions),
            tuple(query_ids), actor.name, self._journal.clock(),
        )  # fmt: skip
        values = columns_of(tables.samples, found)
        with self._journal.database.writing() as connection:
            try:
                connection.execute(tables.samples.insert().values(values))
            except sa.exc.IntegrityError as error:
                raise ConflictError(f"a sample {found.name!r} exists; take another name") from error
            self._journal.record(connection, actor, Action.RATE, f"sample {found.name} drawn")
        return found

    def of(self, sample: str) -> tuple[Rating, ...]:
        """What counts: each rater's newest on each query, oldest first; nothing taken back."""
        table = tables.ratings
        query = sa.select(table).where(table.c.sample == sample).order_by(table.c.id)
        newest: dict[tuple[str, str], Rating] = {}
        with self._journal.database.reading() as connection:
            for row in connection.execute(query):
                newest.pop((row.rater, row.query_id), None)
                values = {**fields_of(row), "state": RatingState(row.state)}
                del values["id"]
                newest[row.rater, row.query_id] = Rating(**values)
        return tuple(one for one in newest.values() if one.state is not RatingState.UNDONE)

    def rate(
        self,
        sample: Sample,
        query_id: str,
        scores: Sequence[float],
        *,
        actor: Actor,
        note: str = "",
    ) -> None:
        """Score a query; the rater is the actor.

        Raises:
            StoreError: The query is not in the sample, or a score is not from 1 to 5.
        """
        self._add(sample, [(query_id, actor.name, RatingState.RATED, scores, note)], actor)

    def skip(self, sample: Sample, query_id: str, *, actor: Actor) -> None:
        """Pass a query over."""
        self._add(sample, [(query_id, actor.name, RatingState.SKIPPED, (), "")], actor)

    def undo(self, sample: Sample, *, actor: Actor) -> str | None:
        """Take the actor's newest rating back; its query, None where there is none."""
        mine = [one for one in self.of(sample.name) if one.rater == actor.name]
        if not mine:
            return None
        self._add(sample, [(mine[-1].query_id, actor.name, RatingState.UNDONE, (), "")], actor)
        return mine[-1].query_id

    def take_in(
        self, sample: Sample, rows: Iterable[tuple[str, str, Sequence[float], str]], *, actor: Actor
    ) -> int:
        """Add (query id, rater, scores, note) of several raters, all or none; how many.

        Raises:
            AccessError: The actor may not write for others.
            StoreError: A row does not belong to the sample.
        """
        require(actor, Action.MODERATE)
        added = [(query, rater, RatingState.RATED, scores, note)
                 for query, rater, scores, note in rows]  # fmt: skip
        raters = ", ".join(sorted({rater for _, rater, *_ in added}))
        audit_text = f"{len(added)} ratings of sample {sample.name} taken in for {raters}"
        self._add(sample, added, actor, audit_text)
        return len(added)

    def _add(
        self,
        sample: Sample,
        rows: Sequence[tuple[str, str, RatingState, Sequence[float], str]],
        actor: Actor,
        audit_text: str = "",
    ) -> None:
        """Write rows, and the line of the audit trail where they are not the actor's own."""
        require(actor, Action.RATE)
        known = frozenset(sample.query_ids)
        values = []
        for query_id, rater, state, scores, note in rows:
            if query_id not in known:
                raise StoreError(f"query {query_id!r} is not in the sample {sample.name!r}")
            whole = len(scores) == len(sample.dimensions)
            inside = all(_LOWEST <= score <= _HIGHEST for score in scores)
            if state is RatingState.RATED and not (whole and inside):
                names = ", ".join(sample.dimensions)
                raise StoreError(f"{names} each need a score from 1 to 5, got {list(scores)}")
            values.append(
                {
                    "sample": sample.name,
                    "query_id": query_id,
                    "rater": checked_line(rater, "the rater's name"),
                    "state": state.value,
                    "scores": [float(score) for score in scores],
                    "note": checked_text(note, "the note"),
                    "created_at": self._journal.clock(),
                }
            )
        with self._journal.database.writing() as connection:
            if values:
                connection.execute(tables.ratings.insert(), values)
            if values and audit_text:
                self._journal.record(connection, actor, Action.MODERATE, audit_text)
