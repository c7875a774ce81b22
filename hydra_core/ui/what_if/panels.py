"""What a draft would change: figures with paired intervals, traffic, flips and their queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.significance import Interval
from hydra_core.evaluation.study.compare import Comparison
from hydra_core.evaluation.study.what_if import Replayed, WhatIf
from hydra_core.figures.heat import HeatView, heat_figure
from hydra_core.figures.traffic import TrafficView, traffic_figure
from hydra_core.spelling import signed_usd
from hydra_core.ui import tables, widgets
from hydra_core.ui.widgets import literal
from hydra_core.views.numbers import signed, usd
from hydra_core.views.tune.operating_point import Measure, Tile

__all__ = ["alone", "deltas", "details", "sentence", "tiles"]

_MOST_QUERIES = 500


def sentence(found: WhatIf) -> str:
    """The effect in one plain sentence."""
    comparison = found.comparison
    if not comparison.flipped.size and found.before.data.pool.ids == found.after.data.pool.ids:
        return f"No query of {comparison.n:,} changes its model."
    moved = int(comparison.flipped.size)
    share = 100 * moved / comparison.n
    return f"{moved:,} of {comparison.n:,} queries ({share:.1f} %) change their model."


def alone(found: WhatIf) -> str:
    """Queries moved, quality and cost of one edit by itself, in one line."""
    told = f"By itself: {sentence(found)}"
    if not found.comparison.flipped.size:
        return told
    quality, cost = found.comparison.quality, found.comparison.cost_usd
    return f"{told} Quality {_signed(quality, False)}, cost {_signed(cost, True)} per query."


def deltas(found: WhatIf, *, before: str = "published", after: str = "draft") -> None:
    """One tile per figure: the value with the draft, and its paired difference."""
    shown = tiles(found, before, after)
    for place, one in zip(st.columns(len(shown)), shown, strict=True):
        color: Any = one.tone or "off"
        place.metric(
            one.label, literal(one.value), delta=literal(one.interval), delta_color=color,
            delta_arrow="off", help=literal(one.help), border=True,
        )  # fmt: skip
    widgets.recorded_costs(found.after.data)


def tiles(found: WhatIf, before: str, after: str) -> tuple[Tile, ...]:
    """The figures afterwards, each with its paired difference in the interval's place."""
    a, b, c = found.before.metrics, found.after.metrics, found.comparison
    binary = found.after.data.binary
    figures = (
        (Measure.QUALITY, "Resolved" if binary else "Mean quality", b.quality.value, c.quality, 1,
         f"{before} {100 * a.quality.value:.1f} %"),
        (Measure.QR, "Quality retention", c.retained[1].value, c.qr, 1,
         f"{before} {100 * c.retained[0].value:.1f} %. Both against one oracle, the best of either "
         "pool, so that a pool that lost a model cannot look better"),
        (Measure.COST, "Cost per query", b.mean_cost_usd.value, c.cost_usd, -1,
         f"{before} {usd(a.mean_cost_usd.value)}"),
        (Measure.MISROUTE, "Cheaper would do", b.misroute.value, c.misroute, -1,
         f"{before} {100 * a.misroute.value:.1f} %. Queries that a model "
         "cheaper than the chosen one resolved"),
    )  # fmt: skip
    return tuple(
        Tile(
            measure,
            label,
            usd(value) if measure is Measure.COST else f"{100 * value:.1f} %",
            _signed(change, measure is Measure.COST),
            f"With the {after}; {note}. Below: the paired difference with its 95 % interval.",
            _color(change, better),
        )
        for measure, label, value, change, better, note in figures
    )


def _signed(change: Interval, money: bool) -> str:
    if np.isnan(change.value):
        return "not defined"
    if change.value == change.lo == change.hi == 0.0:
        return "unchanged"
    if money:
        top = max(abs(change.lo), abs(change.hi))
        places = max(1 - int(np.floor(np.log10(top))), 2)
        lo, hi = f"{change.lo:+.{places}f}", f"{change.hi:+.{places}f}"
        sign = "-" if change.value < 0 else "+"
        return f"{sign}${abs(change.value):.{places}f} ({lo} to {hi})".replace("-", "−")
    points = change.scaled(100.0)
    return f"{signed(points.value)} pp ({signed(points.lo)} to {signed(points.hi)})"


def _color(change: Interval, better: int) -> str:
    """Coloured only where the interval leaves out no difference."""
    if np.isnan(change.value) or change.lo <= 0.0 <= change.hi:
        return ""
    return "green" if change.value * better > 0 else "red"


def details(found: WhatIf, evalset: EvalSet, *, before: str, after: str) -> None:
    """Traffic before and after, the flip matrix, and the queries that flipped."""
    left, right = st.columns([5, 6], gap="medium")
    with left.container(border=True, height="stretch"):
        st.markdown("**Traffic by model**")
        widgets.figure(
            traffic_figure(_traffic(found, before, after), widgets.colors()),
            "what_if.traffic",
            alt="Share of queries that each model gets, before and after",
        )
    with right.container(border=True, height="stretch"):
        st.markdown("**Flips: from row to column**")
        _flips(found)
    _queries(found, evalset)


