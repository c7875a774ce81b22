"""The part Can routing help?: what routing could gain on an eval set, and what the set holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, signed, usd
from hydra_core.base.types import Catalog, IntArray
from hydra_core.console import cache, replays, selectors, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import make_catalog, scoring
from hydra_core.console.eval_sets import view as figured
from hydra_core.console.eval_sets.figures import spread_figure, upset_figure
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.figures.theme import cut
from hydra_core.console.frame import BY_HAND, COLLECT, LEARNED, Head, link
from hydra_core.console.tasks import Task
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.lab.ablation import AblatedReading, reading_ablation, readings
from hydra_core.predictor.bundle import SHIPPED_SMALL, load_bundle
from hydra_core.replay.routability import (
    DuplicateGroup,
    Overlap,
    PerfectRouter,
    Routability,
    duplicates,
    missing_data,
    overlaps,
    routability,
)
from hydra_core.replay.sweep import Sweep

#: Where a session keeps the set that it was asked about: it is scored without asking again.
ASKED = "explore.asked"

_PREDICTED, _READING, _CHECKS = "Can it be predicted?", "What reading adds", "Data checks"
_VIEWS = ("Who solves what", "Costs", "Difficulty", _PREDICTED, _READING, _CHECKS)
#: Up to this many queries a measurement begins by itself.
_AT_ONCE = 1_000


def _measured(
    key: Hashable,
    work: Callable[[Task], object],
    /,
    why: str,
    button: str,
    *,
    doing: str,
    at_once: bool = False,
    **shown: Any,  # noqa: ANN401 (Streamlit's own)
) -> Any:  # noqa: ANN401 (what `work` returns)
    """What was measured; None while it runs, or is offered: `why`, and a button as `st.button`."""
    task = replays.tasks().get(key)
    if task is None and at_once:
        task = replays.tasks().start(key, work)
    if task is not None and task.running:
        widgets.waiting(task, doing)
        return None
    if task is not None and task.failure is not None:
        widgets.problem(task.failure)
    if task is not None and task.result is not None:
        return task.result
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        st.markdown(why, width="stretch")
        if st.button(button, **shown):
            replays.tasks().start(key, work)
            st.rerun()
    return None


def predicted(sweep: Sweep) -> Task | None:
    """How well success is predicted, measured at once on small sets; None without texts."""
    if sweep.evalset.texts is None:
        return None
    key, work = _measurement(sweep)
    task = replays.tasks().get(key)
    if task is None and len(sweep.data.rows) <= _AT_ONCE:
        return replays.tasks().start(key, work)
    return task


def _measurement(sweep: Sweep) -> tuple[Hashable, Callable[[Task], Routability]]:
    def work(task: Task) -> Routability:
        texts = sweep.evalset.require_texts("the measurement").iloc[sweep.data.rows]
        return routability(sweep.data, texts.tolist(), progress=task.progress)

    return ("routability", cache.sweep_key(sweep)), work


def limits(known: PerfectRouter, task: Task | None, *, texts: bool) -> None:
    """How much routing could gain and whether success is predictable, then the figures.

    A possible gain is no result, so nothing here is green: Tune has the result of a policy.
    """
    found = task.result if task is not None else None
    if isinstance(found, Routability):
        middle = found.predicted
        tone, title, icon = "warning", "Routing has little to gain here", "trending_flat"
        if not np.isfinite(middle):
            tone, title, icon = "info", "Too few outcomes to say whether routing can help", "help"
        elif found.predictive and known.gain.lo > 0:
            tone, title, icon = "info", "Routing may help here", "straighten"
        widgets.toned(tone, found.text, title, icon)
    else:
        middle = float("nan")
        running = task is not None and task.running
        rest = "The console cannot say yet whether success is predictable: " + (
            "it is measuring." if running else f"measure it under {_PREDICTED}"
        )
        if not texts:
            rest = "This set has no texts; see Learned."
        widgets.toned(
            "info",
            f"{known.text} {rest}",
            "How much routing could gain at most",
            "hourglass_top" if running else "straighten",
        )
    _figures(known, middle, texts=texts)
    with st.container(horizontal=True):
        link(BY_HAND, "See what your policy gains", ":material/tune:")
        if not texts:
            link(LEARNED, "See what can be learned from this set", ":material/school:")
    if task is not None and task.running:
        widgets.waiting(task, "Measuring how well success is predicted")


def _figures(known: PerfectRouter, middle: float, *, texts: bool) -> None:
    gain = known.gain.scaled(100.0)
    interval = f"{gain.bounds()} pp" if gain.known else "one group: no interval"
    entries = (
        ("Best single model", f"{100 * known.quality:.1f} %", cut(known.best, 28),
         "Mean quality when every query goes to the model with the highest mean quality."),
        ("Perfect router", f"{100 * known.oracle:.1f} %", "best in hindsight",
         "Mean quality when every query goes to the model that did best on it (the oracle). No "
         "router can do better."),
        ("Possible gain", f"{signed(gain.value)} pp", interval,
         "Perfect router minus best single model. Below: 95 % interval."),
        ("Models differ on", f"{100 * known.decidable:.0f} %", figured.saving_text(known.saving),
         "Share of queries on which the models differ. On the others every choice is equally good. "
         "Below: what a perfect router costs beside the best single model."),
        ("Success predicted", "–" if np.isnan(middle) else f"{middle:.2f}",
         "AUC; chance is 0.50" if texts else "no texts here",
         "How well success is predicted on queries that were not learned from. Median AUC over the "
         "models, from the text or the requirement scores, whichever is higher. Routing may help "
         f"from 0.60 on. See {_PREDICTED} for each model."),
    )  # fmt: skip
    widgets.metric_row(entries, (1.5, 1, 1, 1, 1))  # the first holds a model's name


def who_solves(entry: SetEntry, evalset: EvalSet, sweep: Sweep | None) -> None:
    """The upset plot, of all queries or of those that the router sends to one model."""
    sent = None if sweep is None else _sent_to(entry, sweep.catalog)
    whole = replays.upset(evalset)
    found = whole if sent is None else figured.upset_view(evalset, sent)
    if found is None:
        st.info("No query has an outcome of every model, so there is no pattern to count.")
        return
    view, patterns, rest = found
    chart = upset_figure(view, widgets.colors())
    widgets.figure(chart, "explore.upset", alt="Queries by exactly which models solve them")
    note = (
        "Each bar counts the queries that exactly the marked models solve. Grey bars: all models "
        "solve them or none does, so a router has no choice to make."
    )
    if rest:
        note += f" Not shown: {rest:,} queries in {patterns - len(view.queries):,} rarer patterns."
    st.caption(note)


def _sent_to(entry: SetEntry, catalog: Catalog) -> IntArray | None:
    """Rows that the catalog's own policy sends to the picked model; None for all."""
    try:
        found = replays.replayed(entry, catalog)
    except HydraError as error:  # such as an outcome model that is not here
        widgets.problem(error)
        return None
    data, choice = found.data, found.choice
    counts = np.bincount(choice, minlength=len(data.pool.ids))
    names = {"": f"any model ({counted(len(choice), 'query')})"}
    names |= {m: f"{m} ({counts[i]:,})" for i, m in enumerate(data.pool.ids) if counts[i]}
    if st.session_state.get("explore.sent") not in names:
        st.session_state["explore.sent"] = ""
    picked = st.selectbox(
        "The router sends them to", list(names), format_func=names.__getitem__,
        key="explore.sent", persist_state="session", width=330,
    )  # fmt: skip
    return data.rows[choice == data.pool.ids.index(picked)] if picked else None


