"""The figures of Eval sets: models, who solves what, how costs are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hydra_core.base.spelling import short_number
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.labels import Label, label_notes, longest, place
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    fitting,
    model_colors,
    named_rows,
    plain,
    room,
    with_room,
)

_WIDTH, _HEIGHT = 480.0, 330


def outcomes_figure(frame: pd.DataFrame, title: str, colors: Palette) -> go.Figure:
    """Mean quality with its 95 % interval against mean cost per query, one point per model.

    Args:
        frame: Columns model, cost in USD, and quality, low and high in percent, in cost order.
        title: Of the quality.
    """
    cost, quality, low, high = (
        frame[name].to_numpy(np.float64) for name in ("cost", "quality", "low", "high")
    )
    models = tuple(frame["model"])
    x_range, y_range = with_room(cost, 0.16), with_room(np.concatenate([low, high]), 0.06)
    layout = base_layout(colors, height=_HEIGHT, x="Mean cost per query in USD", y=title)
    layout["xaxis"] |= {"range": x_range, "nticks": 7, "tickprefix": "$", "tickformat": ".3~r"}
    layout["yaxis"] |= {"range": y_range, "nticks": 7, "ticksuffix": " %"}
    layout["annotations"] = _labels(frame, colors, x_range, y_range)
    points = {
        "type": "scatter",
        "mode": "markers",
        "x": cost,
        "y": quality,
        "text": [plain(model) for model in models],
        "marker": {"size": 12, "color": [*model_colors(models, colors).values()]},
        "error_y": {
            "type": "data", "symmetric": False, "array": high - quality,
            "arrayminus": quality - low, "color": colors.muted, "thickness": 1.2,
            "width": 4,
        },
        "cliponaxis": False,
        "hovertemplate": "<b>%{text}</b><br>%{y:.1f} %<br>$%{x:.3~r} per query<extra></extra>",
    }  # fmt: skip
    return go.Figure({"data": [points], "layout": layout})


def _labels(
    frame: pd.DataFrame,
    colors: Palette,
    x_range: list[float],
    y_range: list[float],
) -> list[dict[str, Any]]:
    """Annotations that keep clear of each other and of the error bars."""
    x = (frame["cost"] - x_range[0]) / (x_range[1] - x_range[0]) * _WIDTH
    height = _HEIGHT - 60.0
    y, low, high = (
        (frame[name] - y_range[0]) * height / (y_range[1] - y_range[0])
        for name in ("quality", "low", "high")
    )
    bars = [
        np.stack([np.full(25, at), np.linspace(lo, hi, 25)], axis=1)
        for at, lo, hi in zip(x, low, high, strict=True)
    ]
    wide = longest(len(frame))
    labels = [Label(*one) for one in zip(fitting(frame["model"], wide), x, y, strict=True)]
    placed = place(labels, np.concatenate(bars), _WIDTH, height)
    at = list(zip(frame["cost"], frame["quality"], strict=True))
    font = {"color": colors.ink, "size": 13}
    return label_notes(labels, placed, at, [font] * len(labels), colors.muted)


@dataclass(frozen=True, slots=True)
class UpsetView:
    """p patterns from left to right over m models from top to bottom, of `total` queries.

    Attributes:
        solved: (m,) percent each model solves.
        members: (p, m) which models belong to a pattern; `queries` (p,) of exactly that pattern.
    """

    models: tuple[str, ...]
    solved: FloatArray
    members: np.typing.NDArray[np.bool_]
    queries: np.typing.NDArray[np.intp]
    total: int


def upset_figure(view: UpsetView, colors: Palette) -> go.Figure:
    """Bars of queries per pattern above a grid that says which models belong to it."""
    m, p = len(view.models), len(view.queries)
    bars_px, row_px = 190, 26
    grid_px = row_px * m + 8
    layout = base_layout(colors, height=bars_px + grid_px + 52)
    wide = room(view.models, 198)
    labels = [
        f"{model}  <i>{share:.0f} %</i>"
        for model, share in zip(fitting(view.models, wide), view.solved, strict=True)
    ]
    layout["margin"] = {"l": wide + 62, "r": 12, "t": 24, "b": 12}
    split = grid_px / (bars_px + grid_px)
    layout["xaxis"] |= {
        "range": [-0.6, p - 0.4], "showgrid": False, "showticklabels": False, "anchor": "y",
    }  # fmt: skip
    layout["yaxis"] |= {**named_rows(labels, colors), "domain": [0, split - 0.01]}
    above = base_layout(colors, height=1, y="Queries")["yaxis"]
    above |= {"domain": [split + 0.02, 1], "anchor": "x", "rangemode": "tozero", "nticks": 5}
    del above["title"]["standoff"]
    layout["yaxis2"] = above
    layout["shapes"] = [_stripe(row, colors) for row in range(0, m, 2)]
    layout["bargap"] = 0.35
    names = [_pattern(view, i) for i in range(p)]
    return go.Figure({"data": [_bars(view, names, colors), *_grid(view, colors)], "layout": layout})


def _pattern(view: UpsetView, index: int) -> str:
    members = [
        plain(model) for model, on in zip(view.models, view.members[index], strict=True) if on
    ]
    if not members:
        return "no model"
    if len(members) == len(view.models):
        return "every model"
    return "only " + ", ".join(members)


def _bars(view: UpsetView, names: list[str], colors: Palette) -> dict[str, Any]:
    count = view.members.sum(axis=1)
    same = (count == 0) | (count == len(view.models))
    share = 100 * view.queries / max(view.total, 1)
    return {
        "type": "bar", "x": list(range(len(names))), "y": view.queries, "yaxis": "y2",
        "marker": {"color": [colors.muted if one else colors.accent for one in same]},
        "text": [f"{n:,}" for n in view.queries], "textposition": "outside", "cliponaxis": False,
        "constraintext": "none",
        "textfont": {"color": colors.muted, "size": 12},
        "customdata": [[name, float(s)] for name, s in zip(names, share, strict=True)],
        "hovertemplate": "solved by <b>%{customdata[0]}</b><br>%{y:,} queries, "
        "%{customdata[1]:.1f} %<extra></extra>",
    }  # fmt: skip


def _grid(view: UpsetView, colors: Palette) -> list[dict[str, Any]]:
    pattern, model = np.nonzero(view.members)
    off_pattern, off_model = np.nonzero(~view.members)
    x, y = [], []
    for i, row in enumerate(view.members):
        on = np.flatnonzero(row)
        if on.size > 1:
            x += [i, i, None]
            y += [int(on[0]), int(on[-1]), None]
    common = {"type": "scatter", "hoverinfo": "skip"}
    return [
        {**common, "mode": "markers", "x": off_pattern, "y": off_model,
         "marker": {"size": 10, "color": colors.grid}},
        {**common, "mode": "lines", "x": x, "y": y, "line": {"color": colors.ink, "width": 2}},
        {**common, "mode": "markers", "x": pattern, "y": model,
         "marker": {"size": 11, "color": colors.ink}},
    ]  # fmt: skip


def _stripe(row: int, colors: Palette) -> dict[str, Any]:
    return {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": row - 0.5,
        "y1": row + 0.5, "fillcolor": colors.grid, "opacity": 0.35, "line": {"width": 0},
        "layer": "below",
    }  # fmt: skip


def spread_figure(frame: pd.DataFrame, colors: Palette) -> go.Figure:
    """A box from the first to the third quartile, whiskers from 5 to 95 %, a dot at the mean.

    Args:
        frame: A row a model, top row first: p05, q1, median, q3, p95 and mean of the cost per query
            in USD.
    """
    models = tuple(map(str, frame.index))
    layout = base_layout(colors, height=92 + 36 * len(models))
    beside = room(models, 236)
    layout["margin"] = {"l": beside + 24, "r": 16, "t": 8, "b": 52}
    least, most = float(frame["p05"].min()), float(frame["p95"].max())
    wide = least > 0 and most / least > 30
    layout["xaxis"] |= {"tickprefix": "$", "tickformat": "~g", "type": "log" if wide else "linear"}
    if wide:
        # named one by one: plotly writes no $ before the 2 and the 5 of a decade
        first, last = np.floor(np.log10([least, most])).astype(int)
        decades = last - first + 1
        each, step = ((1, 2, 5) if decades <= 3 else (1,)), -(-decades // 9)
        ticks = [10.0**e * d for e in range(first, last + 1, step) for d in each]
        names = [f"${short_number(tick)}" for tick in ticks]
        layout["xaxis"] |= {"tickvals": ticks, "ticktext": names}
    layout["xaxis"]["title"]["text"] = "Cost per query in USD" + (", logarithmic" if wide else "")
    layout["yaxis"] |= named_rows(fitting(models, beside), colors)
    tints = model_colors(models, colors).values()
    boxes = [
        {
            "type": "box", "orientation": "h", "y": [i], "q1": [row.q1], "q3": [row.q3],
            "median": [row.median], "lowerfence": [row.p05], "upperfence": [row.p95],
            "line": {"color": tint, "width": 2}, "width": 0.55, "hoverinfo": "skip",
        }
        for i, (row, tint) in enumerate(zip(frame.itertuples(), tints, strict=True))
    ]  # fmt: skip
    means = {
        "type": "scatter", "mode": "markers", "x": frame["mean"], "y": list(range(len(models))),
        "marker": {"size": 9, "color": colors.ink, "symbol": "diamond"},
        "customdata": frame[["p05", "q1", "median", "q3", "p95"]].to_numpy(),
        "text": [plain(model) for model in models],
        "hovertemplate": "<b>%{text}</b><br>mean $%{x:.3~g}<br>median $%{customdata[2]:.3~g}"
        "<br>half of them $%{customdata[1]:.3~g} – $%{customdata[3]:.3~g}"
        "<br>5 – 95 %: $%{customdata[0]:.3~g} – $%{customdata[4]:.3~g}<extra></extra>",
    }  # fmt: skip
    return go.Figure({"data": [*boxes, means], "layout": layout})
