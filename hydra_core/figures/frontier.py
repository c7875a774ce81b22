"""The frontier plot: router curve, single models, their hull, oracle, operating point, pin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from hydra_core.figures.labels import Label, place
from hydra_core.figures.theme import FONT, Palette, base_layout, model_colors, plain
from hydra_core.types import FloatArray

__all__ = ["AxisSpec", "CurveLine", "FrontierView", "Spot", "frontier_figure"]

#: Size of the plot area the labels are laid out for, in pixels; wider screens only gain room.
_LAYOUT_WIDTH = 560.0
_TARGETS = 250


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
    """One labelled point in axis units; `tau` only where a policy stands behind it."""

    label: str
    x: float
    y: float
    tau: float | None = None


@dataclass(frozen=True, slots=True)
class CurveLine:
    """A policy's curve in axis units: x, y and the tau of every point, all (p,)."""

    x: FloatArray
    y: FloatArray
    tau: FloatArray


@dataclass(frozen=True, slots=True)
class FrontierView:
    """Everything on the frontier plot, in axis units.

    Attributes:
        curve: The router for every tau.
        selected: The current operating point.
        models: Every single model, in the pool's cost order.
        hull: (h, 2) upper hull of the single models, ascending in x.
        oracle: The cheapest choice that resolves what any model resolves.
        pinned: A policy to compare with, and its curve where it differs from `curve`.
    """

    x_axis: AxisSpec
    y_axis: AxisSpec
    curve: CurveLine
    selected: Spot
    models: tuple[Spot, ...]
    hull: FloatArray
    oracle: Spot | None = None
    pinned: Spot | None = None
    pinned_curve: CurveLine | None = None


def frontier_figure(view: FrontierView, colors: Palette, *, height: int = 400) -> go.Figure:
    """The plot of a `FrontierView`; the points of the curve carry tau in `customdata`."""
    x_range, y_range = _ranges(view)
    figure = go.Figure(layout=base_layout(colors, height=height))
    figure.add_traces(_lines(view, colors))
    figure.add_traces(_points(view, colors, x_range, y_range, height))
    for update, axis, bounds in (
        (figure.update_xaxes, view.x_axis, x_range),
        (figure.update_yaxes, view.y_axis, y_range),
    ):
        update(
            title_text=axis.title,
            range=bounds,
            tickprefix=axis.prefix,
            ticksuffix=axis.suffix,
            tickformat=axis.format if axis.prefix else None,
            nticks=8,
        )
    figure.update_layout(
        showlegend=True,
        legend={
            "orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "xanchor": "left",
            "font": {"size": 13, "color": colors.muted}, "bgcolor": "rgba(0,0,0,0)",
            "itemclick": False, "itemdoubleclick": False,
        },
        clickmode="event+select",
    )  # fmt: skip
    return figure


def _lines(view: FrontierView, colors: Palette) -> list[go.Scatter]:
    """Hull, the pinned policy's curve and the router's, back to front."""
    traces = [
        go.Scatter(
            x=view.hull[:, 0], y=view.hull[:, 1], mode="lines", name="Mix of single models",
            line={"color": colors.muted, "width": 1.5, "dash": "dash"}, hoverinfo="skip",
        )
    ]  # fmt: skip
    if view.pinned_curve is not None:
        line = view.pinned_curve
        traces.append(
            go.Scatter(
                x=line.x, y=line.y, mode="lines", name="Pinned policy", hoverinfo="skip",
                line={"color": colors.ghost, "width": 2, "dash": "dot"},
            )
        )  # fmt: skip
    line = view.curve
    traces.append(
        go.Scatter(
            x=line.x, y=line.y, mode="lines", name="Router, every τ", hoverinfo="skip",
            line={"color": colors.accent, "width": 3},
        )
    )  # fmt: skip
    return [*traces, _targets(view, colors)]


