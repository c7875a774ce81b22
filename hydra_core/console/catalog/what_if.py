"""What a draft would change: figures with paired intervals, traffic, flips and their queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import counted, signed, signed_usd, usd
from hydra_core.base.types import Catalog, FloatArray, IntArray, Rule
from hydra_core.catalog.profiles import capabilities
from hydra_core.console import replays, selectors, tables, widgets
from hydra_core.console.browser import Bar, LiveKnob, live_knob
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.drafts import Working
from hydra_core.console.figures.heat import HeatView, heat_figure
from hydra_core.console.figures.shares import traffic_figure
from hydra_core.console.figures.theme import model_colors
from hydra_core.console.numbers import SYMBOLS, knob_text, percent, points, policy_text
from hydra_core.console.view_result import Measure, Tile
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import Comparison, WhatIf, what_if
from hydra_core.replay.frontier import StepCurve
from hydra_core.replay.sweep import Sweep, turning_points

_MOST_QUERIES = 500
#: Of either curve; two pixels each on the page.
_STEPS = 128
_QUALITIES = (Measure.QUALITY, Measure.QR)


def sentence(found: WhatIf) -> str:
    """The effect in one plain sentence."""
    comparison = found.comparison
    moved = int(comparison.flipped.size)
    if not moved:
        return f"No query of {comparison.n:,} changes its model."
    share = 100 * moved / comparison.n
    return f"{moved:,} of {counted(comparison.n, 'query')} ({share:.1f} %) change their model."


def alone(found: WhatIf) -> str:
    """Queries moved, quality and cost of one edit by itself, in one line."""
    text = f"By itself: {sentence(found)}"
    if not found.comparison.flipped.size:
        return text
    both = found.comparison
    quality, cost = _signed(both.quality, False, both.unknown), _signed(both.cost_usd, True)
    return f"{text} Quality {quality}, cost {cost} per query."


def deltas(found: WhatIf, before: str, after: str = "draft") -> None:
    """One tile per figure: the value with the draft, and its paired difference."""
    shown = tiles(found, before, after)
    wide = [1.3 if one.measure is Measure.COST else 1.0 for one in shown]  # its change is long
    for place, one in zip(st.columns(wide), shown, strict=True):
        widgets.metric(place, one.label, one.value, one.interval, literal(one.help), one.tone)
    widgets.cautions(found.after.metrics, found.after.data)


def tiles(found: WhatIf, before: str, after: str) -> tuple[Tile, ...]:
    """The figures afterwards, each with its paired difference in the interval's place."""
    a, b, c = found.before.metrics, found.after.metrics, found.comparison
    binary = found.after.data.binary
    open_ = any(part.data.unmeasured for part in (found.before, found.after))
    least = " ≥" if open_ else ""
    overpaid = " ≥" * (b.misroute_most > b.misroute.value)
    figures = (
        (Measure.QUALITY, f"{'Resolved' if binary else 'Mean quality'}{least}",
         percent(b.quality)[0], c.quality, 1, f"{before} {percent(a.quality)[0]}"),
        (Measure.QR, f"Quality retention{least}", percent(c.retained[1])[0], c.qr, 1,
         f"{before} {percent(c.retained[0])[0]}. Both against one oracle, the best of either pool, "
         "so that a pool that lost a model cannot look better"),
        (Measure.COST, "Cost per query", usd(b.mean_cost_usd.value), c.cost_usd, -1,
         f"{before} {usd(a.mean_cost_usd.value)}"),
        (Measure.MISROUTE, f"Overpaid queries{overpaid}", percent(b.misroute)[0], c.misroute, -1,
         f"{before} {percent(a.misroute)[0]}. Queries that a model cheaper than the chosen one "
         "resolved"),
    )  # fmt: skip
    return tuple(
        Tile(
            measure,
            label,
            value,
            _signed(change, measure is Measure.COST, c.unknown if measure in _QUALITIES else 0.0),
            f"With the {after}; {note}. Below: the paired difference with its 95 % interval.",
            _color(change, better),
        )
        for measure, label, value, change, better, note in figures
    )


