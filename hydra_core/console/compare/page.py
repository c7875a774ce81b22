"""Compare: what policy B changes against policy A, query by query, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import counted, signed, signed_usd, usd
from hydra_core.base.types import Catalog, Rule
from hydra_core.console import cache, frame, replays, selectors, state, tables, widgets
from hydra_core.console import reports as reporting
from hydra_core.console.cache import SetEntry
from hydra_core.console.compare import queries as compare_queries
from hydra_core.console.compare import state as compare_state
from hydra_core.console.compare import view
from hydra_core.console.compare.figure_deltas import deltas_figure
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.figures.frontier import frontier_figure
from hydra_core.console.figures.heat import heat_figure
from hydra_core.console.numbers import per_resolved_text, percent
from hydra_core.console.state import bound
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.replay import significance_table as report
from hydra_core.replay.baselines import MODEL_COUPLED, BaselineRun, Checker, run_baselines
from hydra_core.replay.compare import constant_run
from hydra_core.replay.metrics import costliest
from hydra_core.replay.significance_table import (
    Entry,
    SignificanceTable,
    significance_table,
)
from hydra_core.replay.sweep import Sweep

_VIEWS = ("Who moved", "Cost and quality", "Languages and groups", "Queries", "Significance")
#: The choices that a link may make.
_FIXED = {
    "view": _VIEWS, "colour": tuple(view.Measure), "list": tuple(compare_queries.Which),
    "notes": tuple(compare_queries.NOTED),
}  # fmt: skip


def compare(entry: SetEntry, catalog: Catalog) -> None:
    """Both sides, the answer, then the view that is asked for."""
    try:
        own = cache.sweep(entry, catalog, catalog.policy.weights)
        options = compare_state.offered(entry, catalog, own)
        a, b = compare_state.sides(options, own)
        cards = choose(options, a, b)
        learned = fitted(own, (a, b))
        if learned is None:
            return
        both_sides = (
            (a, compare_state.sweep_of(entry, a, own)),
            (b, compare_state.sweep_of(entry, b, own)),
        )
        both = replays.paired(*both_sides, own, learned)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)), icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    for card, found, (side, sweep) in zip(cards, view.totals(both), both_sides, strict=True):
        side_figures(card, found)
        if side.kind is view.Kind.CASCADE:
            card.caption(literal(view.cascade_text(side, sweep)))
    compare_state.keep_link(entry, state.get().catalog, a, b)
    if views(own, both, both_sides) == "Significance":
        significance(entry, own, options, (a, b))
    compare_state.write()


def choose(
    options: dict[str, view.Side], a: view.Side, b: view.Side
) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Both cards with their selectors, and the button between them."""
    left, middle, right = st.columns([10, 1, 10], gap="small", vertical_alignment="center")
    cards = left.container(border=True), right.container(border=True)
    _side(cards[0], "a", "the reference", options, a)
    _side(cards[1], "b", "the alternative", options, b)
    middle.button(
        "", icon=":material/swap_horiz:", on_click=compare_state.swap, args=(a, b),
        key="compare.swap", help="Swap A and B", width="stretch",
    )  # fmt: skip
    return cards


def views(own: Sweep, both: view.Paired, both_sides: view.Sides) -> str:
    """The answer, then the view that is asked for, which is returned."""
    b = both_sides[1][0]
    answer(both)
    widgets.recorded_costs(own.data)
    widgets.notes(own)
    if both.found.left_out:
        st.caption(
            f"{counted(both.found.left_out, 'query')} that only one of the two can route: left out."
        )
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        part = widgets.switch("View", _VIEWS, "compare.view")
        if b.knob is not None:
            reporting.button(both_sides[1][1], b.knob, "compare", "Report of B")
    if part == "Who moved":
        flips(both)
    elif part == "Queries":
        compare_queries.queries(both, both_sides)
    elif part == "Cost and quality":
        widgets.figure(
            frontier_figure(view.on_curve(own, both, both_sides), widgets.colors()),
            "compare.curve",
            alt="Quality against cost: the router's curve, single models, and both sides",
        )
    elif part == "Languages and groups":
        by_slice(both, own)
    return part


