"""The panels of the Eval sets page: the list, one set in detail, scoring with progress."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.figures.outcomes import outcomes_figure
from hydra_core.store.roles import Action
from hydra_core.ui import cache, selectors, state, tables, widgets
from hydra_core.ui import identity as who
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.evalsets.dependence import dependence
from hydra_core.ui.evalsets.earlier_states import earlier_states
from hydra_core.ui.jobs import ScoreJob
from hydra_core.ui.widgets import literal
from hydra_core.views.evalsets import model_table, outcomes_view, query_table

__all__ = ["choose", "nothing_yet", "show"]

_CHOSEN = "eval_sets.chosen"
_TOLD = "eval_sets.told"
_PARTS = ("Models", "Queries")


def nothing_yet() -> None:
    """Say what an eval set is and how to get one."""
    widgets.empty(
        "No eval set yet",
        "An eval set holds queries with what each model achieved and cost on them. "
        "Choose **Import** above to bring one from CSV, JSONL or Parquet.",
    )


def choose(sets: Sequence[SetEntry], used: str) -> SetEntry:
    """Draw the list and return the set to show, at first the one in use on Tune."""
    keys = [entry.key for entry in sets]
    if st.session_state.get(_CHOSEN) not in keys:
        st.session_state[_CHOSEN] = used if used in keys else keys[0]
    by_key = dict(zip(keys, sets, strict=True))
    with st.container(border=True):
        chosen = st.radio(
            "Eval sets",
            keys,
            format_func=lambda key: literal(by_key[key].info.name),
            captions=[_caption(entry) for entry in sets],
            key=_CHOSEN,
            persist_state="session",
            label_visibility="collapsed",
        )
    earlier_states(by_key[chosen], _TOLD)
    return by_key[chosen]


def _tell(error: HydraError) -> None:
    """Shown by the next run: what a callback writes is lost."""
    st.session_state[_TOLD] = error


def _caption(entry: SetEntry) -> str:
    info = entry.info
    if info.problem:
        return ":red-badge[Cannot be read]"
    kinds = [":orange-badge[Synthetic]"] if info.synthetic else []
    kinds += [] if entry.shipped else [":blue-badge[Yours]"]
    kinds += [] if info.scored else [":gray-badge[Not scored]"]
    return " ".join([f"{info.n:,} queries · {len(info.models)} models", *kinds])


def show(entry: SetEntry) -> None:
    """Everything about one set."""
    error = st.session_state.pop(_TOLD, None)
    if error is not None:
        widgets.problem(error)
    try:
        loaded = cache.evalset(entry.info.path, entry.info.digest)
    except HydraError as error:
        widgets.problem(error)
        return
    left, right = st.columns([7, 2], vertical_alignment="center")
    left.subheader(literal(loaded.name), anchor=False)
    with right.container(horizontal_alignment="right"):
        _use(entry)
    about = " · ".join(literal(part) for part in (loaded.origin, loaded.licence) if part)
    st.caption(about or "No origin or licence was given.")
    _facts(loaded)
    _badges(loaded)
    _scores(entry, loaded)
    dependence(entry, loaded)
    table = model_table(loaded)
    view = outcomes_view(loaded, table)
    if view is not None:
        with st.container(border=True):
            widgets.figure(
                outcomes_figure(view, widgets.colors()),
                "eval_sets.models",
                alt="Mean quality against mean cost per query of every model",
            )
    st.session_state.setdefault("eval_sets.part", _PARTS[0])
    part = st.segmented_control(
        "Part", _PARTS, key="eval_sets.part", required=True, persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    if part == "Queries":
        tables.queries(query_table(loaded), loaded.n)
    else:
        tables.models(table)


def _facts(loaded: EvalSet) -> None:
    languages = loaded.queries["language"].nunique()
    missing = sum(loaded.missing_quality.values())
    facts = (
        ("Queries", f"{loaded.n:,}"),
        ("Models", f"{len(loaded.models)}"),
        ("Languages", f"{languages}"),
        ("Missing outcomes", f"{missing:,}"),
    )
    for column, (label, value) in zip(st.columns(len(facts)), facts, strict=True):
        column.metric(label, value, border=True)


def _badges(loaded: EvalSet) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if loaded.synthetic:
            widgets.synthetic_badge()
        if loaded.cost_estimated:
            st.badge("Costs estimated", icon=":material/calculate:", color="orange")
        if loaded.price_notes:
            st.caption(literal(loaded.price_notes), width="content")


def _scores(entry: SetEntry, loaded: EvalSet) -> None:
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


def _use(entry: SetEntry) -> None:
    fitting = any(selectors.fits(entry, catalog) for catalog in cache.catalogs())
    if fitting and st.button("Use on Tune", icon=":material/tune:", key="eval_sets.use"):
        if state.get().evalset != entry.key:
            state.put(evalset=entry.key, catalog="", tau=None, weights=None, pin=None)
        st.switch_page("pages/evaluate/tune.py")


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
            disabled=not who.may(Action.SCORE), on_click=_start, args=(loaded,),
        )  # fmt: skip


def _start(loaded: EvalSet) -> None:
    try:
        cache.jobs().start(loaded, cache.predictor(), actor=who.actor(), store=cache.store())
    except HydraError as error:
        _tell(error)


def _stop(job: ScoreJob) -> None:
    try:
        cache.jobs().stop(job, actor=who.actor(), store=cache.store())
    except HydraError as error:
        _tell(error)


@st.fragment(run_every=0.5)
def _progress(job: ScoreJob) -> None:
    """Show a running job; the page runs once more when it ends."""
    if not job.running:
        st.rerun()
    share = job.done / max(job.total, 1)
    st.progress(share, text=f"Scoring: {job.done:,} of {job.total:,} queries")
    st.button(
        "Stop", key="eval_sets.stop", help="What is done is kept; scoring can resume.",
        on_click=_stop, args=(job,),
        disabled=not who.may(Action.SCORE if job.owner == who.actor().name else Action.MODERATE),
    )  # fmt: skip