def costs(evalset: EvalSet) -> None:
    """How costs per query are spread."""
    frame = replays.spread(evalset)
    if frame.empty:
        st.info("This eval set has no costs.")
        return
    chart = spread_figure(frame, widgets.colors())
    widgets.figure(chart, "explore.costs", alt="Distribution of cost per query by model")
    note = (
        "Box: the middle half of the queries, with the median. Whiskers: 5 to 95 %. Diamond: the "
        "mean, which decides the bill."
    )
    if evalset.cost_estimated:
        note += " Costs are estimated from prices, not billed."
    st.caption(note)


def difficulty_by(evalset: EvalSet) -> None:
    """How hard each language or group is."""
    ways = [name for name in ("language", "group") if name in evalset.queries.columns]
    by = ways[0]
    if len(ways) > 1:
        by = widgets.switch("By", ways, "explore.by", str.capitalize)
    found = replays.difficulties(evalset, by)
    if not found:
        st.info("No query has an outcome of every model.")
        return
    frame = figured.difficulty_table(found, languages=by == "language")
    chart = intervals_figure(figured.difficulty_view(frame.head(24)), widgets.colors())
    alt = f"Mean quality of the models and of the oracle by {by}"
    widgets.figure(chart, "explore.difficulty", alt=alt)
    column = st.column_config
    tables.kept(
        frame.assign(bounds=tables.ranges(frame, "")),
        "explore.difficulty.table",
        rows=frame,
        height="content" if len(frame) <= 20 else 420,
        columns={
            "name": by.capitalize(),
            "n": column.NumberColumn("Queries", format="localized"),
            "quality": column.NumberColumn("Mean of the models", format="%.1f %%"),
            "bounds": "95 % interval",
            "oracle": column.NumberColumn("Perfect router", format="%.1f %%"),
            "decidable": column.NumberColumn("Models differ on", format="%.0f %%"),
        },
    )


