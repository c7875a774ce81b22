"""Unpublished edits that survive a reload: one draft per person and catalog, with undo."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from hydra_core.base.errors import AccessError, ConflictError, StoreError
from hydra_core.catalog.schema import parse_catalog
from hydra_core.store import tables
from hydra_core.store.base import (
    Journal,
    checked_line,
    checked_name,
    checked_unfinished,
    columns_of,
    fields_of,
)
from hydra_core.store.records import Draft
from hydra_core.store.roles import Action, Actor, require

#: States that undo can walk through; the oldest are dropped, also past 2 million characters.
MAX_STATES: Final = 50
_MAX_CHARS: Final = 2_000_000


class Drafts:
    """Drafts of catalogs. Only their author writes them; AccessError where the actor may not."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(self, catalog: str, actor: Actor) -> Draft | None:
        """The actor's draft of a catalog, None where there is none."""
        with self._journal.database.reading() as connection:
            row = connection.execute(_select(catalog, actor.name)).one_or_none()
            return None if row is None else Draft(**fields_of(row))

    def all(self, catalog: str | None = None) -> tuple[Draft, ...]:
        """Everybody's drafts, newest first; of one catalog or of all."""
        query = sa.select(tables.drafts).order_by(tables.drafts.c.updated_at.desc())
        if catalog is not None:
            query = query.where(tables.drafts.c.catalog == catalog)
        with self._journal.database.reading() as connection:
            return tuple(Draft(**fields_of(row)) for row in connection.execute(query))

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
            checked_name(name, ())
        if base_revision < 0:
            raise StoreError(f"{name}: there is no revision {base_revision}")
        draft = Draft(name, actor.name, base_revision, (text,), 0, 1, self._journal.clock())
        with self._journal.database.writing() as connection:
            try:
                connection.execute(tables.drafts.insert().values(columns_of(tables.drafts, draft)))
            except sa.exc.IntegrityError as error:
                raise ConflictError(
                    f"{name}: you have a draft already; go on with it or discard it"
                ) from error
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
        moved = replace(draft, base_revision=base_revision, texts=(text,), position=0)
        return self._write(moved)

    def discard(self, draft: Draft, *, actor: Actor) -> None:
        """Throw the draft away."""
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
    row = connection.execute(_select(catalog, author)).one_or_none()
    draft = None if row is None else Draft(**fields_of(row))
    if draft is not None and draft.text == text:
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
