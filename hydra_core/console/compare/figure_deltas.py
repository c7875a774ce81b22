"""Paired differences by language or group: quality and savings side by side, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hydra_core.base.spelling import signed
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    fitting,
    named_rows,
    note,
    plain,
    room,
    straight,
    with_room,
)


def deltas_figure(frame: pd.DataFrame, colors: Palette) -> go.Figure:
    """A row per slice in drawing order; a line at no difference; what is sure of its sign is full.

    Args:
        frame: Columns name, n, small (too few queries to say much), and B minus A with 95 % bounds:
            quality in points, savings in percent of A's cost, NaN where A costs nothing.
    """
    layout = base_layout(colors, height=92 + 28 * len(frame))
    wide = room(list(frame["name"]), 182)
    layout["margin"] = {"l": wide + 78, "r": 16, "t": 34, "b": 40}
    names = [
        f"{name}  <i>n {n:,.0f}</i>"
        for name, n in zip(fitting(frame["name"], wide), frame["n"], strict=True)
    ]
    layout["yaxis"] |= named_rows(names, colors)
    parts = (
        ("x", [0.0, 0.48], "Quality, B minus A", " pp", "quality"),
        ("x2", [0.52, 1.0], "Cost saved by B", " %", "savings"),
    )
    traces, notes, shapes = [], [], []
    for axis, domain, title, unit, column in parts:
        values = [frame[column + end].to_numpy(float) for end in ("", "_lo", "_hi")]
        name = "xaxis" + axis[1:]
        layout[name] = {
            **layout["xaxis"], "domain": domain, "anchor": "y", "ticksuffix": unit,
            "range": with_room([np.zeros(len(names)), *values], 0.06), "nticks": 7,
            "title": {"text": ""},
        }  # fmt: skip
        notes.append(note(
            domain[0], 1, f"<b>{title}</b>, 95 % interval", colors.muted, xref="paper",
            yref="paper", xanchor="left", yanchor="bottom", yshift=8,
        ))  # fmt: skip
        zero = straight((0, 0), (0, 1), colors.muted, 1.5, xref=axis, yref="paper", layer="below")
        shapes.append(zero)
        traces += _rows(frame, values, axis, unit, colors)
    return go.Figure({"data": traces, "layout": {**layout, "annotations": notes, "shapes": shapes}})


def _rows(
    frame: pd.DataFrame, values: list[FloatArray], axis: str, unit: str, colors: Palette
) -> list[dict[str, Any]]:
    middle, low, high = values
    place = np.arange(len(frame))
    tints = [
        colors.muted if not (a > 0 or b < 0) else colors.accent if a > 0 else colors.warn
        for a, b in zip(low, high, strict=True)
    ]
    ends = [np.where(np.isfinite(end), end, middle) for end in (low, high)]
    bars = {
        "type": "scatter", "mode": "lines", "xaxis": axis, "hoverinfo": "skip",
        "x": np.stack([*ends, np.full(len(place), np.nan)], axis=1).ravel(),
        "y": np.repeat(place.astype(float), 3),
        "line": {"color": colors.muted, "width": 2},
    }  # fmt: skip
    dots = {
        "type": "scatter", "mode": "markers", "xaxis": axis, "x": middle, "y": place,
        "marker": {
            "size": 10, "color": tints,
            "symbol": ["circle-open" if small else "circle" for small in frame["small"]],
            "line": {"width": 2, "color": tints},
        },
        "customdata": [
            [plain(name), "" if np.isnan(a) else f" [{signed(a)}, {signed(b)}]"]
            for name, a, b in zip(frame["name"], low, high, strict=True)
        ],
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{x:+.1f}" + unit
        + "%{customdata[1]}<extra></extra>",
    }  # fmt: skip
    return [bars, dots]
