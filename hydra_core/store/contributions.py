"""What people keep in the store beside revisions: drafts, pinned points, notes, ratings.

Writes raise AccessError where the actor may not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from hydra_core.base.errors import AccessError, ConflictError, StoreError
from hydra_core.base.types import Rule
from hydra_core.catalog.schema import parse_catalog
from hydra_core.store import tables
from hydra_core.store.base import (
    Journal,
    checked_line,
    checked_metrics,
    checked_text,
    checked_unfinished,
    columns_of,
    fields_of,
    finite,
    require_name,
)
from hydra_core.store.records import Draft, Note, OperatingPoint, Rating, RatingState, Sample
from hydra_core.store.roles import Action, Actor, require

#: States that undo can walk through; the oldest are dropped, also past 2 million characters.
MAX_STATES: Final = 50
_MAX_CHARS: Final = 2_000_000


class _Journaled:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal


class Drafts(_Journaled):
    """Unpublished edits that survive a reload: one draft a person and catalog, with undo."""

    def find(self, catalog: str, actor: Actor) -> Draft | None:
        """The actor's draft of a catalog, None where there is none."""
        found = self._journal.rows(_select(catalog, actor.name))
        return Draft(**fields_of(found[0])) if found else None

    def all(self, catalog: str | None = None) -> tuple[Draft, ...]:
        """Everybody's drafts, newest first; of one catalog or of all."""
        query = sa.select(tables.drafts).order_by(tables.drafts.c.updated_at.desc())
        if catalog is not None:
            query = query.where(tables.drafts.c.catalog == catalog)
        return tuple(Draft(**fields_of(row)) for row in self._journal.rows(query))

    def start(self, catalog: str, text: str, *, actor: Actor, base_revision: int) -> Draft:
        """Begin a draft with `text`.

        Raises:
            CatalogError: `text` is not a valid catalog.
            ConflictError: The actor has a draft of this catalog already.
        """
        require(actor, Action.DRAFT)
        name = checked_line(catalog, "the catalog's name")
        parse_catalog(text, source=name)
        if base_revision == 0:
            require_name(name, ())
        if base_revision < 0:
            raise StoreError(f"{name}: there is no revision {base_revision}")
        draft = Draft(name, actor.name, base_revision, (text,), 0, 1, self._journal.clock())
        taken = f"{name}: you have a draft already; go on with it or discard it"
        with self._journal.database.writing() as connection:
            _insert(connection, tables.drafts, draft, taken)
        return draft

    def save(self, draft: Draft, text: str, *, actor: Actor, unfinished: bool = False) -> Draft:
        """Make `text` the newest state of the draft; what was undone before is gone.

        Args:
            unfinished: Keep it even where it is not yet a valid catalog; it cannot be published.

        Raises:
            AccessError: The actor may not edit, or the draft is another person's.
            CatalogError: `text` is not a valid catalog.
            ConflictError: The draft was changed elsewhere meanwhile.
        """
        _require_own(draft, actor)
        if unfinished:
            checked_unfinished(text, draft.catalog)
        else:
            parse_catalog(text, source=draft.catalog)
        if text == draft.text:
            return draft
        texts = _bounded((*draft.texts[: draft.position + 1], text))
        return self._write(replace(draft, texts=texts, position=len(texts) - 1))

    def undo(self, draft: Draft, *, actor: Actor) -> Draft:
        """One state back; the first one stays."""
        _require_own(draft, actor)
        return self._write(replace(draft, position=draft.position - 1)) if draft.can_undo else draft

    def redo(self, draft: Draft, *, actor: Actor) -> Draft:
        """One state forward again; the last one stays."""
        _require_own(draft, actor)
        return self._write(replace(draft, position=draft.position + 1)) if draft.can_redo else draft

    def rebase(self, draft: Draft, text: str, *, actor: Actor, base_revision: int) -> Draft:
        """Go on from a newer revision with the merged `text`.

        Earlier states are dropped: they do not hold what the newer revision changed, so undoing
        back to them and publishing would take it away again without a word.
        """
        _require_own(draft, actor)
        parse_catalog(text, source=draft.catalog)
        if base_revision < draft.base_revision:
            raise StoreError(
                f"{draft.catalog}: the draft started from revision {draft.base_revision} already"
            )
        return self._write(replace(draft, base_revision=base_revision, texts=(text,), position=0))

    def discard(self, draft: Draft, *, actor: Actor) -> None:
        _require_own(draft, actor)
        with self._journal.database.writing() as connection:
            gone = connection.execute(tables.drafts.delete().where(_same(draft)))
            _require_one(gone.rowcount, draft)

    def _write(self, draft: Draft) -> Draft:
        """`draft` holds the version that was read; the written one has the next."""
        written = replace(draft, version=draft.version + 1, updated_at=self._journal.clock())
        with self._journal.database.writing() as connection:
            values = columns_of(tables.drafts, written)
            change = tables.drafts.update().where(_same(draft)).values(values)
            _require_one(connection.execute(change).rowcount, draft)
        return written


