"""Catalog: the pool of models, edited as a draft, with what each edit would change."""

from __future__ import annotations

import streamlit as st

from hydra_core.ui import selectors
from hydra_core.ui.catalog import page as catalog_page

left, middle, right = st.columns([2.4, 3.6, 6], vertical_alignment="bottom")
left.title("Catalog", anchor=False)
entry = selectors.choose_catalog(middle)
with right.container(horizontal=True, horizontal_alignment="right"):
    st.session_state.setdefault("catalog.view", catalog_page.VIEWS[0])
    view = st.segmented_control(
        "View",
        catalog_page.VIEWS,
        key="catalog.view",
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
if entry is None:
    st.warning("There is no catalog yet.")
else:
    catalog_page.show(entry, view or catalog_page.VIEWS[0])
