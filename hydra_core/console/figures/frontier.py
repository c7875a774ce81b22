"""The frontier plot: router curve, single models, their hull, oracle, operating point, pin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray
from hydra_core.console.figures.labels import Label, label_notes, longest, place
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    clickable,
    drawn,
    fitting,
    legend_above,
    model_colors,
    plain,
    tint,
    with_room,
)

#: Points along the curve that can be hovered over and clicked.
_TARGETS = 160
_MARGIN = {"l": 66, "r": 16, "t": 26, "b": 46}

Range = Sequence[float]


@dataclass(frozen=True, slots=True)
class AxisSpec:
    """An axis: its title and d3 format with affixes for ticks and hover, e.g. "$", ".3f", ""."""

    title: str
    format: str
    prefix: str = ""
    suffix: str = ""

    def hover(self, variable: str) -> str:
        """The piece of a plotly hovertemplate that shows `x` or `y` with its unit."""
        return f"{self.prefix}%{{{variable}:{self.format}}}{self.suffix}"


@dataclass(frozen=True, slots=True)
class Spot:
    """One labelled point in axis units."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class CurveLine:
    """A policy's curve in axis units: x, y and the knob (tau or V) of every point, all (p,)."""

    x: FloatArray
    y: FloatArray
    knob: FloatArray
    name: str = "Router, every τ"


@dataclass(frozen=True, slots=True)
class CurveBandView:
    """The 95 % band around a curve in axis units, position by position, all (p,)."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    name: str = "95 % band over every τ"


@dataclass(frozen=True, slots=True)
class FrontierView:
    """Everything on the frontier plot, in axis units.

    Attributes:
        curve: The router for every setting of its knob.
        selected: The current operating point.
        models: Every single model, in the pool's cost order.
        hull: (h, 2) upper hull of the single models, ascending in x.
        band: Around `curve`, holding for every setting at once.
        oracle: The cheapest choice that resolves what any model resolves.
        pinned: A policy to compare with, and its curve where it differs from `curve`.
        beside: The curve of the other rule.
        imported: Other routers' decisions.
        knob: Before and after a knob's value on hover, as a d3 template: "τ %s".
    """

    x_axis: AxisSpec
    y_axis: AxisSpec
    curve: CurveLine
    selected: Spot
    models: tuple[Spot, ...]
    hull: FloatArray
    band: CurveBandView | None = None
    oracle: Spot | None = None
    pinned: Spot | None = None
    pinned_curve: CurveLine | None = None
    beside: CurveLine | None = None
    imported: tuple[Spot, ...] = ()
    knob: str = "τ %s"

    @property
    def curves(self) -> list[CurveLine]:
        """All curves of knobs that are drawn."""
        return [one for one in (self.curve, self.pinned_curve, self.beside) if one is not None]


def frontier_figure(
    view: FrontierView, colors: Palette, *, height: int = 440, width: int = 560
) -> go.Figure:
    """The plot of a `FrontierView`; the points of the curve carry the knob in `customdata`.

    Args:
        height: Of the whole figure in pixels.
        width: Of the plot area that labels are laid out for; a wider one only gains room.
    """
    x_range, y_range = _ranges(view)
    layout = base_layout(colors, height=height, x=view.x_axis.title, y=view.y_axis.title)
    for name, axis, bounds in (("xaxis", view.x_axis, x_range), ("yaxis", view.y_axis, y_range)):
        layout[name] |= {
            "range": bounds,
            "tickprefix": axis.prefix,
            "ticksuffix": axis.suffix,
            "tickformat": axis.format if axis.prefix else None,
            "nticks": 8,
        }
    area = (float(width), float(height - _MARGIN["t"] - _MARGIN["b"]))
    layout |= {
        "margin": _MARGIN,
        "clickmode": "event+select",
        "annotations": _labels(view, colors, (x_range, y_range), area),
        "showlegend": True,
        "legend": legend_above(colors.muted),
    }
    return go.Figure({"data": [*_lines(view, colors), *_points(view, colors)], "layout": layout})


def _lines(view: FrontierView, colors: Palette) -> list[dict[str, Any]]:
    """Hull, the pinned policy's curve, the other rule's, the router's and its click targets."""
    traces = [
        _line(view.hull[:, 0], view.hull[:, 1], "Mix of single models", colors.muted, 1.5, "dash")
    ]
    if view.band is not None and view.band.x.size:
        traces.insert(0, _band(view.band, colors))
    if view.pinned_curve is not None:
        ghost = view.pinned_curve
        traces.append(_line(ghost.x, ghost.y, "Pinned policy", colors.ghost, 2, "dot"))
    curve, other = view.curve, view.beside
    if other is not None:
        traces.append(_line(other.x, other.y, other.name, colors.warn, 2, "solid"))
    traces.append(_line(curve.x, curve.y, curve.name, colors.accent, 3, "solid"))
    return [*traces, _targets(view, colors)]


def _line(
    x: FloatArray, y: FloatArray, name: str, color: str, width: float, dash: str
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "x": drawn(x), "y": drawn(y), "name": name,
        "hoverinfo": "skip", "line": {"color": color, "width": width, "dash": dash},
    }  # fmt: skip


