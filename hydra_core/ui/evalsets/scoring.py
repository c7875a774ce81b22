"""Scoring an eval set on the Eval sets page: who scored it, the offer, and progress."""

from __future__ import annotations

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.score_files import load_text_facts
from hydra_core.predictor.bundle import Bundle
from hydra_core.store.roles import Action
from hydra_core.ui import cache
from hydra_core.ui.access import identity
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.jobs import ScoreJob
from hydra_core.ui.widgets import literal

__all__ = ["TOLD", "score_now", "scores", "vectors_now"]

#: Where an error of a callback waits for the next run.
TOLD = "eval_sets.told"


def scores(entry: SetEntry, loaded: EvalSet) -> None:
    """Which predictor bundles scored the set, and a way to score it with the shipped one."""
    try:
        bundle = cache.bundle()
    except HydraError as error:
        names = ", ".join(entry.info.scored) or "none"
        st.info(
            literal(f"Scored by: {names}. The shipped predictor cannot be used: {error}"),
            icon=":material/neurology:",
        )
        return
    job = cache.jobs().get(loaded.path, bundle.fingerprint)
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
    """Start scoring where it is missing, with progress; whether the set is scored.

    Raises:
        HydraError: The predictor cannot be used.
    """
    bundle = cache.bundle()
    if bundle.fingerprint in entry.info.scored:
        return True
    _score(loaded, bundle)
    return False


def vectors_now(loaded: EvalSet) -> bool:
    """Start reading text vectors where they are missing, with progress; whether they are there.

    A set without texts has the vectors it came with, or none.

    Raises:
        HydraError: The predictor cannot be used.
    """
    bundle = cache.bundle()
    if loaded.texts is None or load_text_facts(loaded, bundle.fingerprint) is not None:
        return True
    _score(loaded, bundle)
    return False


def _score(loaded: EvalSet, bundle: Bundle) -> None:
    job = cache.jobs().get(loaded.path, bundle.fingerprint)
    if job is None and identity.may(Action.SCORE):
        actor, store = identity.actor(), cache.store()
        job = cache.jobs().start(loaded, cache.predictor(), actor=actor, store=store)
    if job is not None and job.running:
        _progress(job)
    else:
        _offer(loaded, bundle.name, job, False)


def _offer(loaded: EvalSet, name: str, job: ScoreJob | None, elsewhere: bool) -> None:
    if job is not None and job.error:
        st.error(literal(job.error), icon=":material/error:")
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        other = " It is scored by another predictor only." if elsewhere else ""
        st.markdown(
            f"**Not scored yet by {literal(name)}.**{other} Routing needs the requirement scores "
            "of every query; this takes some milliseconds per query and can be resumed.",
            width="stretch",
        )
        st.button(
            f"Score {loaded.n:,} queries", type="primary", key="eval_sets.score",
            disabled=not identity.may(Action.SCORE), on_click=_start, args=(loaded,),
        )  # fmt: skip


def _tell(error: HydraError) -> None:
    """Shown by the next run: what a callback writes is lost."""
    st.session_state[TOLD] = error


def _start(loaded: EvalSet) -> None:
    try:
        cache.jobs().start(loaded, cache.predictor(), actor=identity.actor(), store=cache.store())
    except HydraError as error:
        _tell(error)


def _stop(job: ScoreJob) -> None:
    try:
        cache.jobs().stop(job, actor=identity.actor(), store=cache.store())
    except HydraError as error:
        _tell(error)


@st.fragment(run_every=0.5)
def _progress(job: ScoreJob) -> None:
    """Show a running job; the page runs once more when it ends."""
    if not job.running:
        st.rerun()
    own = job.owner == identity.actor().name
    share = job.done / max(job.total, 1)
    st.progress(share, text=f"Scoring: {job.done:,} of {job.total:,} queries")
    st.button(
        "Stop", key="eval_sets.stop", help="What is done is kept; scoring can resume.",
        on_click=_stop, args=(job,),
        disabled=not identity.may(Action.SCORE if own else Action.MODERATE),
    )  # fmt: skip
