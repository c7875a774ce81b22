"""The significance table for a reader: as data frames, as LaTeX, as rows of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.errors import MismatchError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import signed
from hydra_core.base.types import Rule, Selection
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.compare import PolicyRun, constant_run, policy_run
from hydra_core.replay.imported_policies import imported_choice, policy_names
from hydra_core.replay.metrics import costliest
from hydra_core.replay.significance_table import Entry, SignificanceTable, significance_table
from hydra_core.replay.sweep import Sweep


def common_table(
    sweep: Sweep,
    knobs: Sequence[float],
    *,
    strong: str | None = None,
    fixed: bool = False,
    learned: Sequence[BaselineRun] = (),
) -> SignificanceTable:
    """The router at some settings, every constant, the imported policies and learned routers.

    Args:
        knobs: Values of tau or V; the first one's cost is what learned routers spend.
        fixed: The operator states that the settings were fixed beforehand.
    """
    data, entries = sweep.data, []
    for knob in dict.fromkeys(knobs):
        chosen = Selection.FIXED if fixed else sweep.selection(knob)
        run = policy_run(f"router, {_knob(sweep)} {knob:.4g}", data, sweep.route(knob))
        entries.append(Entry(run, chosen_text(chosen)))
    spend = float(entries[0].run.cost_usd.mean())
    for found in learned:
        choice = found.at_cost(spend, np.random.default_rng(0))
        entries.append(Entry(policy_run(f"learned: {found.name}", data, choice), "cross-fitted"))
    entries += _imported(sweep)
    entries += [Entry(constant_run(data, model), "constant") for model in sweep.models]
    base: PolicyRun = constant_run(data, strong or costliest(data))
    return significance_table(entries, base, sweep.evalset.clusters, rng=np.random.default_rng(0))


def chosen_text(selection: Selection) -> str:
    """How a point came about, in a word or two."""
    return {
        Selection.FIXED: "fixed",
        Selection.CROSS_FITTED: "cross-fitted",
        Selection.LOOKED: "picked here",
    }[selection]


def _knob(sweep: Sweep) -> str:
    return "V" if sweep.rule is Rule.VALUE else "τ"


def _imported(sweep: Sweep) -> list[Entry]:
    """Those that send every query to a model of the pool."""
    entries = []
    for name in policy_names(sweep.evalset.path):
        try:
            choice = imported_choice(sweep.evalset, sweep.data, name)
        except MismatchError:
            continue
        entries.append(Entry(policy_run(f"imported: {name}", sweep.data, choice), "imported"))
    return entries


HEAD = ("policy", "chosen", "resolved, %", "QR, %", "CS, %", "USD per query", "only it : only "
        "strong", "p")  # fmt: skip


def standing_frame(table: SignificanceTable) -> pd.DataFrame:
    """One row a policy: rates in percent, cost in USD per query, bounds in columns of their own."""
    rows = []
    for one in table.standings:
        row: dict[str, object] = {"policy": one.name, "chosen": one.chosen, "n": table.n}
        row["count"] = one.count
        for name in ("resolved", "quality", "qr", "cs"):
            row |= getattr(one, name).scaled(100.0).columns(name)
        row |= one.mean_cost_usd.columns("cost")
        row |= {"only_it": one.only_it, "only_strong": one.only_strong, "p": one.p_value}
        rows.append(row)
    return pd.DataFrame(rows)


def pair_frame(table: SignificanceTable) -> pd.DataFrame:
    """One row a pair: b minus a, quality in points, cost in USD per query."""
    return pd.DataFrame(
        [
            {"a": one.a, "b": one.b}
            | one.quality.scaled(100.0).columns("quality")
            | one.cost_usd.columns("cost")
            | {"only_a": one.only_a, "only_b": one.only_b, "p": one.p_value}
            for one in table.contrasts
        ]
    )


def matrix(table: SignificanceTable) -> pd.DataFrame:
    """Row minus column: quality in points, with a star where the corrected p is below 0.05."""
    names = [one.name for one in table.standings]
    cells = pd.DataFrame("", index=names, columns=names)
    for one in table.contrasts:
        star = "*" if one.p_value < 0.05 else ""
        gained = 100 * one.quality.value
        cells.loc[one.b, one.a] = f"{signed(gained)}{star}"
        cells.loc[one.a, one.b] = f"{signed(-gained)}{star}"
    return cells


def significance_document(table: SignificanceTable) -> dict[str, Any]:
    """Both tables as JSON-ready values, and as the text that a report shows."""
    return {
        "n": table.n,
        "independent": table.independent,
        "strong": table.strong,
        "names": [one.name for one in table.standings],
        "methods": list(table.methods),
        "standings": standing_frame(table).to_dict("records"),
        "pairs": pair_frame(table).to_dict("records"),
        "cells": standing_cells(table),
        "matrix": matrix(table).to_numpy().tolist(),
    }


def standing_cells(table: SignificanceTable) -> list[list[str]]:
    """The rows as text, in the order of `HEAD`."""
    return [
        [
            one.name,
            one.chosen,
            _range(one.resolved),
            _range(one.qr),
            _range(one.cs),
            f"{one.mean_cost_usd.value:.4g}",
            f"{one.only_it} : {one.only_strong}",
            p_text(one.p_value),
        ]
        for one in table.standings
    ]


def p_text(value: float | None) -> str:
    """A p value as it is printed; a dash where there is no test."""
    if value is None or math.isnan(value):
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def latex(table: SignificanceTable) -> str:
    """Both tables for a paper: booktabs, every name escaped, methods as a comment."""
    singles = [[cells[0], *cells[2:]] for cells in standing_cells(table)]
    pairs = [
        [one.a, one.b, _range(one.quality), f"{one.only_a} : {one.only_b}", p_text(one.p_value)]
        for one in table.contrasts
    ]
    comments = [f"% {line}" for line in table.methods]
    head = ["policy", *HEAD[2:]]
    parts = [*comments, *tabular(head, singles)]
    if pairs:
        parts += ["", *tabular(["A", "B", "B minus A, pp", "only A : only B", "p"], pairs)]
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    """One row; LaTeX would take a first [ or * for an option of the row before."""
    line = " & ".join(map(_escaped, cells)) + r" \\"
    return f"{{}}{line}" if line.lstrip().startswith(("[", "*")) else line


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of one LaTeX table (booktabs), every cell escaped."""
    lines = [_row(cells) for cells in (head, *rows)]
    columns = "l" + "r" * (len(head) - 1)
    return [
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:],
        r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "–": "--", "−": r"\ensuremath{-}",
    "τ": r"\ensuremath{\tau}",
    "\n": " ", "\r": " ", **{char: f"\\{char}" for char in "&%$#_{}"},
}  # fmt: skip


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in text)


def _range(found: Interval) -> str:
    if not math.isfinite(found.value):
        return "–"
    shown = found.scaled(100.0)
    ends = f"[{shown.bounds(between=', ')}]" if shown.known else f"({shown.reason})"
    return f"{shown.value:.1f} {ends}"
