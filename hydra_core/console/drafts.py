"""The catalog being worked on: what is published, the draft over it, and every way to change it.

The store keeps the draft after each edit, so it survives a reload, a page change and a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from hydra_core.base.errors import ConflictError, HydraError, Problem
from hydra_core.base.types import Catalog, Chosen, Selection
from hydra_core.catalog.chosen_and_promised import chosen_between, record_choice
from hydra_core.catalog.diff import Change, semantic_diff
from hydra_core.catalog.schema import read_catalog_text
from hydra_core.console import cache, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import sample_of
from hydra_core.store.records import Draft, Revision
from hydra_core.store.roles import Action

_GENERATION = "draft.generation"


@dataclass(frozen=True, slots=True)
class Working:
    """A catalog with the actor's draft of it.

    Attributes:
        key: The store's name of the catalog.
        published_text: The newest revision, or the file where nothing was published.
        newest: The newest revision, None where nothing was published.
        draft: The actor's own, None where there is none.
        text: What is being worked on: the draft, else what is published.
        catalog: `text` as a catalog, None while it is not valid.
        problems: Why it is not.
        changes: From published to `text`, in words; empty while it is not valid.
        others: Who else has a draft of this catalog that says something else.
    """

    key: str
    published_text: str
    published: Catalog | None
    newest: Revision | None
    draft: Draft | None
    text: str
    catalog: Catalog | None
    problems: tuple[Problem, ...]
    changes: tuple[Change, ...]
    others: tuple[str, ...] = ()

    @property
    def revision(self) -> int:
        """Number of the newest revision, 0 where nothing was published."""
        return self.newest.number if self.newest else 0

    @property
    def before(self) -> str:
        """What edits are compared with, in a word."""
        return "published" if self.newest else "file"

    @property
    def beginning(self) -> str:
        """What edits are compared with, in a sentence."""
        return "what is published" if self.newest else "the file"

    @property
    def base_revision(self) -> int:
        """The revision the draft started from."""
        return self.draft.base_revision if self.draft else self.revision

    @property
    def edited(self) -> bool:
        """Whether the draft says anything else than what it started from."""
        return self.draft is not None and self.text != self.published_text

    @property
    def behind(self) -> bool:
        """Whether somebody published since the draft began."""
        return self.draft is not None and self.draft.base_revision != self.revision


def load(entry: CatalogEntry) -> Working:
    """Load a catalog with the actor's draft; HydraError where store or file cannot be read."""
    store, me = cache.store(), identity.actor()
    newest = store.newest(entry.key)
    published = newest.yaml if newest else read_catalog_text(entry.path)
    found = store.drafts.all(entry.key)
    draft = next((one for one in found if one.author == me.name), None)
    if draft is not None and newest is not None and draft.base_revision != newest.number:
        base = draft.base_revision
        began = store.revision(entry.key, base).yaml if base else read_catalog_text(entry.path)
        if draft.text == began and may_edit():  # discarded before somebody published
            store.drafts.discard(draft, actor=me)
            draft = None
    others = tuple(one.author for one in found if one is not draft and one.text != published)
    text = draft.text if draft else published
    before, _ = cache.parsed(published, entry.key)
    after, problems = cache.parsed(text, entry.key)
    changes = semantic_diff(before, after) if before and after else ()
    return Working(
        entry.key, published, before, newest, draft, text, after, problems, changes, others
    )


def with_predictions(entry: CatalogEntry) -> CatalogEntry:
    """What is published, with V and what it predicts with from the actor's draft if it has none.

    So the value rule can be looked at before anything is published.
    """
    if entry.catalog is None or entry.catalog.success_source is not None:
        return entry
    try:
        draft = cache.store().drafts.find(entry.key, identity.actor())
    except HydraError:
        return entry
    drafted = None if draft is None else cache.parsed(draft.text, entry.key)[0]
    if drafted is None or drafted.success_source is None:
        return entry
    policy = replace(
        entry.catalog.policy,
        value_usd=drafted.policy.value_usd,
        success_from=drafted.policy.success_from,
    )
    learned = replace(
        entry.catalog,
        policy=policy,
        outcome_model=drafted.outcome_model,
        success_profiles=drafted.success_profiles,
        folder=drafted.folder,
    )
    return replace(entry, catalog=learned)


