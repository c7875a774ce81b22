"""Eval sets: the list and one set in detail; whether routing can help; how good the labels are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from hydra_core.base.errors import EvalSetError, HydraError
from hydra_core.base.spelling import counted
from hydra_core.console import cache, frame, selectors, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import SetEntry
from hydra_core.console.demo import session
from hydra_core.console.eval_sets import (
    audit,
    collect,
    import_wizard,
    labels,
    make_catalog,
    routing_help,
    scoring,
)
from hydra_core.console.eval_sets import view as views
from hydra_core.console.eval_sets.figures import outcomes_figure
from hydra_core.console.frame import BY_HAND, Head, Part, go, read_address, write_address
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import Earlier, EvalSetChanges, earlier
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.folders import ACCEPTED, DECLINED, read_manifest
from hydra_core.evalsets.scores import load_scores
from hydra_core.evalsets.suspects import Suspects, answer, look
from hydra_core.store.roles import Action

_LOOKED = "eval_sets.looked"


def dependence(entry: SetEntry, loaded: EvalSet) -> None:
    """Show what is known about dependent queries, and offer to check and to answer."""
    kept = loaded.dependence
    looked: tuple[str, Suspects] | None = st.session_state.get(_LOOKED)
    if looked is not None and looked[0] == loaded.digest:
        _offer(loaded, looked[1])
    elif kept is None:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.markdown(
                "**Do queries depend on each other?** Translations, near-duplicates and repeated "
                "attempts make intervals too narrow unless they are declared as clusters. Until "
                "you check, every result carries a warning.",
                width="stretch",
            )
            _look_button(entry, loaded, "Check")
    elif kept.answer == DECLINED:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"{kept.queries:,} queries form {kept.groups:,} groups that were declared "
                "independent. Every result carries a warning.",
                width="content",
            )
            _look_button(entry, loaded, "Check again")
    else:
        found = f"{kept.groups:,} groups declared as clusters" * (kept.answer == ACCEPTED)
        by = "ids, texts and meaning" if kept.vectors else "ids and texts"
        st.badge(
            f"Dependent queries: {found or 'none found'} (by {by})",
            icon=":material/check_circle:",
            color="green",
        )


def _look_button(entry: SetEntry, loaded: EvalSet, label: str) -> None:
    barred = identity.why_not(Action.REPLACE)
    if entry.shipped:
        barred = "Sets that come with the console cannot be changed."
    if st.button(
        label, key="eval_sets.look", disabled=barred is not None, help=barred
    ) and widgets.done(lambda: _look(loaded)):
        st.rerun()


def _look(loaded: EvalSet) -> None:
    shown = st.progress(0.0, "Comparing texts")

    def step(done: int, total: int) -> None:
        shown.progress(done / total, f"Comparing texts: {done:,} of {total:,}")

    found = look(loaded, step)
    if found.groups:
        st.session_state[_LOOKED] = (loaded.digest, found)
    else:
        _keep(loaded, found, accepted=False)


def _offer(loaded: EvalSet, found: Suspects) -> None:
    with st.container(border=True):
        st.markdown(f"**{literal(str(found))}.** Do they belong together?")
        tables.kept(views.suspect_table(loaded, found), "eval_sets.suspects")
        if not found.vectors:
            st.caption("Texts were not compared by meaning. Score the set first for that.")
        with st.container(horizontal=True):
            yes = st.button(
                "Yes, declare them as clusters", type="primary", key="eval_sets.answer.True"
            )
            no = st.button("No, they are independent", key="eval_sets.answer.False")
        if (yes or no) and widgets.done(lambda: _keep(loaded, found, accepted=yes)):
            widgets.forget(_LOOKED)
            st.rerun()


def _keep(loaded: EvalSet, found: Suspects, *, accepted: bool) -> None:
    _changes().write(loaded.path, lambda: answer(loaded, found, accepted=accepted))


_SHOWN = 10


def earlier_states(entry: SetEntry) -> None:
    """What can be undone, and the way to remove a set of one's own."""
    states = earlier(session.folder() / "evalsets")
    if entry.shipped and not states:
        return
    with st.popover("Remove or restore", icon=":material/history:", width="stretch"):
        if not entry.shipped:
            _offer_removal(entry)
        if states:
            st.markdown("**Replaced or removed**")
        for number, state in enumerate(states[:_SHOWN]):
            _offer_return(state, number)


