"""The live knob: what is on the page follows every step of a drag.

What every step shows is in the browser before the hand moves, so that no script runs during a
drag. On release the step's setting comes back, once, and the page says the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.spelling import signed
from hydra_core.base.types import Rule
from hydra_core.console.numbers import SYMBOLS, knob_text
from hydra_core.console.view_result import Measure, Tile

_FILES = Path(__file__).parent
_MOUNT = st.components.v2.component(
    "hydra_live_knob",
    css=(_FILES / "live_knob.css").read_text(encoding="utf-8"),
    js=(_FILES / "live_knob.js").read_text(encoding="utf-8"),
)


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
    """Draw the knob.

    Args:
        on_release: Called with the setting it was left at, before the page runs again.
    """

    def released() -> None:
        knob = st.session_state[key]["knob"]
        if isinstance(knob, int | float) and math.isfinite(knob) and knob >= 0:
            on_release(float(knob))

    at = np.searchsorted(shown.steps["knob"], shown.knob, side="right") - 1
    _MOUNT(
        key=key,
        data={
            "symbol": SYMBOLS[shown.rule],
            "usd": shown.rule is Rule.VALUE,
            "at": max(int(at), 0),
            "text": shown.text or knob_text(shown.rule, shown.knob),
            "steps": shown.steps,
            "tiles": [asdict(tile) for tile in shown.tiles],
            "models": [{"name": name, "color": color} for name, color in shown.models.items()],
            "bars": [asdict(bar) for bar in shown.bars],
            "messages": [asdict(one) for one in shown.messages],
            "point": asdict(shown.point) if shown.point else None,
            "line": asdict(shown.line) if shown.line else None,
            "lift": None if shown.lift is None else f"{signed(shown.lift)} pp",
            "fades": list(shown.fades),
        },
        on_knob_change=released,
    )
