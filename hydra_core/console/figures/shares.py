"""By model: traffic over the knob, over time and around a change, and what benchmarks add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    drawn,
    model_colors,
    plain,
    row_a_model,
    tint,
)


@dataclass(frozen=True, slots=True)
class SharesView:
    """Traffic shares: `knob` (t,) ascending, `shares` (t, m) with rows that sum to 1.

    Attributes:
        models: (m,) ids in the pool's cost order, cheapest first; variants side by side.
        knob: tau, or V in USD.
        selected: Where the policy stands on it.
        value: Whether the knob is V, which is drawn by its logarithm.
        bases: (m,) what each model is a variant of; empty where none is.
    """

    models: tuple[str, ...]
    knob: FloatArray
    shares: FloatArray
    selected: float
    value: bool = False
    bases: tuple[str, ...] = ()


def shares_figure(view: SharesView, colors: Palette) -> go.Figure:
    """Stacked areas of traffic by model over the knob, with a line where the policy stands."""
    by_model = model_colors(view.models, colors)
    grouped = len(set(view.bases)) < len(view.bases)
    layout = base_layout(colors, height=330)
    at, name = view.selected, f"τ {view.selected:.4g}"
    title = "τ, largest acceptable shortfall"
    layout["xaxis"] |= {"range": [0, view.knob[-1]]}
    if view.value:
        at, name = float(np.log10(view.selected)), f"V ${view.selected:.4g}"
        title = "V, what one more resolved query is worth, USD"
        ends = np.log10(view.knob[[0, -1]])
        layout["xaxis"] |= {"range": list(ends), "type": "log", "tickprefix": "$", "dtick": 1}
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": title}
    layout["yaxis"] |= {"range": [0, 100], "ticksuffix": " %"}
    layout["yaxis"]["title"] = {**layout["yaxis"]["title"], "text": "Traffic"}
    layout |= {
        "margin": {"l": 70, "r": 190, "t": 28, "b": 52},
        "hovermode": "x unified",
        "showlegend": True,
        "legend": {
            "x": 1.01, "y": 1, "traceorder": "grouped" if grouped else "reversed",
            "tracegroupgap": 3, "itemclick": False,
            "font": {"color": colors.ink, "size": 13}, "itemdoubleclick": False,
        },
        "shapes": [
            {
                "type": "line", "x0": view.selected, "x1": view.selected, "y0": 0, "y1": 1,
                "yref": "paper", "line": {"color": colors.ink, "width": 2},
            }
        ],
        "annotations": [
            {
                "x": at, "y": 1, "yref": "paper", "yanchor": "bottom",
                "showarrow": False, "text": f"<b>{name}</b>",
                "font": {"color": colors.ink, "size": 13},
            }
        ],
    }  # fmt: skip
    even = not view.value  # then where it begins and how far it steps says it all
    place = {"x0": 0.0, "dx": float(view.knob[1])} if even else {"x": drawn(view.knob)}
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            **place,
            "y": drawn(view.shares[:, i] * 100),
            "name": plain(model),
            "stackgroup": "traffic",
            "line": {"width": 0.5, "color": colors.surface},
            "fillcolor": tint(by_model[model], 0.78),
            "hovertemplate": "%{y:.1f} %",
            **(_family(view.bases, i) if grouped else {}),
        }
        for i, model in enumerate(view.models)
    ]
    return go.Figure({"data": traces, "layout": layout})


def _family(bases: Sequence[str], i: int) -> dict[str, object]:
    """A model's place in the legend, the highest area first; levels under their base's name."""
    rank: dict[str, object] = {"legendrank": 1000 - i}
    if bases.count(bases[i]) < 2:
        return rank
    title = {"text": f"{plain(bases[i])}, by effort", "font": {"size": 13}}
    return {**rank, "legendgroup": bases[i], "legendgrouptitle": title}


@dataclass(frozen=True, slots=True)
class TimelineView:
    """Decisions in bars of equal width.

    Attributes:
        starts: (t,) beginnings, UTC.
        width_s: Width of a bar.
        names: (m,) models or reasons, in drawing order.
        counts: (t, m).
    """

    starts: Sequence[datetime]
    width_s: int
    names: tuple[str, ...]
    counts: IntArray


def timeline_figure(view: TimelineView, colors: Palette) -> go.Figure:
    """Stacked bars over time, one colour a name."""
    by_name = model_colors(view.names, colors)
    layout = base_layout(colors, height=300)
    layout["yaxis"]["title"] = {**layout["yaxis"]["title"], "text": "Decisions"}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6}
    layout["xaxis"] |= {"type": "date", "showgrid": False, "nticks": 8}
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": "UTC"}
    layout |= {
        "barmode": "stack", "bargap": 0.12, "showlegend": True, "hovermode": "x unified",
        "margin": {"l": 64, "r": 12, "t": 34, "b": 50},
        "legend": {
            "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal",
            "itemclick": False, "itemdoubleclick": False,
            "font": {"color": colors.ink, "size": 13},
        },
    }  # fmt: skip
    middle = [start.timestamp() * 1e3 + 500 * view.width_s for start in view.starts]
    traces = [
        {
            "type": "bar", "x": middle, "y": view.counts[:, i], "name": plain(name),
            "width": 900 * view.width_s, "marker": {"color": tint(by_name[name], 0.85)},
            "hovertemplate": "%{y:,}",
        }
        for i, name in enumerate(view.names)
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


@dataclass(frozen=True, slots=True)
class ContributionsView:
    """Terms of one dimension's raw capability: `values` (m, B), NaN where there is no rate."""

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    values: FloatArray