def _offer_removal(entry: SetEntry) -> None:
    st.button(
        f"Remove {literal(entry.info.name)}", icon=":material/delete:", width="stretch",
        key="eval_sets.remove", on_click=widgets.later,
        args=(lambda: _changes().remove(entry.info.path),),
        disabled=not identity.may(Action.DELETE),
    )  # fmt: skip
    st.caption("A removed set is kept and can be restored here. Needs the role publisher.")


def _offer_return(state: Earlier, number: int) -> None:
    left, right = st.columns([3, 2], vertical_alignment="center")
    with left.container(gap=None):
        st.markdown(literal(_named(state)))
        st.caption(literal(f"{state.name}, until {state.until:%Y-%m-%d %H:%M:%S} UTC"))
    right.button(
        "Restore", key=f"eval_sets.bring_back.{number}", width="stretch",
        on_click=widgets.later, args=(lambda: _changes().bring_back(state),),
        disabled=not identity.may(Action.REPLACE), help=identity.why_not(Action.REPLACE),
    )  # fmt: skip


def _named(state: Earlier) -> str:
    try:
        return read_manifest(state.path)[0].name
    except EvalSetError:
        return f"{state.name}, damaged"


def _changes() -> EvalSetChanges:
    return EvalSetChanges(identity.actor(), cache.store())


_CHOSEN = "eval_sets.chosen"
#: The set that the address was given last; None where a click has just changed it.
_LINK = "eval_sets.link"
_PARTS = ("Models", "Queries")


def choose(sets: Sequence[SetEntry]) -> SetEntry:
    """Draw the list; the set that is picked is the one in use on every page."""
    by_key = {entry.key: entry for entry in sets}
    _follow_link(list(by_key))
    pair = selectors.current()
    st.session_state[_CHOSEN] = pair[0].key if pair else sets[0].key
    with st.container(border=True):
        chosen = st.radio(
            "Eval sets",
            list(by_key),
            format_func=lambda key: literal(by_key[key].info.name),
            captions=[_caption(entry) for entry in sets],
            key=_CHOSEN,
            label_visibility="collapsed",
            on_change=_picked,
        )
    write_address({"set": chosen})
    st.session_state[_LINK] = chosen
    earlier_states(by_key[chosen])
    return by_key[chosen]


def _follow_link(keys: Sequence[str]) -> None:
    """Take the set from the address, unless it was written here or a click was just made."""
    linked = read_address().get("set", "")
    if linked in keys and st.session_state.get(_LINK, "") not in (linked, None):
        selectors.use_set(linked)


def _picked() -> None:
    st.session_state[_LINK] = None
    selectors.use_set(st.session_state[_CHOSEN])


def _caption(entry: SetEntry) -> str:
    info = entry.info
    if info.problem:
        return "**Cannot be read**"
    kinds = ["**synthetic**"] if info.synthetic else []
    kinds += [] if entry.shipped else ["**yours**"]
    kinds += [] if info.scored else ["**not scored**"]
    return " · ".join(
        [f"{counted(info.n, 'query')}", f"{counted(len(info.models), 'model')}", *kinds]
    )


