"""An effect after every day with the interval it had then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, plain, tint


@dataclass(frozen=True, slots=True)
class EffectByDayView:
    """(days,) values and bounds in percent, NaN where there were too few units.

    Attributes:
        units: Units so far.
        valid: Whether any day may be the last one; a fixed reading holds for the end alone.
    """

    days: tuple[str, ...]
    value: FloatArray
    low: FloatArray
    high: FloatArray
    units: FloatArray
    title: str
    valid: bool


def effect_by_day_figure(view: EffectByDayView, colors: Palette) -> go.Figure:
    """A line in a band that narrows, over the line of no change."""
    layout = base_layout(colors, height=360)
    layout["margin"] |= {"l": 64, "t": 16}
    layout["yaxis"] |= {"range": _range(view), "ticksuffix": " %"}
    layout["yaxis"]["title"] = {**layout["yaxis"]["title"], "text": plain(view.title)}
    layout["xaxis"] |= {"showgrid": False, "nticks": 8, "type": "category"}
    layout["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0,
         "line": {"color": colors.muted, "width": 1.5, "dash": "dash"}}
    ]  # fmt: skip
    tone = colors.accent if view.valid else colors.warn
    edge = {"type": "scatter", "mode": "lines", "x": view.days, "line": {"width": 0},
            "hoverinfo": "skip"}  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines+markers", "x": view.days, "y": view.value,
        "line": {"color": tone, "width": 2.5}, "marker": {"size": 6, "color": tone},
        "customdata": np.column_stack([view.low, view.high, view.units]),
        "hovertemplate": "<b>%{x}</b><br>%{y:+.1f} % [%{customdata[0]:+.1f}, "
                         "%{customdata[1]:+.1f}]<br>%{customdata[2]:,.0f} units<extra></extra>",
    }  # fmt: skip
    band = {**edge, "y": view.low, "fill": "tonexty", "fillcolor": tint(tone, 0.16)}
    return go.Figure({"data": [{**edge, "y": view.high}, band, line], "layout": layout})


def _range(view: EffectByDayView) -> list[float]:
    """Room for all but the widest first days, and for no change."""
    known = np.isfinite(view.low) & np.isfinite(view.high)
    if not known.any():
        return [-1.0, 1.0]
    low = min(0.0, float(np.quantile(view.low[known], 0.1)))
    high = max(0.0, float(np.quantile(view.high[known], 0.9)))
    room = 0.06 * (high - low or 1.0)
    return [low - room, high + room]
