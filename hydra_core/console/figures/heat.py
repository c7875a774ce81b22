"""Heat maps: capabilities of models, flips from model to model, and signed effects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    CHAR_PX,
    Palette,
    apart,
    base_layout,
    fitting,
    note,
    plain,
    room,
)


@dataclass(frozen=True, slots=True)
class HeatView:
    """A matrix to colour.

    Attributes:
        rows, columns: Labels, first row on top.
        values: (r, c); NaN is left blank.
        texts: (r, c) what each cell says.
        hover: (r, c) what it says when pointed at.
        limits: Values of the two ends of the scale; symmetric ones make it two-coloured.
        x_title, y_title: Above the columns and beside the rows, '' for none.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: FloatArray
    texts: tuple[tuple[str, ...], ...]
    hover: tuple[tuple[str, ...], ...]
    limits: tuple[float, float]
    x_title: str = ""
    y_title: str = ""


#: One of them has 4.5:1 on any colour, which ink and surface of a theme have not.
_FONTS = ("#000000", "#FFFFFF")
#: Characters of a line of a broken name and of all its lines, and the most columns with lines.
_LINE, _LONGEST, _MOST_BROKEN = 12, 32, 4


def heat_figure(
    view: HeatView, colors: Palette, *, row_height: int = 38, width: int = 880
) -> go.Figure:
    """Cells coloured by value, each with its number; columns are named on top.

    Args:
        width: Pixels that the figure has in a window of 1,280: names are fitted to them.
    """
    signed = view.limits[0] < 0
    title = 24 if view.x_title else 0
    wide = room(view.rows, 196)
    left = wide + (48 if view.y_title else 24)
    names, above = _columns(view, (width - left - 12) / max(len(view.columns), 1))
    height = row_height * len(view.rows) + 12 + above + title
    layout = base_layout(colors, height=height, x=view.x_title, y=view.y_title)
    layout["margin"] = {"l": left, "r": 12, "t": above + title, "b": 8}
    layout["xaxis"] |= {"side": "top", "showgrid": False, **names}
    layout["yaxis"] |= {"autorange": "reversed", "showgrid": False}
    layout["yaxis"] |= _labels(view.rows, wide, view.columns)
    layout["annotations"] = _numbers(view, colors, signed)
    trace = {
        "type": "heatmap",
        "x": list(range(len(view.columns))),
        "y": list(range(len(view.rows))),
        "z": view.values,
        "zmin": view.limits[0],
        "zmax": view.limits[1],
        "colorscale": _scale(colors, signed),
        "showscale": False,
        "xgap": 3,
        "ygap": 3,
        "hoverongaps": False,
        "customdata": [list(row) for row in view.hover],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    return go.Figure({"data": [trace], "layout": layout})


def _labels(names: tuple[str, ...], wide: float, among: tuple[str, ...]) -> dict[str, Any]:
    return {"tickvals": list(range(len(names))), "ticktext": fitting(names, wide, among)}


def _columns(view: HeatView, each: float) -> tuple[dict[str, Any], int]:
    """The ticks of columns `each` pixels wide, and the height they need: long names are broken."""
    names = view.columns
    wide = room(names, 196)
    ticks = _labels(names, wide, view.rows)
    if room(names, 1000) + 12 <= min(each, 16 * CHAR_PX + 12):
        return ticks, 36
    short = apart((*names, *view.rows), _LONGEST)
    lines = [_broken(short[name]) for name in names]
    widest = CHAR_PX * max(len(line) for name in lines for line in name) + 8
    if len(names) > _MOST_BROKEN or widest > each:
        return {**ticks, "tickangle": -90}, wide + 16
    texts = ["<br>".join(map(plain, one)) for one in lines]
    return {**ticks, "ticktext": texts, "tickangle": 0}, 20 + 17 * max(map(len, lines))


def _broken(name: str) -> list[str]:
    """A name in lines, broken behind its hyphens and the like."""
    lines = [""]
    for part in re.findall(r"[^-_/ ]*[-_/ ]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > _LINE:
            lines.append("")
        lines[-1] += part
    return lines


def _scale(colors: Palette, signed: bool) -> list[list[Any]]:
    if not signed:
        return [[0.0, _mixed(colors.accent, colors.surface, 0.06)], [1.0, colors.accent]]
    middle = _mixed(colors.ink, colors.surface, 0.05)
    return [[0.0, colors.warn], [0.5, middle], [1.0, colors.accent]]


def _numbers(view: HeatView, colors: Palette, signed: bool) -> list[dict[str, Any]]:
    """The cells' texts, each in the colour that stands out more from its cell."""
    low, high = view.limits
    span = (high - low) or 1.0
    notes = []
    for y, row in enumerate(view.texts):
        for x, text in enumerate(row):
            value = view.values[y, x]
            at = float(np.clip((value - low) / span, 0, 1))
            cell = colors.surface if np.isnan(value) else _shade(_scale(colors, signed), at)
            font = max(_FONTS, key=lambda one: _contrast(one, cell))
            notes.append(note(x, y, plain(text), font))
    return notes


def _shade(scale: list[list[Any]], at: float) -> str:
    """The colour of a scale at a place in [0, 1]."""
    after = next(i for i in range(1, len(scale)) if at <= scale[i][0])
    (begin, low), (end, high) = scale[after - 1], scale[after]
    return _mixed(high, low, (at - begin) / (end - begin))


def _contrast(one: str, other: str) -> float:
    """How far two colours stand apart, 1 to 21 (WCAG 2.2, contrast ratio)."""
    dark, light = sorted(_luminance(color) for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _mixed(color: str, other: str, share: float) -> str:
    one, two = ([int(value[i : i + 2], 16) for i in (1, 3, 5)] for value in (color, other))
    return "#" + "".join(
        f"{round(share * a + (1 - share) * b):02X}" for a, b in zip(one, two, strict=True)
    )
