"""Eval sets that were replaced or removed: bring one back, remove another."""

from __future__ import annotations

import streamlit as st

from hydra_core.errors import EvalSetError, HydraError
from hydra_core.evaluation.evalset.changes import Earlier, EvalSetChanges, earlier
from hydra_core.evaluation.evalset.format import read_manifest
from hydra_core.store.roles import Action
from hydra_core.ui import cache
from hydra_core.ui.access import identity
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.demo import session
from hydra_core.ui.widgets import literal

__all__ = ["earlier_states"]

_SHOWN = 10


def earlier_states(entry: SetEntry, told: str) -> None:
    """What can be undone, and the way to remove a set of one's own.

    Args:
        told: Key of the session state where an error waits for the next run.
    """
    states = earlier(session.folder() / "evalsets")
    if entry.shipped and not states:
        return
    with st.popover("Remove or bring back", icon=":material/history:", width="stretch"):
        if not entry.shipped:
            _offer_removal(entry, told)
        if states:
            st.markdown("**Replaced or removed**")
        for number, state in enumerate(states[:_SHOWN]):
            _offer_return(state, number, told)


def _offer_removal(entry: SetEntry, told: str) -> None:
    st.button(
        f"Remove {literal(entry.info.name)}", icon=":material/delete:", width="stretch",
        key="eval_sets.remove", on_click=_remove, args=(entry, told),
        disabled=not identity.may(Action.DELETE),
    )  # fmt: skip
    st.caption("It is kept and can be brought back here. This takes the role publisher.")


def _offer_return(state: Earlier, number: int, told: str) -> None:
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left.container(gap=None):
        st.markdown(literal(_named(state)))
        st.caption(literal(f"{state.name}, until {state.until:%Y-%m-%d %H:%M:%S} UTC"))
    right.button(
        "Bring back", key=f"eval_sets.bring_back.{number}", width="stretch",
        on_click=_bring_back, args=(state, told), disabled=not identity.may(Action.REPLACE),
    )  # fmt: skip


def _named(state: Earlier) -> str:
    try:
        return read_manifest(state.path)[0].name
    except EvalSetError:
        return f"{state.name}, damaged"


def _changes() -> EvalSetChanges:
    return EvalSetChanges(identity.actor(), cache.store())


def _remove(entry: SetEntry, told: str) -> None:
    try:
        _changes().remove(entry.info.path)
    except HydraError as error:
        st.session_state[told] = error


def _bring_back(state: Earlier, told: str) -> None:
    try:
        _changes().bring_back(state)
    except HydraError as error:
        st.session_state[told] = error
