"""The part Conversation: play one turn by turn, and compare the stickiness modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import usd
from hydra_core.base.types import Catalog, StickyMode
from hydra_core.console import cache, tables, widgets
from hydra_core.console.frame import Head
from hydra_core.console.inspect import conversation_input
from hydra_core.console.inspect import message_input as inspect_input
from hydra_core.console.inspect import view_conversation as views
from hydra_core.console.inspect.conversation_input import Memo, get, put
from hydra_core.console.inspect.figures import lanes_figure
from hydra_core.console.inspect.value_rule import mean_answers, valuation
from hydra_core.console.inspect.view_conversation import MODE_MEANINGS, MODES
from hydra_core.console.inspect.view_words import valid
from hydra_core.console.numbers import policy_text
from hydra_core.console.state import bound, once
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.routing.conversations.conversation import (
    COMPACTED_SHARE,
    IMAGE_TOKENS,
    Event,
    Options,
    Simulation,
    TurnOutcome,
    play,
)
from hydra_core.routing.conversations.messages import Conversation
from hydra_core.routing.query import Query
from hydra_core.routing.sessions import assumed_cache

_EVENTS = {
    Event.FIRST: ("First", "blue"),
    Event.KEPT: ("Kept", "green"),
    Event.SAME: ("Same again", "gray"),
    Event.CHANGED: ("Changed", "orange"),
    Event.REFUSED: ("Refused", "red"),
}
_SHOWN_CHARS = 280
_PAGE = 20


def headline(played: Mapping[StickyMode, Simulation], mode: StickyMode) -> None:
    """Cost of the chosen mode beside routing every turn by itself."""
    one, afresh = played[mode], played[StickyMode.PER_REQUEST]
    cached = 100 * one.cached_tokens / max(one.input_tokens, 1)
    turned = f"{afresh.switches} switch{'es' * (afresh.switches != 1)}"
    change = _change(one.cost_usd, afresh.cost_usd) if one is not afresh else "no stickiness"
    widgets.metric_row([
        ("Cost, estimated", usd(one.cost_usd), change,
         "The whole conversation in the chosen mode. Below: compared with routing every turn by "
         "itself."),
        ("Every turn by itself", usd(afresh.cost_usd), turned,
         "The same conversation without stickiness: every turn is routed by itself."),
        ("Switches", str(one.switches), f"{usd(one.lost_usd)} lost",
         "Turns that go to another model than the turn before. The new model has not read the "
         "history, so a switch bills it in full."),
        ("From the cache", f"{cached:.0f} %", f"of {one.input_tokens:,} tokens",
         "Share of the input billed at the cached price."),
    ])  # fmt: skip


def _change(cost: float, afresh: float) -> str:
    if not afresh:
        return "nothing was served"
    share = round(100 * (cost / afresh - 1))
    if not share:
        return "no difference" if cost == afresh else "less than 1 % apart"
    if share >= 100:
        return f"{cost / afresh:.2g} times as much"
    return f"{abs(share)} % {'more' if share > 0 else 'less'}"


def lanes(played: Mapping[StickyMode, Simulation], mode: StickyMode) -> None:
    """The modes side by side, turn by turn."""
    order = views.cost_order(tuple(played.values()))
    chart = lanes_figure(
        views.lanes(played, mode), order, colors(), marks=views.marks(played[mode])
    )
    figure(chart, "conversation.lanes", alt="The model of every turn in each stickiness mode")


def modes(played: Mapping[StickyMode, Simulation]) -> None:
    """Cost, switches and models of each mode as a table."""
    frame = views.mode_table(played)
    frame["models"] = [literal(names) for names in frame["models"]]
    if not frame["refused"].any():
        frame = frame.drop(columns="refused")
    names = {
        "mode": "Mode", "cost": "Cost", "switches": "Switches", "lost": "Cache lost",
        "cached": "From cache", "refused": "Refused turns", "models": "Models (turns)",
    }  # fmt: skip
    styled = frame.rename(columns=names).style.hide(axis="index")
    money = dict.fromkeys(("Cost", "Cache lost"), lambda value: literal(usd(value)))
    whole: dict[str, Any] = {
        "Mode": lambda name: name.replace(" ", "\u00a0"),
        "From cache": "{:.0f} %",
    }
    st.table(styled.format({**money, **whole}), border="horizontal")
    tables.offer_downloads(views.mode_table(played), "conversation.modes")
    st.caption("Paler cells: the history is billed in full, because no prompt cache holds it.")


def turns(
    conversation: Conversation, played: Mapping[StickyMode, Simulation], mode: StickyMode
) -> None:
    """The timeline: each turn with its model, kept or changed, and why."""
    count = len(conversation.turns)
    start = 0
    if count > _PAGE:
        pages = -(-count // _PAGE)
        page = st.number_input("Page", 1, pages, key="conversation.page")
        start = (int(page) - 1) * _PAGE
        st.caption(f"Turns {start + 1} to {min(start + _PAGE, count)} of {count}.")
    afresh = played[StickyMode.PER_REQUEST].turns
    for turn in played[mode].turns[start : start + _PAGE]:
        said = conversation.turns[turn.number - 1].text
        _turn(turn, said, views.alone(turn, afresh[turn.number - 1]))


def _turn(turn: TurnOutcome, said: str, alone: str) -> None:
    number, body, price = st.columns([1, 15, 4], gap="small")
    number.markdown(f"**{turn.number}**")
    with body.container(gap="xxsmall"):
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.markdown(f"**{literal(turn.model or 'no model')}**", width="content")
            label, color = _EVENTS[turn.event]
            st.badge(label, color=color)  # type: ignore[arg-type]
            if turn.compacted:
                st.badge("Compacted", color="violet", icon=":material/compress:")
            if turn.has_image:
                st.badge("Image", color="gray", icon=":material/image:")
        st.caption(f"“{_short(said)}”")
        (st.caption if turn.event is Event.KEPT else st.markdown)(literal(turn.why))
        if alone:
            st.caption(f":material/info: {literal(alone)}")
    with price.container(gap="xxsmall"):
        if turn.cost is not None:
            st.markdown(f"**{literal(usd(turn.cost.cost_usd))}**", text_alignment="right")
            warm = "cached" if turn.cost.cached else "not cached"
            history = f"{turn.tokens.history:,} {warm}" if turn.tokens.history else "no history"
            new = f"{turn.tokens.message:,} new, {turn.tokens.answer:,} out"
            st.caption(f"{history}  \n{new}", text_alignment="right")


def _short(said: str) -> str:
    """The beginning of a message on one line, as plain text."""
    line = " ".join(valid(said[: 4 * _SHOWN_CHARS]).split())
    line = "".join(c if c.isprintable() else "\ufffd" for c in line)
    cut = len(line) > _SHOWN_CHARS or len(said) > 4 * _SHOWN_CHARS
    return literal(line[:_SHOWN_CHARS]) + ("…" if cut else "")


def assumptions(catalog: Catalog, conversation: Conversation) -> None:
    """What the figures rest on."""
    unnamed = sum(model.cached_input_usd_per_mtok is None for model in catalog.models)
    lines = [
        f"Routed at {policy_text(catalog.policy)}.",
        "Tokens are counted with the predictor's tokenizer, so all costs are estimates.",
        f"An image counts {IMAGE_TOKENS:,} tokens; a compaction keeps "
        f"{100 * COMPACTED_SHARE:.0f} % of the history.",
    ]
    unanswered = sum(not turn.answer for turn in conversation.turns)
    if unanswered:
        length = get().answer_tokens
        if length is not None:
            counted = f"counted as {length:,} tokens" if length else "left out of the costs"
        elif catalog.success_source is not None:
            counted = f"counted as the {catalog.success_source.words} predict"
        else:
            means = mean_answers(catalog)
            counted = f"counted {means.basis}" if means.tokens else "left out of the costs"
        lines.append(
            f"{unanswered} of {len(conversation.turns)} turns have no answer here; it is {counted}."
        )
    if unnamed:
        lines.append(
            f"The catalog has no cached price for {unnamed} of {len(catalog.models)} models: "
            f"assumed {100 * get().cached_share:.0f} % of the input price."
        )
    st.caption(":material/info: " + " ".join(literal(text) for text in lines))


def simulated(catalog: Catalog, conversation: Conversation) -> dict[StickyMode, Simulation]:
    """The conversation in every mode; HydraError where the catalog cannot route at all."""
    now = get()
    sticky = catalog.policy.sticky
    if now.threshold is not None:
        sticky = replace(sticky, threshold=now.threshold)
    priced = replace(
        assumed_cache(catalog, now.cached_share), policy=replace(catalog.policy, sticky=sticky)
    )
    with st.spinner("Playing the conversation", show_time=True):
        memo, count = scored(conversation)
        options = Options(
            images=frozenset(now.images),
            compacted=frozenset(now.compacted),
            health=now.health,
            health_from=now.health_from,
            answer_tokens=answer_tokens(priced, memo),
        )
        return {
            mode: play(priced, memo, conversation, replace(options, mode=mode), count)
            for mode in MODES
        }


def answer_tokens(catalog: Catalog, predictor: Memo) -> Callable[[str, Query], float]:
    """Tokens of an answer that is not there, by model and turn, as for a message's cost."""
    fixed = get().answer_tokens
    if fixed is not None:
        return lambda model, query: float(fixed)
    means = mean_answers(catalog)

    def estimated(model: str, query: Query) -> float:
        valued = valuation(catalog, predictor, query)
        prediction = predictor.predict([query.text], [query.turn], [query.context])
        if valued is None:
            return means.of(model)
        written = valued.valuer.answer_tokens(query.text, prediction)
        at = valued.valuer.ids.index(model)
        return means.of(model) if written is None else float(written[at])

    return estimated