def predictability(sweep: Sweep, task: Task | None) -> None:
    """How well success is predicted, model by model."""
    if task is not None and task.running:
        st.caption("The console is measuring; the result appears here.")
        return
    found: Routability | None = _measured(
        *_measurement(sweep),
        "**Can success be predicted?** The console cross-validates one small classifier for each "
        "model on up to 6,000 queries. This takes a minute or two.",
        "Measure",
        doing="Measuring",
        type="primary",
        key="explore.measure",
    )
    if found is None:
        return
    if not found.aucs:
        st.info(
            "Too few outcomes: each model needs 10 queries that it solved and 10 that it did not."
        )
        return
    widgets.figure(
        intervals_figure(figured.auc_view(found), widgets.colors()),
        "explore.aucs",
        alt="How well success of each model is predicted from the text and from the scores",
    )
    note = "Cross-validated. 0.5 is a coin toss, 1 is certainty."
    if found.advantage:
        note += " Last row: which of these two models is right where only one of them is."
    if found.sampled < found.n:
        note += f" Measured on {found.sampled:,} of {counted(found.n, 'query')}."
    st.caption(note)


def replayed(entry: SetEntry, catalog: Catalog) -> Sweep | None:
    """The set under the catalog's pool; None after saying why it cannot be replayed."""
    try:
        if st.session_state.get(ASKED) == entry.key:
            loaded = cache.evalset(entry)
            if loaded.texts is not None and not scoring.score_now(entry, loaded):
                return None
        return cache.sweep(entry, catalog, catalog.policy.weights)
    except HydraError as error:
        title = "This set cannot be replayed with this catalog"
        widgets.toned("info", str(error), title, "link_off")
        if cache.evalset(entry).is_log:
            link(COLLECT, "Have every model answer a sample")
        else:
            make_catalog.offer(entry)
        return None


def explore(entry: SetEntry, catalog: Catalog) -> None:
    """The sentence and its figures, then the view that is asked for."""
    sweep, task, texts = replayed(entry, catalog), None, False
    if sweep is not None:
        task = predicted(sweep)
        texts = sweep.evalset.texts is not None
        limits(replays.perfect(sweep), task, texts=texts)
        widgets.notes(sweep)
    # both read the texts again, under the catalog's predictor
    views = tuple(one for one in _VIEWS if texts or one not in (_PREDICTED, _READING))
    view = widgets.switch("View", views, "explore.view")
    try:
        evalset = sweep.evalset if sweep else cache.evalset(entry)
    except HydraError as error:
        widgets.problem(error)
        return
    one_view(view, entry, evalset, sweep, task)


def one_view(
    view: str, entry: SetEntry, evalset: EvalSet, sweep: Sweep | None, task: Task | None
) -> None:
    """One view; only the one on screen is computed."""
    if view == _PREDICTED and sweep is not None:
        predictability(sweep, task)
    elif view == _READING and sweep is not None:
        readings_compared(sweep)
    elif view == "Costs":
        costs(evalset)
    elif view == "Difficulty":
        difficulty_by(evalset)
    elif view == _CHECKS:
        _checks(entry, evalset)
    else:
        who_solves(entry, evalset, sweep)


def show(head: Head) -> None:
    selectors.on_data(head, explore, baseline=False, link={"view": "explore.view"})


