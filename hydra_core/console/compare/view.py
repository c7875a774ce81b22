"""Two policies on one eval set: who they are, their runs, and what the Compare page shows of them.

No streamlit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd

from hydra_core.base.intervals import COST, DIFFERENCE, SHARE, Interval
from hydra_core.base.spelling import counted, signed, signed_usd, usd
from hydra_core.base.types import IntArray, Rule
from hydra_core.console.figures.frontier import FrontierView, Spot
from hydra_core.console.figures.heat import HeatView
from hydra_core.console.figures.theme import plain
from hydra_core.console.numbers import cost_change, is_multiple, knob_text, points
from hydra_core.console.view_frontier import Axes, XAxis, YAxis, frontier_view
from hydra_core.evalsets.evalset import EvalSet, clusters_among
from hydra_core.predictor.languages import group_of, language_name
from hydra_core.replay.baselines import BaselineRun, Checker, cascade
from hydra_core.replay.compare import (
    Comparison,
    FlipCell,
    PolicyRun,
    compare,
    constant_run,
    policy_run,
    tested,
)
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.imported_policies import imported_choice
from hydra_core.replay.metrics import SMALL
from hydra_core.replay.significance import (
    holm,
    mean_interval,
    per_resolved,
    saving_interval,
)
from hydra_core.replay.sweep import Sweep


class Kind(StrEnum):
    """What sort of policy stands on one side."""

    ROUTER = "router"
    ALWAYS = "always"
    ORACLE = "oracle"
    MIX = "mix"
    LEARNED = "learned"
    IMPORTED = "imported"
    CASCADE = "cascade"


@dataclass(frozen=True, slots=True)
class Side:
    """A policy that can stand on either side; the id is what a link carries.

    Attributes:
        catalog: Key of the catalog a router takes its pool from; '' for the page's own.
        knob: tau of a router, or V in USD under the value rule; None for all others.
        weights: (K,) stored weights of a router.
        rule: Of a router.
        checker: Of a cascade.
        model: Of a constant; of a learned router or an imported policy its name.
    """

    id: str
    label: str
    kind: Kind
    catalog: str = ""
    knob: float | None = None
    weights: tuple[float, ...] = ()
    model: str = ""
    rule: Rule = Rule.SHORTFALL
    checker: Checker = Checker()

    @property
    def name(self) -> str:
        """The label with its tau or V."""
        return (
            self.label if self.knob is None else f"{self.label}, {knob_text(self.rule, self.knob)}"
        )


#: Both policies, each with what it was replayed on.
Sides = tuple[tuple[Side, Sweep], tuple[Side, Sweep]]


@dataclass(frozen=True, slots=True)
class Totals:
    """One policy on the common queries: means with 95 % intervals; QR is a fraction.

    Attributes:
        unknown: Fraction of the queries that go to models without outcomes: `quality` and `qr` are
            then the least possible, and `per_resolved_usd` the most.
    """

    quality: Interval
    mean_cost_usd: Interval
    per_resolved_usd: Interval
    qr: Interval
    unknown: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Both runs on the n queries they have in common, and their comparison.

    Attributes:
        clusters: (n,) cluster numbers, None when all are independent.
        models: Of either run, from cheapest to dearest by mean cost.
    """

    a: PolicyRun
    b: PolicyRun
    clusters: IntArray | None
    found: Comparison
    models: tuple[str, ...]


def routed_run(name: str, sweep: Sweep, knob: float) -> PolicyRun:
    """A router at one setting of its rule's knob."""
    return policy_run(name, sweep.data, sweep.route(knob))


def mix_run(sweep: Sweep, mean_cost_usd: float) -> PolicyRun:
    """Constants mixed at random to spend this much: which query goes where is drawn once."""
    mix = matched_cost_mix(sweep.hull, mean_cost_usd)
    drawn = np.random.default_rng(0).random(len(sweep.data.rows)) < mix.strong_share
    choice = np.where(drawn, mix.strong.index, mix.cheap.index)
    return policy_run(f"random mixture ({mix})", sweep.data, sweep.data.served(choice))


def side_run(
    side: Side,
    sweep: Sweep,
    other_cost_usd: float | None,
    learned: Mapping[str, BaselineRun] | None = None,
) -> PolicyRun:
    """The run of a side; one that follows the other's cost stands half-way where that is None.

    Raises:
        HydraError: An imported policy that is gone, or sends queries outside the pool.
    """
    if side.kind is Kind.ROUTER:
        return routed_run(side.name, sweep, side.knob or 0.0)
    if side.kind is Kind.ALWAYS:
        return constant_run(sweep.data, side.model)
    if side.kind is Kind.ORACLE:
        return policy_run("oracle", sweep.data, sweep.data.oracle)
    if side.kind is Kind.CASCADE:
        return cascade(sweep.data, sweep.evalset, side.checker).run
    if side.kind is Kind.IMPORTED:
        choice = imported_choice(sweep.evalset, sweep.data, side.model)
        return policy_run(side.label, sweep.data, choice)
    costs = [one.mean_cost_usd for one in sweep.hull]
    spend = (costs[0] + costs[-1]) / 2 if other_cost_usd is None else other_cost_usd
    if side.kind is Kind.LEARNED:
        found = (learned or {})[side.model]
        choice = found.at_cost(spend, np.random.default_rng(0))
        return policy_run(f"{found.name} router", sweep.data, choice)
    return mix_run(sweep, spend)


