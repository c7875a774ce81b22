"""Values with their intervals: in rows with reference lines, after every day, by language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    dashed,
    fitting,
    legend_above,
    line_in_band,
    named_rows,
    plain,
    room,
    with_room,
)

if TYPE_CHECKING:
    from hydra_core.live.flight.effects import Effect


@dataclass(frozen=True, slots=True)
class Series:
    """One value per row (l,) in a `Palette` colour; without bounds it is drawn as a star."""

    name: str
    value: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    tone: str = "accent"

    @classmethod
    def of(
        cls, name: str, found: Sequence[Interval], tone: str = "accent", scale: float = 1.0
    ) -> Series:
        """One interval per row, times a scale."""
        ends = scale * np.array([[one.value, one.lo, one.hi] for one in found], dtype=np.float64)
        value, low, high = ends.reshape(-1, 3).T
        return cls(name, value, low, high, tone)


@dataclass(frozen=True, slots=True)
class IntervalsView:
    """Named rows in drawing order.

    Attributes:
        unit: Behind ticks and values, e.g. " %".
        lines: (value, label) of reference lines.
        format: d3 format of values.
    """

    names: tuple[str, ...]
    series: tuple[Series, ...]
    title: str
    unit: str = ""
    format: str = ".1f"
    lines: Sequence[tuple[float, str]] = ()


#: A name, a value and its bounds.
Ranged = tuple[str, float, float, float]


def one_series(
    series: str,
    rows: Sequence[Ranged],
    title: str,
    unit: str = "",
    format: str = ".1f",
    lines: Sequence[tuple[float, str]] = (),
) -> IntervalsView:
    """One value with its bounds in each row; see `IntervalsView` for the rest."""
    values = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 3)
    names = tuple(row[0] for row in rows)
    return IntervalsView(names, (Series(series, *values.T),), title, unit, format, lines)


def ranged(name: str, interval: Interval, scale: float = 100.0) -> Ranged:
    """A row of `one_series`; an end that is not finite is not drawn."""
    return name, scale * interval.value, scale * interval.lo, scale * interval.hi


def intervals_figure(view: IntervalsView, colors: Palette) -> go.Figure:
    """One row per name; series beside each other within the row."""
    rows = len(view.names)
    layout = base_layout(colors, height=104 + 30 * rows, x=view.title)
    wide = room(view.names, 256)
    layout["margin"] = {"l": wide + 24, "r": 16, "t": 34, "b": 48}
    layout["yaxis"] |= named_rows(fitting(view.names, wide), colors)
    layout["yaxis"]["range"][0] += 0.6 if view.lines else 0.0  # room for the lines' names
    layout["xaxis"] |= {"range": _range(view), "ticksuffix": view.unit, "tickangle": 0}
    layout["xaxis"]["nticks"] = 5 if wide > 112 else 9  # what is left for them when it is narrow
    layout |= {
        "shapes": [
            dashed((value, value), (0, 1), colors, yref="paper", layer="below")
            for value, _ in view.lines
        ],
        "annotations": _names(view, colors),
        "showlegend": len(view.series) > 1,
        "legend": legend_above(colors.muted),
    }
    beside = [one for one in view.series if one.low is not None]
    traces = []
    for one in view.series:
        shift = 0.0 if one.low is None else (beside.index(one) - (len(beside) - 1) / 2) * 0.3
        traces.append(_trace(view, one, shift, getattr(colors, one.tone)))
    return go.Figure({"data": traces, "layout": layout})


def _range(view: IntervalsView) -> list[float]:
    parts = [[value for value, _ in view.lines]]
    for one in view.series:
        parts += [v.tolist() for v in (one.value, one.low, one.high) if v is not None]
    return with_room([value for part in parts for value in part], 0.05)


def _names(view: IntervalsView, colors: Palette) -> list[dict[str, Any]]:
    """The lines' names, to the right unless they would be cut there; of two near lines outwards."""
    low, high = _range(view)
    lines = []
    for value, text in view.lines:
        gaps = [(other - value) / (high - low) for other, _ in view.lines if other != value]
        near = next((gap for gap in gaps if abs(gap) < 0.4), 0.0)
        left = near > 0 if near else value - low > 0.7 * (high - low)
        lines.append({
            "x": value, "y": 0, "yref": "paper", "yanchor": "bottom",
            "xanchor": "right" if left else "left", "xshift": -4 if left else 4,
            "showarrow": False, "text": plain(text), "font": {"color": colors.muted, "size": 12},
        })  # fmt: skip
    return lines