_NO_INTERVAL = "too few to say"


def _side(
    place: DeltaGenerator, letter: str, role: str, options: dict[str, view.Side], side: view.Side
) -> None:
    """The selector of one side, and its knob where it has one."""
    wide = narrow = place
    if side.knob is not None:
        wide, narrow = place.columns([7, 3], vertical_alignment="bottom")
    wide.selectbox(
        f"{letter.upper()} · {role}",
        list(options),
        format_func=lambda name: options[name].label,
        **bound(
            f"compare.{letter}",
            side.id,
            lambda name: compare_state.put(**{letter: name, f"knob_{letter}": None}),
        ),
    )
    if side.kind is view.Kind.CASCADE:
        _checker(place, letter, side.checker)
    if side.knob is None:
        return
    by_value = side.rule is Rule.VALUE
    field = f"compare.{'value' if by_value else 'tau'}_{letter}"
    narrow.number_input(
        "V in USD" if by_value else "Threshold τ",
        min(1e-9, side.knob) if by_value else 0.0,
        None if by_value else max(100.0, side.knob),
        None,
        step=float(f"{side.knob / 10:.1g}") if by_value else 0.005,
        format="%.6g",
        help="Of this side only; the catalog's own until you change it.",
        **bound(field, side.knob, lambda knob: compare_state.put(**{f"knob_{letter}": knob})),
    )


def _checker(place: DeltaGenerator, letter: str, now: Checker) -> None:
    """The checker's errors, cost and time."""
    settings = (
        ("Passes bad, %", "passes_wrong", 100.0, 100.0, 1.0),
        ("Rejects right, %", "rejects_right", 100.0, 100.0, 1.0),
        ("A check, USD", "check_usd", 1.0, None, 0.0001),
        ("A check, s", "check_s", 1.0, None, 0.1),
    )
    for column, (label, name, scale, most, step) in zip(
        place.columns(4, vertical_alignment="bottom"), settings, strict=True
    ):
        shown = bound(
            f"compare.checker.{letter}.{name}",
            scale * getattr(now, name),
            partial(_set_checker, now, name, scale),
        )
        column.number_input(label, 0.0, most, step=step, format="%.6g", **shown)


def _set_checker(now: Checker, name: str, scale: float, value: float) -> None:
    compare_state.put(checker=replace(now, **{name: value / scale}))


def side_figures(place: DeltaGenerator, found: view.Totals) -> None:
    """What one side reaches by itself, on one line."""
    least, most = ("≥ ", "≤ ") if found.unknown else ("", "")
    resolved = found.per_resolved_usd
    parts = (
        f"**{least}{percent(found.qr)[0]}** QR",
        f"**{least}{percent(found.quality)[0]}** quality",
        f"**{literal(usd(found.mean_cost_usd.value))}** per query",
        literal((most if resolved.known else "") + per_resolved_text(resolved)),
    )
    place.markdown(" :gray[·] ".join(parts))