def readings_compared(sweep: Sweep) -> None:
    """Fewer tokens, no signal prefix, the other bundle: agreement with labels, and routing."""
    bundle = cache.bundle()

    def work(task: Task) -> tuple[AblatedReading, ...]:
        ways = readings(bundle, [load_bundle(SHIPPED_SMALL)])
        return reading_ablation(
            sweep.evalset, sweep.catalog, ways, today=date.today(), progress=task.step
        )

    found: tuple[AblatedReading, ...] | None = _measured(
        ("readings", cache.sweep_key(sweep)),
        work,
        f"**What does each part of reading a message add?** The console scores all "
        f"{sweep.evalset.n:,} messages again: with fewer tokens, without the signal prefix, and "
        "with its other predictor.",
        "Measure",
        doing="Reading every message in every way",
        type="primary",
        key="explore.ablate",
    )
    if found is None:
        return
    widgets.figure(
        intervals_figure(figured.ablation_view(found), widgets.colors()),
        "explore.ablations",
        alt="Quality retention of every way of reading against the predictor as it is",
    )
    column = st.column_config
    tables.kept(
        figured.ablation_table(found), "explore.ablations.table", {"cost": usd},
        columns={
            "reading": column.TextColumn("Reading"),
            "pearson": column.NumberColumn("Pearson", format="%.3f", help="Against the labels"),
            "mae": column.NumberColumn("MAE", format="%.3f", help="Against the labels"),
            "qr": column.NumberColumn("QR", format="%.1f %%"),
            "cost": column.NumberColumn("Cost per query"),
        },
    )  # fmt: skip
    st.caption(
        "All rows route at about the same cost: τ is chosen on one half of the queries and "
        "measured on the other half. Lines are 95 % intervals, paired by query."
    )


def _checks(entry: SetEntry, evalset: EvalSet) -> None:
    """Missing outcomes, duplicates, and texts that other sets contain too."""
    missing = missing_data(evalset)
    tone = "success" if missing.complete == missing.queries else "warning"
    said = str(missing)
    widgets.toned(tone, f"{said[:1].upper()}{said[1:]}.", "Missing data")
    if missing.by_model:
        rows = [
            {"Model": model, "Outcomes missing": quality, "Costs missing": cost}
            for model, (quality, cost) in missing.by_model.items()
        ]
        tables.kept(pd.DataFrame(rows), "explore.missing")
    if evalset.texts is None:
        widgets.toned(
            "info",
            "This set has no texts to compare. Learning treats queries with equal text vectors as "
            "one.",
            "Duplicates",
            "notes",
        )
        return
    sets = cache.evalsets()
    others = {
        one.info.name: one.info.path
        for one in sets
        if one.key != entry.key and not one.info.problem
    }
    found: tuple[tuple[DuplicateGroup, ...], tuple[Overlap, ...]] | None = _measured(
        ("duplicates", evalset.digest, tuple(one.info.digest for one in sets)),
        lambda task: (duplicates(evalset), overlaps(evalset, _texts(others))),
        "**Duplicates and leakage.** Compares every text with every other text here and in the "
        "other eval sets.",
        "Find duplicates",
        doing="Finding duplicates",
        at_once=evalset.n <= _AT_ONCE,
        key="explore.duplicates",
    )
    if found is not None:
        _repeated(*found)


def _texts(others: dict[str, Path]) -> dict[str, list[str]]:
    found = {}
    for name, path in others.items():
        try:
            found[name] = load_evalset(path).require_texts("the search for overlaps").tolist()
        except HydraError:
            continue  # without texts, or the Eval sets page says what is wrong with it
    return found


def _repeated(groups: tuple[DuplicateGroup, ...], shared: tuple[Overlap, ...]) -> None:
    loose = [one for one in groups if not one.clustered]
    if not loose:
        widgets.toned("success", "No text occurs twice outside a declared cluster.", "Duplicates")
    else:
        extra = sum(len(one.query_ids) - 1 for one in loose)
        differ = sum(one.outcomes_differ for one in loose)
        widgets.toned(
            "warning",
            f"{len(loose):,} texts occur more than once ({extra:,} extra queries). The outcomes of "
            f"{differ:,} of them differ. This makes intervals too narrow: declare each group as "
            "one cluster, or remove the extra queries.",
            "Duplicates",
        )
        tables.kept(
            figured.duplicate_table(loose),
            "explore.duplicates",
            height="content" if len(loose) <= 10 else 360,
            column_config={
                "queries": st.column_config.NumberColumn("Times", width="small"),
                "ids": st.column_config.TextColumn("Queries", width="large"),
                "clustered": "One cluster",
                "differ": "Outcomes differ",
            },
        )
    for one in shared:
        widgets.toned(
            "warning",
            f"{one.queries:,} texts are also in {one.other}. A policy tuned on one set is "
            "not tested fairly on the other.",
            "Overlap with another eval set",
            "join_inner",
        )