def one_set(entry: SetEntry) -> None:
    """Everything about one set."""
    widgets.show_error()
    try:
        loaded = cache.evalset(entry)
    except HydraError as error:
        widgets.problem(error)
        return
    left, right = st.columns([6, 5], vertical_alignment="center")
    left.subheader(literal(loaded.name), anchor=False)
    with right.container(horizontal_alignment="right"):
        _next(entry)
    about = " · ".join(literal(part) for part in (loaded.origin, loaded.licence) if part)
    st.caption(about or "No origin or licence stated.")
    _facts(loaded)
    _badges(loaded)
    if make_catalog.is_open(entry):
        make_catalog.panel(entry, loaded)
        return
    scoring.scores(entry, loaded)
    dependence(entry, loaded)
    table = views.model_table(loaded)
    known = views.outcomes(table)
    if len(known):
        binary = bool(np.isin(loaded.quality[~np.isnan(loaded.quality)], (0.0, 1.0)).all())
        title = "Resolved queries" if binary else "Mean quality"
        with st.container(border=True):
            widgets.figure(
                outcomes_figure(known, title, widgets.colors()),
                "eval_sets.models",
                alt="Mean quality against mean cost per query of every model",
            )
    if widgets.switch("Part", _PARTS, "eval_sets.detail") == "Queries":
        _queries(loaded)
    else:
        tables.models(table)
        if table["low"].isna().any() and table["quality"].notna().any():
            st.caption(views.NO_INTERVAL)
        tables.offer_downloads(table, "eval_sets.table.models")


def _queries(loaded: EvalSet) -> None:
    """The queries, with what each requires where the installed predictor has scored the set."""
    dimensions: tuple[str, ...] = ()
    scores = None
    try:
        bundle = cache.bundle()
        dimensions, scores = bundle.dimensions, load_scores(loaded, bundle.fingerprint)
    except HydraError as error:
        st.caption(f":material/info: No requirements to show: {literal(str(error))}")
    tables.queries(views.query_table(loaded, dimensions, scores), loaded.n)
    tables.offer_downloads(
        lambda: views.with_requirements(loaded, dimensions, scores), "eval_sets.table.queries"
    )


def _facts(loaded: EvalSet) -> None:
    facts = {
        "Queries": loaded.n,
        "Models": len(loaded.models),
        "Languages": loaded.queries["language"].nunique(),
        "Missing outcomes": sum(loaded.missing_quality.values()),
    }
    widgets.metric_row([(label, f"{value:,}", "", "") for label, value in facts.items()])


def _badges(loaded: EvalSet) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        widgets.synthetic_badge(loaded.synthetic)
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
        if fitting and st.button("Tune on this set", icon=":material/tune:", key="eval_sets.use"):
            go(BY_HAND)


_VIEWS = ("All sets", "Import")
#: Name in the address -> who judged the labels.
_QUALITY = {"runs": "Judged by a model", "samples": "Rated by people"}


def _sets(head: Head) -> None:
    with head.right.container(horizontal=True, horizontal_alignment="right"):
        view = widgets.switch("View", _VIEWS, "eval_sets.view")
    if view == "Import":
        import_wizard.wizard()
        return
    sets = cache.evalsets()
    if not sets:
        widgets.empty(
            "No eval set yet",
            "An eval set holds queries, and the quality and cost of each model on them. Choose "
            "**Import** above to read one from CSV, JSON or Parquet.",
        )
        return
    narrow, wide = st.columns([3, 7], gap="medium")
    with narrow:
        entry = choose(sets)
    with wide:
        one_set(entry)


def _label_quality(head: Head) -> None:
    selectors.follow({"view": "label_quality.view"})
    if st.session_state.get("label_quality.view") not in _QUALITY:
        rated = not labels.runs() and bool(cache.store().ratings.samples())
        st.session_state["label_quality.view"] = "samples" if rated else "runs"
    left, right = st.columns([4, 7], vertical_alignment="bottom")
    view = widgets.switch("View", _QUALITY, "label_quality.view", _QUALITY.__getitem__, left)
    del head
    if view == "samples":
        audit.show(right)
    else:
        labels.show(right)
        selectors.write({"view": "label_quality.view"})


PARTS = {
    "sets": Part("Sets", _sets, (7.0, 3.0)),
    "collect": Part("Collect", collect.show, (7.0, 3.0)),
    "routing-help": Part("Can routing help?", routing_help.show, (6.4, 5.6)),
    "label-quality": Part("Label quality", _label_quality, (7.0, 3.0)),
}


def show() -> None:
    """The whole page."""
    frame.show("Eval sets", PARTS)