def pair(a: PolicyRun, b: PolicyRun, sweep: Sweep) -> Paired:
    """Compare b with a on the queries both have; ValueError where they have none in common."""
    whole = sweep.evalset.clusters
    found = compare(a, b, whole)
    cost = sweep.evalset.mean_cost()
    cost |= dict(zip(sweep.data.pool.ids, sweep.data.alone[1].tolist(), strict=True))
    used = {*np.unique(a.models).tolist(), *np.unique(b.models).tolist()}
    return Paired(
        a=a.take(np.searchsorted(a.rows, found.rows)),
        b=b.take(np.searchsorted(b.rows, found.rows)),
        clusters=None if whole is None else whole[found.rows],
        found=found,
        models=tuple(sorted(used, key=lambda model: (cost.get(model, np.inf), model))),
    )


def totals(both: Paired) -> tuple[Totals, Totals]:
    """Each side's figures on the common queries; QR of both against one oracle."""
    a, b = (
        Totals(
            quality=mean_interval(run.quality, both.clusters)
            .spanning(mean_interval(run.most, both.clusters))
            .clipped(*SHARE),
            mean_cost_usd=mean_interval(run.cost_usd, both.clusters).clipped(*COST),
            per_resolved_usd=_per_resolved(run, both.clusters),
            qr=retained,
            unknown=0.0 if run.unknown is None else float(run.unknown.mean()),
        )
        for run, retained in zip((both.a, both.b), both.found.retained, strict=True)
    )
    return a, b


def _per_resolved(run: PolicyRun, clusters: IntArray | None) -> Interval:
    """At most this much for a resolved query, down to where all that is unknown is resolved."""
    least = per_resolved(run.cost_usd, run.quality, clusters)
    best = per_resolved(run.cost_usd, run.most, clusters)
    return least.spanning(best) if least.known and best.known else least


def cascade_text(side: Side, sweep: Sweep) -> str:
    """How often the cascade asks twice, and how much longer it takes."""
    found = cascade(sweep.data, sweep.evalset, side.checker)
    twice = 100 * float(found.again.mean())
    late = (
        "the extra time is not known, as the set has no latency_s"
        if found.extra_s is None
        else f"{found.extra_s:.3g} s longer than {found.cheap} alone"
    )
    return f"{found.cheap} first; {twice:.1f} % go on to {found.strong}; {late}. Simulated."


def on_curve(own: Sweep, both: Paired, sides: Sides) -> FrontierView:
    """Both sides, cost against quality in percent, on the curve of B, else A, else the page."""
    routers = [(sweep, side.knob) for side, sweep in reversed(sides) if side.knob is not None]
    sweep, knob = routers[0] if routers else (own, own.own_knob)
    axes = Axes(XAxis.COST, YAxis.RESOLVED, sweep.baselines[0])
    view = frontier_view(sweep, knob, axes, banded=False)
    spots = tuple(
        Spot(f"{letter}: {side.label}", one.mean_cost_usd.value, 100 * one.quality.value)
        for letter, (side, _), one in zip("AB", sides, totals(both), strict=True)
    )
    return replace(view, imported=spots)


def sentence(both: Paired) -> str:
    """What B changes against A, in one plain sentence with its intervals."""
    found = both.found
    before, after = (float(run.cost_usd.mean()) for run in (both.a, both.b))
    if not found.flipped.size:
        return f"Both send every one of the {counted(found.n, 'query')} to the same model."
    saved = found.savings.scaled(100.0)
    if not np.isfinite(saved.value):
        spent = f"B costs {usd(after)} per query, A nothing"
    else:
        side = saved if saved.value >= 0 else saved.scaled(-1.0)
        between = "" if is_multiple(-saved.value) else f" ({side.bounds()})"
        more = f"{cost_change(-saved.value)}{between}"
        spent = f"B costs {more}, {usd(after)} instead of {usd(before)} per query"
    change = found.quality.scaled(100.0)
    ends = f"95 % interval {change.bounds(signed)}" if change.known else change.reason
    gained = f"{signed(abs(change.value))[1:]} points of quality ({ends})"
    if change.lo > 0:
        return f"{spent}, and gains {gained}."
    if change.hi < 0:
        return f"{spent}, and loses {gained}."
    if found.unknown:
        return (
            f"{spent}. How its quality compares is not known: {100 * found.unknown:.1f} % of the "
            f"queries go to models without outcomes ({change.bounds(signed)} points)."
        )
    return f"{spent}. No measurable difference in quality: {signed(change.value)} points ({ends})."