def close_draft(connection: sa.Connection, catalog: str, author: str, text: str) -> None:
    """Remove the author's draft where it says what was just published."""
    for row in connection.execute(_select(catalog, author)).all():
        draft = Draft(**fields_of(row))
        if draft.text == text:
            connection.execute(tables.drafts.delete().where(_same(draft)))


def _require_own(draft: Draft, actor: Actor) -> None:
    require(actor, Action.DRAFT)
    if draft.author != actor.name:
        raise AccessError(f"this draft is {draft.author}'s; {actor.name} may only copy it")


def _require_one(rows: int, draft: Draft) -> None:
    if rows != 1:
        raise ConflictError(
            f"{draft.catalog}: your draft was changed or closed in another window; nothing was "
            "changed here. Reload to go on from there"
        )


def _bounded(texts: tuple[str, ...]) -> tuple[str, ...]:
    kept = texts[-MAX_STATES:]
    while len(kept) > 1 and sum(map(len, kept)) > _MAX_CHARS:
        kept = kept[1:]
    return kept


def _select(catalog: str, author: str) -> sa.Select[Any]:
    table = tables.drafts
    return sa.select(table).where(table.c.catalog == catalog, table.c.author == author)


def _same(draft: Draft) -> sa.ColumnElement[bool]:
    table = tables.drafts.c
    return sa.and_(
        table.catalog == draft.catalog,
        table.author == draft.author,
        table.version == draft.version,
    )


class OperatingPoints(_Journaled):
    """Policies that somebody chose and named."""

    def all(self, catalog: str) -> tuple[OperatingPoint, ...]:
        """The points of a catalog, newest first."""
        table = tables.operating_points
        query = sa.select(table).where(table.c.catalog == catalog)
        rows = self._journal.rows(query.order_by(table.c.created_at.desc(), table.c.name))
        return tuple(OperatingPoint(**{**fields_of(row), "rule": Rule(row.rule)}) for row in rows)

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
        published = tables.revisions.c
        same = sa.and_(published.catalog == catalog, published.number == revision)
        with self._journal.database.writing() as connection:
            if connection.execute(sa.select(published.number).where(same)).first() is None:
                raise StoreError(f"{catalog}: there is no revision {revision}; publish first")
            taken = (
                f"{catalog}: an operating point {point.name!r} exists; choose another name or "
                "remove it first"
            )
            _insert(connection, tables.operating_points, point, taken)
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


class Notes(_Journaled):
    """What people wrote about single queries."""

    def all(self, evalset_digest: str, query_id: str | None = None) -> tuple[Note, ...]:
        """The notes on an eval set or on one of its queries, oldest first."""
        table = tables.notes
        query = sa.select(table).where(table.c.evalset_digest == evalset_digest)
        if query_id is not None:
            query = query.where(table.c.query_id == query_id)
        return tuple(Note(**row._mapping) for row in self._journal.rows(query.order_by(table.c.id)))

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


_LOWEST, _HIGHEST = 1.0, 5.0


class Ratings(_Journaled):
    """Samples that people rate, and their ratings: only ever added, the newest one counts."""

    def samples(self) -> tuple[Sample, ...]:
        table = tables.samples
        rows = self._journal.rows(sa.select(table).order_by(table.c.created_at.desc()))
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
        taken = f"a sample {found.name!r} exists; take another name"
        with self._journal.database.writing() as connection:
            _insert(connection, tables.samples, found, taken)
            self._journal.record(connection, actor, Action.RATE, f"sample {found.name} drawn")
        return found

    def of(self, sample: str) -> tuple[Rating, ...]:
        """What counts: each rater's newest on each query, oldest first; nothing taken back."""
        table = tables.ratings
        query = sa.select(table).where(table.c.sample == sample).order_by(table.c.id)
        newest: dict[tuple[str, str], Rating] = {}
        for row in self._journal.rows(query):
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


def _insert(connection: sa.Connection, table: sa.Table, record: object, taken: str) -> None:
    """Add a record to its table; ConflictError says `taken` where its key is."""
    try:
        connection.execute(table.insert().values(columns_of(table, record)))
    except sa.exc.IntegrityError as error:
        raise ConflictError(taken) from error
