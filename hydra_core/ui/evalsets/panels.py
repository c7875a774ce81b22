"""The panels of the Eval sets page: the list, one set in detail, scoring with progress."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.score_files import load_scores
from hydra_core.figures.outcomes import outcomes_figure
from hydra_core.ui import cache, selectors, state, tables, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.demo import address
from hydra_core.ui.evalsets import make_catalog, scoring
from hydra_core.ui.evalsets.dependence import dependence
from hydra_core.ui.evalsets.earlier_states import earlier_states
from hydra_core.ui.evalsets.scoring import TOLD
from hydra_core.ui.widgets import literal
from hydra_core.views.evalsets import model_table, outcomes_view, query_table, with_requirements

__all__ = ["choose", "nothing_yet", "show"]

_CHOSEN = "eval_sets.chosen"
#: The set that the address was given last; None where a click has just changed it.
_LINK = "eval_sets.link"
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
    _follow_link(keys)
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
            on_change=lambda: st.session_state.__setitem__(_LINK, None),
        )
    address.write({"set": chosen})
    st.session_state[_LINK] = chosen
    earlier_states(by_key[chosen], TOLD)
    return by_key[chosen]


def _follow_link(keys: Sequence[str]) -> None:
    """Take the set from the address, unless it was written here or a click was just made."""
    linked = address.read().get("set")
    if linked in keys and st.session_state.get(_LINK, "") not in (linked, None):
        st.session_state[_CHOSEN] = linked


def _caption(entry: SetEntry) -> str:
    info = entry.info
    if info.problem:
        return "**Cannot be read**"
    kinds = ["**synthetic**"] if info.synthetic else []
    kinds += [] if entry.shipped else ["**yours**"]
    kinds += [] if info.scored else ["**not scored**"]
    return " · ".join([f"{info.n:,} queries", f"{len(info.models)} models", *kinds])


def show(entry: SetEntry) -> None:
    """Everything about one set."""
    error = st.session_state.pop(TOLD, None)
    if error is not None:
        widgets.problem(error)
    try:
        loaded = cache.evalset(entry.info.path, entry.info.digest)
    except HydraError as error:
        widgets.problem(error)
        return
    left, right = st.columns([6, 5], vertical_alignment="center")
    left.subheader(literal(loaded.name), anchor=False)
    with right.container(horizontal_alignment="right"):
        _next(entry)
    about = " · ".join(literal(part) for part in (loaded.origin, loaded.licence) if part)
    st.caption(about or "No origin or licence was given.")
    _facts(loaded)
    _badges(loaded)
    if make_catalog.is_open(entry):
        make_catalog.panel(entry, loaded)
        return
    scoring.scores(entry, loaded)
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
        _queries(loaded)
    else:
        tables.models(table)
        tables.take_along(table, "eval_sets.table.models")


def _queries(loaded: EvalSet) -> None:
    """The queries, with what each requires where the installed predictor has scored the set."""
    dimensions: tuple[str, ...] = ()
    scores = None
    try:
        bundle = cache.bundle()
        dimensions, scores = bundle.dimensions, load_scores(loaded, bundle.fingerprint)
    except HydraError as error:
        st.caption(f":material/info: Without requirements: {literal(str(error))}")
    tables.queries(query_table(loaded, dimensions, scores), loaded.n)
    tables.take_along(
        lambda: with_requirements(loaded, dimensions, scores), "eval_sets.table.queries"
    )


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


def _next(entry: SetEntry) -> None:
    """Tune where a catalog fits, and the way to a catalog of its own."""
    if make_catalog.is_open(entry):
        return
    fitting = any(selectors.fits(entry, catalog) for catalog in cache.catalogs())
    with st.container(horizontal=True, horizontal_alignment="right"):
        make_catalog.offer(entry, primary=not fitting)
        if fitting:
            _use(entry)


def _use(entry: SetEntry) -> None:
    if st.button("Use on Tune", icon=":material/tune:", key="eval_sets.use"):
        if state.get().evalset != entry.key:
            state.put(evalset=entry.key, catalog="", tau=None, weights=None, pin=None, aim=None)
        st.switch_page("pages/evaluate/tune.py")
