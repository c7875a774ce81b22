"""One entry in the browser's history for a page that is opened, so that Back always goes back."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_MOUNT = st.components.v2.component(
    "hydra_back_button",
    js=(Path(__file__).parent / "back_button.js").read_text(encoding="utf-8"),
)


def back_button() -> None:
    """Let a page complete its address without an entry of its own; nothing is drawn."""
    _MOUNT(key="back_button")
