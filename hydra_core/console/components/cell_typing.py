"""Keys typed while a cell of a table opens or closes are held, and handed on in their order."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_FILES = Path(__file__).parent
_MOUNT = st.components.v2.component(
    "hydra_cell_typing", js=(_FILES / "cell_typing.js").read_text(encoding="utf-8")
)


def cell_typing() -> None:
    """Keep the keys of fast typists on this page; nothing is drawn.

    A table opens and closes the input of its cell a moment after the key that asks for it, later
    still while the page draws the last edit's effect. Keys in between were lost, and one at the
    wrong moment left an input open that took everything and kept nothing.
    """
    _MOUNT(key="cell_typing")