def edit(
    entry: CatalogEntry,
    change: Callable[[str], str],
    *,
    seen: str | None = None,
    restart: bool = True,
    chosen: Chosen | None = None,
) -> bool:
    """Change the draft, starting one where there is none; a problem is shown on the next run.

    A choice made while an eval set's figures are in view is recorded in the draft as such.

    Args:
        change: From the text to the new text.
        seen: The text that the change was chosen on; where the draft says something else by now,
            nothing is changed. None for changes that hold whatever it says.
        restart: Whether tables have to be drawn anew, because rows moved or values did not come
            from the table itself.
        chosen: How the new policy was chosen; by default, by looking at the set in view.

    Returns:
        Whether it was saved.
    """
    try:
        working = load(entry)
        if seen is not None and seen != working.text:
            raise _changed_elsewhere(entry)
        text = change(working.text)
        if chosen is not None:
            text = record_choice(text, chosen)
        else:
            before, shown = working.catalog or working.published, working.published
            seen_on = None if shown is None else set_in_view(shown)
            text = _looked_at(before, text, seen_on)
        if text != working.text:
            me, kept = identity.actor(), cache.store().drafts
            draft = working.draft or kept.start(
                working.key, working.published_text, actor=me, base_revision=working.revision
            )
            kept.save(draft, text, actor=me, unfinished=True)
    except HydraError as error:
        widgets.keep_error(error)
        renew()
        return False
    if restart:
        renew()
    return True


def editing(
    entry: CatalogEntry, change: Callable[[str], str], seen: str | None = None
) -> Callable[[], None]:
    """What changes the draft on a click; see `edit`."""

    def clicked() -> None:
        edit(entry, change, seen=seen)

    return clicked


def refuse(entry: CatalogEntry) -> None:
    """Change nothing, and say on the next run that the draft was changed in another window."""
    widgets.keep_error(_changed_elsewhere(entry))
    renew()


def _changed_elsewhere(entry: CatalogEntry) -> ConflictError:
    return ConflictError(
        f"{entry.key}: your draft was changed in another window; nothing was changed here. This "
        "page shows it as it is now"
    )


def record_looked(working: Working, entry: SetEntry | None) -> str:
    """The text to publish: the draft's, with the set that its figures are shown on at the end.

    HydraError where the draft was changed meanwhile.
    """
    text = working.text
    if not _recorded(working.catalog, entry):
        text = _looked_at(working.published, text, entry)
    if working.draft is not None and text != working.text:
        cache.store().drafts.save(working.draft, text, actor=identity.actor())
    return text


def _walk(working: Working, step: Callable[[Draft], object]) -> None:
    if working.draft is not None:
        draft = working.draft
        widgets.later(lambda: step(draft))
    renew()


Cells = dict[int, dict[str, Any]]


def table(
    frame: pd.DataFrame,
    name: str,
    *,
    fixed: list[str],
    columns: dict[str, Any],
    edited: Callable[[Cells], None],
    numbers: Mapping[str, str] = MappingProxyType({}),
    **shown: Any,  # noqa: ANN401 (Streamlit's own)
) -> list[int]:
    """A table that edits the draft; no row comes or goes, and without the role no cell changes.

    Args:
        name: Of the table, unique on the page; `renew` draws it anew.
        fixed: Columns that nobody edits.
        columns: How each is shown.
        edited: Called after an edit with all cells that are not ticks, by row; not where none is.
            What was typed as a number comes as text, None where it was emptied.
        numbers: The columns of numbers to edit, with their format; see `tables.number_texts`.
        shown: Further options of `st.data_editor`.

    Returns:
        The rows that are ticked.
    """
    key = table_key(name)

    def changed() -> None:
        rows = edited_rows(key).items()
        cells = {
            row: {k: None if v == "" else v for k, v in edits.items() if k != "tick"}
            for row, edits in rows
        }
        if any(cells.values()):
            edited(cells)

    texts = {name: tables.number_texts(frame[name], form) for name, form in numbers.items()}
    st.data_editor(
        frame.assign(**texts),
        key=key,
        hide_index=True,
        num_rows="fixed",
        disabled=fixed if may_edit() else list(frame.columns),
        column_config=columns,
        on_change=changed,
        **{"height": "content", "placeholder": "–"} | shown,
    )
    return [row for row, cells in edited_rows(key).items() if cells.get("tick")]


def table_key(name: str) -> str:
    """The key of a table that edits the draft, until it is drawn anew."""
    return f"{name}.{generation()}"


def edited_rows(key: str) -> Cells:
    """The cells that were edited in a table since it was drawn anew, by row."""
    rows = (st.session_state.get(key) or {}).get("edited_rows", {})
    return {int(row): cells for row, cells in rows.items()}


def renew() -> None:
    """Have tables drawn anew: their pending edits are in the draft, or refused."""
    st.session_state[_GENERATION] = generation() + 1


def generation() -> int:
    """Part of the key of every table that edits the draft."""
    return int(st.session_state.get(_GENERATION, 0))


def may_edit() -> bool:
    """Whether the actor may keep a draft."""
    return identity.may(Action.DRAFT)


