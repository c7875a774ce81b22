"""Scripts in the browser: a button on every figure, fast typing in tables, and Back."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.console.widgets import colors

_BACK_BUTTON, _CELL_TYPING, _FIGURE_FILES = (
    st.components.v2.component(
        f"hydra_{name}", js=Path(__file__).with_name(f"{name}.js").read_text(encoding="utf-8")
    )
    for name in ("back_button", "cell_typing", "figure_files")
)


#: Streamlit's own code for plots. A page would ask for it with its first plot, and then wait.
_PLOTS = next((Path(st.__file__).parent / "static/static/js").glob("PlotlyChart.*.js"), None)


def figure_files() -> None:
    """Put a button for PNG, SVG or CSV on the figures of this page, later ones included.

    The browser gets ready to draw plots meanwhile, while the console still computes the first.
    Drawn once, above all pages: a widget of its own on each figure would cost every page a
    second or more. Nothing is sent anywhere.
    """
    theme = colors()
    _FIGURE_FILES(
        key="figure_files",
        data={
            "surface": theme.surface,
            "ink": theme.ink,
            "grid": theme.grid,
            "hue": theme.accent,
            "plots": _PLOTS.name if _PLOTS else "",
        },
    )


def back_button() -> None:
    """Keep one entry in the browser's history for a page, so that Back always goes back.

    A page completes its address without an entry of its own; nothing is drawn.
    """
    _BACK_BUTTON(key="back_button")


def cell_typing() -> None:
    """Keep the keys of fast typists on this page; nothing is drawn.

    A table opens and closes the input of its cell a moment after the key that asks for it, later
    still while the page draws the last edit's effect. Keys in between were lost, and one at the
    wrong moment left an input open that took everything and kept nothing.
    """
    _CELL_TYPING(key="cell_typing")
