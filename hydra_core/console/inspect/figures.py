"""The figures of Inspect: requirements, lanes of a conversation, attacks along the knob."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import titled
from hydra_core.base.types import Band, FloatArray, Rule
from hydra_core.console.figures.strip import TAU
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    dashed,
    fitting,
    legend,
    line_in_band,
    model_colors,
    named_rows,
    note,
    plain,
    room,
)
from hydra_core.console.numbers import knob_text

_LEGEND_COLUMNS = 2
#: Pixels of an entry at least and at most; the figure is drawn about 560 wide.
_LEGEND_WIDTHS = (140, 230)


@dataclass(frozen=True, slots=True)
class RequirementsView:
    """Requirements of one or two messages on K bands, beside what m models offer.

    Attributes:
        needs: (K,) requirements of each message by its label.
        models: (m,) ids in cost order; `capabilities` (m, K) in the same.
        chosen: The chosen model of the first message.
    """

    dimensions: tuple[str, ...]
    bands: tuple[Band, ...]
    needs: Mapping[str, FloatArray]
    models: tuple[str, ...]
    capabilities: FloatArray
    chosen: str


def requirements_figure(view: RequirementsView, colors: Palette) -> go.Figure:
    """A row per dimension: band, requirement bar, and a tick for every model's capability."""
    names = [plain(titled(name)) for name in view.dimensions]
    rows = np.arange(len(names), dtype=np.float64)
    highest = [view.capabilities.max(initial=0.05), *(band.hi for band in view.bands)]
    highest += [values.max() for values in view.needs.values()]
    top = min(1.0, 1.06 * float(max(highest)))
    named = [_named(view, model) for model in view.models]
    wide = max(room([*named, *view.needs], _LEGEND_WIDTHS[1]), _LEGEND_WIDTHS[0])
    entries = 1 + len(view.needs) + len(view.models)
    above = 22 * -(-entries // _LEGEND_COLUMNS)
    rows_height = (52 + 12 * (len(view.needs) - 1)) * len(names)
    layout = base_layout(colors, height=36 + above + rows_height)
    layout["xaxis"] |= {
        "range": [0, top],
        "nticks": 6,
        "tickformat": ".2~f",
        "ticklabeloverflow": "allow",
    }
    layout["yaxis"] |= named_rows(names, colors)
    layout["yaxis"] |= {"range": [len(names) - 0.45, -0.62], "ticklabelstandoff": 8}
    layout |= {
        "margin": {"l": 122, "r": 56, "t": above + 8, "b": 28},
        "barmode": "overlay",
        "showlegend": True,
        "legend": legend(
            colors.muted, orientation="h", xref="container", x=0, yref="container", y=1,
            yanchor="top", entrywidth=wide, font={"size": 12, "color": colors.muted},
        ),
        "annotations": _values(view, rows, colors),
    }  # fmt: skip
    traces = [_bands(view, rows, colors), *_bars(view, rows, colors)]
    return go.Figure({"data": [*traces, *_models(view, rows, colors)], "layout": layout})


def _named(view: RequirementsView, model: str) -> str:
    return f"{model} (chosen)" if model == view.chosen else model


def _bands(view: RequirementsView, rows: FloatArray, colors: Palette) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "y": rows,
        "base": [band.lo for band in view.bands],
        "x": [band.width for band in view.bands],
        "width": 0.62,
        "marker": {"color": colors.grid, "cornerradius": 4},
        "name": "score band",
        "customdata": [[band.lo, band.hi] for band in view.bands],
        "hovertemplate": "Band %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>",
    }


def _bars(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    tints = (colors.accent, colors.ghost)
    width = 0.34 / len(view.needs)
    return [
        {
            "type": "bar",
            "orientation": "h",
            "y": rows + _offset(i, len(view.needs)),
            "x": values,
            "width": width,
            "marker": {"color": tints[i % 2], "cornerradius": 3},
            "name": plain(label),
            "hovertemplate": f"{plain(label)}: %{{x:.3f}}<extra></extra>",
        }
        for i, (label, values) in enumerate(view.needs.items())
    ]


def _offset(i: int, count: int) -> float:
    return 0.0 if count == 1 else (-0.1, 0.1)[i]


def _models(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    """A tick per model and dimension; the chosen model's is a diamond."""
    tints = model_colors(view.models, colors)
    traces = []
    names = fitting([_named(view, model) for model in view.models], _LEGEND_WIDTHS[1])
    for i, model in enumerate(view.models):
        chosen = model == view.chosen
        marker = {"color": tints[model], "line": {"color": tints[model], "width": 2.5}}
        form = {"symbol": "diamond", "size": 11} if chosen else {"symbol": "line-ns", "size": 22}
        outline = {"line": {"color": colors.surface, "width": 1.5}} if chosen else {}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": view.capabilities[i],
                "y": rows,
                "marker": {**marker, **form, **outline},
                "name": names[i],
                "cliponaxis": False,
                "hovertemplate": f"<b>{plain(model)}</b> offers %{{x:.3f}}<extra></extra>",
            }
        )
    return traces


