"""What each model of an eval set reaches and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.labels import Label, label_notes, place
from hydra_core.console.figures.theme import Palette, base_layout, model_colors, plain

_WIDTH = 480.0


@dataclass(frozen=True, slots=True)
class OutcomesView:
    """Models in cost order, all (m,): mean quality in percent with bounds, mean cost in USD.

    Attributes:
    """

    models: tuple[str, ...]
    cost_usd: FloatArray
    quality: FloatArray
    low: FloatArray
    high: FloatArray
    title: str


def outcomes_figure(view: OutcomesView, colors: Palette, *, height: int = 330) -> go.Figure:
    """Mean quality with its 95 % interval against mean cost per query, one point per model."""
    x_range = _padded(view.cost_usd, 0.16)
    y_range = _padded(np.concatenate([view.low, view.high]), 0.06)
    layout = base_layout(colors, height=height)
    for name, title, bounds, extra in (
        ("xaxis", "Mean cost per query in USD", x_range, {"tickprefix": "$", "tickformat": ".3~r"}),
        ("yaxis", view.title, y_range, {"ticksuffix": " %"}),
    ):
        layout[name] |= {"range": bounds, "nticks": 7, **extra}
        layout[name]["title"] = {**layout[name]["title"], "text": title}
    layout["annotations"] = _labels(view, colors, x_range, y_range, height - 60.0)
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": view.cost_usd,
        "y": view.quality,
        "text": [plain(model) for model in view.models],
        "marker": {"size": 12, "color": [*model_colors(view.models, colors).values()]},
        "error_y": {
            "type": "data", "symmetric": False, "array": view.high - view.quality,
            "arrayminus": view.quality - view.low, "color": colors.muted, "thickness": 1.2,
            "width": 4,
        },
        "cliponaxis": False,
        "hovertemplate": "<b>%{text}</b><br>%{y:.1f} %<br>$%{x:.3~r} per query<extra></extra>",
    }  # fmt: skip
    return go.Figure({"data": [points], "layout": layout})


def _padded(values: FloatArray, room: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = room * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def _labels(
    view: OutcomesView,
    colors: Palette,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: float,
) -> list[dict[str, Any]]:
    """Annotations that keep clear of each other and of the error bars."""
    x = (view.cost_usd - x_range[0]) / (x_range[1] - x_range[0]) * _WIDTH
    scale = height / (y_range[1] - y_range[0])
    y = (view.quality - y_range[0]) * scale
    ends = zip((view.low - y_range[0]) * scale, (view.high - y_range[0]) * scale, strict=True)
    bars = [
        np.stack([np.full(25, x[i]), np.linspace(low, high, 25)], axis=1)
        for i, (low, high) in enumerate(ends)
    ]
    labels = [
        Label(plain(m), float(a), float(b)) for m, a, b in zip(view.models, x, y, strict=True)
    ]
    placed = place(labels, np.concatenate(bars), _WIDTH, height)
    at = [(float(a), float(b)) for a, b in zip(view.cost_usd, view.quality, strict=True)]
    font = {"color": colors.ink, "size": 13}
    return label_notes(labels, placed, at, [font] * len(labels), colors.muted)
