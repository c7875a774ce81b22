"""Catalog: the pool of models, its profiles and its policy, edited as a draft; what-ifs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.types import Catalog
from hydra_core.catalog.prices.quotes import price_number
from hydra_core.console import cache, drafts, frame, selectors, state, widgets
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import add_model, profiles
from hydra_core.console.catalog import dialogs as catalog_dialogs
from hydra_core.console.catalog import models as models_view
from hydra_core.console.catalog import policy as catalog_policy
from hydra_core.console.catalog import what_if as what_if_view
from hydra_core.console.drafts import Working
from hydra_core.console.frame import Head, Part
from hydra_core.console.widgets import literal
from hydra_core.replay.catalog_changes import Event, EventKind, event_catalogs

_DRAFT = ""
#: Also in `selectors`, for the address.
_KIND, _MODEL, _PRICES = (f"catalog.event.{name}" for name in ("kind", "model", "prices"))
_LEAST, _MOST = 0.001, 100_000.0
_LABELS = {
    _DRAFT: "my draft",
    EventKind.REMOVE: "a model is removed",
    EventKind.ADD: "a model is added",
    EventKind.REPRICE: "a model is repriced",
}


def choose(place: DeltaGenerator, catalog: Catalog, chosen: SetEntry) -> Event | None:
    """The event to try out; None for the draft itself.

    Any model with outcomes can take part. "Added" compares with the pool before it was there.
    """
    models = [model.id for model in catalog.models if model.id in chosen.info.models]
    for key, options in ((_KIND, list(_LABELS)), (_MODEL, models)):  # of a link, maybe no option
        if st.session_state.get(key) not in options:
            widgets.forget(key)
    left, right = place.columns(2, vertical_alignment="bottom")
    kind = left.selectbox(
        "What if", list(_LABELS), format_func=_LABELS.__getitem__, key=_KIND,
        persist_state="session",
    )  # fmt: skip
    if kind == _DRAFT or not models:
        return None
    model = right.selectbox("Model", models, key=_MODEL, persist_state="session")
    if kind != EventKind.REPRICE:
        return Event(EventKind(kind), model)
    spec = catalog.model(model)
    now = {"input": spec.input_usd_per_mtok, "output": spec.output_usd_per_mtok}
    _follow(model, now)
    prices = []
    for column, (field, price) in zip(st.columns([5, 3, 3, 3])[2:], now.items(), strict=True):
        key = state.price_key(field, model, price)
        st.session_state.setdefault(key, price)
        prices.append(column.number_input(
            f"{field.capitalize()}, USD per Mtok", _LEAST, _MOST, step=0.1, format="%.10g",
            key=key, persist_state="session",
        ))  # fmt: skip
    st.session_state[_PRICES] = "/".join(f"{price:.10g}" for price in prices)
    return Event(EventKind.REPRICE, model, *prices)


def _follow(model: str, now: Mapping[str, float]) -> None:
    """Begin a repricing with the prices of the address, where it is the first of this session."""
    if any(str(key).startswith("catalog.event.input.") for key in st.session_state):
        return
    linked = [price_number(text) for text in str(st.session_state.get(_PRICES, "")).split("/")]
    for (field, price), other in zip(now.items(), linked, strict=False):
        if other is not None and _LEAST <= other <= _MOST:
            st.session_state[state.price_key(field, model, price)] = float(other)


_SUMMARY, _DETAILS = what_if_view.SUMMARY, "what_if.details"


def _part(
    title: str,
    draw: Callable[[CatalogEntry, Working, str], None],
    views: Sequence[str] = ("",),
    key: str = "",
) -> Part:
    """A part on the draft of a catalog; `draw` draws one of its views."""

    def body(entry: CatalogEntry, working: Working) -> None:
        draw(entry, working, widgets.switch("View", views, key) if key else "")

    def part(head: Head) -> None:
        selectors.on_draft(head, body)

    return Part(title, part, (8.0, 4.0))


def _models(entry: CatalogEntry, working: Working, view: str) -> None:
    if view == "Edit":
        _edit(entry, working)
        return
    models_view.problems(working)
    catalog = working.catalog or working.published
    if catalog is None:
        return
    if view == "Cards":
        models_view.cards(catalog)
    else:
        with st.container(border=True):
            models_view.capability_map(catalog)


def _policy(entry: CatalogEntry, working: Working, view: str) -> None:
    del view
    models_view.problems(working)
    if (working.catalog or working.published) is not None:
        catalog_policy.policy(entry, working)


def _edit(entry: CatalogEntry, working: Working) -> None:
    tools = st.container(horizontal=True, gap="xsmall")
    rows, wrong, below = st.container(), st.container(), st.container()
    with below:  # first, so that the figures do not wait for the table
        what_if_view.draft_effect(working)
    with rows:
        ticked = models_view.table(entry, working)
    with tools:
        # no further right: the bar that the table shows under the mouse would cover a button
        dialogs = (
            ("Add model", ":material/add:", add_model.add),
            ("Paste", ":material/content_paste:", catalog_dialogs.paste),
            ("Import prices", ":material/price_change:", catalog_dialogs.prices),
        )
        for label, icon, dialog in dialogs:
            if st.button(label, icon=icon, disabled=not drafts.may_edit(), key=f"catalog.{label}"):
                dialog(entry, working)
        models_view.row_tools(entry, working, ticked)
    with wrong:
        models_view.problems(working)


def _what_if(entry: CatalogEntry, working: Working, view: str) -> None:
    del entry, view
    models_view.problems(working)
    if working.catalog is None or working.published is None:
        return
    controls = st.columns([5, 3, 6], vertical_alignment="bottom")
    chosen = selectors.choose_evalset(controls[0], working.published)
    if chosen is None:
        widgets.no_evalset()
        return
    at = what_if_view.common_setting(controls[1], working.published, working.catalog)
    event = choose(controls[2], working.published, chosen)
    before, after, names = working.published, working.catalog, (working.before, "draft")
    if event is not None:
        before, after = event_catalogs(working.published, event)
        names = ("before", "after")
        st.info(
            literal(
                f"What if: {event}. Nothing is retrained, your draft is not touched, and both "
                "pools are held against one oracle."
            ),
            icon=":material/science:",
        )
    found = what_if_view.compared(chosen, before, after, at)
    if found is None:
        return
    if event is None and not working.edited:
        st.caption("There are no edits yet. Edit a model, or try an event.")
    else:
        with st.container(key=_SUMMARY):
            what_if_view.summary(found, chosen, what_if_view.sentence(found))
    what_if_view.knob_deltas(found, chosen, *names, fades=(_SUMMARY, _DETAILS))
    evalset = cache.evalset(chosen)
    with st.container(key=_DETAILS):
        what_if_view.details(found, evalset, *names)


PARTS = {
    "models": _part("Models", _models, ("Edit", "Cards", "Capabilities"), "catalog.view"),
    "profiles": _part("Profiles", profiles.show, profiles.VIEWS, "profiles.view"),
    "policy": _part("Policy", _policy),
    "what-if": _part("What-if", _what_if),
}


def show() -> None:
    """The whole page."""
    frame.show("Catalog", PARTS)