def answer(both: view.Paired) -> None:
    """The sentence, then each difference with its paired interval."""
    found = both.found
    before, after = (float(run.cost_usd.mean()) for run in (both.a, both.b))
    tone, title, icon = _headline(
        found.quality, found.savings, free_before=before == 0.0 and after > 0.0
    )
    widgets.toned(tone, view.sentence(both), title, icon)
    only_b, only_a = found.mcnemar.only_a, found.mcnemar.only_b
    test = "McNemar p" if both.clusters is None else "p over clusters"
    if found.unknown:
        test = "known queries only, p"
    costs = f"{literal(usd(after))} against {literal(usd(before))}"
    below = "Below: 95 % interval, paired by query."
    widgets.metric_row([
        ("Quality", *_points(found.quality), f"Mean quality of B minus that of A. {below}"),
        ("Quality retention", *_points(found.qr),
         f"QR of B minus QR of A, both against one oracle: the best of either pool. {below}"),
        ("Cost saved", *_saved(found.savings, before, after),
         f"1 − cost of B / cost of A: {costs} per query. {below}"),
        ("Overpaid queries", *_points(found.misroute),
         f"Share of queries that a cheaper model than the chosen one resolved, B minus A. {below}"),
        ("Resolved by one only", f"{only_b:,} : {only_a:,}",
         f"{test} {report.p_text(found.mcnemar.p_value)}",
         f"{counted(only_b, 'query')} only B resolves, {only_a:,} only A. The p value says how "
         "likely so uneven a split is if both were equally good. Queries that either sends to a "
         "model without outcomes are left out; dependent queries count once."),
    ])  # fmt: skip


def _headline(
    quality: Interval, savings: Interval, *, free_before: bool = False
) -> tuple[str, str, str]:
    """(tone, title, icon).

    Args:
        free_before: Whether A costs nothing and B something, which is no share of A's cost.
    """
    cheaper, dearer = savings.lo > 0, savings.hi < 0 or free_before
    if quality.lo > 0:
        if dearer:
            return "info", "B buys quality", "trending_up"
        return "success", "B is better and costs no more", "trending_up"
    if quality.hi < 0:
        if cheaper:
            return "warning", "B saves money and costs quality", "balance"
        return "warning", "A is better and costs no more", "trending_down"
    if cheaper:
        return "success", "B is cheaper; no loss in quality is shown", "savings"
    if dearer:
        return "warning", "B costs more; no gain in quality is shown", "trending_down"
    return "info", "No difference can be shown", "balance"


def _points(interval: Interval) -> tuple[str, str]:
    return _spelled(interval.scaled(100.0), " pp")


def _saved(interval: Interval, before: float, after: float) -> tuple[str, str]:
    if not np.isfinite(interval.value):
        return signed_usd(before - after), "A costs nothing"
    return _spelled(interval.scaled(100.0), " %")


def _spelled(shown: Interval, unit: str) -> tuple[str, str]:
    if not np.isfinite(shown.value):
        return "n/a", _NO_INTERVAL
    bounds = f"{signed(shown.lo)} to {signed(shown.hi)}{unit}"
    return f"{signed(shown.value)}{unit}", bounds if np.isfinite(shown.hi) else _NO_INTERVAL


def flips(both: view.Paired) -> None:
    """The flip matrix: rows are where A sent a query, columns where B sent it."""
    moved = int(both.found.flipped.size)
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        st.markdown(
            f"**{moved:,}** of {counted(both.found.n, 'query')} "
            f"({100 * moved / both.found.n:.1f} %) go to another model.",
            width="content",
        )
        measure = widgets.switch("Colour", list(view.Measure), "compare.measure")
    if not moved:
        st.caption("Nothing moved, so there is no matrix to draw.")
        return
    matrix = view.flip_view(both, measure)
    widgets.figure(
        heat_figure(matrix, widgets.colors()),
        "compare.flips",
        alt="Queries by the model A sent them to and the model B sends them to",
    )
    if measure in (view.Measure.QUALITY, view.Measure.COST):
        st.caption("Mean change per query of the cell, B minus A; green is better.")


def by_slice(both: view.Paired, sweep: Sweep) -> None:
    """Differences by language or group: figure, then numbers."""
    by = widgets.switch("By", view.grouping(sweep.evalset), "compare.by", str.capitalize)
    frame = view.slices(both, sweep.evalset, by)
    shown = frame.head(_MOST_SLICES)
    widgets.figure(
        deltas_figure(shown, widgets.colors()),
        "compare.deltas",
        alt=f"Difference in quality and cost by {by}, with 95 % intervals",
    )
    _slice_table(frame)
    small = int(frame["small"].sum())
    test = "McNemar" if both.clusters is None else "a paired test over clusters"
    text = f"p: {test} on resolved or not, corrected for looking at all rows (Holm)."
    if small:
        text += f" Open circles: fewer than 30 independent queries ({small} rows)."
    if len(frame) > len(shown):
        text += f" Drawn are the {len(shown)} largest of {len(frame)}."
    st.caption(text)


