"""Traffic by model over tau, quality by language with its funnel, and an eval set's models."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

from hydra_core.figures.theme import Palette, base_layout, model_colors, plain, tint
from hydra_core.types import FloatArray

__all__ = ["SharesView", "shares_figure"]


@dataclass(frozen=True, slots=True)
class SharesView:
    """Traffic shares: `tau` (t,) ascending, `shares` (t, m) with rows that sum to 1.

    Attributes:
        models: (m,) ids in the pool's cost order, cheapest first.
        selected: The current tau.
        slots: (m,) numbers of the models' colours.
    """

    models: tuple[str, ...]
    tau: FloatArray
    shares: FloatArray
    selected: float
    slots: tuple[int, ...] = ()


def shares_figure(view: SharesView, colors: Palette, *, height: int = 330) -> go.Figure:
    """Stacked areas of traffic by model as a function of tau, with a line at the current tau."""
    by_model = model_colors(view.models, colors, view.slots)
    layout = base_layout(colors, height=height)
    layout["xaxis"] |= {"range": [0, view.tau[-1]]}
    layout["xaxis"]["title"] = {
        **layout["xaxis"]["title"],
        "text": "τ, largest acceptable shortfall",
    }
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
                "x": view.selected, "y": 1, "yref": "paper", "yanchor": "bottom",
                "showarrow": False, "text": f"<b>τ {view.selected:.4g}</b>",
                "font": {"color": colors.ink, "size": 13},
            }
        ],
    }  # fmt: skip
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": view.tau,
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
