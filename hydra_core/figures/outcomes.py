"""What each model of an eval set reaches and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.figures.labels import Label, place
from hydra_core.figures.theme import Palette, base_layout, model_colors, plain
from hydra_core.types import FloatArray

__all__ = ["OutcomesView", "outcomes_figure"]

_WIDTH = 480.0


@dataclass(frozen=True, slots=True)
class OutcomesView:
    """Models in cost order, all (m,): mean quality in percent with bounds, mean cost in USD."""

    models: tuple[str, ...]
    cost_usd: FloatArray
    quality: FloatArray
    low: FloatArray
    high: FloatArray
    title: str


def outcomes_figure(view: OutcomesView, colors: Palette, *, height: int = 330) -> go.Figure:
    """Mean quality with its 95 % interval against mean cost per query, one point per model."""
    figure = go.Figure(layout=base_layout(colors, height=height))
    x_range = _padded(view.cost_usd, 0.24)
    y_range = _padded(np.concatenate([view.low, view.high]), 0.06)
    tints = model_colors(view.models, colors)
    figure.add_scatter(
        x=view.cost_usd,
        y=view.quality,
        text=[plain(model) for model in view.models],
        textposition=_sides(view, x_range, y_range, height - 60.0),
        mode="markers+text",
        marker={"size": 12, "color": [*tints.values()]},
        error_y={
            "type": "data", "symmetric": False, "array": view.high - view.quality,
            "arrayminus": view.quality - view.low, "color": colors.muted, "thickness": 1.2,
            "width": 4,
        },
        cliponaxis=False,
        hovertemplate="<b>%{text}</b><br>%{y:.1f} %<br>$%{x:.3~r} per query<extra></extra>",
    )  # fmt: skip
    figure.update_xaxes(
        title_text="Mean cost per query in USD", range=x_range, tickprefix="$", tickformat=".3~r",
        nticks=7,
    )  # fmt: skip
    figure.update_yaxes(title_text=view.title, range=y_range, ticksuffix=" %", nticks=7)
    return figure


def _padded(values: FloatArray, room: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = room * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def _sides(
    view: OutcomesView, x_range: tuple[float, float], y_range: tuple[float, float], height: float
) -> list[str]:
    x = (view.cost_usd - x_range[0]) / (x_range[1] - x_range[0]) * _WIDTH
    scale = height / (y_range[1] - y_range[0])
    y = (view.quality - y_range[0]) * scale
    bars = [
        np.stack([np.full(9, x[i]), np.linspace(low, high, 9)], axis=1)
        for i, (low, high) in enumerate(
            zip((view.low - y_range[0]) * scale, (view.high - y_range[0]) * scale, strict=True)
        )
    ]
    labels = [Label(m, float(a), float(b)) for m, a, b in zip(view.models, x, y, strict=True)]
    return place(labels, np.concatenate(bars), _WIDTH, height)