def _signed(change: Interval, money: bool, unknown: float = 0.0) -> str:
    if np.isnan(change.value):
        return "not defined"
    exact = change.lo == change.hi == 0.0 or not (change.known or unknown)
    if change.value == 0.0 and exact:
        return "unchanged"
    if not change.known:
        return f"{signed_usd(change.value) if money else points(change.value)} ({change.reason})"
    if money:
        top = max(abs(change.lo), abs(change.hi))
        places = max(1 - int(np.floor(np.log10(top))), 2)
        lo, hi = f"{change.lo:+.{places}f}", f"{change.hi:+.{places}f}"
        sign = "-" if change.value < 0 else "+"
        return f"{sign}${abs(change.value):.{places}f} ({lo} to {hi})".replace("-", "−")
    shown = change.scaled(100.0)
    if unknown:
        return f"{signed(shown.lo)} to {signed(shown.hi)} pp"
    return f"{signed(shown.value)} pp ({signed(shown.lo)} to {signed(shown.hi)})"


def _color(change: Interval, better: int) -> str:
    """Coloured only where the interval leaves out no difference."""
    if change.lo > 0.0 or change.hi < 0.0:
        return "green" if change.value * better > 0 else "red"
    return ""


def details(found: WhatIf, evalset: EvalSet, before: str, after: str) -> None:
    """Traffic before and after, the flip matrix, and the queries that flipped."""
    models = tuple(found.shares)
    was, now = 100 * np.array([found.shares[model] for model in models]).reshape(-1, 2).T
    with st.container(border=True):
        st.markdown("**Traffic by model**")
        widgets.figure(
            traffic_figure(models, was, now, (before, after), widgets.colors()),
            "what_if.traffic",
            alt="Share of queries that each model gets, before and after",
        )
    with st.container(border=True):
        st.markdown("**Flips: from row to column**")
        _flips(found)
    _queries(found, evalset)


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
            f"<b>{cell.before} → {cell.after}</b><br>{counted(cell.queries, 'query')}<br>"
            f"quality {points(cell.delta_quality)} each<br>"
            f"cost {signed_usd(cell.delta_cost_usd)} each"
        )
    most = float(np.nanmax(values))
    view = HeatView(
        rows, columns, values, tuple(map(tuple, texts)), tuple(map(tuple, hover)), (0.0, most)
    )
    widgets.figure(
        heat_figure(view, widgets.colors(), row_height=32, width=850),
        "what_if.flips",
        alt="Queries that move from one model to another",
    )
    _flip_table(found.comparison)


