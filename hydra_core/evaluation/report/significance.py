"""The significance table for a reader: as data frames, as LaTeX, as rows of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from hydra_core.evaluation.significance import Interval
from hydra_core.evaluation.study.significance_table import SignificanceTable
from hydra_core.spelling import signed

__all__ = [
    "HEAD",
    "significance_document",
    "latex",
    "matrix",
    "pair_frame",
    "p_text",
    "standing_cells",
    "standing_frame",
    "tabular",
]

HEAD = ("policy", "chosen", "resolved, %", "QR, %", "CS, %", "USD per query", "only it : only "
        "strong", "p")  # fmt: skip


def standing_frame(table: SignificanceTable) -> pd.DataFrame:
    """One row a policy: rates in percent, cost in USD per query, bounds in columns of their own."""
    rows = []
    for one in table.standings:
        row: dict[str, object] = {"policy": one.name, "chosen": one.chosen, "n": table.n}
        row["count"] = one.count
        for name in ("resolved", "quality", "qr", "cs"):
            row |= _bounds(name, getattr(one, name).scaled(100.0))
        row |= _bounds("cost", one.mean_cost_usd)
        row |= {"only_it": one.only_it, "only_strong": one.only_strong, "p": one.p_value}
        rows.append(row)
    return pd.DataFrame(rows)


def pair_frame(table: SignificanceTable) -> pd.DataFrame:
    """One row a pair: b minus a, quality in points, cost in USD per query."""
    return pd.DataFrame(
        [
            {"a": one.a, "b": one.b}
            | _bounds("quality", one.quality.scaled(100.0))
            | _bounds("cost", one.cost_usd)
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
    told = [f"% {line}" for line in table.methods]
    head = ["policy", *HEAD[2:]]
    parts = [*told, *tabular(head, singles)]
    if pairs:
        parts += ["", *tabular(["A", "B", "B minus A, pp", "only A : only B", "p"], pairs)]
    return "\n".join(parts) + "\n"


def tabular(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of one LaTeX table (booktabs), every cell escaped."""
    lines = [" & ".join(map(_escaped, cells)) + r" \\" for cells in (head, *rows)]
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


def _bounds(name: str, found: Interval) -> dict[str, object]:
    return {name: found.value, f"{name}_lo": found.lo, f"{name}_hi": found.hi}


def _range(found: Interval) -> str:
    if not math.isfinite(found.value):
        return "–"
    centre, low, high = (f"{100 * part:.1f}" for part in (found.value, found.lo, found.hi))
    return f"{centre} [{low}, {high}]"
