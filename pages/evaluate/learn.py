"""Learn: do outcomes teach a router that beats every constant at the same cost?"""

from __future__ import annotations

import streamlit as st

from hydra_core.base.types import Catalog
from hydra_core.console import learned_models, selectors, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.stopping import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.tune import learned
from hydra_core.console.tune import learned as take
from hydra_core.console.tune import learned as work
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.replay.evaluation import evaluate
from hydra_core.store.roles import Action


def choose(entry: SetEntry, catalog: Catalog) -> tuple[str, ...]:
    """Which models to learn; all that have outcomes unless some are taken out."""
    known = learned_models.learnable(entry, catalog)
    key = f"learn.models.{entry.key}.{catalog.name}"
    st.session_state.setdefault(key, list(known))
    picked = st.pills(
        "Models", known, selection_mode="multi", key=key, persist_state="session", wrap=True,
        help="At least two, with 25 outcomes or more each.",
    )  # fmt: skip
    return tuple(name for name in known if name in picked)


def run(entry: SetEntry, catalog: Catalog) -> None:
    """The controls above; below the work or what was learned."""
    if not learned_models.learnable(entry, catalog):
        st.warning("This eval set has none of the catalog's models.", icon=":material/link_off:")
        make_catalog.offer(entry)
        return
    with st.container(border=True):
        left, right = st.columns([9, 2], vertical_alignment="bottom", gap="small")
        with left:
            models = choose(entry, catalog)
        folder = learned_models.folder_of(entry, catalog, models)
        found, task = learned_models.learned(folder), work.learning(folder)
        found = found or learned_models.named(entry, catalog, models)
        running = task is not None and task.running
        with right:
            if task is not None and running:
                stop_button(task, "learn.stop")
            elif st.button(
                "Learn", type="primary", icon=":material/school:", key="learn.start",
                width="stretch", disabled=found is not None or not identity.may(Action.LEARN),
                help="These outcomes are learned already." if found else None,
            ):  # fmt: skip
                work.start(entry, catalog, models, folder)
                st.rerun()
    if task is not None and running:
        widgets.waiting(task, "Learning")
    elif found is not None:
        result(entry, catalog, found)
    else:
        if task is not None and task.failure is not None:
            widgets.problem(task.failure)
        else:
            nothing_yet(entry)


def nothing_yet(entry: SetEntry) -> None:
    """What learning will do, before it did."""
    widgets.empty(
        "Learn what each model achieves on which message",
        f"From the outcomes of {entry.info.n:,} queries, in seconds to a minute. Every figure is "
        "**cross-fitted**: no query is predicted by heads that have seen it, its translations or "
        "its conversation. The answer comes first: use it, or keep the constant.",
    )


def result(entry: SetEntry, catalog: Catalog, model: OutcomeModel) -> None:
    """The answer, the curves with where to take it, then one question at a time."""
    cut = learned_models.cut_to(catalog, model.models)
    sweep = learned_models.value_sweep(entry, cut, model)
    shortfall = learned_models.shortfall_sweep(entry, cut)
    value_usd = sweep.middle
    learned.answer(model)
    wide, narrow = st.columns([7, 2.6], gap="small")
    with wide.container(border=True):
        learned.curves(evaluate(sweep, value_usd), shortfall)
    with narrow.container(border=True):
        take.take(model, value_usd, entry)
    learned.questions(model, sweep, shortfall)


selectors.page("Learn", run, baseline=False, link={"part": "learn.part"})
