"""One table of what any number of policies reach on the same queries, and what may be said of it.

As in the paper's appendix "Statistical Significance on SWE-Bench Verified": Wilson, a 10,000-fold
bootstrap, McNemar against always using the strong model, Holm. Where queries come in clusters, the
delta method over clusters and its t test stand in, and `methods` says so. A reader gets it as data
frames, as LaTeX or as rows of text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.errors import MismatchError
from hydra_core.base.intervals import (
    COST,
    DIFFERENCE,
    FREE_BASELINE,
    SAVING,
    SHARE,
    Interval,
    tails,
)
from hydra_core.base.spelling import signed
from hydra_core.base.types import BoolArray, FloatArray, IntArray, Rule, Selection
from hydra_core.evalsets.evalset import RESOLVED_AT, clusters_among
from hydra_core.replay.baselines import BaselineRun
from hydra_core.replay.compare import PolicyRun, constant_run, policy_run, tested
from hydra_core.replay.imported_policies import imported_choice, policy_names
from hydra_core.replay.metrics import costliest
from hydra_core.replay.significance import (
    bootstrap_means,
    holm,
    mean_interval,
    rate_interval,
    ratio_interval,
)
from hydra_core.replay.sweep import Sweep

_RESAMPLES = 10_000
#: More queries (clusters) are resampled in this many random groups, which spread as they do.
_MOST_UNITS = 20_000
_GROUPS = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A policy that stands in the table, and how it came about, in a word or two."""

    run: PolicyRun
    chosen: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """One policy by itself; rates and QR are fractions.

    Attributes:
        resolved: Rate of queries with quality >= `RESOLVED_AT`.
        qr: Against the oracle of the first policy's pool, the same for all.
        cs: 1 - cost / cost of always the strong model; bootstrap.
        only_it, only_strong: Queries that only one of it and the strong model resolves.
        p_value: Against always the strong model, Holm-corrected; None for that model itself, NaN
            where no query has an outcome of both.
        unknown: Fraction of the queries that go to models without outcomes: rates, quality and QR
            are then the least possible, and their intervals reach to the most possible.
    """

    name: str
    chosen: str
    count: int
    resolved: Interval
    quality: Interval
    mean_cost_usd: Interval
    qr: Interval
    cs: Interval
    only_it: int
    only_strong: int
    p_value: float | None
    unknown: float = 0.0


@dataclass(frozen=True, slots=True)
class Contrast:
    """b minus a, paired by query: quality as a fraction, cost in USD per query.

    Attributes:
        only_a, only_b: Queries that only one of the two resolves.
        p_value: Holm-corrected over all pairs; NaN where no query has an outcome of both.
        unknown: Fractions of the queries whose quality under a, and under b, nobody knows; what
            `quality` is at least and at most is within its interval.
    """

    a: str
    b: str
    quality: Interval
    cost_usd: Interval
    only_a: int
    only_b: int
    p_value: float
    unknown: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class SignificanceTable:
    """Everything that may be said of some policies on the queries that all of them have.

    Attributes:
        independent: Clusters among them.
        methods: How intervals and p values were made, one sentence each.
    """

    n: int
    independent: int
    strong: str
    standings: tuple[Standing, ...]
    contrasts: tuple[Contrast, ...]
    methods: tuple[str, ...]


def significance_table(
    entries: Sequence[Entry],
    strong: PolicyRun,
    clusters: IntArray | None = None,
    *,
    rng: np.random.Generator,
    resamples: int = _RESAMPLES,
) -> SignificanceTable:
    """The table of some policies.

    Args:
        entries: Policies with different names, in the order in which they are to be shown.
        strong: Always the strong model; savings and the test are against it.
        clusters: Cluster of each eval set row, None when all are independent.
        resamples: Of whole queries (clusters); the paper's 10,000.

    Raises:
        ValueError: No policy, two of one name, or no query that all of them have.
    """
    names = [entry.run.name for entry in entries]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"needs policies with different names, got {', '.join(names) or 'none'}")
    runs = [entry.run for entry in entries]
    rows = reduce(np.intersect1d, [run.rows for run in (*runs, strong)])
    if not rows.size:
        raise ValueError(f"{', '.join(names)} have no query in common")
    groups = clusters_among(clusters, rows)
    base, *lined = (run.take(np.flatnonzero(np.isin(run.rows, rows))) for run in (strong, *runs))
    best = lined[0].oracle
    savings = _savings([one.cost_usd for one in lined], base.cost_usd, groups, rng, resamples)
    tests = [_tested(one, base, groups) for one in lined]
    others = [at for at, name in enumerate(names) if name != strong.name]
    adjusted = dict(zip(others, holm([tests[at][2] for at in others]), strict=True))
    standings = tuple(
        Standing(
            name=names[at],
            chosen=entries[at].chosen,
            count=int(one.resolved.sum()),
            resolved=rate_interval(one.resolved, groups).spanning(
                rate_interval((one.most >= RESOLVED_AT).astype(np.float64), groups)
            ),
            quality=mean_interval(one.quality, groups)
            .spanning(mean_interval(one.most, groups))
            .clipped(*SHARE),
            mean_cost_usd=mean_interval(one.cost_usd, groups).clipped(*COST),
            qr=ratio_interval(one.quality, best, groups)
            .spanning(ratio_interval(one.most, best, groups))
            .clipped(*SHARE),
            cs=savings[at],
            only_it=tests[at][0],
            only_strong=tests[at][1],
            p_value=adjusted.get(at),
            unknown=0.0 if one.unknown is None else float(one.unknown.mean()),
        )
        for at, one in enumerate(lined)
    )
    independent = rows.size if groups is None else int(groups.max()) + 1
    return SignificanceTable(
        n=int(rows.size),
        independent=independent,
        strong=strong.name,
        standings=standings,
        contrasts=_contrasts(names, lined, groups),
        methods=_methods(
            clustered=groups is not None,
            strong=strong.name,
            resamples=resamples,
            unknown=any(one.unknown is not None and one.unknown.any() for one in lined),
        ),
    )


