"""Traffic by model before and after a change."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import Palette, base_layout, plain, row_a_model


@dataclass(frozen=True, slots=True)
class TrafficView:
    """Shares in percent (m,) before and after; models cheapest first."""

    models: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    before_name: str
    after_name: str


def traffic_figure(view: TrafficView, colors: Palette) -> go.Figure:
    """One line per model from its share before (ring) to its share after (dot)."""
    layout = base_layout(colors, height=34 * len(view.models) + 92)
    row_a_model(layout, view.models, right=64, below=60)
    layout["xaxis"] |= {
        "range": [-5, 104],
        "ticksuffix": " %",
        "tickvals": [0, 25, 50, 75, 100],
        "tickangle": 0,
    }
    layout["showlegend"] = True
    layout["legend"] = {
        "orientation": "h", "y": -0.02, "yref": "container", "yanchor": "bottom", "x": 0,
        "itemclick": False, "itemdoubleclick": False, "font": {"size": 13, "color": colors.ink},
    }  # fmt: skip
    rows = range(len(view.models))
    layout["shapes"] = [
        {
            "type": "line", "x0": view.before[i], "x1": view.after[i], "y0": i, "y1": i,
            "line": {"color": colors.muted, "width": 2}, "layer": "below",
        }
        for i in rows
    ]  # fmt: skip
    layout["annotations"] = [
        {
            "x": max(view.before[i], view.after[i]), "y": i, "xanchor": "left", "xshift": 10,
            "text": _told(view.before[i], view.after[i]), "showarrow": False,
            "font": {"color": colors.ink, "size": 13},
        }
        for i in rows
    ]  # fmt: skip
    marks = (
        (view.before_name, view.before, "circle-open", colors.muted, 11),
        (view.after_name, view.after, "circle", colors.accent, 11),
    )
    traces = [
        {
            "type": "scatter", "mode": "markers", "name": plain(name), "x": values,
            "y": list(rows), "cliponaxis": False, "text": [plain(m) for m in view.models],
            "marker": {"symbol": symbol, "color": color, "size": size, "line": {"width": 2}},
            "hovertemplate": f"<b>%{{text}}</b><br>{plain(name)} %{{x:.1f}} %<extra></extra>",
        }
        for name, values, symbol, color, size in marks
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


def _told(before: float, after: float) -> str:
    if abs(before - after) < 0.05:
        return f"{after:.1f}"
    return f"{before:.1f} → {after:.1f}"
