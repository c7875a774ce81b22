"""Whether queries depend on each other: looked for, offered as clusters, answered."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.changes import EvalSetChanges
from hydra_core.evaluation.evalset.dependence import ACCEPTED, DECLINED
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.suspects import Suspects, answer, look
from hydra_core.store.roles import Action
from hydra_core.ui import cache, tables, widgets
from hydra_core.ui.access import identity
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.widgets import literal
from hydra_core.views.evalsets import suspect_table

__all__ = ["dependence"]

_LOOKED = "eval_sets.looked"


def dependence(entry: SetEntry, loaded: EvalSet) -> None:
    """What is known about dependent queries, the way to look, and the way to answer."""
    kept = loaded.dependence
    looked: tuple[str, Suspects] | None = st.session_state.get(_LOOKED)
    if looked is not None and looked[0] == loaded.digest:
        _offer(loaded, looked[1])
    elif kept is None:
        _ask(entry, loaded)
    elif kept.answer == DECLINED:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"{kept.queries:,} queries look like {kept.groups:,} groups and were declined as "
                "clusters; every verdict says so.",
                width="content",
            )
            _look_button(entry, loaded, "Look again")
    else:
        found = f"{kept.groups:,} groups declared as clusters" * (kept.answer == ACCEPTED)
        by = "ids, texts and meaning" if kept.vectors else "ids and texts"
        st.badge(
            f"Dependent queries: {found or 'none found'} (by {by})",
            icon=":material/check_circle:",
            color="green",
        )


def _ask(entry: SetEntry, loaded: EvalSet) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(
            "**Do queries depend on each other?** Translations, near-duplicates and repeated "
            "attempts make intervals too narrow unless they are declared as clusters. Every "
            "verdict says that nobody has looked yet.",
            width="stretch",
        )
        _look_button(entry, loaded, "Look for them")


def _look_button(entry: SetEntry, loaded: EvalSet, label: str) -> None:
    shipped = "The shipped sets cannot be changed here." if entry.shipped else None
    barred = entry.shipped or not identity.may(Action.REPLACE)
    if st.button(label, key="eval_sets.look", disabled=barred, help=shipped):
        shown = st.progress(0.0, "Comparing texts")

        def step(done: int, total: int) -> None:
            shown.progress(done / total, f"Comparing texts: {done:,} of {total:,}")

        try:
            found = look(loaded, step)
            if not found.groups:
                _keep(loaded, found, accepted=False)
            else:
                st.session_state[_LOOKED] = (loaded.digest, found)
        except HydraError as error:
            widgets.problem(error)
            return
        st.rerun()


def _offer(loaded: EvalSet, found: Suspects) -> None:
    with st.container(border=True):
        st.markdown(f"**{literal(str(found))}.** Do they belong together?")
        tables.kept(suspect_table(loaded, found), "eval_sets.suspects", height="content")
        if not found.vectors:
            st.caption("Texts were not compared by meaning: score the set first for that.")
        with st.container(horizontal=True):
            _button("Yes, declare them as clusters", loaded, found, accepted=True)
            _button("No, they are independent", loaded, found, accepted=False)


def _keep(loaded: EvalSet, found: Suspects, *, accepted: bool) -> None:
    changes = EvalSetChanges(identity.actor(), cache.store())
    changes.write(loaded.path, lambda: answer(loaded, found, accepted=accepted))


def _button(label: str, loaded: EvalSet, found: Suspects, *, accepted: bool) -> None:
    kind: Literal["primary", "secondary"] = "primary" if accepted else "secondary"
    if not st.button(label, type=kind, key=f"eval_sets.answer.{accepted}"):
        return
    try:
        _keep(loaded, found, accepted=accepted)
    except HydraError as error:
        widgets.problem(error)
        return
    widgets.forget(_LOOKED)
    st.rerun()
