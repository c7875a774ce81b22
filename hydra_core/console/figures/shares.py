"""By model: traffic, what benchmarks add, and predicted against achieved success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from hydra_core.base.spelling import set_usd, short_number
from hydra_core.base.types import FloatArray
from hydra_core.console.figures.theme import (
    Palette,
    base_layout,
    dashed,
    drawn,
    fitting,
    legend,
    model_colors,
    note,
    plain,
    row_a_model,
    straight,
    tint,
)

if TYPE_CHECKING:
    from hydra_core.live.traffic import Timeline

#: How wide a name in the legend beside a plot may be.
_NAME_PX = 190


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
    at, name = view.selected, f"τ {short_number(view.selected)}"
    axis: dict[str, Any] = {"range": [0, view.knob[-1]]}
    title = "τ, largest acceptable shortfall"
    if view.value:
        at, name = float(np.log10(view.selected)), f"V {set_usd(view.selected)}"
        title = "V, what one more resolved query is worth, USD"
        ends = np.log10(view.knob[[0, -1]])
        axis = {"range": list(ends), "type": "log", "tickprefix": "$", "dtick": 1}
    layout = base_layout(colors, height=330, x=title, y="Traffic")
    layout["xaxis"] |= axis
    layout["yaxis"] |= {"range": [0, 100], "ticksuffix": " %"}
    layout |= {
        "margin": {"l": 70, "r": 190, "t": 28, "b": 52},
        "hovermode": "x unified",
        "showlegend": True,
        "legend": legend(
            colors.ink,
            x=1.01,
            y=1,
            traceorder="grouped" if grouped else "reversed",
            tracegroupgap=3,
        ),
        "shapes": [straight((view.selected, view.selected), (0, 1), colors.ink, 2, yref="paper")],
        "annotations": [note(at, 1, f"<b>{name}</b>", colors.ink, yref="paper", yanchor="bottom")],
    }
    even = not view.value  # then where it begins and how far it steps says it all
    place = {"x0": 0.0, "dx": float(view.knob[1])} if even else {"x": drawn(view.knob)}
    names = fitting(view.models, _NAME_PX)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            **place,
            "y": drawn(view.shares[:, i] * 100),
            "name": name,
            "meta": plain(model),  # in the figure's CSV
            "stackgroup": "traffic",
            "line": {"width": 0.5, "color": colors.surface},
            "fillcolor": tint(by_model[model], 0.78),
            "hovertemplate": "%{y:.1f} %",
            **(_family(view.bases, i) if grouped else {}),
        }
        for i, (model, name) in enumerate(zip(view.models, names, strict=True))
    ]
    return go.Figure({"data": traces, "layout": layout})


def _family(bases: Sequence[str], i: int) -> dict[str, object]:
    """A model's place in the legend, the highest area first; levels under their base's name."""
    rank: dict[str, object] = {"legendrank": 1000 - i}
    if bases.count(bases[i]) < 2:
        return rank
    title = {"text": f"{fitting(bases, _NAME_PX)[i]}, by effort", "font": {"size": 13}}
    return {**rank, "legendgroup": bases[i], "legendgrouptitle": title}


def timeline_figure(view: Timeline, colors: Palette) -> go.Figure:
    """Decisions in stacked bars over time, one colour a model or reason, in this order."""
    by_name = model_colors(view.names, colors)
    layout = base_layout(colors, height=300, x="UTC", y="Decisions")
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6}
    layout["xaxis"] |= {"type": "date", "showgrid": False, "nticks": 8}
    layout |= {
        "barmode": "stack", "bargap": 0.12, "showlegend": True, "hovermode": "x unified",
        "margin": {"l": 64, "r": 12, "t": 34, "b": 50},
        "legend": legend(
            colors.ink, orientation="h", x=0, y=1.02, yanchor="bottom", traceorder="normal"
        ),
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
    layout = base_layout(colors, height=36 * len(view.models) + 70, x="Raw capability")
    row_a_model(layout, view.models, right=170, below=50)
    layout |= {
        "barmode": "stack",
        "bargap": 0.35,
        "showlegend": True,
        "legend": legend(colors.ink, x=1.12, y=1, traceorder="normal"),
    }
    totals = np.nansum(view.values, axis=1)
    texts = [
        "no rates" if np.isnan(row).all() else f"{total:.3f}"
        for row, total in zip(view.values, totals, strict=True)
    ]
    layout["annotations"] = [
        note(total, i, text, colors.ink, xanchor="left", xshift=6)
        for i, (total, text) in enumerate(zip(totals, texts, strict=True))
    ]
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


def traffic_figure(
    models: Sequence[str],
    before: FloatArray,
    after: FloatArray,
    names: tuple[str, str],
    colors: Palette,
) -> go.Figure:
    """One line per model from its share before (ring) to its share after (dot).

    Args:
        models: (m,) cheapest first.
        before, after: (m,) shares in percent.
        names: Of the traffic before and after.
    """
    layout = base_layout(colors, height=34 * len(models) + 92)
    row_a_model(layout, models, right=64, below=60)
    shares = [0, 50, 100]  # more would touch each other beside long names
    ticks = {"tickvals": shares, "ticktext": [f"{one} %" for one in shares], "tickangle": 0}
    layout["xaxis"] |= {"range": [-5, 104], **ticks}
    layout["showlegend"] = True
    layout["legend"] = legend(
        colors.ink, orientation="h", x=0, y=-0.02, yref="container", yanchor="bottom"
    )
    pairs = list(zip(before, after, strict=True))
    layout["shapes"] = [
        straight(pair, (i, i), colors.muted, 2, layer="below") for i, pair in enumerate(pairs)
    ]
    layout["annotations"] = [
        note(max(pair), i, _change_in_words(*pair), colors.ink, xanchor="left", xshift=10)
        for i, pair in enumerate(pairs)
    ]
    marks = (
        (names[0], before, "circle-open", colors.muted),
        (names[1], after, "circle", colors.accent),
    )
    traces = [
        {
            "type": "scatter", "mode": "markers", "name": plain(name), "x": values,
            "y": list(range(len(pairs))), "cliponaxis": False,
            "text": [plain(m) for m in models],
            "marker": {"symbol": symbol, "color": color, "size": 11, "line": {"width": 2}},
            "hovertemplate": f"<b>%{{text}}</b><br>{plain(name)} %{{x:.1f}} %<extra></extra>",
        }
        for name, values, symbol, color in marks
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})


def _change_in_words(before: float, after: float) -> str:
    if abs(before - after) < 0.05:
        return f"{after:.1f}"
    return f"{before:.1f} → {after:.1f}"


def reliability_figure(lines: Mapping[str, FloatArray], colors: Palette) -> go.Figure:
    """Points on the diagonal keep what they promise; below it too much was promised.

    Args:
        lines: Model -> (3, b): queries, predicted and achieved percent of bins.
    """
    layout = base_layout(colors, height=400, x="Predicted success", y="Achieved")
    for axis in ("xaxis", "yaxis"):
        layout[axis] |= {"range": [-2, 102], "ticksuffix": " %", "nticks": 6}
    layout |= {
        "margin": {"l": 70, "r": 12, "t": 16, "b": 52},
        "showlegend": True,
        "legend": legend(colors.ink, x=0.01, y=0.99, bgcolor="rgba(0,0,0,0)"),
        "shapes": [dashed((0, 100), (0, 100), colors, layer="below")],
    }
    tints = model_colors(list(lines), colors)
    traces = [
        {
            "type": "scatter", "mode": "lines+markers", "name": plain(model),
            "x": predicted, "y": achieved, "customdata": queries,
            "line": {"color": tints[model], "width": 2},
            "marker": {"color": tints[model], "size": 8},
            "hovertemplate": f"<b>{plain(model)}</b><br>predicted %{{x:.1f}} %<br>achieved "
            "%{y:.1f} %<br>%{customdata:,} queries<extra></extra>",
        }
        for model, (queries, predicted, achieved) in lines.items()
    ]  # fmt: skip
    return go.Figure({"data": traces, "layout": layout})