def _band(band: CurveBandView, colors: Palette) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "fill": "toself", "hoverinfo": "skip",
        "x": drawn(np.concatenate([band.x, band.x[::-1]])),
        "y": drawn(np.concatenate([band.high, band.low[::-1]])),
        "name": band.name, "line": {"width": 0},
        "fillcolor": tint(colors.accent, 0.13),
    }  # fmt: skip


def _targets(view: FrontierView, colors: Palette) -> dict[str, Any]:
    """Invisible points along the router's curve to hover over and to click."""
    some = slice(None, None, -(-view.curve.x.size // _TARGETS))
    knob = view.knob % "%{customdata:.4~g}"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "knob",
        "x": drawn(view.curve.x[some]),
        "y": drawn(view.curve.y[some]),
        "customdata": view.curve.knob[some],
        "hovertemplate": f"<b>{knob}</b><br>{view.y_axis.hover('y')}<br>"
        f"{view.x_axis.hover('x')}<br><i>click to set</i><extra></extra>",
        "showlegend": False,
        **clickable(0, color=colors.accent, size=9),
    }


def _points(view: FrontierView, colors: Palette) -> list[dict[str, Any]]:
    """Single models, imported policies, oracle, pin and the operating point."""
    tints = model_colors([spot.label for spot in view.models], colors)
    traces = [_marker(view, view.models, {"size": 11, "color": [*tints.values()]})]
    if view.imported:
        square = {"size": 12, "symbol": "square", "color": colors.warn}
        traces.append(_marker(view, view.imported, square))
    if view.oracle is not None:
        star = {"size": 16, "symbol": "star", "color": colors.oracle}
        traces.append(_marker(view, [view.oracle], star))
    if view.pinned is not None:
        pin = {"size": 13, "symbol": "diamond", "color": colors.ghost}
        traces.append(_marker(view, [view.pinned], pin))
    ring = {"size": 19, "color": colors.surface, "line": {"color": colors.accent, "width": 5}}
    # its name is how the live knob finds it on the page
    return [*traces, {**_marker(view, [view.selected], ring), "name": "operating point"}]


def _marker(view: FrontierView, spots: Sequence[Spot], marker: dict[str, Any]) -> dict[str, Any]:
    hover = f"<b>%{{text}}</b><br>{view.y_axis.hover('y')}<br>{view.x_axis.hover('x')}"
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [spot.x for spot in spots],
        "y": [spot.y for spot in spots],
        "text": [plain(spot.label) for spot in spots],
        **clickable(1, **marker),
        "hovertemplate": hover + "<extra></extra>",
        "cliponaxis": False,
        "showlegend": False,
    }


def _ranges(view: FrontierView) -> tuple[Range, Range]:
    """Axis ranges that hold everything with room for labels, and do not move with tau."""
    spots = [*view.models, *view.imported, *([view.oracle] if view.oracle else [])]
    bounds = []
    for values, lines, room in (
        ([s.x for s in spots], [one.x for one in view.curves], 0.07),
        ([s.y for s in spots], [one.y for one in view.curves], 0.09),
    ):
        bounds.append(with_room(np.concatenate([values, *lines]), room))
    return bounds[0], bounds[1]


def _labels(
    view: FrontierView, colors: Palette, ranges: tuple[Range, Range], area: tuple[float, float]
) -> list[dict[str, Any]]:
    """Annotations that name every point and cover neither each other nor a line."""

    def pixels(x: FloatArray, y: FloatArray) -> FloatArray:
        scaled = [
            (values - low) / (high - low) * size
            for values, (low, high), size in zip((x, y), ranges, area, strict=True)
        ]
        return np.stack(scaled, axis=1)

    spots = [*view.models, *view.imported]
    spots += [spot for spot in (view.oracle, view.pinned) if spot is not None]
    spots.append(view.selected)
    at = pixels(np.asarray([s.x for s in spots]), np.asarray([s.y for s in spots]))
    sizes = [1.0] * (len(spots) - 1) + [1.3]
    names = fitting([spot.label for spot in spots], longest(len(spots)))
    labels = [
        Label(name, float(x), float(y), size)
        for name, (x, y), size in zip(names, at, sizes, strict=True)
    ]
    dashes = np.linspace(0.0, 1.0, 120) * (len(view.hull) - 1)
    steps = np.arange(len(view.hull))
    hull = [np.interp(dashes, steps, view.hull[:, side]) for side in (0, 1)]
    some = [(one, slice(None, None, max(one.x.size // 150, 1))) for one in view.curves]
    lines = [pixels(*hull), *(pixels(one.x[part], one.y[part]) for one, part in some)]
    plain_font = {"color": colors.ink, "size": 13}
    fonts: list[dict[str, Any]] = [plain_font] * (len(spots) - 1)
    fonts.append({"color": colors.accent, "size": 16, "weight": 700})
    placed = place(labels, np.concatenate(lines), *area)
    return label_notes(labels, placed, [(s.x, s.y) for s in spots], fonts, colors.muted)
