"""A small button on every figure: PNG, SVG, or its numbers as CSV, made in the browser."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.console.widgets import colors

_FILES = Path(__file__).parent
_MOUNT = st.components.v2.component(
    "hydra_figure_files", js=(_FILES / "figure_files.js").read_text(encoding="utf-8")
)


def figure_files() -> None:
    """Put the button on the figures of this page, those that are drawn later included.

    Drawn once, above all pages: a widget of its own on each figure would cost every page a
    second or more. Nothing is sent anywhere.
    """
    theme = colors()
    _MOUNT(
        key="figure_files",
        data={"surface": theme.surface, "ink": theme.ink, "grid": theme.grid, "hue": theme.accent},
    )
