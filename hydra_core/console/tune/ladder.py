"""Tune, Learned: the four sources of a route side by side, and one click to take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import LEVEL_DIMENSION, Catalog, Rule, SuccessSource
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.material import with_all_outcomes
from hydra_core.choosing.sources.ladder import (
    COUPLING,
    NAMES,
    NEEDS,
    Kind,
    Ladder,
    Rung,
    ladder_of_replay,
)
from hydra_core.choosing.write import start_of, unfitted, with_source
from hydra_core.console import cache, drafts, replays, selectors, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.intervals import intervals_figure, ranged
from hydra_core.console.frame import PUBLISH, link
from hydra_core.console.tasks import Task
from hydra_core.console.tune import view_learned
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.outcome_model.heads import Predicted
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.predictions import pool_heads, predict_evalset

_FINDINGS = 5
_WIDTHS = (2.3, 1.9, 3.2, 2.3, 1.7)
_RULES: Final = {
    Kind.BENCHMARKS: "shortfall rule, Algorithm 1",
    Kind.PROFILES: "shortfall rule, with a level",
    Kind.SUCCESS: "value rule, in the YAML",
    Kind.HEADS: "value rule, an outcome model",
}


def show(
    entry: SetEntry,
    catalog: Catalog,
    model: OutcomeModel | None,
    take_heads: Callable[[], None],
    *,
    groups_are_traffic: bool,
) -> None:
    """The answer, one chart and one table of all sources.

    Args:
        catalog: With the models to compare alone.
        model: Success heads learned from them; None where nothing was learned.
        take_heads: Puts the heads into the draft.
        groups_are_traffic: Whether a gain from telling the set's groups apart counts.
    """
    try:
        task = _compared(entry, catalog, model, groups_are_traffic)
    except HydraError as error:
        st.caption(f":material/info: Sources are not compared yet. {literal(str(error))}")
        return
    if task.running:
        widgets.waiting(task, "Comparing the sources", unit="sources")
        return
    if not isinstance(task.result, Ladder):
        st.caption(f":material/info: Sources cannot be compared here: {literal(task.error)}.")
        return
    found = task.result
    tone = ("success", "trending_up") if found.recommended is not None else ("info", "balance")
    title, _, sentence = found.reason.partition(": ")
    widgets.toned(tone[0], _capital(sentence), title, tone[1])
    lifts = [ranged(NAMES[one.kind], one.lift.mean) for one in found.rungs if one.lift is not None]
    with st.container(border=True):
        if lifts:
            figure(
                intervals_figure(view_learned.lifts_view(lifts), colors()), "ladder.lifts",
                alt="Mean lift of every source with its interval",
            )  # fmt: skip
        _table(entry, found, take_heads)
        st.caption(
            "Mean over 25, 50 and 75 % of the cost range with its 95 % interval, cross-fitted: no "
            "query is routed by what has seen it. Sources are compared on queries with outcomes of "
            "all models, by the gates of the set and at the price of tokens alone."
        )
    if found.findings:
        with st.expander("Outcomes that look wrong", icon=":material/fact_check:"):
            st.markdown("\n".join(f"- {literal(one.text)}" for one in found.findings[:_FINDINGS]))
    widgets.show_error()


def _compared(entry: SetEntry, catalog: Catalog, model: OutcomeModel | None, traffic: bool) -> Task:
    """The comparison; begun when it is first asked for, then kept."""
    bare = _unfitted(catalog)
    sweep = cache.sweep(entry, bare, bare.policy.weights)
    data, evalset = with_all_outcomes(sweep.data, sweep.evalset), sweep.evalset
    start = start_of(bare, data)
    predicted: Predicted | None = None
    learned = "" if model is None else model.digest
    if model is not None:
        known = data.with_outcomes  # the price of a second: as `learn`, without it
        heads = pool_heads(model, bare, known.pool)
        predicted = predict_evalset(evalset, model, heads, cross_fitted=True).take(known.rows)
    key = ("ladder", cache.sweep_key(sweep), learned, traffic)

    def work(task: Task) -> Ladder:
        return ladder_of_replay(
            data, evalset, start,
            predicted=predicted, groups_are_traffic=traffic, progress=task.step,
        )  # fmt: skip

    tasks = replays.tasks()
    return tasks.get(key) or tasks.start(key, work)


def _unfitted(catalog: Catalog) -> Catalog:
    """The catalog without fitted profiles, which its own were fitted from."""
    working = selectors.working() if in_force(catalog) is Kind.PROFILES else None
    if working is None or working.published is None:
        return catalog
    bare = parse_catalog(unfitted(working.published_text, working.published), working.key)
    kept = [model.id for model in catalog.models]
    return replays.cut_to(replace(bare, folder=catalog.folder), kept)


def _table(entry: SetEntry, found: Ladder, take_heads: Callable[[], None]) -> None:
    """One row a source; its button is one click to the draft."""
    working = selectors.working()
    catalog = None if working is None else working.catalog
    force = None if catalog is None else in_force(catalog)
    drafted = working is not None and working.edited
    base = "published" if working is not None and working.newest else "in the file"
    names = ("Source", "Lift", "Needs", "A new model takes", "")
    for place, name in zip(st.columns(_WIDTHS, gap="small"), names, strict=True):
        place.caption(name)
    for kind in Kind:  # the one that needs least first; heads also where they are not learned yet
        places = st.columns(_WIDTHS, gap="small", vertical_alignment="center")
        rung = found.rung(kind)
        lift = None if rung is None else rung.lift
        advice = "Not learned yet" if rung is None else rung.reason.partition(":")[0].rstrip(".")
        shown = "–" if lift is None else lift.mean.scaled(100.0).text("pp")
        places[0].markdown(f"**{NAMES[kind]}**  \n:small[:gray[{literal(_RULES[kind])}]]")
        places[1].markdown(f"{literal(shown)}  \n:small[:gray[{literal(advice)}]]")
        places[2].markdown(f":small[{literal(_capital(NEEDS[kind]))}]")
        coupling = _capital(COUPLING[kind].partition(": ")[2])
        places[3].markdown(f":small[{literal(coupling)}]")
        with places[4]:
            if kind is force:
                st.badge("in your draft" if drafted else base, color="green")
            elif rung is not None and lift is not None and drafts.may_edit():
                by_heads = kind is Kind.HEADS
                st.button(
                    "Take it", icon=":material/edit_note:", key=f"ladder.take.{kind.value}",
                    type="primary" if found.recommended is kind else "secondary", width="stretch",
                    on_click=take_heads if by_heads else partial(_take, entry, rung),
                    help="Puts it into your draft of the catalog; nothing is published.",
                )  # fmt: skip
    if drafted:
        link(PUBLISH, "Review and publish", ":material/rocket_launch:")


def _take(entry: SetEntry, rung: Rung) -> None:
    """Put a source that stands in YAML into the draft."""
    evalset, outcomes = cache.evalset(entry), rung.cross_fitted.ranked.outcomes

    def taken(text: str, source: str) -> str:
        bare = unfitted(text, parse_catalog(text, source))
        return with_source(bare, parse_catalog(bare, source), rung, outcomes, evalset)

    selectors.edit(taken)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def in_force(catalog: Catalog) -> Kind:
    """The source that a catalog routes by."""
    if catalog.policy.rule is Rule.VALUE:
        by_heads = catalog.success_source is SuccessSource.OUTCOME_MODEL
        return Kind.HEADS if by_heads else Kind.SUCCESS
    return Kind.PROFILES if LEVEL_DIMENSION in catalog.dimensions else Kind.BENCHMARKS
