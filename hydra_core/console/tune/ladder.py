"""Tune, Learned: the four sources of a route side by side, and one click to take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.sources.catalog_blocks import start_of, unfitted, with_source
from hydra_core.choosing.sources.ladder import Ladder, ladder_of_replay
from hydra_core.choosing.sources.rungs import Kind, Rung
from hydra_core.console import cache, drafts, learned_models, replays, selectors, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.frame import PUBLISH, link
from hydra_core.console.tasks import Task
from hydra_core.console.tune import view_ladder as views
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.outcome_model.raw import Predicted

_TRAFFIC = "ladder.groups_are_traffic"
_WIDTHS = (2.3, 1.9, 3.2, 2.3, 1.7)


def show(
    entry: SetEntry,
    catalog: Catalog,
    model: OutcomeModel | None,
    take_heads: Callable[[], None],
) -> None:
    """The answer, one chart and one table of all sources.

    Args:
        catalog: With the models to compare alone.
        model: Success heads learned from them; None where nothing was learned.
        take_heads: Puts the heads into the draft.
    """
    try:
        task = _compared(entry, catalog, model)
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
    good, title, sentence = views.headline(found)
    tone, icon = ("success", "trending_up") if good else ("info", "balance")
    widgets.toned(tone, sentence, title, icon)
    with st.container(border=True):
        if any(one.lift is not None for one in found.rungs):
            figure(
                intervals_figure(views.lifts_view(found), colors()), "ladder.lifts",
                alt="Mean lift of every source with its interval",
            )  # fmt: skip
        _table(entry, found, take_heads)
        st.caption(
            "Mean over 25, 50 and 75 % of the cost range with its 95 % interval, cross-fitted: no "
            "query is routed by what has seen it."
        )
    _groups(found)
    problem = drafts.kept_error()
    if problem is not None:
        widgets.problem(problem)


def _compared(entry: SetEntry, catalog: Catalog, model: OutcomeModel | None) -> Task:
    """The comparison; begun when it is first asked for, then kept.

    Raises:
        HydraError: The set cannot be replayed under the catalog.
    """
    bare = _unfitted(catalog)
    sweep = learned_models.shortfall_sweep(entry, bare)
    data, evalset, start = sweep.data, sweep.evalset, start_of(bare, sweep.data)
    predicted: Predicted | None = None
    learned = "" if model is None else model.digest
    if model is not None:
        predicted = learned_models.value_sweep(entry, bare, model).data.with_outcomes.predicted
    traffic = bool(st.session_state.get(_TRAFFIC, False))
    key = ("ladder", replays.sweep_key(entry, sweep), data.pool.ids, learned, traffic)

    def work(task: Task) -> Ladder:
        return ladder_of_replay(
            data, evalset, start,
            predicted=predicted, groups_are_traffic=traffic, progress=task.step,
        )  # fmt: skip

    tasks = replays.tasks()
    return tasks.get(key) or tasks.start(key, work)


def _unfitted(catalog: Catalog) -> Catalog:
    """The catalog without fitted profiles, which its own were fitted from.

    Raises:
        HydraError: Its text cannot be read.
    """
    pair = selectors.current()
    if pair is None or views.in_force(catalog) is not Kind.PROFILES:
        return catalog
    working = drafts.load(pair[1])
    if working.published is None:
        return catalog
    bare = parse_catalog(unfitted(working.published_text, working.published), working.key)
    kept = [model.id for model in catalog.models]
    return replace(
        bare, models=tuple(m for m in bare.models if m.id in kept), folder=catalog.folder
    )


def _table(entry: SetEntry, found: Ladder, take_heads: Callable[[], None]) -> None:
    """One row a source; its button is one click to the draft."""
    pair = selectors.current()
    working = None if pair is None else drafts.load(pair[1])
    catalog = None if working is None else working.catalog
    force = None if catalog is None else views.in_force(catalog)
    drafted = working is not None and working.edited
    names = ("Source", "Lift", "Needs", "A new model takes", "")
    for place, name in zip(st.columns(_WIDTHS, gap="small"), names, strict=True):
        place.caption(name)
    for row in views.rows(found):
        places = st.columns(_WIDTHS, gap="small", vertical_alignment="center")
        places[0].markdown(f"**{row.name}**  \n:small[:gray[{literal(row.rule)}]]")
        places[1].markdown(f"{literal(row.lift)}  \n:small[:gray[{literal(row.advice)}]]")
        places[2].markdown(f":small[{literal(row.needs)}]")
        places[3].markdown(f":small[{literal(row.coupling)}]")
        rung = found.rung(row.kind)
        with places[4]:
            if row.kind is force:
                st.badge("in your draft" if drafted else "published", color="green")
            elif rung is not None and rung.lift is not None and drafts.may_edit():
                click, args = _taking(entry, rung, take_heads)
                st.button(
                    "Take it", icon=":material/edit_note:", key=f"ladder.take.{row.kind.value}",
                    type="primary" if row.use else "secondary", width="stretch",
                    on_click=click, args=args,
                    help="Puts it into your draft of the catalog; nothing is published.",
                )  # fmt: skip
    if drafted:
        link(PUBLISH, "Review and publish", ":material/rocket_launch:")


def _taking(
    entry: SetEntry, rung: Rung, take_heads: Callable[[], None]
) -> tuple[Callable[..., None], tuple[object, ...]]:
    if rung.kind is Kind.HEADS:
        return take_heads, ()
    return _take, (entry, rung)


def _take(entry: SetEntry, rung: Rung) -> None:
    """Put a source that stands in YAML into the draft."""
    pair = selectors.current()
    if pair is None:
        return
    evalset = cache.evalset(entry.info.path, entry.info.digest)
    outcomes, source = rung.cross_fitted.ranked.outcomes, pair[1].key

    def taken(text: str) -> str:
        bare = unfitted(text, parse_catalog(text, source))
        return with_source(bare, parse_catalog(bare, source), rung, outcomes, evalset)

    drafts.edit(pair[1], taken)


def _groups(found: Ladder) -> None:
    """What looks wrong with the outcomes, and whether groups are real kinds of traffic."""
    if views.about_groups(found):
        st.toggle(
            "The set's groups are real kinds of my traffic", key=_TRAFFIC, persist_state="session",
            help="Then a gain from telling them apart counts. Leave it off for benchmarks.",
        )  # fmt: skip
    told = views.findings(found)
    if told:
        with st.expander("Outcomes that look wrong", icon=":material/fact_check:"):
            st.markdown("\n".join(f"- {literal(line)}" for line in told))
