"""Tune, Learned: the four sources of a route side by side, and one click to take one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import signed
from hydra_core.base.types import LEVEL_DIMENSION, Catalog, Rule, SuccessSource
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.sources.catalog_blocks import start_of, unfitted, with_source
from hydra_core.choosing.sources.ladder import Ladder, ladder_of_replay
from hydra_core.choosing.sources.rungs import COUPLING, NAMES, NEEDS, Kind, Rung
from hydra_core.console import cache, drafts, learned_models, replays, selectors, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.figures.intervals import IntervalsView, intervals_figure, ranged
from hydra_core.console.frame import PUBLISH, link
from hydra_core.console.tasks import Task
from hydra_core.console.tune import view_learned
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.outcome_model.raw import Predicted

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
    good, title, sentence = headline(found)
    tone, icon = ("success", "trending_up") if good else ("info", "balance")
    widgets.toned(tone, sentence, title, icon)
    with st.container(border=True):
        if any(one.lift is not None for one in found.rungs):
            figure(
                intervals_figure(lifts_view(found), colors()), "ladder.lifts",
                alt="Mean lift of every source with its interval",
            )  # fmt: skip
        _table(entry, found, take_heads)
        st.caption(
            "Mean over 25, 50 and 75 % of the cost range with its 95 % interval, cross-fitted: no "
            "query is routed by what has seen it."
        )
    _findings(found)
    problem = drafts.kept_error()
    if problem is not None:
        widgets.problem(problem)


def _compared(entry: SetEntry, catalog: Catalog, model: OutcomeModel | None, traffic: bool) -> Task:
    """The comparison; begun when it is first asked for, then kept.

    Raises:
        HydraError: The set cannot be replayed under the catalog.
    """
    bare = _unfitted(catalog)
    sweep = cache.sweep(entry, bare, bare.policy.weights)
    data, evalset, start = sweep.data, sweep.evalset, start_of(bare, sweep.data)
    predicted: Predicted | None = None
    learned = "" if model is None else model.digest
    if model is not None:
        predicted = learned_models.value_sweep(entry, bare, model).data.with_outcomes.predicted
    key = ("ladder", cache.sweep_key(sweep), learned, traffic)

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
    if pair is None or in_force(catalog) is not Kind.PROFILES:
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
    force = None if catalog is None else in_force(catalog)
    drafted = working is not None and working.edited
    names = ("Source", "Lift", "Needs", "A new model takes", "")
    for place, name in zip(st.columns(_WIDTHS, gap="small"), names, strict=True):
        place.caption(name)
    for row in rows(found):
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
    evalset = cache.evalset(entry)
    outcomes, source = rung.cross_fitted.ranked.outcomes, pair[1].key

    def taken(text: str) -> str:
        bare = unfitted(text, parse_catalog(text, source))
        return with_source(bare, parse_catalog(bare, source), rung, outcomes, evalset)

    drafts.edit(pair[1], taken)


def _findings(found: Ladder) -> None:
    """What looks wrong with the outcomes."""
    text = findings(found)
    if text:
        with st.expander("Outcomes that look wrong", icon=":material/fact_check:"):
            st.markdown("\n".join(f"- {literal(line)}" for line in text))


@dataclass(frozen=True, slots=True)
class Row:
    """One source of the table.

    Attributes:
        rule: How it routes, in a few words.
        lift: Mean lift with its interval; a dash where it is not known.
        advice: Whether to use it, in a few words.
        use: Whether it is the one to use.
    """

    kind: Kind
    name: str
    rule: str
    lift: str
    needs: str
    coupling: str
    advice: str
    use: bool


def rows(found: Ladder) -> tuple[Row, ...]:
    """Every source, the one that needs least first; heads also where they are not learned yet."""
    return tuple(_row(kind, found.rung(kind), found.recommended is kind) for kind in Kind)


def _row(kind: Kind, rung: Rung | None, use: bool) -> Row:
    advice = "Not learned yet" if rung is None else rung.reason.partition(":")[0].rstrip(".")
    return Row(
        kind, NAMES[kind], _RULES[kind], _lift(rung), _sentence(NEEDS[kind]),
        _sentence(COUPLING[kind].partition(": ")[2]), advice, use,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lift(rung: Rung | None) -> str:
    if rung is None or rung.lift is None:
        return "–"
    mean = rung.lift.mean.scaled(100.0)
    return f"{signed(mean.value)} pp [{signed(mean.lo)}, {signed(mean.hi)}]"


def headline(found: Ladder) -> tuple[bool, str, str]:
    """Whether a source is worth it, a title, a sentence."""
    title, _, sentence = found.reason.partition(": ")
    return found.recommended is not None, title, sentence[:1].upper() + sentence[1:]


def lifts_view(found: Ladder) -> IntervalsView:
    """The mean lift of every source with its interval."""
    return view_learned.lifts_view(
        [ranged(NAMES[one.kind], one.lift.mean) for one in found.rungs if one.lift is not None]
    )


def in_force(catalog: Catalog) -> Kind:
    """The source that a catalog routes by."""
    if catalog.policy.rule is Rule.VALUE:
        by_heads = catalog.success_source is SuccessSource.OUTCOME_MODEL
        return Kind.HEADS if by_heads else Kind.SUCCESS
    return Kind.PROFILES if LEVEL_DIMENSION in catalog.dimensions else Kind.BENCHMARKS


def findings(found: Ladder, most: int = 5) -> Sequence[str]:
    """Outcomes of the set that look wrong, in words."""
    return [one.text for one in found.findings[:most]]