_MOST_SLICES = 24


def _slice_table(frame: pd.DataFrame) -> None:
    column = st.column_config
    bounds = {
        f"{name}_range": [
            f"{signed(low)} to {signed(high)}" if np.isfinite(low) and np.isfinite(high) else ""
            for low, high in zip(frame[f"{name}_lo"], frame[f"{name}_hi"], strict=True)
        ]
        for name in ("quality", "savings")
    }
    note = frame["small"].map({True: "small sample", False: ""})
    tables.kept(
        frame.assign(**bounds, note=note, p=frame["p"].map(report.p_text)),
        "compare.slices",
        {"quality": tables.change(unit=" pp"), "savings": tables.change(unit=" %")},
        rows=frame,
        height="content" if len(frame) <= 20 else 420,
        columns={
            "name": "Slice",
            "n": column.NumberColumn("Queries", format="localized"),
            "quality": column.NumberColumn("Quality"),
            "quality_range": "95 % interval",
            "savings": column.NumberColumn("Cost saved"),
            "savings_range": "95 % interval ",
            "flipped": column.NumberColumn("Moved", format="%.0f %%"),
            "p": column.TextColumn("p"),
            **({"note": ""} if note.any() else {}),
        },
    )


_MOST = 30
#: Larger sets take too long to fit while somebody waits; the command line has no such limit.
MOST_QUERIES = 20_000


def significance(
    entry: SetEntry, own: Sweep, options: Mapping[str, view.Side], now: tuple[view.Side, view.Side]
) -> None:
    """Pick policies, at first both sides of the page; see each of them and every pair."""
    sides = _picked(own, options, now)
    if not sides:
        st.caption("Pick at least one policy.")
        return
    learned = fitted(own, sides)
    if learned is None:
        return
    pairs = tuple((side, compare_state.sweep_of(entry, side, own)) for side in sides)
    table = _table(pairs, own, learned)
    _standings(table)
    if len(table.standings) > 1:
        st.markdown("**Row minus column, quality in pp** (* corrected p below 0.05)")
        st.dataframe(report.matrix(table), height="content")
        tables.offer_downloads(report.pair_frame(table), "compare.pairs")
    st.caption(literal(" ".join(table.methods)))
    st.download_button(
        "Both tables with their methods, LaTeX", lambda: report.latex(table).encode(),
        f"{entry.info.name} significance.tex", "text/x-tex", icon=":material/download:",
        key="compare.significance", on_click="ignore",
    )  # fmt: skip


def _picked(
    own: Sweep, options: Mapping[str, view.Side], now: tuple[view.Side, view.Side]
) -> list[view.Side]:
    """The chosen policies; a side of the page keeps the setting that it has there."""
    key = compare_state.POLICIES
    first = dict.fromkeys((now[1].id, now[0].id, f"always:{costliest(own.data)}"))
    st.session_state[key] = [one for one in st.session_state.get(key, first) if one in options]
    ids = st.multiselect(
        "Policies", list(options), format_func=lambda name: options[name].label, key=key,
        max_selections=_MOST, persist_state="session", wrap=True,
        help="Routers, pins, single models and fixed mixes, imported policies and learned routers. "
        "Those that follow a cost spend what the first one does.",
    )  # fmt: skip
    here = {side.id: side for side in now}
    return [here.get(name, options[name]) for name in ids]


