"""From a pair of policies to the heat map, the lists of queries and one query's receipts.

No streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.study.compare import FlipCell
from hydra_core.figures.deltas import DeltasView
from hydra_core.figures.heat import HeatView
from hydra_core.figures.theme import plain
from hydra_core.types import IntArray, Rule
from hydra_core.views.comparison import Paired, Side
from hydra_core.views.frontier import usd

__all__ = [
    "MOST_TRIAGED",
    "Filters",
    "Measure",
    "Which",
    "deltas_view",
    "flip_view",
    "query_page",
    "receipts",
    "selected",
    "whole_table",
]

#: How many losses and wastes are listed.
MOST_TRIAGED = 50
_TEXT_CHARS = 160
_EVEN = 1e-12


class Measure(StrEnum):
    """What the flip matrix is coloured by."""

    NUMBER = "Number"
    QUALITY = "Quality"
    COST = "Cost"


class Which(StrEnum):
    """Which queries are listed.

    LOSSES: B's quality is lower; the largest loss first, among equals where B costs most more.
    WASTES: B costs more and is no better; the largest extra cost first.
    """

    FLIPPED = "Flipped"
    LOSSES = "Dearest losses"
    WASTES = "Largest wastes"


@dataclass(frozen=True, slots=True)
class Filters:
    """Empty fields let everything through.

    Attributes:
        noted: True: only with a note; False: only without; None: all.
    """

    language: str = ""
    before: str = ""
    after: str = ""
    noted: bool | None = None

    @property
    def count(self) -> int:
        """How many are set."""
        return sum((bool(self.language), bool(self.before), bool(self.after))) + (
            self.noted is not None
        )


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
        return f"{100 * cell.delta_quality:+.1f} pp"
    return _signed_usd(cell.delta_cost_usd)


def _cell_hover(row: str, column: str, cell: FlipCell | None, kept: int) -> str:
    if cell is None:
        return f"{kept:,} queries stay with <b>{plain(row)}</b>" if kept else "no query"
    return (
        f"<b>{plain(row)} → {plain(column)}</b><br>{cell.queries:,} queries<br>quality "
        f"{100 * cell.delta_quality:+.1f} pp<br>cost {_signed_usd(cell.delta_cost_usd)} per query"
    )


def _signed_usd(value: float) -> str:
    return f"{'−' if value < 0 else '+'}{usd(abs(value))}"


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


def selected(
    both: Paired,
    which: Which,
    filters: Filters,
    languages: np.typing.NDArray[np.str_],
    noted: frozenset[int],
) -> IntArray:
    """Positions among the common queries, in the order they are listed.

    Args:
        languages: (rows of the eval set,) what `filters.language` is compared with.
        noted: Row numbers in the eval set that carry a note.
    """
    found = both.found
    before, after = both.a.models[both.at_a], both.b.models[both.at_b]
    quality, cost = found.delta_quality, found.delta_cost
    keep = {
        Which.FLIPPED: before != after,
        Which.LOSSES: quality < -_EVEN,
        Which.WASTES: (cost > _EVEN) & (quality <= _EVEN),
    }[which]
    if filters.language:
        keep = keep & (languages[found.rows] == filters.language)
    if filters.before:
        keep = keep & (before == filters.before)
    if filters.after:
        keep = keep & (after == filters.after)
    if filters.noted is not None:
        known = np.isin(found.rows, np.fromiter(noted, dtype=np.intp, count=len(noted)))
        keep = keep & (known == filters.noted)
    at = np.flatnonzero(keep)
    if which is Which.FLIPPED:
        return at
    order = (
        np.lexsort((-cost[at], quality[at]))
        if which is Which.LOSSES
        else np.argsort(-cost[at], kind="stable")
    )
    return at[order][:MOST_TRIAGED]


def query_page(both: Paired, evalset: EvalSet, at: IntArray, notes: dict[str, int]) -> pd.DataFrame:
    """A table of some common queries: what each side chose and what it changed.

    Args:
        at: Positions among the common queries.
        notes: Query id -> number of notes.
    """
    frame = whole_table(both, evalset, at)
    shown = {}
    if "text" in frame.columns:
        text = frame["text"].str.slice(0, _TEXT_CHARS * 2).str.replace(r"\s+", " ", regex=True)
        shown["text"] = text.str.slice(0, _TEXT_CHARS)
    return frame.assign(
        **shown,
        quality_change=100 * frame["quality_change"],
        notes=[float(notes.get(str(query), np.nan)) for query in frame["query_id"]],
    )


def whole_table(both: Paired, evalset: EvalSet, at: IntArray) -> pd.DataFrame:
    """As `query_page`, whole texts, for a download; quality in [0, 1], cost in USD."""
    found, a, b = both.found, both.at_a[at], both.at_b[at]
    queries = evalset.queries.iloc[found.rows[at]]
    texts = {} if evalset.texts is None else {"text": queries["text"].astype(str).to_numpy()}
    return pd.DataFrame(
        {
            "query_id": queries["query_id"].astype(str).to_numpy(),
            "language": queries["language"].astype(str).to_numpy(),
            "model_a": both.a.models[a],
            "model_b": both.b.models[b],
            "quality_a": both.a.quality[a],
            "quality_b": both.b.quality[b],
            "quality_change": found.delta_quality[at],
            "cost_usd_a": both.a.cost_usd[a],
            "cost_usd_b": both.b.cost_usd[b],
            "cost_change_usd": found.delta_cost[at],
            **texts,
        }
    )


def receipts(
    row: int, both: Paired, sides: tuple[tuple[Side, Sweep], tuple[Side, Sweep]]
) -> pd.DataFrame:
    """Why each side chose what it chose for one query, model by model, cheapest first.

    Args:
        row: Row number in the eval set.

    Returns:
        model, quality, cost_usd, and per side `short_` (shortfall, NaN for policies that do not
        read the query) and `says_` (chosen, eligible, not eligible).
    """
    evalset = sides[0][1].evalset
    known = dict(zip(evalset.models, range(len(evalset.models)), strict=True))
    pools = {model for _, sweep in sides for model in sweep.data.pool.ids}
    models = [*both.models, *sorted(pools - set(both.models))]
    cost = evalset.mean_cost()
    models.sort(key=lambda model: (cost[model], model))
    frame = pd.DataFrame(
        {
            "model": models,
            "quality": [100 * evalset.quality[row, known[m]] for m in models],
            "cost_usd": [evalset.cost_usd[row, known[m]] for m in models],
        }
    )
    position = int(np.searchsorted(both.found.rows, row))
    for letter, run, at, (side, sweep) in (
        ("a", both.a, both.at_a, sides[0]),
        ("b", both.b, both.at_b, sides[1]),
    ):
        chosen = str(run.models[at[position]])
        of, says = _receipt(row, models, side, sweep, chosen)
        frame[f"says_of_{letter}"], frame[f"says_{letter}"] = of, says
    return frame


def _receipt(
    row: int, models: list[str], side: Side, sweep: Sweep, chosen: str
) -> tuple[list[float], list[str]]:
    """What the side's rule knows of each model for one query: a number, and a word."""
    if side.knob is None:
        nothing = [float("nan")] * len(models)
        return nothing, ["chosen" if model == chosen else "" for model in models]
    at = int(np.searchsorted(sweep.data.rows, row))
    predicted, by_value = sweep.data.predicted, side.rule is Rule.VALUE
    known = predicted.success if by_value and predicted is not None else sweep.shortfalls
    values = dict(zip(sweep.data.pool.ids, known[at].tolist(), strict=True))
    says = [
        "chosen" if model == chosen
        else "not in its pool" if model not in values
        else "worth less" if by_value
        else "eligible" if values[model] <= side.knob
        else "not eligible"
        for model in models
    ]  # fmt: skip
    return [values.get(model, float("nan")) for model in models], says
