"""Traffic by model over tau, quality by language with its funnel, and an eval set's models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.figures.theme import Palette, base_layout, model_colors, plain, tint
from hydra_core.types import FloatArray

__all__ = ["SharesView", "shares_figure"]


@dataclass(frozen=True, slots=True)
class SharesView:
    """Traffic shares: `knob` (t,) ascending, `shares` (t, m) with rows that sum to 1.

    Attributes:
        models: (m,) ids in the pool's cost order, cheapest first.
        knob: tau, or V in USD.
        selected: Where the policy stands on it.
        slots: (m,) numbers of the models' colours.
        value: Whether the knob is V, which is drawn by its logarithm.
    """

    models: tuple[str, ...]
    knob: FloatArray
    shares: FloatArray
    selected: float
    slots: tuple[int, ...] = ()
    value: bool = False


def shares_figure(view: SharesView, colors: Palette, *, height: int = 330) -> go.Figure:
    """Stacked areas of traffic by model over the knob, with a line where the policy stands."""
    by_model = model_colors(view.models, colors, view.slots)
    layout = base_layout(colors, height=height)
    at, name = view.selected, f"τ {view.selected:.4g}"
    title = "τ, largest acceptable shortfall"
    layout["xaxis"] |= {"range": [0, view.knob[-1]]}
    if view.value:
        at, name = float(np.log10(view.selected)), f"V ${view.selected:.4g}"
        title = "V, what one more resolved query is worth, USD"
        ends = np.log10(view.knob[[0, -1]])
        layout["xaxis"] |= {"range": list(ends), "type": "log", "tickprefix": "$", "dtick": 1}
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": title}
    layout["yaxis"] |= {"range": [0, 100], "ticksuffix": " %"}
    layout["yaxis"]["title"] = {**layout["yaxis"]["title"], "text": "Traffic"}
    layout |= {
        "margin": {"l": 70, "r": 190, "t": 28, "b": 52},
        "hovermode": "x unified",
        "showlegend": True,
        "legend": {
            "x": 1.01, "y": 1, "traceorder": "reversed", "itemclick": False,
            "font": {"color": colors.ink, "size": 13}, "itemdoubleclick": False,
        },
        "shapes": [
            {
                "type": "line", "x0": view.selected, "x1": view.selected, "y0": 0, "y1": 1,
                "yref": "paper", "line": {"color": colors.ink, "width": 2},
            }
        ],
        "annotations": [
            {
                "x": at, "y": 1, "yref": "paper", "yanchor": "bottom",
                "showarrow": False, "text": f"<b>{name}</b>",
                "font": {"color": colors.ink, "size": 13},
            }
        ],
    }  # fmt: skip
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": view.knob,
            "y": view.shares[:, i] * 100,
            "name": plain(model),
            "stackgroup": "traffic",
            "line": {"width": 0.5, "color": colors.surface, "shape": "hv"},
            "fillcolor": tint(by_model[model], 0.78),
            "hovertemplate": "%{y:.1f} %",
        }
        for i, model in enumerate(view.models)
    ]
    return go.Figure({"data": traces, "layout": layout})