def _flip_table(comparison: Comparison) -> None:
    column = st.column_config
    rows = [
        (one.before, one.after, one.queries, 100 * one.delta_quality, one.delta_cost_usd)
        for one in comparison.flips
    ]
    frame = pd.DataFrame(rows, columns=["from", "to", "queries", "quality", "cost"])
    models = (*frame["from"], *frame["to"])
    tables.kept(
        frame,
        "what_if.moves",
        {
            "from": tables.named(220, models),
            "to": tables.named(220, models),
            "quality": tables.change(),
            "cost": signed_usd,
        },
        height="content" if len(frame) <= 6 else 250,
        column_config={
            "from": column.TextColumn("From", width=220),
            "to": column.TextColumn("To", width=220),
            "queries": column.NumberColumn("Queries", format="localized", width=100),
            "quality": column.NumberColumn("Δ quality, pp", width=100),
            "cost": column.NumberColumn("Δ cost", width=100),
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
    column, texts = st.column_config, evalset.texts
    begins = None if texts is None else texts.iloc[rows].str.slice(0, 400).to_numpy()
    then, now = (
        [str(model) for model in part.run.models[np.searchsorted(part.run.rows, rows)]]
        for part in (found.before, found.after)
    )
    frame = pd.DataFrame(
        {
            "query": evalset.queries["query_id"].iloc[rows].astype(str).to_numpy(),
            **({} if begins is None else {"text": begins}),
            "from": then,
            "to": now,
            "quality": 100 * comparison.delta_quality[moved][order],
            "cost": comparison.delta_cost[moved][order],
        }
    )
    tables.kept(
        frame,
        "what_if.queries",
        {
            "from": tables.named(125, found.shares),
            "to": tables.named(125, found.shares),
            "quality": tables.change("+.0f"),
            "cost": signed_usd,
        },
        height=min(40 + 35 * len(frame), 390),
        column_config={
            "query": column.TextColumn("Query", width=110),
            "text": column.TextColumn("Text", width=360),
            "from": column.TextColumn("From", width=125),
            "to": column.TextColumn("To", width=125),
            "quality": column.NumberColumn("Δ quality, pp", width=95),
            "cost": column.NumberColumn("Δ cost", width=78),
        },
    )
    if moved.sum() > _MOST_QUERIES:
        st.caption(f"Those with the largest change of quality, {_MOST_QUERIES} of {moved.sum():,}.")


def moved_by_pool(before: Catalog, after: Catalog) -> tuple[str, ...]:
    """Models whose capabilities moved though nothing of their own was edited.

    Capabilities are relative: the weakest counting model of the pool gets a band's low end, the
    strongest its high end, so a model that joins or leaves moves the others.
    """
    if (before.benchmarks, before.bands) != (after.benchmarks, after.bands):
        return ()
    old = {m.id: (m, row) for m, row in zip(before.models, capabilities(before), strict=True)}
    moved = []
    for model, now in zip(after.models, capabilities(after), strict=True):
        if model.id not in old:
            continue
        was, then = old[model.id]
        same = (was.scores, was.overrides) == (model.scores, model.overrides)
        if same and not np.allclose(then, now, atol=5e-4, equal_nan=True):
            moved.append(model.id)
    return tuple(moved)


def paired_steps(found: WhatIf, before: Sweep, after: Sweep) -> pd.DataFrame:
    """The exact figures of both catalogs at common settings of one knob, before a hand moves it.

    Args:
        found: The comparison that is shown at rest: its models and its common queries.
        before, after: Both catalogs for every setting, under the same rule.

    Returns:
        A row a step: `knob`; for each measure of a what-if its value afterwards, in percent but
        for the cost in USD, and in `<measure>_change` what it is more than before, on the common
        queries; `before_0`, ... and `after_0`, ... with the traffic of each of `found.shares`.
    """
    settings = (turning_points(sweep.curve, _STEPS) for sweep in (before, after))
    knobs = np.asarray(sorted(set().union(*settings)))
    a, b = (_on(sweep, found.comparison.rows) for sweep in (before, after))
    best = _best(a, b)
    was, now, whole = (_figures(sweep.curve, knobs) for sweep in (a, b, after))
    columns = {measure.value: values for measure, values in whole.items()}
    columns |= {f"{one.value}_change": values - was[one] for one, values in now.items()}
    quality, change = now[Measure.QUALITY], columns[f"{Measure.QUALITY.value}_change"]
    columns |= {Measure.QR.value: quality / best, f"{Measure.QR.value}_change": change / best}
    for name, sweep in (("before", before), ("after", after)):
        traffic = dict(zip(sweep.models, sweep.traffic(knobs).T, strict=True))
        for i, model in enumerate(found.shares):
            columns[f"{name}_{i}"] = traffic.get(model, np.zeros(knobs.size))
    narrow = {name: values.astype(np.float32) for name, values in columns.items()}
    return pd.DataFrame({"knob": knobs} | narrow)


def _on(sweep: Sweep, rows: IntArray) -> Sweep:
    """The sweep of these rows of the eval set alone."""
    if sweep.data.rows.size == rows.size:
        return sweep
    return replace(sweep, data=sweep.data.take(np.searchsorted(sweep.data.rows, rows)))


def _best(a: Sweep, b: Sweep) -> float:
    """Mean quality of the best model of either pool, query by query, as QR is measured here."""
    each: list[FloatArray] = [sweep.data.servable.max(axis=1) for sweep in (a, b)]
    return float(np.maximum(*each).mean()) or 1.0


def _figures(curve: StepCurve, knobs: FloatArray) -> dict[Measure, FloatArray]:
    rows = np.asarray([curve.row(float(knob)) for knob in knobs], dtype=np.intp)
    return {
        Measure.QUALITY: 100 * curve.quality[rows],
        Measure.COST: curve.mean_cost_usd[rows],
        Measure.MISROUTE: 100 * curve.misroute[rows],
    }


#: Also in `selectors`, for the address.
_KEYS = {Rule.SHORTFALL: "what_if.tau", Rule.VALUE: "what_if.value_usd"}


def common_setting(place: DeltaGenerator, before: Catalog, after: Catalog) -> float | None:
    """The setting to compare both at, as a number; None for each at its own."""
    rule, own = after.policy.rule, after.policy.knob
    same = before.policy.rule is rule
    value = rule is Rule.VALUE
    given = place.number_input(
        f"At {SYMBOLS[rule]}", min_value=1e-9 if value else 0.0, value=None,
        step=float(f"{own / 10:.1g}") if value else 0.01, format="%.10g", key=_KEYS[rule],
        placeholder="each its own", disabled=not same,
        help="Compare both at this setting of the knob. Empty: each at its own."
        if same else "The rules differ: each is compared at its own setting.",
    )  # fmt: skip
    return float(given) if given is not None and same else None


def knob_deltas(
    found: WhatIf,
    chosen: SetEntry,
    before: str,
    after: str = "draft",
    *,
    fades: tuple[str, ...] = (),
) -> None:
    """The tiles of a what-if over a knob that both catalogs follow; without it across two rules.

    Args:
        chosen: The eval set that both were replayed on.
        before, after: What the two are called.
        fades: Keys of what else holds for the last setting only.
    """
    sweeps = _sweeps(found, chosen)
    if sweeps is None:
        deltas(found, before, after)
        return
    rule, models = found.after.catalog.policy.rule, tuple(found.shares)
    own, now = (part.catalog.policy.knob for part in (found.before, found.after))
    apart = f"{knob_text(rule, own)} → {knob_text(rule, now).split()[-1]}" if own != now else ""
    live_knob(
        LiveKnob(
            rule,
            now,
            _steps(sweeps, found),
            model_colors(models, widgets.colors()),
            tiles(found, before, after),
            bars=tuple(
                Bar(label, column, tuple(found.shares[model][i] for model in models))
                for i, (label, column) in enumerate(((before, "before"), (after, "after")))
            ),
            fades=fades,
            text=apart,
        ),
        key="what_if.knob",
        on_release=lambda at: st.session_state.update({_KEYS[rule]: at}),
    )
    widgets.cautions(found.after.metrics, found.after.data)


@cached(8)
def _steps(sweeps: tuple[Sweep, Sweep], _found: WhatIf) -> pd.DataFrame:
    """No setting of the knob changes them: a release does not wait for them again."""
    return paired_steps(_found, *sweeps)


def _sweeps(found: WhatIf, chosen: SetEntry) -> tuple[Sweep, Sweep] | None:
    """Both catalogs for every setting; None where they do not share a knob."""
    both = (found.before.catalog, found.after.catalog)
    if both[0].policy.rule is not both[1].policy.rule:
        return None
    try:
        a, b = (replays.ruled_sweep(chosen, c, c.policy.rule, c.policy.weights) for c in both)
    except HydraError:  # the tiles are there without the knob, and say the same at rest
        return None
    return a, b


#: Key of what the summary stands in; it holds for the last setting only.
SUMMARY = "what_if.summary"


def draft_effect(working: Working, *, knob: bool = False) -> None:
    """What the draft would do on the eval set in use, in one row of figures.

    Args:
        knob: Also over every setting of the knob, while it is dragged.
    """
    if working.catalog is None or working.published is None:
        return
    left, middle, right = st.columns([5.4, 1.9, 3.7], vertical_alignment="bottom")
    left.subheader("What it would change", anchor=False)
    chosen = selectors.choose_evalset(right, working.published)
    if chosen is None:
        st.caption(
            "No eval set fits this catalog: one that is scored by its predictor and shares models "
            "with it is needed."
        )
        return
    at = common_setting(middle, working.published, working.catalog) if knob else None
    found = compared(chosen, working.published, working.catalog, at)
    if found is not None:
        text = sentence(found) if working.edited else "Edit a cell to see its effect."
        where = policy_text(found.after.catalog.policy)
        with st.container(key=SUMMARY):
            n = found.comparison.n
            summary(found, chosen, f"{text} Replayed on {counted(n, 'query')} at {where}.")
        if knob:
            knob_deltas(found, chosen, working.before, fades=(SUMMARY,))
        else:
            deltas(found, working.before)
        moved = moved_by_pool(working.published, working.catalog)
        if moved:
            st.caption(
                f":material/info: The capabilities of {literal(', '.join(moved))} move too: on "
                "each dimension the weakest active model of the pool stands at the low end of the "
                "score band and the strongest at its high end, so who is in the pool shifts "
                "everybody."
            )


def summary(found: WhatIf, chosen: SetEntry, text: str) -> None:
    """What a comparison comes to, in a line beside what it rests on."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        widgets.synthetic_badge(chosen.info.synthetic)
        st.caption(literal(" ".join([text, *found.after.data.notes])))


def compared(
    chosen: SetEntry, before: Catalog, after: Catalog, knob: float | None = None
) -> WhatIf | None:
    """Both catalogs replayed and compared; None after saying why it cannot be done.

    Args:
        knob: tau or V of the rule of both, instead of each catalog's own.
    """
    try:
        return what_if(*(replays.replayed(chosen, one, knob) for one in (before, after)))
    except HydraError as error:
        widgets.problem(error)
    except ValueError as error:
        st.warning(literal(str(error)))
    return None
