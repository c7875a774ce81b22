"""Scoring an eval set: which predictors have scored it, the offer, and progress."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted
from hydra_core.console import cache, replays, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
from hydra_core.console.cache import SetEntry
from hydra_core.console.tasks import Task, Tasks, Write
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import load_text_facts
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.store import Action, Actor, Store

#: Queries between two writes to disk, after which a stop is noticed.
_CHUNK = 64


def start(
    tasks: Tasks, evalset: EvalSet, predictor: Predictor, *, actor: Actor, store: Store
) -> Task:
    """Score a set in the background, unless that is running.

    Raises:
        AccessError: The actor may not score.
        StoreError: It could not be written to the audit trail; nothing was started.
    """
    fingerprint = predictor.bundle.fingerprint

    def work(task: Task) -> None:
        EvalSetChanges(actor, store).score(evalset, predictor, task.step, chunk=_CHUNK)

    write = Write(store, actor, Action.SCORE, f"eval set {evalset.path.name}")
    return tasks.start(_key(evalset, fingerprint), work, write=write)


def _key(evalset: EvalSet, fingerprint: str) -> tuple[str, Path, str]:
    return ("score", evalset.path, fingerprint)


def scores(entry: SetEntry, loaded: EvalSet) -> None:
    """Which predictor bundles scored the set, and a way to score it with the shipped one."""
    try:
        bundle = cache.bundle()
    except HydraError as error:
        names = ", ".join(entry.info.scored) or "none"
        st.info(
            literal(f"Scored by: {names}. The predictor of this console cannot be used: {error}"),
            icon=":material/neurology:",
        )
        return
    job = replays.tasks().get(_key(loaded, bundle.fingerprint))
    if bundle.fingerprint in entry.info.scored:
        st.badge(
            literal(f"Scored by {bundle.name} {bundle.version} ({bundle.fingerprint[:12]})"),
            icon=":material/check_circle:",
            color="green",
        )
    elif job is not None and job.running:
        _progress(job)
    else:
        _offer(loaded, bundle.name, job, bool(entry.info.scored))


def score_now(entry: SetEntry, loaded: EvalSet) -> bool:
    """Start scoring where it is missing, with progress; whether the set is scored."""
    bundle = cache.bundle()
    if bundle.fingerprint in entry.info.scored:
        return True
    _score(loaded, bundle)
    return False


def vectors_now(loaded: EvalSet) -> bool:
    """As `score_now` for text vectors; a set without texts has those it came with, or none."""
    bundle = cache.bundle()
    if loaded.texts is None or load_text_facts(loaded, bundle.fingerprint) is not None:
        return True
    _score(loaded, bundle)
    return False


def _score(loaded: EvalSet, bundle: Bundle) -> None:
    job = replays.tasks().get(_key(loaded, bundle.fingerprint))
    if job is None and identity.may(Action.SCORE):
        job = _begin(loaded)
    if job is not None and job.running:
        _progress(job)
    else:
        _offer(loaded, bundle.name, job, False)


def _begin(loaded: EvalSet) -> Task:
    tasks, predictor = replays.tasks(), cache.predictor()
    return start(tasks, loaded, predictor, actor=identity.actor(), store=cache.store())


def _offer(loaded: EvalSet, name: str, job: Task | None, elsewhere: bool) -> None:
    if job is not None and job.error:
        st.error(literal(job.error), icon=":material/error:")
    if loaded.texts is None:
        st.info(
            "This set has no texts, so no predictor can score it. Import it again with the "
            "messages to route by what they require.",
            icon=":material/info:",
        )
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        other = " Only another predictor has scored it." if elsewhere else ""
        st.markdown(
            f"**Not scored yet by {literal(name)}.**{other} Routing needs the requirement scores "
            "of every query. Scoring takes a few milliseconds per query and can be resumed.",
            width="stretch",
        )
        st.button(
            f"Score {counted(loaded.n, 'query')}", type="primary", key="eval_sets.score",
            disabled=not identity.may(Action.SCORE), help=identity.why_not(Action.SCORE),
            on_click=widgets.later, args=(lambda: _begin(loaded),),
        )  # fmt: skip


def _progress(job: Task) -> None:
    widgets.waiting(job, "Scoring", unit="queries")
    stop_button(job, "eval_sets.stop", help="Finished scores are kept, and scoring can resume.")
