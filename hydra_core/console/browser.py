"""What runs in the browser: the live knob, files of figures, fast typing in tables, and Back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from hydra_core.base.spelling import signed
from hydra_core.base.types import Rule
from hydra_core.console.figures.theme import apart
from hydra_core.console.numbers import SYMBOLS, knob_text
from hydra_core.console.view_result import Measure, Tile
from hydra_core.console.widgets import colors

_FILES = Path(__file__).parent / "components"


def _component(name: str, css: str | None = None) -> ComponentRenderer:
    js = (_FILES / f"{name}.js").read_text(encoding="utf-8")
    return st.components.v2.component(f"hydra_{name}", js=js, css=css)


_BACK_BUTTON, _CELL_TYPING, _FIGURE_FILES, _ONE_ENTRY = map(
    _component, ("back_button", "cell_typing", "figure_files", "one_entry")
)
_LIVE_KNOB = _component("live_knob", (_FILES / "live_knob.css").read_text(encoding="utf-8"))
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
    """Keep the keys of fast typists, and decimal commas in fields; nothing is drawn.

    A table opens and closes the input of its cell a moment after the key that asks for it, later
    still while the page draws the last edit's effect. Keys in between were lost, and one at the
    wrong moment left an input open that took everything and kept nothing. Fields of numbers leave
    out a comma, so that 1,5 became 15; 128,000 stays.
    """
    _CELL_TYPING(key="cell_typing")


def one_entry() -> None:
    """Keep one entry of a demo in the browser's history; nothing is drawn."""
    _ONE_ENTRY(key="demo.one_entry")


@dataclass(frozen=True, slots=True)
class Point:
    """A chart whose trace `operating point` follows.

    Attributes:
        plot: Key of the chart.
        x, y: Columns of the steps with what its axes show.
    """

    plot: str
    x: Measure
    y: Measure


@dataclass(frozen=True, slots=True)
class Line:
    """A chart whose one line across, with its flag, follows; the knob lies along its axis.

    Attributes:
        plot: Key of the chart.
        x: Column of the steps with the place on its axis.
        left, right: Margins of the chart, in pixels.
    """

    plot: str
    x: str
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class Bar:
    """Traffic by model in one bar, from the columns `<column>_0`, ... of the steps.

    Attributes:
        shares: (m,) where it stands, in [0, 1].
    """

    label: str
    column: str
    shares: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """What one message gets: the model numbered in `column`, and what is known of each model."""

    label: str
    column: str
    facts: list[str]


@dataclass(frozen=True, slots=True)
class LiveKnob:
    """Everything that is shown, at rest and at every step.

    Attributes:
        rule: Whose knob it is: tau, or V in USD.
        knob: Where it stands, perhaps between two steps.
        steps: A row a step, the setting in `knob`; `lift` and `<measure>_change` where there are.
        models: Model ids with their colours.
        tiles: The figures where it stands.
        fades: Keys of what holds for the last setting only, and fades during a drag.
        lift: Quality above the best fixed mix where it stands, in percentage points.
        text: What is said of the setting at rest, where the knob alone does not say it.
    """

    rule: Rule
    knob: float
    steps: pd.DataFrame
    models: dict[str, str]
    tiles: tuple[Tile, ...] = ()
    bars: tuple[Bar, ...] = ()
    messages: tuple[Message, ...] = ()
    point: Point | None = None
    line: Line | None = None
    fades: tuple[str, ...] = field(default=())
    text: str = ""
    lift: float | None = None


def live_knob(shown: LiveKnob, *, key: str, on_release: Callable[[float], None]) -> None:
    """Draw the knob; `on_release` gets the setting it was left at, before the page runs again."""

    def released() -> None:
        knob = st.session_state[key]["knob"]
        if isinstance(knob, int | float) and math.isfinite(knob) and knob >= 0:
            on_release(float(knob))

    short = apart(shown.models, 28)
    at = np.searchsorted(shown.steps["knob"], shown.knob, side="right") - 1
    _LIVE_KNOB(
        key=key,
        data={
            "symbol": SYMBOLS[shown.rule],
            "usd": shown.rule is Rule.VALUE,
            "at": max(int(at), 0),
            "text": shown.text or knob_text(shown.rule, shown.knob),
            "steps": shown.steps,
            "tiles": [asdict(tile) for tile in shown.tiles],
            "models": [
                {"name": name, "color": color, "short": short[name]}
                for name, color in shown.models.items()
            ],
            "bars": [asdict(bar) for bar in shown.bars],
            "messages": [asdict(one) for one in shown.messages],
            "point": asdict(shown.point) if shown.point else None,
            "line": asdict(shown.line) if shown.line else None,
            "lift": None if shown.lift is None else f"{signed(shown.lift)} pp",
            "fades": list(shown.fades),
        },
        on_knob_change=released,
    )