def _values(view: RequirementsView, rows: FloatArray, colors: Palette) -> list[dict[str, Any]]:
    """The numbers at the right edge."""
    tints = (colors.accent, colors.ghost)
    return [
        note(
            1.0, row + 2.2 * _offset(i, len(view.needs)), f"<b>{value:.2f}</b>", "",
            xref="paper", xanchor="left", xshift=8, font={"color": tints[i % 2], "size": 14},
        )
        for i, values in enumerate(view.needs.values())
        for row, value in zip(rows, values, strict=True)
    ]  # fmt: skip


_WIDTH, _LETTER = 520.0, 6.6


@dataclass(frozen=True, slots=True)
class Stop:
    """One turn: its model ('' when no model could serve it) and marks above it."""

    model: str
    text: str
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
    """Cells of model colours, a lane a mode; `models` in cost order, `marks` above their turns."""
    turns = len(lanes[0].stops)
    tints = model_colors(models, colors)
    layout = base_layout(colors, height=78 + 42 * len(lanes), x="Turn")
    every = max(turns // 20, 1)
    layout["xaxis"] |= {
        "range": [0.5, turns + 0.5],
        "tickvals": list(range(1, turns + 1, every)),
        "showgrid": False,
    }
    names = [
        f"<b>{plain(lane.label)}</b>" if lane.selected else plain(lane.label) for lane in lanes
    ]
    layout["yaxis"] |= named_rows(names, colors)
    layout["yaxis"] |= {"range": [len(lanes) - 0.5, -0.55], "ticklabelstandoff": 8}
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
        "customdata": [[plain(s.model) or "refused", plain(s.text)] for s in lane.stops],
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
                tint = tints.get(lane.stops[start].model)
                color = colors.muted if tint is None else colors.surface
                # on its model's colour, which covers the gaps between cells
                notes.append(note(
                    middle, row, f"<b>{plain(name)}</b>", color, bgcolor=tint or colors.grid,
                    font={"color": color, "size": 12},
                ))  # fmt: skip
            start = end
    return notes


def _marks(marks: Sequence[str], colors: Palette) -> list[dict[str, Any]]:
    font = {"color": colors.muted, "size": 12}
    return [
        note(number, 1.0, plain(mark), colors.muted, yref="paper", yanchor="bottom", font=font)
        for number, mark in enumerate(marks, 1)
        if mark
    ]


def knob_rate_figure(
    knobs: FloatArray, rates: Sequence[Interval], now: float, colors: Palette, *, by_value: bool
) -> go.Figure:
    """Shares of attacks that succeed at (p,) ascending knobs, in their band; a dashed line at now.

    Args:
        by_value: Whether the knob is V, on a logarithmic axis, and not tau.
    """
    title = "V, USD for one more resolved query" if by_value else TAU.title
    named = knob_text(Rule.VALUE if by_value else Rule.SHORTFALL, now)
    value, low, high = 100.0 * np.array([[one.value, one.lo, one.hi] for one in rates]).T
    layout = base_layout(colors, height=360, x=plain(title), y="Attacks that succeed")
    layout["margin"] |= {"l": 84, "t": 28}
    top = max(5.0, 1.1 * float(np.nanmax(high, initial=0.0)))
    layout["yaxis"] |= {
        "range": [0.0, min(top, 102.0)], "ticksuffix": " %", "ticklabelstandoff": 8,
    }  # fmt: skip
    layout["xaxis"] |= {"ticklabelstandoff": 4} | ({"type": "log"} if by_value else {})
    layout["shapes"] = [dashed((now, now), (0, 1), colors, yref="paper")]
    at = float(np.log10(now)) if by_value else now
    text = f"<b>{plain(named)}</b>"
    layout["annotations"] = [note(at, 1, text, colors.ink, yref="paper", yanchor="bottom")]
    traces = line_in_band(
        knobs, value, low, high, colors.accent,
        customdata=np.column_stack([low, high]),
        hovertemplate="<b>%{x:.3g}</b><br>%{y:.1f} % of attacks succeed (%{customdata[0]:.1f} to "
        "%{customdata[1]:.1f})<extra></extra>",
    )  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})
