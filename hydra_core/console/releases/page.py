"""Releases: publish a draft as a revision, look back, roll back, export and import files."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from hydra_core.catalog.diff import semantic_diff
from hydra_core.console import cache, drafts, frame, selectors, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.frame import Part
from hydra_core.console.releases import exports as ship_exports
from hydra_core.console.releases import publish as ship_publish
from hydra_core.export import release
from hydra_core.store.records import Revision
from hydra_core.store.roles import Action

_DONE = "ship.rolled_back"
#: Of the audit trail.
_MOST_LINES = 1_000


def _history(entry: CatalogEntry, working: Working) -> None:
    """Draw the revisions, newest first, and the picked one below."""
    widgets.show_error()
    done = st.session_state.pop(_DONE, "")
    if done:
        st.success(done, icon=":material/verified:")
    history = cache.store().history(entry.key)
    if not history:
        widgets.empty(
            "No revision yet",
            "From the first one on, every change is kept here with its author, note and figures.",
        )
        return
    chosen = cache.store().revision(entry.key, _revisions(history).number)
    left, right = st.columns([7, 4], gap="medium")
    with left:
        st.subheader(f"Revision {chosen.number}", anchor=False)
        _changes(entry, chosen)
    with right.container(border=True):
        if chosen.number == working.revision:
            st.markdown("**This is what is published.**")
            st.caption("Pick an earlier revision in the table to see it or bring it back.")
        else:
            _roll_back(entry, working, chosen)
    if st.toggle("Audit trail: every write, by whom and why", key="ship.audit"):
        _audit(entry)


def _revisions(history: tuple[Revision, ...]) -> Revision:
    column = st.column_config
    frame = release.history_table(history)
    event = st.dataframe(
        frame,
        key=f"ship.history.{history[0].number}",  # nothing stays picked once rows have moved
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height="content" if len(history) <= 8 else 330,
        placeholder="–",
        column_config={
            "revision": column.NumberColumn("Revision", width=75),
            "when": column.DatetimeColumn("When (UTC)", format="YYYY-MM-DD HH:mm", width=135),
            "who": column.TextColumn("Who", width=105),
            "note": column.TextColumn("Note", width=185),
            "qr": column.NumberColumn("QR", format="%.1f %%", width=70),
            "unknown": column.NumberColumn(
                "No outcomes",
                format="%.1f %%",
                width=95,
                help="Traffic to models without outcomes: QR is at least what it says.",
            ),
            "cost": column.NumberColumn(
                "Cost per query", format=tables.dollars(frame["cost"]), width=110
            ),
            "evalset": column.TextColumn("Measured on", width=130),
        },
    )
    if (oldest := history[-1].number) > 1:
        st.caption(f"Revisions before {oldest} are kept too: `hydra-router history` lists them.")
    tables.offer_downloads(frame, "ship.revisions")
    rows = event["selection"]["rows"]
    return history[rows[0]] if rows and rows[0] < len(history) else history[0]


def _changes(entry: CatalogEntry, chosen: Revision) -> None:
    if chosen.parent is None:
        st.caption("The first revision.")
        return
    before, _ = cache.parsed(cache.store().revision(entry.key, chosen.parent).yaml, entry.key)
    after, _ = cache.parsed(chosen.yaml, entry.key)
    if before is not None and after is not None:
        st.caption(f"Changes since revision {chosen.parent}:")
        ship_publish.changes_list(semantic_diff(before, after))


def _roll_back(entry: CatalogEntry, working: Working, chosen: Revision) -> None:
    now, then = working.published, cache.parsed(chosen.yaml, entry.key)[0]
    st.markdown(f"**Bring back revision {chosen.number}**")
    if now is not None and then is not None:
        undone = [str(one).replace("->", "→") for one in semantic_diff(now, then)]
        st.markdown(widgets.bullets(undone, 6))
    st.text_input("Why", key="ship.rollback.note", placeholder="The new price was a typo")
    st.button(
        f"Publish it again as revision {working.revision + 1}",
        icon=":material/history:",
        disabled=not identity.may(Action.ROLL_BACK),
        help=identity.why_not(Action.ROLL_BACK),
        on_click=_do_roll_back,
        args=(entry, working, chosen),
        key="ship.rollback",
        width="stretch",
    )
    st.caption("Nothing is deleted: the history keeps every revision.")


def _do_roll_back(entry: CatalogEntry, working: Working, chosen: Revision) -> None:
    def roll_back() -> None:
        made = cache.store().roll_back(
            entry.key, chosen.number, actor=identity.actor(), base_revision=working.revision,
            note=str(st.session_state.get("ship.rollback.note", "")), metrics=chosen.metrics,
        )  # fmt: skip
        st.session_state["ship.rollback.note"] = ""
        st.session_state[_DONE] = (
            f"Revision {made.number} is published: it says what revision {chosen.number} said. "
            "Every page routes with it from now on."
        )

    widgets.later(roll_back)
    drafts.renew()


def _audit(entry: CatalogEntry) -> None:
    column = st.column_config
    rows = [
        (one.at, f"{one.actor} ({one.role})", one.action, one.subject, one.reason)
        for one in cache.store().audit(entry.key, limit=_MOST_LINES)
    ]
    if len(rows) == _MOST_LINES:
        st.caption(f"The newest {_MOST_LINES:,} lines.")
    tables.kept(
        rows,
        "ship.trail",
        height="content" if len(rows) <= 8 else 330,
        columns={
            "at": column.DatetimeColumn("When (UTC)", format="YYYY-MM-DD HH:mm:ss", width=160),
            "who": "Who",
            "action": "What",
            "subject": "Of",
            "reason": "Why",
        },
    )


_EXPORTS = {"Export": ship_exports.export, "Import": ship_exports.adopt}


def _exports(entry: CatalogEntry, working: Working) -> None:
    _EXPORTS[widgets.switch("View", _EXPORTS, "exports.view")](entry, working)


def _part(title: str, draw: Callable[[CatalogEntry, Working], None]) -> Part:
    return Part(title, lambda head: selectors.on_draft(head, draw, tools=False), (8.0, 4.0))


PARTS = {
    "publish": _part("Publish", ship_publish.publish),
    "history": _part("History", _history),
    "exports": _part("Exports", _exports),
}


def show() -> None:
    """Draw the page."""
    frame.show("Releases", PARTS)
