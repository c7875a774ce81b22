"""Tune, Learned: the answer, both rules' curves, and one question at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from datetime import date
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog, Rule, Selection, SuccessSource
from hydra_core.base.workspace import OUTCOME_MODELS
from hydra_core.catalog.binding import require_bundle
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import routable_models
from hydra_core.choosing.by_rate import with_newcomers
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import Rival, rivals
from hydra_core.choosing.material import gather, with_gates
from hydra_core.choosing.sources.few_outcomes import FEW
from hydra_core.choosing.write import (
    audit_recorder,
    long_prices_of,
    require_free_folder,
    write_outcome_model,
)
from hydra_core.console import cache, drafts, replays, selectors, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.figures.frontier import frontier_figure
from hydra_core.console.figures.shares import reliability_figure
from hydra_core.console.frame import COLLECT, Head, link
from hydra_core.console.tasks import Task, Write
from hydra_core.console.tune import ladder
from hydra_core.console.tune import view_learned as views
from hydra_core.console.view_frontier import Axes, XAxis, YAxis, frontier_view
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.metrics import costliest
from hydra_core.replay.pricing import priced_costs
from hydra_core.replay.sweep import Sweep
from hydra_core.store import Action

#: What is said instead of a table of learners.
_FIXED_RECIPE = (
    f"Below {FEW:,} queries one fixed recipe is used, a ridge regression and randomised trees: "
    "so few outcomes cannot choose a learner."
)


def start(
    entry: SetEntry,
    catalog: Catalog,
    models: tuple[str, ...],
    folder: Path,
    *,
    groups_are_traffic: bool,
    rates: Mapping[str, float],
) -> None:
    """Make missing text vectors, learn, and write the outcome model.

    Raises:
        AccessError: The actor may not.
        HydraError: Something was learned there already, the set or the predictor cannot be opened,
            or the catalog is bound to another bundle than the console's.
    """
    me, store = identity.actor(), cache.store()
    record = audit_recorder(me, store, folder)
    require_free_folder(folder, force=False)
    require_bundle(catalog, cache.bundle().fingerprint)
    evalset = cache.evalset(entry)
    predictor = cache.predictor()
    bundle = predictor.bundle
    specs = [catalog.model(name) for name in (*models, *rates)]
    prices = {m.id: (m.input_usd_per_mtok, m.output_usd_per_mtok) for m in specs}

    def work(task: Task) -> OutcomeModel:
        task.stage = "Reading the messages"
        EvalSetChanges(me, store).score(evalset, predictor, task.step)
        messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
        costs = priced_costs(evalset, catalog).usd
        material = with_gates(gather(evalset, messages, models, rates, costs), catalog)
        task.stage, task.done, task.total = "Learning, cross-fitted", 0, 0
        per_mtok = np.array([prices[name] for name in material.models])
        long = long_prices_of(catalog, material.models)
        found = learn(
            material, per_mtok, long=long, groups_are_traffic=groups_are_traffic, progress=task.step
        )
        found = with_newcomers(found, rates, prices)
        return write_outcome_model(folder, found, fingerprint=bundle.fingerprint, record=record)

    write = Write(store, me, Action.LEARN, f"outcome model {folder.name}")
    replays.tasks().start(("learn", folder), work, write=write)


def find_rivals(key: Hashable, sweeps: tuple[Sweep, ...], model: OutcomeModel) -> Task:
    """What other ways to route gain; begun when it is first asked for, then kept."""
    evalset, seed = sweeps[0].evalset, model.figures.get("seed", 0)
    folds, found = model.figures.get("folds", 5), model.figures.get("newcomers")
    assert isinstance(folds, int)
    assert isinstance(seed, int)

    def work(task: Task) -> tuple[Rival, ...]:
        messages = messages_of(evalset, model.fingerprint, model.vectors)
        by_rate = {one["name"] for one in found} if isinstance(found, list) else set()
        known = [name for name in model.models if name not in by_rate]
        costs = priced_costs(evalset, sweeps[0].catalog).usd
        material = gather(evalset, messages, known, costs=costs)
        return rivals(sweeps, material, folds=folds, seed=seed, progress=task.step)

    tasks = replays.tasks()
    return tasks.get(("rivals", key)) or tasks.start(("rivals", key), work)


def drafted(text: str, source: str, model: OutcomeModel, value_usd: float) -> str:
    """The catalog text with the value rule, V, and the outcome model it predicts with."""
    document = CatalogDocument.parse(text, source)
    document.set("policy", "rule", Rule.VALUE.value)
    document.set("policy", "value_usd", value_usd)
    known = cache.parsed(text, source)[0]
    named = None if known is None else known.outcome_model
    if named is None or named.sha256 != model.digest:
        reference = {"path": f"{OUTCOME_MODELS}/{model.path.name}", "sha256": model.digest}
        document.set("outcome_model", reference)
    if known is not None and known.success_profiles is not None:
        document.set("policy", "success_from", SuccessSource.OUTCOME_MODEL.value)
    return document.text()


def answer(model: OutcomeModel) -> None:
    """Whether to use it, and what it gains with its intervals."""
    good, title, sentence = views.headline(model)
    tone, icon = ("success", "trending_up") if good else ("info", "balance")
    widgets.toned(tone, sentence, title, icon)
    found = views.lifts(model)
    for column, one in zip(st.columns(max(len(found), 1)), found, strict=False):
        widgets.metric(
            column, one.name, f"{signed(one.pp)} pp", one.ends,
            "Quality of the value rule minus that of the best fixed mix of models at the same "
            "cost, on queries its heads had not seen. Below: 95 % interval; those of the three "
            "points hold at once.",
        )  # fmt: skip
    for sentence in views.cautions(model):
        st.caption(f":material/info: {literal(sentence)}")


def questions(model: OutcomeModel, sweep: Sweep, shortfall: Sweep) -> None:
    """One question at a time; only the one on screen is computed."""
    parts: dict[str, Callable[[], None]] = {
        "Can it be believed?": lambda: _reliability(model),
        "What it reads": lambda: _reads(model),
        "More outcomes": lambda: _more(model),
        "Groups and languages": lambda: _slices(model),
        "Other routers": lambda: _rivals(model, sweep, shortfall),
    }
    parts[widgets.switch("Question", parts, "learn.view")]()


def _reliability(model: OutcomeModel) -> None:
    lines = views.reliability_lines(model)
    wide, narrow = st.columns([7, 4], gap="medium", vertical_alignment="center")
    with wide.container(border=True):
        figure(
            reliability_figure(lines, colors()),
            "learn.reliability",
            alt="Predicted against achieved success of every model",
        )
    with narrow:
        st.metric(
            "Predicted and achieved differ by",
            f"{views.calibration_error(lines):.1f} pp",
            help="Mean distance from the dashed line over all points.",
        )
        st.caption(
            "Each point is a tenth of the queries, alike in what was predicted for that model by "
            "heads that had not seen them. On the dashed line a model keeps what was predicted; "
            "below it too much was promised."
        )


def _reads(model: OutcomeModel) -> None:
    left, right = st.columns([6, 5], gap="medium")
    column = st.column_config
    with left:
        st.markdown(f"**It reads {literal(views.read_blocks(model))}**")
        _learners(model)
    with right:
        st.markdown("**Outcomes it learned from**")
        known: Any = model.figures["models"]
        tables.kept(
            [(name, one["outcomes"], one["newcomer"]) for name, one in known.items()],
            "learn.outcomes",
            columns={
                "model": column.TextColumn("Model"),
                "outcomes": column.NumberColumn("Outcomes", format="localized", width=80),
                "newcomer": column.CheckboxColumn(
                    "Newcomer", width=75,
                    help="Has few outcomes: leans on what is known of the other models.",
                ),
            },
        )  # fmt: skip


def _learners(model: OutcomeModel) -> None:
    """Every learner that was tried, or why none was."""
    errors: Any = model.figures["errors"]
    if not errors:
        st.caption(literal(_FIXED_RECIPE))
        return
    tried = [
        (name[:1].upper() + name[1:], error, name == model.learner)
        for name, error in sorted(errors.items(), key=itemgetter(1))
    ]
    column = st.column_config
    tables.kept(
        tried, "learn.choices",
        columns={
            "learner": column.TextColumn("Learner and what it reads", width=316),
            "error": column.NumberColumn(
                "Squared error", format="%.5f", width=98,
                help="Mean over models, on inner folds; smaller is better.",
            ),
            "chosen": column.CheckboxColumn("Chosen", width=66),
        },
    )  # fmt: skip
    st.caption("Chosen on inner folds of the outcomes alone, never on the lift shown above.")


def _more(model: OutcomeModel) -> None:
    view = views.curve_view(model)
    if not view.names:
        st.info("There is no learning curve: routing has no cost range here.")
        return
    st.markdown(literal(views.more_outcomes(model)))
    widgets.intervals(
        view, "learn.curve", "Mean lift against the number of queries that were learned on"
    )
    st.caption("Mean lift with its 95 % interval when each fold learns on so many queries.")


def _slices(model: OutcomeModel) -> None:
    parts, findings = views.check_view(model)
    if parts:
        for column, one in zip(st.columns(3), parts, strict=False):
            widgets.metric(column, one.name, f"{signed(one.pp)} pp", one.ends)
    if findings:
        st.markdown("**Outcomes that look wrong**")
        st.markdown(widgets.bullets(findings))
    drawn = 0
    for kind, title in (("group", "By group"), ("language", "By language")):
        view = views.slices_view(model, kind)
        if view is None or len(view.names) < 2:
            continue
        drawn += 1
        st.markdown(f"**{title}**")
        widgets.intervals(view, f"learn.{kind}", f"Mean lift {title.lower()} with intervals")
    if drawn:
        st.caption("In brackets the number of queries; those with fewer than 50 are left out.")
    else:
        st.info("This set has one group and one language, or too few queries in each.")


def _rivals(model: OutcomeModel, sweep: Sweep, shortfall: Sweep) -> None:
    task = find_rivals((model.digest, shortfall.catalog.digest), (sweep, shortfall), model)
    if task.running:
        widgets.waiting(task, "Fitting the other routers on the same folds")
        return
    if not isinstance(task.result, tuple):
        st.error(literal(task.error or "They could not be fitted."), icon=":material/error:")
        return
    widgets.intervals(
        views.rivals_view(task.result),
        "learn.rivals",
        "Mean lift of every way to route with its interval",
    )
    if sweep.evalset.texts is None:
        st.caption(
            ":material/info: This set has no texts: the complexity score and the learned "
            "baselines, which read them, are left out."
        )
    free = ", ".join(one.name.lower() for one in task.result if not one.learns)
    st.caption(
        literal(
            f"Mean over 25, 50 and 75 % of the cost range, with 95 % intervals. Without "
            f"outcomes: {free}. All others learned on the same folds, never from a query they "
            "route."
        )
    )


def choose(entry: SetEntry, catalog: Catalog) -> tuple[str, ...]:
    """Which models to learn; all that have outcomes unless some are taken out."""
    known = replays.learnable(entry, catalog)
    key = f"learn.models.{entry.key}.{catalog.name}"
    st.session_state[key] = [m for m in st.session_state.get(key, known) if m in known]
    picked = st.pills(
        "Models", known, selection_mode="multi", key=key, persist_state="session", wrap=True,
        help="At least two, with 25 outcomes or more each.",
    )  # fmt: skip
    return tuple(name for name in known if name in picked)


def groups_are_traffic(entry: SetEntry) -> bool:
    """Ask, where a set has groups, whether they are real kinds of traffic."""
    queries = cache.evalset(entry).queries
    if "group" not in queries.columns or queries["group"].nunique() < 2:
        return False
    return st.checkbox(
        f"Its {queries['group'].nunique()} groups are real kinds of my traffic",
        key=f"learn.real.{entry.key}", persist_state="session",
        help="Groups such as benchmarks often differ by how they are graded. A gain from telling "
        "them apart then counts only if they are kinds of your traffic and graded alike.",
    )  # fmt: skip


def rates_of_others(entry: SetEntry, catalog: Catalog) -> dict[str, float]:
    """Ask how often models without outcomes here solve such queries; none is filled in."""
    known = entry.info.models
    others = [m.id for m in routable_models(catalog, date.today()) if m.id not in known]
    if not others:
        return {}
    rates: dict[str, float] = {}
    with st.expander(f"Models without outcomes here: {len(others)}", icon=":material/person_add:"):
        st.caption(
            "How often does each solve your kind of queries? Take it from a benchmark, from a "
            "model like it, or guess. Empty: it is left out."
        )
        for name in others:
            percent = st.number_input(
                f"{literal(name)}, % solved", 1.0, 99.0, None, 1.0, format="%.4g",
                key=f"learn.rate.{entry.key}.{name}", persist_state="session",
            )  # fmt: skip
            if percent is not None:
                rates[name] = percent / 100
    return rates


def run(entry: SetEntry, catalog: Catalog) -> None:
    """The controls above; below the work or what was learned."""
    if not replays.learnable(entry, catalog):
        st.warning("This eval set has none of the catalog's models.", icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    with st.container(border=True):
        left, right = st.columns([9, 2], vertical_alignment="bottom", gap="small")
        with left:
            models = choose(entry, catalog)
            real = groups_are_traffic(entry)
            rates = rates_of_others(entry, catalog)
        folder = replays.model_folder(entry, catalog, models, groups_are_traffic=real, rates=rates)
        found, task = replays.model_in(folder), replays.tasks().get(("learn", folder))
        for find in (replays.model_named_by, replays.newest_model):
            found = found or find(entry, catalog, (*models, *rates))
        running = task is not None and task.running
        with right:
            if task is not None and running:
                stop_button(task, "learn.stop")
            elif st.button(
                "Learn", type="primary", icon=":material/school:", key="learn.start",
                width="stretch", disabled=found is not None or not identity.may(Action.LEARN),
                help="These outcomes are learned already." if found
                else identity.why_not(Action.LEARN),
            ):  # fmt: skip
                start(entry, catalog, models, folder, groups_are_traffic=real, rates=rates)
                st.rerun()
    if task is not None and running:
        widgets.waiting(task, "Learning")
        return
    if found is None and task is not None and task.failure is not None:
        widgets.problem(task.failure)
    cut = replays.cut_to(catalog, models if found is None else found.models)
    take = partial(_take, entry, cut, found)
    ladder.show(entry, cut, found, take, groups_are_traffic=real)
    if found is not None:
        result(entry, cut, found)
    elif task is None or task.failure is None:
        nothing_yet(entry)


def nothing_yet(entry: SetEntry) -> None:
    """What learning will do, before it did."""
    if cache.evalset(entry).is_log:
        widgets.empty(
            "Each query has the outcome of one model",
            "An outcome model can be learned from that, but nobody can say whether it is better "
            "than a fixed mix: no models were compared on the same query. Have every model answer "
            "about 250 of these messages, join both sets, and learn from all of it.",
        )
        link(COLLECT, "Collect outcomes")
        return
    widgets.empty(
        "Learn what each model achieves on which message",
        f"From the outcomes of {entry.info.n:,} queries, in seconds to a minute. Every figure is "
        "**cross-fitted**: no query is predicted by heads that have seen it, its translations or "
        "its conversation. The answer comes first: use it, or keep a fixed mix.",
    )


def _take(entry: SetEntry, cut: Catalog, model: OutcomeModel | None) -> None:
    """Put heads into the draft, with the V in the middle of the cost range."""
    if model is not None:
        middle = replays.value_sweep(entry, cut, model).middle
        learned_on = drafts.chosen_by(entry, Selection.CROSS_FITTED, knob_alone=True)
        selectors.edit(lambda text, source: drafted(text, source, model, middle), learned_on)


def result(entry: SetEntry, cut: Catalog, model: OutcomeModel) -> None:
    """Success heads, for the catalog cut to their models: the answer, the curves, one question."""
    sweep = replays.value_sweep(entry, cut, model)
    shortfall = cache.sweep(entry, cut, cut.policy.weights)
    st.subheader("Success heads", anchor=False)
    answer(model)
    axes = Axes(XAxis.COST, YAxis.RESOLVED, costliest(sweep.data))
    with st.container(border=True):
        figure(
            frontier_figure(
                frontier_view(sweep, sweep.middle, axes, beside=shortfall), colors(), height=400
            ),
            "learn.curves",
            alt="Quality against cost of the value rule and the shortfall rule, with single models",
        )
    st.caption(
        f"The point is V in the middle of the cost range, {literal(usd(sweep.middle))} for one "
        "more resolved query; taking success heads sets it."
    )
    questions(model, sweep, shortfall)


def show(head: Head) -> None:
    """The part Learned: do outcomes teach a router that beats every fixed mix at its cost?"""
    selectors.on_data(head, run, baseline=False, link={"view": "learn.view"})
