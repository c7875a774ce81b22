"""From a pair of policies to the heat map of flips and the deltas by slice. No streamlit."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pandas as pd

from hydra_core.base.spelling import signed_usd
from hydra_core.console.compare.figure_deltas import DeltasView
from hydra_core.console.compare.view import Paired
from hydra_core.console.figures.heat import HeatView
from hydra_core.console.figures.theme import plain
from hydra_core.console.numbers import points
from hydra_core.replay.compare import FlipCell


class Measure(StrEnum):
    """What the flip matrix is coloured by."""

    NUMBER = "Number"
    QUALITY = "Quality"
    COST = "Cost"


def flip_view(both: Paired, measure: Measure) -> HeatView:
    """From which model (row, A) to which (column, B); queries that stayed are not coloured."""
    before, after = both.a.models[both.at_a], both.b.models[both.at_b]
    rows, columns = (tuple(m for m in both.models if m in set(x.tolist())) for x in (before, after))
    cells = {(cell.before, cell.after): cell for cell in both.found.flips}
    stayed = dict(zip(*np.unique(before[before == after], return_counts=True), strict=True))
    values = np.full((len(rows), len(columns)), np.nan)
    texts, hover = [], []
    for i, row in enumerate(rows):
        said, told = [], []
        for j, column in enumerate(columns):
            cell = cells.get((row, column))
            if cell is not None:
                values[i, j] = _measured(cell, measure)
            kept = int(stayed.get(row, 0)) if row == column else 0
            said.append(_cell_text(cell, kept, measure))
            told.append(_cell_hover(row, column, cell, kept))
        texts.append(tuple(said))
        hover.append(tuple(told))
    top = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    return HeatView(
        rows=rows,
        columns=columns,
        values=values,
        texts=tuple(texts),
        hover=tuple(hover),
        limits=(0.0, top or 1.0) if measure is Measure.NUMBER else (-(top or 1.0), top or 1.0),
        x_title="B sends it to",
        y_title="A sent it to",
    )


def _measured(cell: FlipCell, measure: Measure) -> float:
    """What colours a cell; a cost that falls is good, so its sign is turned."""
    if measure is Measure.NUMBER:
        return float(cell.queries)
    return 100 * cell.delta_quality if measure is Measure.QUALITY else -cell.delta_cost_usd


def _cell_text(cell: FlipCell | None, kept: int, measure: Measure) -> str:
    if cell is None:
        return f"{kept:,} stay" if kept else ""
    if measure is Measure.NUMBER:
        return f"{cell.queries:,}"
    if measure is Measure.QUALITY:
        return points(cell.delta_quality)
    return signed_usd(cell.delta_cost_usd)


def _cell_hover(row: str, column: str, cell: FlipCell | None, kept: int) -> str:
    if cell is None:
        return f"{kept:,} queries stay with <b>{plain(row)}</b>" if kept else "no query"
    return (
        f"<b>{plain(row)} → {plain(column)}</b><br>{cell.queries:,} queries<br>quality "
        f"{points(cell.delta_quality)}<br>"
        f"cost {signed_usd(cell.delta_cost_usd)} per query"
    )


def deltas_view(frame: pd.DataFrame) -> DeltasView:
    """The figure of `comparison.slices`: its first rows are the largest."""
    columns = {
        name: frame[name].to_numpy(np.float64)
        for name in ("quality", "quality_lo", "quality_hi", "savings", "savings_lo", "savings_hi")
    }
    return DeltasView(
        names=tuple(frame["name"]),
        n=frame["n"].to_numpy(np.float64),
        small=tuple(bool(value) for value in frame["small"]),
        **columns,
    )