def _trace(view: IntervalsView, one: Series, shift: float, color: str) -> dict[str, Any]:
    shown = f"%{{x:{view.format}}}{view.unit}"
    trace: dict[str, Any] = {
        "type": "scatter", "mode": "markers", "name": one.name, "x": one.value,
        "y": np.arange(len(view.names)) + shift,
        "text": [plain(name) for name in view.names],
        "marker": {"size": 9, "color": color},
        "hovertemplate": f"<b>%{{text}}</b><br>{plain(one.name)} {shown}<extra></extra>",
    }  # fmt: skip
    if one.low is None or one.high is None:
        trace["marker"] = {"size": 13, "symbol": "star", "color": color}
        return trace
    low, high = (np.where(np.isfinite(v), v, one.value) for v in (one.low, one.high))
    trace["error_x"] = {
        "type": "data", "symmetric": False, "array": high - one.value,
        "arrayminus": one.value - low, "color": color, "thickness": 1.8, "width": 0,
    }  # fmt: skip
    return trace


def effect_by_day_figure(
    days: Sequence[str], effect: Effect, metric: str, colors: Palette, *, valid: bool
) -> go.Figure:
    """A metric's change after each day in a band that narrows, over the line of no change.

    Args:
        effect: (days,) NaN where there were too few units.
        valid: Whether any day may be the last one; a fixed reading holds for the end alone.
    """
    parts = (effect.relative, effect.relative_lo, effect.relative_hi)
    value, low, high = (100.0 * np.asarray(part, dtype=float) for part in parts)
    layout = base_layout(colors, height=360, y=plain(f"Change of {metric.lower()}, %"))
    layout["margin"] |= {"l": 64, "t": 16}
    layout["yaxis"] |= {"range": _effect_range(low, high), "ticksuffix": " %"}
    layout["xaxis"] |= {"showgrid": False, "nticks": 8, "type": "category"}
    layout["shapes"] = [dashed((0, 1), (0, 0), colors, xref="paper")]
    tone = colors.accent if valid else colors.warn
    traces = line_in_band(
        tuple(days), value, low, high, tone,
        mode="lines+markers", marker={"size": 6, "color": tone},
        customdata=np.column_stack([low, high, effect.units]),
        hovertemplate="<b>%{x}</b><br>%{y:+.1f} % [%{customdata[0]:+.1f}, %{customdata[1]:+.1f}]"
        "<br>%{customdata[2]:,.0f} units<extra></extra>",
    )  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


def _effect_range(lows: FloatArray, highs: FloatArray) -> list[float]:
    """Room for all but the widest first days, and for no change."""
    known = np.isfinite(lows) & np.isfinite(highs)
    if not known.any():
        return [-1.0, 1.0]
    low = min(0.0, float(np.quantile(lows[known], 0.1)))
    high = max(0.0, float(np.quantile(highs[known], 0.9)))
    return with_room([low, high], 0.06)


def languages_figure(frame: pd.DataFrame, overall: float, colors: Palette) -> go.Figure:
    """One row per language of a `language_table`: QR with its interval, and `overall` in %."""
    qr, low, high = frame[["qr", "qr_lo", "qr_hi"]].to_numpy(np.float64).T
    height = 84 + 26 * len(frame)
    figure = go.Figure(layout=base_layout(colors, height=height))
    wide = room(list(frame["policy"]), 196)
    figure.update_layout(margin={"l": max(wide + 64, 190), "t": 28})
    tint = np.where(frame["small"], colors.warn, colors.accent)
    names = [
        f"{name}  <i>n {n}</i>"
        for name, n in zip(fitting(frame["policy"], wide), frame["n"], strict=True)
    ]
    for i in range(len(names)):
        figure.add_scatter(
            x=[low[i], high[i]], y=[i, i], mode="lines", hoverinfo="skip",
            line={"color": tint[i], "width": 5}, opacity=0.35,
        )  # fmt: skip
    figure.add_scatter(
        x=qr,
        y=list(range(len(names))),
        mode="markers",
        marker={"size": 10, "color": tint.tolist()},
        text=[plain(name) for name in frame["policy"]],
        customdata=[
            "" if np.isnan(a) else f" [{a:.1f}, {b:.1f}]" for a, b in zip(low, high, strict=True)
        ],
        hovertemplate="<b>%{text}</b><br>QR %{x:.1f} %%{customdata}<extra></extra>",
    )
    figure.add_vline(x=overall, line={"color": colors.muted, "width": 1.5, "dash": "dash"})
    figure.add_annotation(
        x=overall, y=1, yref="paper", yanchor="bottom", showarrow=False,
        text=f"all {overall:.1f} %", font={"color": colors.muted, "size": 13},
    )  # fmt: skip
    figure.update_yaxes(named_rows(names, colors))
    figure.update_xaxes(
        title_text="Quality retention (QR), 95 % interval",
        ticksuffix=" %",
        range=with_room([qr, low, high, np.full(len(qr), overall)], 0.04),
    )
    return figure
