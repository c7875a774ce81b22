"""A share along the knob, with its interval, and where the knob stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, plain, tint


@dataclass(frozen=True, slots=True)
class KnobRateView:
    """(p,) values and bounds in percent at ascending knobs; NaN where there is none.

    Attributes:
        now: Where the knob stands, `named` in words.
        title: Of the knob's axis.
        logarithmic: Whether that axis is.
    """

    knob: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    now: float
    title: str
    named: str = ""
    logarithmic: bool = False


def knob_rate_figure(view: KnobRateView, colors: Palette) -> go.Figure:
    """A line in its band, and a dashed line at the knob."""
    layout = base_layout(colors, height=360)
    layout["margin"] |= {"l": 84, "t": 28}
    top = max(5.0, 1.1 * float(np.nanmax(view.high, initial=0.0)))
    layout["yaxis"] |= {
        "range": [0.0, min(top, 102.0)], "ticksuffix": " %", "ticklabelstandoff": 8,
    }  # fmt: skip
    layout["yaxis"]["title"] = {**layout["yaxis"]["title"], "text": "Attacks that succeed"}
    layout["xaxis"] |= {"ticklabelstandoff": 4}
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": plain(view.title)}
    if view.logarithmic:
        layout["xaxis"]["type"] = "log"
    layout["shapes"] = [
        {"type": "line", "x0": view.now, "x1": view.now, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": colors.muted, "width": 1.5, "dash": "dash"}}
    ]  # fmt: skip
    at = float(np.log10(view.now)) if view.logarithmic else view.now
    layout["annotations"] = [
        {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "showarrow": False,
         "text": f"<b>{plain(view.named)}</b>", "font": {"color": colors.ink, "size": 13}}
    ]  # fmt: skip
    edge = {"type": "scatter", "mode": "lines", "x": view.knob, "line": {"width": 0},
            "hoverinfo": "skip"}  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines", "x": view.knob, "y": view.value,
        "line": {"color": colors.accent, "width": 2.5},
        "customdata": np.column_stack([view.low, view.high]),
        "hovertemplate": "<b>%{x:.3g}</b><br>%{y:.1f} % of attacks succeed "
                         "(%{customdata[0]:.1f} to %{customdata[1]:.1f})<extra></extra>",
    }  # fmt: skip
    band = {**edge, "y": view.low, "fill": "tonexty", "fillcolor": tint(colors.accent, 0.16)}
    return go.Figure({"data": [{**edge, "y": view.high}, band, line], "layout": layout})
