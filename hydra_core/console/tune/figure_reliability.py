"""Predicted against achieved success, one line a model, over the diagonal of a perfect forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, model_colors, plain


@dataclass(frozen=True, slots=True)
class ReliabilityLine:
    """One model: (b,) bins of alike predictions, in percent.

    Attributes:
        queries: (b,) how many in each bin.
    """

    model: str
    predicted: FloatArray
    achieved: FloatArray
    queries: FloatArray


def reliability_figure(
    lines: Sequence[ReliabilityLine], colors: Palette, *, height: int = 400
) -> go.Figure:
    """Points on the diagonal keep what they promise; below it too much was promised."""
    layout = base_layout(colors, height=height)
    for axis, title in (("xaxis", "Predicted success"), ("yaxis", "Achieved")):
        layout[axis] |= {"range": [-2, 102], "ticksuffix": " %", "nticks": 6}
        layout[axis]["title"] = {**layout[axis]["title"], "text": title}
    layout |= {
        "margin": {"l": 70, "r": 12, "t": 16, "b": 52},
        "showlegend": True,
        "legend": {
            "x": 0.01, "y": 0.99, "font": {"color": colors.ink, "size": 13},
            "bgcolor": "rgba(0,0,0,0)", "itemclick": False, "itemdoubleclick": False,
        },
        "shapes": [
            {"type": "line", "x0": 0, "y0": 0, "x1": 100, "y1": 100, "layer": "below",
             "line": {"color": colors.muted, "width": 1.5, "dash": "dash"}}
        ],
    }  # fmt: skip
    tints = model_colors([line.model for line in lines], colors)
    traces = [
        {
            "type": "scatter", "mode": "lines+markers", "name": plain(line.model),
            "x": line.predicted, "y": line.achieved, "customdata": line.queries,
            "line": {"color": tints[line.model], "width": 2},
            "marker": {"color": tints[line.model], "size": 8},
            "hovertemplate": f"<b>{plain(line.model)}</b><br>predicted %{{x:.1f}} %<br>achieved "
            "%{y:.1f} %<br>%{customdata:,} queries<extra></extra>",
        }
        for line in lines
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})