def _targets(view: FrontierView, colors: Palette) -> go.Scatter:
    """Invisible points along the router's curve to hover over and to click."""
    hover = (
        f"<b>τ %{{customdata:.4~f}}</b><br>{view.y_axis.hover('y')}<br>{view.x_axis.hover('x')}"
        "<br><i>click to set</i><extra></extra>"
    )
    invisible = {"marker": {"opacity": 0}}
    some = slice(None, None, max(view.curve.x.size // _TARGETS, 1))
    return go.Scatter(
        x=view.curve.x[some], y=view.curve.y[some], customdata=view.curve.tau[some],
        mode="markers", marker={"color": colors.accent, "size": 9, "opacity": 0},
        selected=invisible, unselected=invisible, hovertemplate=hover, showlegend=False,
    )  # fmt: skip


def _points(
    view: FrontierView,
    colors: Palette,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: int,
) -> list[go.Scatter]:
    """Single models, oracle, pin and the operating point with labels that do not collide."""
    spots = [*view.models]
    spots += [spot for spot in (view.oracle, view.pinned, view.selected) if spot is not None]
    sides = _sides(view, spots, x_range, y_range, float(height) - 70.0)
    by_model = model_colors(tuple(spot.label for spot in view.models), colors)
    traces = [_marker(view, spots[: len(view.models)], sides, [*by_model.values()], size=11)]
    rest = iter(sides[len(view.models) :])
    if view.oracle is not None:
        side, tint = [next(rest)], [colors.oracle]
        traces.append(_marker(view, [view.oracle], side, tint, size=16, symbol="star"))
    if view.pinned is not None:
        side, tint = [next(rest)], [colors.ghost]
        traces.append(_marker(view, [view.pinned], side, tint, size=13, symbol="diamond"))
    point = _marker(view, [view.selected], [next(rest)], [colors.surface], size=19)
    point.marker.line = {"color": colors.accent, "width": 5}
    point.textfont = {"color": colors.accent, "size": 15, "family": FONT, "weight": 700}
    traces.append(point)
    return traces


def _marker(
    view: FrontierView,
    spots: Sequence[Spot],
    sides: Sequence[str],
    colors: Sequence[str],
    *,
    size: int,
    symbol: str = "circle",
) -> go.Scatter:
    hover = f"<b>%{{text}}</b><br>{view.y_axis.hover('y')}<br>{view.x_axis.hover('x')}"
    return go.Scatter(
        x=[spot.x for spot in spots],
        y=[spot.y for spot in spots],
        text=[plain(spot.label) for spot in spots],
        textposition=list(sides[: len(spots)]),
        mode="markers+text",
        marker={"size": size, "symbol": symbol, "color": list(colors[: len(spots)]), "opacity": 1},
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
        hovertemplate=hover + "<extra></extra>",
        cliponaxis=False,
        showlegend=False,
    )


def _ranges(view: FrontierView) -> tuple[tuple[float, float], tuple[float, float]]:
    """Axis ranges that hold everything with room for labels, and do not move with tau."""
    spots = [*view.models, *([view.oracle] if view.oracle else [])]
    ghost = view.pinned_curve or view.curve
    bounds = []
    for values, curve, other, room in (
        ([s.x for s in spots], view.curve.x, ghost.x, 0.07),
        ([s.y for s in spots], view.curve.y, ghost.y, 0.09),
    ):
        every = np.concatenate([values, curve, other])
        low, high = float(every.min()), float(every.max())
        pad = room * ((high - low) or abs(high) or 1.0)
        bounds.append((low - pad, high + pad))
    return bounds[0], bounds[1]


def _sides(
    view: FrontierView,
    spots: Sequence[Spot],
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    height: float,
) -> list[str]:
    """A text position for every spot; lines count as obstacles."""

    def pixels(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.stack(
            [
                (x - x_range[0]) / (x_range[1] - x_range[0]) * _LAYOUT_WIDTH,
                (y - y_range[0]) / (y_range[1] - y_range[0]) * height,
            ],
            axis=1,
        )

    every = max(view.curve.x.size // 150, 1)
    dashes = np.linspace(0.0, 1.0, 120) * (len(view.hull) - 1)
    steps = np.arange(len(view.hull))
    lines = [
        pixels(view.curve.x[::every], view.curve.y[::every]),
        pixels(
            np.interp(dashes, steps, view.hull[:, 0]), np.interp(dashes, steps, view.hull[:, 1])
        ),
    ]
    at = pixels(np.asarray([s.x for s in spots]), np.asarray([s.y for s in spots]))
    labels = [Label(s.label, float(x), float(y)) for s, (x, y) in zip(spots, at, strict=True)]
    return place(labels, np.concatenate(lines), _LAYOUT_WIDTH, height)