def status_line(working: Working, *, tools: bool = True) -> None:
    """What is published, what the draft holds, and the way back; a link to publish it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _badges(working)
        if not may_edit():
            st.caption(
                ":material/lock: You may look, not edit: your role is viewer.", width="content"
            )
        if not tools:
            return
        st.space("stretch")
        draft, me, kept = working.draft, identity.actor(), cache.store().drafts
        # Discard is one more state that undo goes back from, if the draft began there
        published = working.published_text
        steps: tuple[tuple[str, str, bool, Callable[[Draft], object]], ...] = (
            ("Undo", "undo", bool(draft and draft.can_undo), lambda d: kept.undo(d, actor=me)),
            ("Redo", "redo", bool(draft and draft.can_redo), lambda d: kept.redo(d, actor=me)),
            ("Discard", "delete_sweep", working.edited, lambda d: kept.discard(d, actor=me)
             if working.behind else kept.save(d, published, actor=me)),
        )  # fmt: skip
        undone = "Undo brings the draft back."
        if working.behind:
            undone = "This cannot be undone: a newer revision is published."
        for label, icon, possible, step in steps:
            st.button(
                label, icon=f":material/{icon}:", disabled=not possible, on_click=_walk,
                args=(working, step), key=f"catalog.{label.lower()}",
                help=f"Go back to {working.beginning}. {undone}" if label == "Discard" else None,
            )  # fmt: skip


def _badges(working: Working) -> None:
    if working.newest is None:
        st.badge("Not published yet", icon=":material/draft:", color="gray")
    else:
        st.badge(f"Revision {working.revision}", icon=":material/verified:", color="green")
    if working.draft is None or not working.edited:
        st.caption("No unpublished edits." + _others(working), width="content")
        return
    n = len(working.changes)
    what = "not valid yet" if working.problems else f"{n} change{'s' * (n != 1)}"
    st.badge(f"Draft: {what}", icon=":material/edit:", color="orange")
    st.caption(
        f"{literal(working.draft.author)}'s, saved "
        f"{working.draft.updated_at.astimezone():%H:%M:%S}.{_others(working)}",
        width="content",
        help="Kept in the store: it survives a reload. Everybody who is signed in under this name "
        "edits the same draft; other people have drafts of their own.",
    )
    if working.behind:
        st.badge(
            f"Revision {working.revision} was published meanwhile",
            icon=":material/merge:",
            color="red",
            help="Merge them under Releases, Publish.",
        )


def _others(working: Working) -> str:
    """Who else has a draft of this catalog."""
    if not working.others:
        return ""
    names = ", ".join(literal(name) for name in working.others)
    return f" {names} {'has' if len(working.others) == 1 else 'have'} a draft too."


def chosen_by(entry: SetEntry, how: Selection, *, knob_alone: bool) -> Chosen:
    """The record of a choice on an eval set."""
    digest, sample = _queries(entry)
    return Chosen(digest, entry.info.name, how, knob_alone, sample)


@cache.cached(32)
def _queries(entry: SetEntry) -> tuple[str, tuple[str, ...]]:
    loaded = cache.evalset(entry)
    return loaded.queries_digest, sample_of(loaded.query_marks)


def set_in_view(catalog: Catalog) -> SetEntry | None:
    """The eval set whose figures the pages show for a catalog; None where none fits.

    It is the chosen one where that fits, else the best that does.
    """
    sets = fitting_sets(catalog)
    key = state.get().evalset
    return next((one for one in sets if one.key == key), sets[0] if sets else None)


def fitting_sets(catalog: Catalog) -> tuple[SetEntry, ...]:
    """The eval sets that fit a catalog, the best first.

    The operator's own go before samples, then what the catalog was chosen on, then the set with
    outcomes of most of its models.
    """
    models = {model.id for model in catalog.models}
    named = {one.evalset for one in catalog.policy.chosen_on}

    def rank(entry: SetEntry) -> tuple[bool, bool, int]:
        return entry.shipped, entry.info.name not in named, -len(models & set(entry.info.models))

    return tuple(sorted((one for one in cache.evalsets() if one.fits(catalog)), key=rank))


def _recorded(catalog: Catalog | None, entry: SetEntry | None) -> bool:
    """Whether a catalog records already that it was chosen on this set."""
    if catalog is None or entry is None:
        return False
    here = chosen_by(entry, Selection.LOOKED, knob_alone=True).queries
    return any(one.queries == here for one in catalog.policy.chosen_on)


def _looked_at(before: Catalog | None, text: str, entry: SetEntry | None) -> str:
    """The text with the record that it was chosen while this set's figures were in sight.

    Nothing is recorded where it chooses nothing anew, or is not a valid catalog yet.
    """
    catalog, _ = cache.parsed(text, "draft")
    if before is None or catalog is None or entry is None:
        return text
    knob_alone = chosen_between(before, catalog)
    if knob_alone is None:
        return text
    return record_choice(text, chosen_by(entry, Selection.LOOKED, knob_alone=knob_alone))


def record_text(catalog: Catalog | None) -> str:
    """Where a catalog's policy was chosen and what that means for its result; '' if nowhere."""
    records = [
        f"{one.evalset} ({'τ or V' if one.knob_alone else 'policy, profiles or pool'})"
        for one in (catalog.policy.chosen_on if catalog else ())
    ]
    if not records:
        return ""
    return (
        f"Chosen on {', '.join(records)}. On these queries the interval of "
        "the result covers the whole curve."
    )