def contributions_figure(view: ContributionsView, colors: Palette) -> go.Figure:
    """One stacked bar per model, one part per benchmark, their sum at the end."""
    layout = base_layout(colors, height=36 * len(view.models) + 70)
    row_a_model(layout, view.models, right=170, below=50)
    layout["xaxis"]["title"] = {**layout["xaxis"]["title"], "text": "Raw capability"}
    layout |= {
        "barmode": "stack",
        "bargap": 0.35,
        "showlegend": True,
        "legend": {
            "x": 1.12, "y": 1, "traceorder": "normal", "itemclick": False,
            "itemdoubleclick": False, "font": {"size": 13, "color": colors.ink},
        },
    }  # fmt: skip
    totals = np.nansum(view.values, axis=1)
    layout["annotations"] = [
        {
            "x": total, "y": i, "xanchor": "left", "xshift": 6, "showarrow": False,
            "text": "no rates" if np.isnan(view.values[i]).all() else f"{total:.3f}",
            "font": {"color": colors.ink, "size": 13},
        }
        for i, total in enumerate(totals)
    ]  # fmt: skip
    traces = [
        {
            "type": "bar", "orientation": "h", "name": plain(benchmark),
            "x": np.nan_to_num(view.values[:, b]), "y": list(range(len(view.models))),
            "marker": {"color": colors.models[b % len(colors.models)]},
            "hovertemplate": f"<b>{plain(benchmark)}</b> %{{x:.4f}}<extra></extra>",
        }
        for b, benchmark in enumerate(view.benchmarks)
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


@dataclass(frozen=True, slots=True)
class TrafficView:
    """Shares in percent (m,) before and after; models cheapest first."""

    models: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    before_name: str
    after_name: str


def traffic_figure(view: TrafficView, colors: Palette) -> go.Figure:
    """One line per model from its share before (ring) to its share after (dot)."""
    layout = base_layout(colors, height=34 * len(view.models) + 92)
    row_a_model(layout, view.models, right=64, below=60)
    layout["xaxis"] |= {
        "range": [-5, 104],
        "ticksuffix": " %",
        "tickvals": [0, 25, 50, 75, 100],
        "tickangle": 0,
    }
    layout["showlegend"] = True
    layout["legend"] = {
        "orientation": "h", "y": -0.02, "yref": "container", "yanchor": "bottom", "x": 0,
        "itemclick": False, "itemdoubleclick": False, "font": {"size": 13, "color": colors.ink},
    }  # fmt: skip
    rows = range(len(view.models))
    layout["shapes"] = [
        {
            "type": "line", "x0": view.before[i], "x1": view.after[i], "y0": i, "y1": i,
            "line": {"color": colors.muted, "width": 2}, "layer": "below",
        }
        for i in rows
    ]  # fmt: skip
    layout["annotations"] = [
        {
            "x": max(view.before[i], view.after[i]), "y": i, "xanchor": "left", "xshift": 10,
            "text": _change_in_words(view.before[i], view.after[i]), "showarrow": False,
            "font": {"color": colors.ink, "size": 13},
        }
        for i in rows
    ]  # fmt: skip
    marks = (
        (view.before_name, view.before, "circle-open", colors.muted, 11),
        (view.after_name, view.after, "circle", colors.accent, 11),
    )
    traces = [
        {
            "type": "scatter", "mode": "markers", "name": plain(name), "x": values,
            "y": list(rows), "cliponaxis": False, "text": [plain(m) for m in view.models],
            "marker": {"symbol": symbol, "color": color, "size": size, "line": {"width": 2}},
            "hovertemplate": f"<b>%{{text}}</b><br>{plain(name)} %{{x:.1f}} %<extra></extra>",
        }
        for name, values, symbol, color, size in marks
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


def _change_in_words(before: float, after: float) -> str:
    if abs(before - after) < 0.05:
        return f"{after:.1f}"
    return f"{before:.1f} → {after:.1f}"
