"""Which model serves each turn of a conversation, one lane per stickiness mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from hydra_core.console.figures.theme import Palette, base_layout, model_colors, plain

_WIDTH, _LETTER = 520.0, 6.6


@dataclass(frozen=True, slots=True)
class Stop:
    """One turn: its model ('' when no model could serve it) and marks above it."""

    model: str
    told: str
    cached: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One mode."""

    label: str
    stops: tuple[Stop, ...]
    selected: bool


def lanes_figure(
    lanes: Sequence[Lane],
    models: tuple[str, ...],
    colors: Palette,
    *,
    marks: Sequence[str] = (),
) -> go.Figure:
    """Cells of model colours, turn by turn; a name stands where a stretch of one model begins.

    Args:
        models: (m,) ids in cost order, for their colours.
        marks: (t,) what happens on each turn, drawn above it.
    """
    turns = len(lanes[0].stops)
    tints = model_colors(models, colors)
    layout = base_layout(colors, height=78 + 42 * len(lanes))
    every = max(turns // 20, 1)
    layout["xaxis"] |= {
        "range": [0.5, turns + 0.5],
        "tickvals": list(range(1, turns + 1, every)),
        "showgrid": False,
        "title": {**layout["xaxis"]["title"], "text": "Turn"},
    }
    layout["yaxis"] |= {
        "range": [len(lanes) - 0.5, -0.55],
        "tickvals": list(range(len(lanes))),
        "ticktext": [
            f"<b>{plain(lane.label)}</b>" if lane.selected else plain(lane.label) for lane in lanes
        ],
        "ticklabelstandoff": 8,
        "showgrid": False,
        "tickfont": {"color": colors.ink, "size": 13},
    }
    layout |= {
        "margin": {"l": 118, "r": 6, "t": 24, "b": 46},
        "barmode": "overlay",
        "annotations": [*_names(lanes, turns, tints, colors), *_marks(marks, colors)],
    }
    return go.Figure(
        {"data": [_cells(row, lane, tints, colors) for row, lane in enumerate(lanes)],
         "layout": layout}
    )  # fmt: skip


def _cells(row: int, lane: Lane, tints: dict[str, str], colors: Palette) -> dict[str, Any]:
    count = len(lane.stops)
    return {
        "type": "bar",
        "orientation": "h",
        "y": [row] * count,
        "base": [number + 0.5 for number in range(count)],
        "x": [1.0] * count,
        "width": 0.72,
        "marker": {
            "color": [tints.get(stop.model, colors.grid) for stop in lane.stops],
            "opacity": [1.0 if stop.cached else 0.72 for stop in lane.stops],
            "line": {"color": colors.surface, "width": 1},
        },
        "customdata": [[plain(s.model) or "refused", plain(s.told)] for s in lane.stops],
        "hovertemplate": "<b>%{customdata[0]}</b><br>%{customdata[1]}<extra></extra>",
    }


def _names(
    lanes: Sequence[Lane], turns: int, tints: dict[str, str], colors: Palette
) -> list[dict[str, Any]]:
    """A model's name over each stretch of turns that is wide enough for it."""
    notes = []
    for row, lane in enumerate(lanes):
        start = 0
        for end in range(1, turns + 1):
            if end < turns and lane.stops[end].model == lane.stops[start].model:
                continue
            name = lane.stops[start].model or "refused"
            wide = len(name) * _LETTER + 8
            middle = (start + end + 1) / 2
            if wide < _WIDTH / turns:  # inside one cell, so that no gap runs through the name
                middle = start + 1 + (end - start - 1) // 2
            elif not lane.stops[start].cached and wide < (end - start - 1) / turns * _WIDTH:
                middle += 0.5  # beside the paler cell
            if wide < (end - start) / turns * _WIDTH:
                notes.append(_note(middle, row, name, tints.get(lane.stops[start].model), colors))
            start = end
    return notes


def _note(x: float, row: int, name: str, tint: str | None, colors: Palette) -> dict[str, Any]:
    """The name on its model's colour, which covers the gaps between cells."""
    return {
        "x": x, "y": row, "showarrow": False, "text": f"<b>{plain(name)}</b>",
        "font": {"color": colors.muted if tint is None else colors.surface, "size": 12},
        "bgcolor": colors.grid if tint is None else tint,
    }  # fmt: skip


def _marks(marks: Sequence[str], colors: Palette) -> list[dict[str, Any]]:
    return [
        {
            "x": number, "y": 1.0, "yref": "paper", "yanchor": "bottom", "showarrow": False,
            "text": plain(mark), "font": {"color": colors.muted, "size": 12},
        }
        for number, mark in enumerate(marks, 1)
        if mark
    ]  # fmt: skip
