"""Quality retention by language, and predicted against achieved success by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    dashed,
    legend,
    model_colors,
    plain,
)


@dataclass(frozen=True, slots=True)
class LanguagesView:
    """Rows in drawing order, all (l,): QR in percent with its 95 % bounds, and queries.

    Attributes:
        overall: QR of all queries in percent.
        small: (l,) True where n is too small to say much.
    """

    names: tuple[str, ...]
    n: FloatArray
    qr: FloatArray
    low: FloatArray
    high: FloatArray
    overall: float
    small: FloatArray


def languages_figure(view: LanguagesView, colors: Palette) -> go.Figure:
    """One row per language: QR with its interval, the overall QR as a line."""
    height = 84 + 26 * len(view.names)
    figure = go.Figure(layout=base_layout(colors, height=height))
    figure.update_layout(margin={"l": 190, "t": 28})
    tint = np.where(np.asarray(view.small, dtype=bool), colors.warn, colors.accent)
    names = [f"{plain(name)}  <i>n {n:.0f}</i>" for name, n in zip(view.names, view.n, strict=True)]
    for i, name in enumerate(names):
        figure.add_scatter(
            x=[view.low[i], view.high[i]], y=[name, name], mode="lines", hoverinfo="skip",
            line={"color": tint[i], "width": 5}, opacity=0.35,
        )  # fmt: skip
    figure.add_scatter(
        x=view.qr,
        y=names,
        mode="markers",
        marker={"size": 10, "color": tint.tolist()},
        customdata=np.stack([view.low, view.high], axis=1),
        hovertemplate="<b>%{y}</b><br>QR %{x:.1f} % [%{customdata[0]:.1f}, "
        "%{customdata[1]:.1f}]<extra></extra>",
    )
    figure.add_vline(x=view.overall, line={"color": colors.muted, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=view.overall, y=1, yref="paper", yanchor="bottom", showarrow=False,
        text=f"all {view.overall:.1f} %", font={"color": colors.muted, "size": 13},
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont_color=colors.ink)
    low, high = float(view.low.min()), float(view.high.max())
    room = 0.04 * ((high - low) or 1.0)
    figure.update_xaxes(
        title_text="Quality retention (QR), 95 % interval",
        ticksuffix=" %",
        range=[low - room, high + room],
    )
    return figure


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


def reliability_figure(lines: Sequence[ReliabilityLine], colors: Palette) -> go.Figure:
    """Points on the diagonal keep what they promise; below it too much was promised."""
    layout = base_layout(colors, height=400, x="Predicted success", y="Achieved")
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"range": [-2, 102], "ticksuffix": " %", "nticks": 6}
    layout |= {
        "margin": {"l": 70, "r": 12, "t": 16, "b": 52},
        "showlegend": True,
        "legend": legend(colors.ink, x=0.01, y=0.99, bgcolor="rgba(0,0,0,0)"),
        "shapes": [dashed((0, 100), (0, 100), colors, layer="below")],
    }
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
