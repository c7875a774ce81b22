"""Profiles: from benchmark evidence to capabilities, bands and weights (Algorithm 1)."""

from __future__ import annotations

import streamlit as st

from hydra_core.ui import selectors
from hydra_core.ui.profiles import page as profile_page

left, middle, right = st.columns([2.4, 3.6, 6], vertical_alignment="bottom")
left.title("Profiles", anchor=False)
entry = selectors.choose_catalog(middle)
with right.container(horizontal=True, horizontal_alignment="right"):
    st.session_state.setdefault("profiles.view", profile_page.VIEWS[0])
    view = st.segmented_control(
        "View",
        profile_page.VIEWS,
        key="profiles.view",
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
if entry is None:
    st.warning("There is no catalog yet.")
else:
    profile_page.show(entry, view or profile_page.VIEWS[0])