class Measure(StrEnum):
    """What the flip matrix is coloured by."""

    NUMBER = "Number"
    QUALITY = "Quality"
    COST = "Cost"


def flip_view(both: Paired, measure: Measure) -> HeatView:
    """From which model (row, A) to which (column, B); queries that stayed are not coloured."""
    before, after = both.a.models, both.b.models
    rows, columns = (tuple(m for m in both.models if m in set(x.tolist())) for x in (before, after))
    cells = {(cell.before, cell.after): cell for cell in both.found.flips}
    stayed = dict(zip(*np.unique(before[before == after], return_counts=True), strict=True))
    values = np.full((len(rows), len(columns)), np.nan)
    texts, hover = [], []
    for i, row in enumerate(rows):
        said, lines = [], []
        for j, column in enumerate(columns):
            cell = cells.get((row, column))
            if cell is not None:
                values[i, j] = _measured(cell, measure)
            kept = int(stayed.get(row, 0)) if row == column else 0
            said.append(_cell_text(cell, kept, measure))
            lines.append(_cell_hover(row, column, cell, kept))
        texts.append(tuple(said))
        hover.append(tuple(lines))
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
        f"<b>{plain(row)} → {plain(column)}</b><br>{counted(cell.queries, 'query')}<br>quality "
        f"{points(cell.delta_quality)}<br>cost {signed_usd(cell.delta_cost_usd)} per query"
    )


def group_table(evaluation: Evaluation) -> pd.DataFrame:
    """One row per language group: n, QR and savings in percent, and QR and savings minus English.

    Every figure with its 95 % bounds as `_lo` and `_hi`; NaN differences for English itself.
    """
    apart = {one.group: one for one in evaluation.spreads}
    unknown = Interval.none(np.nan, "not in both")
    rows = []
    for one in evaluation.groups:
        to = apart.get(one.name)
        rows.append(
            {"group": one.name, "n": one.n, "small": one.small}
            | one.qr.scaled(100.0).columns("qr")
            | one.cs.scaled(100.0).columns("cs")
            | (to.qr if to else unknown).scaled(100.0).columns("qr_english")
            | (to.cs if to else unknown).scaled(100.0).columns("cs_english")
        )
    return pd.DataFrame(rows)


def slices(both: Paired, evalset: EvalSet, by: str) -> pd.DataFrame:
    """Deltas of B against A by language or group, the largest first.

    Args:
        by: `language`, `language group`, or a column of the set's queries such as `group`.

    Returns:
        One row per value: name, n, quality and savings with bounds in percent points and percent,
        flipped in percent, p (paired test, Holm-corrected over the rows), small.
    """
    names = slice_names(evalset, by)[both.found.rows]
    values, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    made = [
        _slice(both, str(values[i]), np.flatnonzero(which == i))
        for i in np.lexsort((values, -counts))
    ]
    frame = pd.DataFrame(made)
    return frame.assign(p=list(holm(frame["p"].tolist())))


def slice_names(evalset: EvalSet, by: str) -> np.typing.NDArray[np.str_]:
    """(rows of the eval set,) the slice each query belongs to."""
    name = {"language group": group_of, "language": language_name}.get(by)
    if name is not None:
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: name(code) for code in codes.unique()}).to_numpy(str)
    return evalset.queries[by].fillna("(none)").astype(str).to_numpy(str)


def _slice(both: Paired, name: str, inside: IntArray) -> dict[str, object]:
    clusters = clusters_among(both.clusters, inside)
    units = len(inside) if clusters is None else int(np.unique(clusters).size)
    a, b = both.a.take(inside), both.b.take(inside)
    least, most = (
        mean_interval(values[inside], clusters) for values in (both.found.least, both.found.most)
    )
    quality = least.spanning(most).clipped(*DIFFERENCE).scaled(100.0)
    saved = saving_interval(b.cost_usd, a.cost_usd, clusters).scaled(100.0)
    return {
        "name": name,
        "n": len(inside),
        **quality.columns("quality"),
        **saved.columns("savings"),
        "flipped": 100 * float((a.models != b.models).mean()),
        "p": tested(b, a, both.found.delta_quality[inside], clusters).p_value,
        "small": units < SMALL,
    }


def grouping(evalset: EvalSet) -> Sequence[str]:
    """What deltas can be shown by."""
    known = [name for name in ("group",) if name in evalset.queries.columns]
    return ("language", "language group", *known)