def scored(conversation: Conversation) -> tuple[Memo, Callable[[str], int]]:
    """Scores and token counts of a conversation, kept while it is on this page."""
    return once(
        "conversation.scored",
        conversation,
        lambda: (
            Memo(cache.predictor(), conversation),
            lru_cache(maxsize=None)(cache.token_counter().count),
        ),
    )


def played_out(catalog: Catalog, conversation: Conversation) -> None:
    """Figures, lanes, turns."""
    try:
        played = simulated(catalog, conversation)
    except HydraError as error:
        widgets.problem(error)
        return
    mode = get().mode
    refused = [turn for turn in played[mode].turns if turn.event is Event.REFUSED]
    if refused:
        count = len(conversation.turns)
        whole = len(refused) == count
        widgets.toned(
            "error" if whole else "warning", refused[0].why,
            "No model can serve this conversation" if whole
            else f"No model can serve {len(refused)} of {count} turns",
        )  # fmt: skip
    if len(refused) < len(conversation.turns):
        headline(played, mode)
    with st.container(border=True):
        with st.container(
            horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
        ):
            st.markdown("**Which model serves which turn**", width="content")
            pick_mode()
        st.caption(MODE_MEANINGS[mode])
        lanes(played, mode)
        modes(played)
    assumptions(catalog, conversation)
    with st.container(border=True):
        st.markdown(f"**Turn by turn, {MODES[mode].lower()}**")
        turns(conversation, played, mode)


def pick_mode() -> None:
    """The stickiness mode whose figures and turns are shown."""
    st.segmented_control(
        "Stickiness",
        list(MODES),
        format_func=MODES.__getitem__,
        required=True,
        label_visibility="collapsed",
        **bound("conversation.mode", get().mode, lambda mode: put(mode=mode)),
    )


def show(head: Head) -> None:
    """The part Conversation: play one turn by turn, and see what each stickiness does."""
    try:
        with head.right:
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
                    "Paste or upload a conversation in the OpenAI messages format, or choose an "
                    "example.",
                )
            else:
                played_out(chosen[1], conversation)
