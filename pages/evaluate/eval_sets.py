"""Eval sets: what is there, what is in one, import another, score it."""

from __future__ import annotations

import streamlit as st

from hydra_core.console import cache, state
from hydra_core.console.eval_sets import import_wizard as import_panels
from hydra_core.console.eval_sets import sets as evalset_panels

_VIEWS = ("Browse", "Import")

left, right = st.columns([3, 7], vertical_alignment="bottom")
left.title("Eval sets", anchor=False)
with right.container(horizontal=True, horizontal_alignment="right"):
    st.session_state.setdefault("eval_sets.view", _VIEWS[0])
    view = st.segmented_control(
        "View",
        _VIEWS,
        key="eval_sets.view",
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )

if view == "Import":
    import_panels.wizard()
else:
    sets = cache.evalsets()
    if not sets:
        evalset_panels.nothing_yet()
    else:
        narrow, wide = st.columns([3, 7], gap="medium")
        with narrow:
            entry = evalset_panels.choose(sets, state.get().evalset)
        with wide:
            evalset_panels.show(entry)