def _traffic(found: WhatIf, before: str, after: str) -> TrafficView:
    models = tuple(found.shares)
    shares = np.array([found.shares[model] for model in models]).reshape(-1, 2)
    return TrafficView(models, 100 * shares[:, 0], 100 * shares[:, 1], before, after)


def _flips(found: WhatIf) -> None:
    cells = found.comparison.flips
    if not cells:
        st.caption("No query changes its model.")
        return
    order = {model: i for i, model in enumerate(found.shares)}
    rows = tuple(sorted({cell.before for cell in cells}, key=lambda m: order.get(m, 0)))
    columns = tuple(sorted({cell.after for cell in cells}, key=lambda m: order.get(m, 0)))
    values = np.full((len(rows), len(columns)), np.nan)
    texts = [[""] * len(columns) for _ in rows]
    hover = [[""] * len(columns) for _ in rows]
    for cell in cells:
        at = rows.index(cell.before), columns.index(cell.after)
        values[at] = cell.queries
        texts[at[0]][at[1]] = f"{cell.queries:,}"
        hover[at[0]][at[1]] = (
            f"<b>{cell.before} → {cell.after}</b><br>{cell.queries:,} queries<br>"
            f"quality {signed(100 * cell.delta_quality)} pp each<br>"
            f"cost {signed_usd(cell.delta_cost_usd)} each"
        )
    most = float(np.nanmax(values))
    view = HeatView(
        rows, columns, values, tuple(map(tuple, texts)), tuple(map(tuple, hover)), (0.0, most)
    )
    widgets.figure(
        heat_figure(view, widgets.colors(), row_height=32),
        "what_if.flips",
        alt="Queries that move from one model to another",
    )
    _flip_table(found.comparison)


def _flip_table(comparison: Comparison) -> None:
    column = st.column_config
    frame = pd.DataFrame(
        {
            "from": [cell.before for cell in comparison.flips],
            "to": [cell.after for cell in comparison.flips],
            "queries": [cell.queries for cell in comparison.flips],
            "quality": [100 * cell.delta_quality for cell in comparison.flips],
            "cost": [cell.delta_cost_usd for cell in comparison.flips],
        }
    )
    tables.kept(
        frame,
        "what_if.moves",
        {"quality": tables.change(), "cost": tables.change("+.3g")},
        height="content" if len(frame) <= 6 else 250,
        column_config={
            "from": column.TextColumn("From", width=112),
            "to": column.TextColumn("To", width=112),
            "queries": column.NumberColumn("Queries", format="localized", width=58),
            "quality": column.NumberColumn("Δ quality", width=66),
            "cost": column.NumberColumn("Δ cost, $", width=78),
        },
    )


def _queries(found: WhatIf, evalset: EvalSet) -> None:
    comparison = found.comparison
    moved = np.isin(comparison.rows, comparison.flipped)
    rows = comparison.rows[moved]
    if not rows.size:
        return
    st.markdown(f"**The {rows.size:,} flipped queries**")
    order = np.lexsort((rows, -np.abs(comparison.delta_quality[moved])))[:_MOST_QUERIES]
    rows = rows[order]
    column = st.column_config
    frame = pd.DataFrame(
        {
            "query": evalset.queries["query_id"].iloc[rows].astype(str).to_numpy(),
            **_texts(evalset, rows),
            "from": _models(found.before, rows),
            "to": _models(found.after, rows),
            "quality": 100 * comparison.delta_quality[moved][order],
            "cost": comparison.delta_cost[moved][order],
        }
    )
    tables.kept(
        frame,
        "what_if.queries",
        {"quality": tables.change("+.0f"), "cost": tables.change("+.3g")},
        height=min(40 + 35 * len(frame), 390),
        column_config={
            "query": column.TextColumn("Query", width=110),
            "text": column.TextColumn("Text", width=360),
            "from": column.TextColumn("From", width=125),
            "to": column.TextColumn("To", width=125),
            "quality": column.NumberColumn("Δ quality, pp", width=95),
            "cost": column.NumberColumn("Δ cost, $", width=78),
        },
    )
    if moved.sum() > _MOST_QUERIES:
        st.caption(f"Those with the largest change of quality, {_MOST_QUERIES} of {moved.sum():,}.")


def _texts(evalset: EvalSet, rows: np.typing.NDArray[np.intp]) -> dict[str, object]:
    """The column of texts; nothing for a set without."""
    texts = evalset.texts
    return {} if texts is None else {"text": texts.iloc[rows].str.slice(0, 400).to_numpy()}


def _models(part: Replayed, rows: np.typing.NDArray[np.intp]) -> list[str]:
    at = np.searchsorted(part.run.rows, rows)
    return [str(model) for model in part.run.models[at]]
