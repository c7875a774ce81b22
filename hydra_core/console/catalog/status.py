"""The line above every editor of a draft: what is published, whose draft it is, the way back."""

from __future__ import annotations

import streamlit as st

from hydra_core.console import drafts
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal


def status_line(working: Working, *, tools: bool = True) -> None:
    """What is published, what the draft holds, and the way back; a link to publish it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _badges(working)
        if not tools:
            return
        st.space("stretch")
        draft = working.draft
        st.button(
            "Undo", icon=":material/undo:", disabled=not (draft and draft.can_undo),
            on_click=drafts.undo, args=(working,), key="catalog.undo",
        )  # fmt: skip
        st.button(
            "Redo", icon=":material/redo:", disabled=not (draft and draft.can_redo),
            on_click=drafts.redo, args=(working,), key="catalog.redo",
        )  # fmt: skip
        back = "This cannot be undone: a newer revision is published."
        st.button(
            "Discard", icon=":material/delete_sweep:", disabled=not working.edited,
            on_click=drafts.discard, args=(working,), key="catalog.discard",
            help="Go back to what is published. "
            + (back if working.behind else "Undo brings the draft back."),
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
