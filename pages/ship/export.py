"""Ship: publish a draft as a revision, look back and roll back, export and import files."""

from __future__ import annotations

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import drafts, selectors, widgets
from hydra_core.console.catalog import status as catalog_status
from hydra_core.console.releases import exports as ship_exports
from hydra_core.console.releases import history as ship_history
from hydra_core.console.releases import publish as ship_publish

VIEWS = {
    "Publish": ship_publish.publish,
    "History": ship_history.show,
    "Export": ship_exports.export,
    "Import": ship_exports.adopt,
}

left, middle, right = st.columns([2.4, 3.6, 6], vertical_alignment="bottom")
left.title("Ship", anchor=False)
entry = selectors.choose_catalog(middle)
with right.container(horizontal=True, horizontal_alignment="right"):
    st.session_state.setdefault("ship.view", "Publish")
    view = st.segmented_control(
        "View",
        list(VIEWS),
        key="ship.view",
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
if entry is None:
    st.warning("There is no catalog yet.")
else:
    try:
        working = drafts.load(entry)
    except HydraError as error:
        widgets.problem(error)
    else:
        catalog_status.status_line(working, tools=False)
        VIEWS[view or "Publish"](entry, working)
