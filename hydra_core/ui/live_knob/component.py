"""The live knob: figures, traffic and the plot's operating point follow every step of a drag.

The figures of every step are in the browser before the hand moves, so that no script runs during
a drag. On release the step's setting comes back, once, and the page says its verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.types import Rule
from hydra_core.views.numbers import SYMBOLS, knob_text
from hydra_core.views.tune.operating_point import Measure, Tile

__all__ = ["Followers", "LiveKnob", "live_knob"]

_FILES = Path(__file__).parent
_MOUNT = st.components.v2.component(
    "hydra_live_knob",
    css=(_FILES / "live_knob.css").read_text(encoding="utf-8"),
    js=(_FILES / "live_knob.js").read_text(encoding="utf-8"),
)


@dataclass(frozen=True, slots=True)
class Followers:
    """What else on the page follows, by the keys of its elements.

    Attributes:
        plot: The chart whose trace `operating point` moves.
        x, y: What its axes show.
        verdict: The container that holds for the last setting only, and fades during a drag.
    """

    plot: str
    x: Measure
    y: Measure
    verdict: str


@dataclass(frozen=True, slots=True)
class LiveKnob:
    """Everything that is shown, at rest and at every step.

    Attributes:
        rule: Whose knob it is: tau, or V in USD.
        knob: Where it stands, perhaps between two steps.
        steps: The figures at every step, as `step_table` gives them.
        tiles: The figures where it stands.
        models: Model ids with their colours, cheapest first.
    """

    rule: Rule
    knob: float
    steps: pd.DataFrame
    tiles: tuple[Tile, ...]
    models: dict[str, str]


def live_knob(
    shown: LiveKnob, followers: Followers, *, key: str, on_release: Callable[[float], None]
) -> None:
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
            "text": knob_text(shown.rule, shown.knob),
            "steps": shown.steps,
            "tiles": [asdict(tile) for tile in shown.tiles],
            "models": [{"name": name, "color": color} for name, color in shown.models.items()],
            "followers": asdict(followers),
        },
        on_knob_change=released,
    )
