"""The dialog that takes in a flight: settings and table, checked before anything is kept."""

from __future__ import annotations

import re

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.flight.folders import save_flight
from hydra_core.shipped import SAMPLE_DATA
from hydra_core.store.roles import Action
from hydra_core.ui import cache, widgets
from hydra_core.ui.access import identity
from hydra_core.ui.demo import session

__all__ = ["load_dialog"]

_SUFFIXES = ["csv", "tsv", "jsonl", "ndjson", "parquet", "gz", "zip"]
_EXAMPLE = SAMPLE_DATA / "paper_flight" / "flight.yaml"


@st.dialog("Load a flight", width="medium")
def load_dialog() -> None:
    """Two files and a name; a flight that is not valid changes nothing."""
    st.markdown(
        "A flight is a table (a row per user or per request; a decision log too) and a "
        "`flight.yaml` that says what its columns are."
    )
    st.download_button(
        "Commented example",
        _EXAMPLE.read_text(encoding="utf-8"),
        "flight.yaml",
        icon=":material/download:",
        key="flight.example",
    )
    settings = st.file_uploader("flight.yaml", ["yaml", "yml"], key="flight.settings")
    table = st.file_uploader("Table", _SUFFIXES, key="flight.table")
    name = st.text_input("Name", "my-flight", key="flight.name", max_chars=60)
    allowed = identity.may(Action.KEEP_FLIGHT)
    ready = settings is not None and table is not None and allowed
    if not allowed:
        st.caption("A viewer may look at flights, not keep one.")
    if not st.button("Check and keep", type="primary", disabled=not ready, key="flight.keep"):
        return
    if settings is None or table is None:
        return
    try:
        text = settings.getvalue().decode("utf-8-sig", "replace")
        folder = re.sub(r"[^a-z0-9_-]+", "-", name.strip().lower()).strip("-")
        root = session.folder() / "flights"
        kept = save_flight(
            root, folder, text, table.getvalue(), table.name,
            actor=identity.actor(), store=cache.store(),
        )  # fmt: skip
    except HydraError as error:
        widgets.problem(error)
        return
    st.session_state["flight.wanted"] = kept.name
    st.rerun()
