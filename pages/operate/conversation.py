"""Conversation: play one turn by turn, and see which model it keeps, why, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, StickyMode
from hydra_core.console import cache, widgets
from hydra_core.console.inspect import conversation as conversation_panels
from hydra_core.console.inspect import conversation_input
from hydra_core.console.inspect import message_input as inspect_input
from hydra_core.console.inspect.conversation_input import Memo, get, put
from hydra_core.console.inspect.view_conversation import MODE_MEANINGS, MODES
from hydra_core.routing.conversations.conversation import Simulation, play
from hydra_core.routing.conversations.economics import assumed_cache
from hydra_core.routing.conversations.messages import Conversation


def simulated(catalog: Catalog, conversation: Conversation) -> dict[StickyMode, Simulation]:
    """The conversation in every mode.

    Raises:
        HydraError: The catalog cannot route at all.
    """
    now = get()
    sticky = catalog.policy.sticky
    if now.threshold is not None:
        sticky = replace(sticky, threshold=now.threshold)
    priced = replace(
        assumed_cache(catalog, now.cached_share), policy=replace(catalog.policy, sticky=sticky)
    )
    with st.spinner("Playing the conversation", show_time=True):
        memo, count = scored(conversation)
        return {mode: play(priced, memo, conversation, now.options(mode), count) for mode in MODES}


def scored(conversation: Conversation) -> tuple[Memo, Callable[[str], int]]:
    """Scores and token counts of a conversation, kept while it is on this page."""
    kept = st.session_state.get("conversation.scored")
    if kept is None or kept[0] != conversation:
        count = lru_cache(maxsize=None)(cache.token_counter().count)
        kept = (conversation, Memo(cache.predictor(), conversation), count)
        st.session_state["conversation.scored"] = kept
    return kept[1], kept[2]


def shown(catalog: Catalog, conversation: Conversation) -> None:
    """Figures, lanes, turns."""
    try:
        played = simulated(catalog, conversation)
    except HydraError as error:
        widgets.problem(error)
        return
    mode = get().mode
    conversation_panels.headline(played, mode)
    with st.container(border=True):
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
        ):
            st.markdown("**Which model serves which turn**", width="content")
            pick_mode()
        st.caption(MODE_MEANINGS[mode])
        conversation_panels.lanes(played, mode)
        conversation_panels.modes(played)
    conversation_panels.assumptions(catalog, conversation)
    with st.container(border=True):
        st.markdown(f"**Turn by turn, {MODES[mode].lower()}**")
        conversation_panels.turns(conversation, played, mode)


def pick_mode() -> None:
    """The stickiness mode whose figures and turns are shown."""
    st.session_state["conversation.mode"] = get().mode
    st.segmented_control(
        "Stickiness",
        list(MODES),
        format_func=MODES.__getitem__,
        key="conversation.mode",
        required=True,
        label_visibility="collapsed",
        on_change=lambda: put(mode=st.session_state["conversation.mode"]),
    )


left, right = st.columns([3, 7], vertical_alignment="bottom")
left.title("Conversation", anchor=False)
try:
    with right:
        chosen = inspect_input.policy(compare=False)
except HydraError as error:
    widgets.problem(error)
    widgets.no_predictor()
    chosen = None
if chosen is not None:
    wide, narrow = st.columns([7, 2.6], gap="small")
    with narrow.container(border=True):
        conversation_input.source()
        conversation = get().conversation
        if conversation is not None:
            conversation_input.events(chosen[1], conversation)
    with wide:
        if conversation is None:
            widgets.empty(
                "Nothing to play yet",
                "Paste or upload a conversation in the OpenAI messages form, or choose an example.",
            )
        else:
            shown(chosen[1], conversation)
