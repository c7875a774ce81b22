"""Inspect: why this model for this message, and what would change it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.console import cache, frame, widgets
from hydra_core.console.frame import Part, write_address
from hydra_core.console.inspect import conversation, message, robustness, value_rule, view
from hydra_core.console.inspect import message_input as inspect_input
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.inspect.message import SessionPredictor
from hydra_core.console.inspect.value_rule import message_costs
from hydra_core.console.inspect.view import Inspection
from hydra_core.routing.decision import Cause
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router

#: What a knob fades while it moves.
DECISION, RULES, FLIPS, CANDIDATES = message.DECIDED


def explained(catalog: Catalog, text: str) -> Inspection | None:
    """The decision on one message, None after saying why there is none."""
    now = inspect_state.get()
    query = now.query(text)
    try:
        brought = now.requirements
        predictor = SessionPredictor()
        if not text and brought is not None and len(brought) == len(catalog.dimensions):
            one = view.reopen(catalog, brought, query, now.predicted)
            one = replace(one, left_out=now.left_out)
        elif not text.strip():
            return None
        else:
            one = view.inspect(catalog, predictor, cache.token_counter(), query)
        return replace(one, costs=message_costs(catalog, predictor, one))
    except HydraError as error:
        widgets.problem(error)
        return None


def one_message(key: str, catalog: Catalog) -> None:
    """A message with its decision beside it, then everything that led there."""
    left, right = st.columns([11, 9], gap="small")
    with left.container(border=True, height="stretch"):
        inspect_input.message(catalog)
    text = inspect_state.get().text
    with right.container(border=True, height="stretch"):
        one = explained(catalog, text)
        if one is None:
            st.caption("Chosen model")
            st.markdown("Type or pick a message to see which model it goes to, and why.")
            return
        with st.container(key=DECISION):
            message.decision(one)
        message.share(one, key)
    widgets.paint()
    other = value_rule.other_rule(catalog)
    beside = None if other is None or not text else explained(other, text)
    if beside is not None:
        with st.container(border=True, key=RULES):
            value_rule.both(one, beside)
    details(text, one, beside, key)
    write_address(message.link(one, key))


def details(text: str, one: Inspection, beside: Inspection | None, key: str) -> None:
    """Requirements and flips, strips with their knobs, candidates, words."""
    left, right = st.columns([13, 7], gap="small")
    with left.container(border=True, height="stretch"):
        message.needs({"requirement": one})
    with right.container(border=True, height="stretch", key=FLIPS):
        message.flips(one)
    with st.container(border=True):
        message.strip({"": one}, named=beside is not None)
    if beside is not None:  # each rule has a knob of its own
        with st.container(border=True):
            message.strip({"": beside}, named=True, fades=(RULES,))
    with st.container(border=True, key=CANDIDATES):
        message.candidates(one)
    if one.decision.valuation is not None:
        with st.container(border=True):
            value_rule.neighbours(one)
    if text:
        with st.container(border=True):
            scored = one.decision.query.text if one.decision.query else text
            message.words_panel(scored, one, inspect_state.get().turn, key)


def two_messages(key: str, catalog: Catalog) -> None:
    """Two messages side by side."""
    shown: dict[str, Inspection] = {}
    for place, name, field in zip(st.columns(2), "AB", ("text", "other"), strict=True):
        with place.container(border=True, height="stretch"):
            inspect_input.message(catalog, field, f"Message {name}")
            one = explained(catalog, getattr(inspect_state.get(), field))
            if one is None:
                st.markdown("Type or pick a message, or append something to the other one.")
                continue
            message.decision(one, label=f"Chosen for {name}")
            shown[name] = one
    if "A" in shown:
        write_address(message.link(shown["A"], key))
    if len(shown) < 2:
        return
    left, right = st.columns([13, 7], gap="small")
    with left.container(border=True, height="stretch"):
        message.needs(shown)
    with right.container(border=True, height="stretch"):
        message.differences(shown)
    with st.container(border=True):
        message.strip(shown)
    with st.container(border=True, key=CANDIDATES):
        message.comparison(shown)


def example_for(catalog: Catalog) -> str:
    """An example that stays within tau and does not go to the cheapest model, if there is one."""
    english = [one for one in view.examples() if one.language == "en"]
    try:
        router = Router(catalog, SessionPredictor())
        for one in (english[1], *reversed(english), *view.examples()):
            decision = router.route(Query(one.text))
            cheapest = decision.pool.ids[int(decision.pool.cost.argmin())]
            if decision.cause is not Cause.FAIL_OPEN and decision.model != cheapest:
                return one.text
    except HydraError:
        pass  # the page says what is wrong where it routes the message
    return english[1].text


@st.fragment
def inspect() -> None:
    """One message or two; only this runs again when a knob is let go."""
    try:
        chosen = inspect_input.policy()
    except HydraError as error:
        widgets.problem(error)
        chosen = None
        widgets.no_predictor()
    if chosen is not None:
        if inspect_state.get().example:
            inspect_state.put(text=example_for(chosen[1]))
        (two_messages if inspect_state.get().compare else one_message)(*chosen)


PARTS = {
    # the selectors follow the knob, so they stand in the fragment and not in the head
    "message": Part("Message", lambda head: inspect()),
    "conversation": Part("Conversation", conversation.show),
    "robustness": Part("Robustness", robustness.show),
}


def show() -> None:
    """The whole page."""
    frame.show("Inspect", PARTS)