@cache.cached(12, "Resampling the queries 10,000 times")
def _table(
    sides: tuple[tuple[view.Side, Sweep], ...], own: Sweep, _learned: Mapping[str, BaselineRun]
) -> SignificanceTable:
    entries: list[Entry] = []
    spend = None
    for side, sweep in sides:
        run = view.side_run(side, sweep, spend, _learned)
        spend = float(run.cost_usd.mean()) if spend is None else spend
        entries.append(Entry(run, _chosen(side, sweep)))
    strong = constant_run(own.data, costliest(own.data))
    rng = np.random.default_rng(0)
    return significance_table(entries, strong, own.evalset.clusters, rng=rng)


def _chosen(side: view.Side, sweep: Sweep) -> str:
    """How the policy came about."""
    if side.kind is view.Kind.ROUTER:
        return report.chosen_text(sweep.selection(side.knob or 0.0))
    words = {
        view.Kind.LEARNED: "cross-fitted",
        view.Kind.IMPORTED: "imported",
        view.Kind.ORACLE: "in hindsight",
        view.Kind.CASCADE: "simulated",
    }
    return words.get(side.kind, "fixed")


def _standings(table: SignificanceTable) -> None:
    column = st.column_config
    frame = report.standing_frame(table)
    shown = frame.assign(
        **{f"{name}_range": tables.ranges(frame, name) for name in ("resolved", "qr", "cs")},
        split=[f"{one.only_it} : {one.only_strong}" for one in table.standings],
        p=[report.p_text(one.p_value) for one in table.standings],
    )
    tables.kept(
        shown,
        "compare.policies",
        rows=frame,
        columns={
            "policy": column.TextColumn("Policy", width=185),
            "chosen": column.TextColumn("Chosen", width=75),
            "resolved": column.NumberColumn("Resolved", format="%.1f %%", width=62),
            "resolved_range": column.TextColumn("95 %", width=84),
            "qr": column.NumberColumn("QR", format="%.1f %%", width=62),
            "qr_range": column.TextColumn("95 % ", width=84),
            "cs": column.NumberColumn("CS", format="%.1f %%", width=62),
            "cs_range": column.TextColumn("95 %  ", width=84),
            "cost": column.NumberColumn("Cost", format=tables.dollars(frame["cost"]), width=72),
            "split": column.TextColumn("It : strong", width=72),
            "p": column.TextColumn("p", width=58),
        },
    )


def fitted(sweep: Sweep, sides: Sequence[view.Side]) -> dict[str, BaselineRun] | None:
    """The learned routers among the sides; None while one is not there, after saying why."""
    found: dict[str, BaselineRun] = {}
    for name in {side.model for side in sides if side.kind is view.Kind.LEARNED}:
        if len(sweep.data.rows) > MOST_QUERIES:
            st.info(
                f"Learned routers are fitted here on at most {MOST_QUERIES:,} queries; this set "
                f"has {len(sweep.data.rows):,}."
            )
            return None
        task = _fit(sweep, name)
        if task.running:
            widgets.waiting(task, f"Fitting {name}, cross-fitted")
            return None
        if not isinstance(task.result, BaselineRun):
            st.error(literal(task.error or f"{name} could not be fitted"), icon=":material/error:")
            return None
        found[name] = task.result
    if found:
        st.caption(
            f":material/info: {', '.join(sorted(found))}: cross-fitted, none routes a query it "
            f"learned from; {MODEL_COUPLED}."
        )
    return found


def _fit(sweep: Sweep, name: str) -> Task:
    key = ("baseline", name, cache.sweep_key(sweep))

    def work(task: Task) -> BaselineRun:
        texts = sweep.evalset.require_texts(name).iloc[sweep.data.rows].tolist()
        return run_baselines(sweep.data, texts, names=(name,), progress=task.progress)[0]

    return replays.tasks().get(key) or replays.tasks().start(key, work)


def show() -> None:
    """The whole page."""
    compare_state.follow(_FIXED)
    selectors.on_data(frame.head("Compare"), compare, baseline=False)
