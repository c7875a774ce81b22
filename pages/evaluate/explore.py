"""Explore: what an eval set holds, and whether routing can help on it at all."""

from __future__ import annotations

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.console import cache, replays, selectors, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import ablations as explore_ablations
from hydra_core.console.eval_sets import contents as explore_checks
from hydra_core.console.eval_sets import make_catalog
from hydra_core.console.eval_sets import routing_help as explore_panels
from hydra_core.console.eval_sets import scoring as evalset_scoring
from hydra_core.console.tasks import Task
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.sweep import Sweep

_PARTS = ("Who solves what", "Costs", "Difficulty", "Predictability", "Ablations", "Checks")
_OF_A_REPLAY = ("Predictability", "Ablations")


def replayed(entry: SetEntry, catalog: Catalog) -> Sweep | None:
    """The set under the catalog's pool; None after saying why it cannot be replayed."""
    try:
        if st.session_state.get(explore_panels.ASKED) == entry.key:
            loaded = cache.evalset(entry.info.path, entry.info.digest)
            if loaded.texts is not None and not evalset_scoring.score_now(entry, loaded):
                return None
        return cache.sweep(entry, catalog, catalog.policy.weights)
    except HydraError as error:
        st.info(
            widgets.literal(str(error)),
            title="Whether routing can help is not known yet",
            icon=":material/link_off:",
        )
        make_catalog.offer(entry)
        return None


def explore(entry: SetEntry, catalog: Catalog) -> None:
    """The sentence and its figures, then the part that is asked for."""
    sweep, task, texts = replayed(entry, catalog), None, False
    if sweep is not None:
        task = explore_panels.predicted(entry, sweep)
        bounds = replays.set_bounds(entry, sweep)
        texts = sweep.evalset.texts is not None
        explore_panels.limits(bounds, task, texts=texts)
        widgets.notes(sweep)
    left_out = () if texts else ("Predictability",) if sweep else _OF_A_REPLAY
    parts = tuple(part for part in _PARTS if part not in left_out)
    if st.session_state.setdefault("explore.part", parts[0]) not in parts:
        st.session_state["explore.part"] = parts[0]
    part = st.segmented_control(
        "Part", parts, key="explore.part", required=True, persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    try:
        evalset = sweep.evalset if sweep else cache.evalset(entry.info.path, entry.info.digest)
    except HydraError as error:
        widgets.problem(error)
        return
    show(part or parts[0], entry, evalset, sweep, task)


def show(
    part: str, entry: SetEntry, evalset: EvalSet, sweep: Sweep | None, task: Task | None
) -> None:
    """One part; only the one on screen is computed."""
    if part == "Predictability" and sweep is not None:
        explore_panels.predictability(entry, sweep, task)
    elif part == "Ablations" and sweep is not None:
        explore_ablations.ablations(entry, sweep)
    elif part == "Costs":
        explore_panels.costs(evalset)
    elif part == "Difficulty":
        explore_panels.difficulty_by(evalset)
    elif part == "Checks":
        explore_checks.checks(entry, evalset)
    else:
        explore_panels.who_solves(evalset, sweep)


selectors.page("Explore", explore, baseline=False, link={"part": "explore.part"})