def _tested(a: PolicyRun, b: PolicyRun, groups: IntArray | None) -> tuple[int, int, float]:
    """Queries that only a resolves, that only b resolves, and the p value of no difference."""
    known = np.where(_unknown(a, b) | _unknown(b, a), np.nan, 0.0)
    found = tested(a, b, known, groups)
    return found.only_a, found.only_b, found.p_value


def _unknown(one: PolicyRun, other: PolicyRun) -> BoolArray:
    """(n,) where the other goes elsewhere and nobody knows what `one` achieves."""
    if one.unknown is None:
        return np.zeros(len(one.rows), dtype=np.bool_)
    found: BoolArray = one.unknown & (one.models != other.models)
    return found


def _savings(
    costs: Sequence[FloatArray],
    base: FloatArray,
    groups: IntArray | None,
    rng: np.random.Generator,
    resamples: int,
) -> list[Interval]:
    """1 - cost / base cost of each policy, on the same resamples."""
    columns = np.stack([base, *costs], axis=1)
    if groups is None and len(columns) > _MOST_UNITS:
        groups = rng.permutation(len(columns)) % _GROUPS
    if groups is not None:
        columns = np.stack([np.bincount(groups, weights=cost) for cost in columns.T], axis=1)
    means = bootstrap_means(columns, rng=rng, resamples=resamples)
    centre = columns.mean(axis=0)
    if centre[0] == 0.0:
        return [Interval.none(float("nan"), FREE_BASELINE)] * len(costs)
    saved = 1 - means[:, 1:] / means[:, :1]
    low, high = np.quantile(saved, tails(), axis=0)
    values = 1 - centre[1:] / centre[0]
    return [
        Interval.holding(*map(float, ends)).clipped(*SAVING)
        for ends in zip(values, low, high, strict=True)
    ]


def _contrasts(
    names: Sequence[str], lined: Sequence[PolicyRun], groups: IntArray | None
) -> tuple[Contrast, ...]:
    pairs = list(combinations(range(len(names)), 2))
    tests = [_tested(lined[i], lined[j], groups) for i, j in pairs]
    adjusted = holm([test[2] for test in tests]) if tests else ()
    return tuple(
        _contrast(names[i], names[j], lined[i], lined[j], groups, (test[0], test[1], p_value))
        for (i, j), test, p_value in zip(pairs, tests, adjusted, strict=True)
    )


def _contrast(
    name_a: str,
    name_b: str,
    a: PolicyRun,
    b: PolicyRun,
    groups: IntArray | None,
    test: tuple[int, int, float],
) -> Contrast:
    change, open_a, open_b = b.quality - a.quality, _unknown(a, b), _unknown(b, a)
    least, most = (mean_interval(one, groups) for one in (change - open_a, change + open_b))
    return Contrast(
        name_a,
        name_b,
        mean_interval(change, groups).spanning(least, most).clipped(*DIFFERENCE),
        mean_interval(b.cost_usd - a.cost_usd, groups),
        *test,
        (float(open_a.mean()), float(open_b.mean())),
    )


_OPEN = (
    "Queries that go to models without outcomes count as not resolved: rates, quality and QR are "
    "the least possible, their intervals reach to the most possible, and tests leave them out."
)


def _methods(
    *, clustered: bool, strong: str, resamples: int, unknown: bool = False
) -> tuple[str, ...]:
    unit = "clusters" if clustered else "queries"
    if clustered:
        resolved = "Resolved: delta method over clusters, since queries are dependent (not Wilson)."
        test = f"p: t test of the paired difference over clusters against {strong}"
    else:
        resolved = "Resolved: Wilson's score interval."
        test = f"p: McNemar's test against {strong}"
    return (
        resolved,
        "Quality, QR and differences: delta method, paired by query; QR is against one oracle, "
        "that of the first policy's pool.",
        f"CS: {resamples:,}-fold bootstrap of whole {unit}, percentiles, against {strong}.",
        f"{test}, Holm-corrected for the number of policies; of pairs, for the number of pairs.",
        "All intervals are 95 % and hold for a point that was fixed beforehand. Where a point was "
        "picked on these queries, its result goes by the interval over the whole curve.",
        *([_OPEN] if unknown else []),
    )


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
    """Row minus column: quality in points, with a star where the corrected p is below 0.05.

    ≥ or ≤ where one of the two leaves quality open, a dash where both do.
    """
    names = [one.name for one in table.standings]
    cells = pd.DataFrame("", index=names, columns=names)
    for one in table.contrasts:
        star = "*" if one.p_value < 0.05 else ""
        gained, (open_a, open_b) = 100 * one.quality.value, one.unknown
        if open_a and open_b:
            cells.loc[one.b, one.a] = cells.loc[one.a, one.b] = "–"
            continue
        here, there = ("≥ ", "≤ ") if open_b else ("≤ ", "≥ ") if open_a else ("", "")
        cells.loc[one.b, one.a] = f"{here}{signed(gained)}{star}"
        cells.loc[one.a, one.b] = f"{there}{signed(-gained)}{star}"
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
            ("≥ " if one.unknown else "") + _range(one.resolved),
            ("≥ " if one.unknown else "") + _range(one.qr),
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
    "≥": r"\ensuremath{\ge}", "≤": r"\ensuremath{\le}",
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
