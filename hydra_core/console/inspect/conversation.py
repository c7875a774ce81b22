"""The part Conversation: what is played and happens in it, turn by turn in every stickiness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import usd
from hydra_core.base.tokens import IMAGE_TOKENS
from hydra_core.base.types import Catalog, StickyMode
from hydra_core.console import cache, tables, widgets
from hydra_core.console.frame import Head
from hydra_core.console.inspect import message_input as inspect_input
from hydra_core.console.inspect import view_conversation as views
from hydra_core.console.inspect.figures import lanes_figure
from hydra_core.console.inspect.value_rule import mean_answers, valuation
from hydra_core.console.inspect.view_conversation import MODE_MEANINGS, MODES
from hydra_core.console.inspect.view_words import valid
from hydra_core.console.numbers import policy_text
from hydra_core.console.state import Remembered, bound, once
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.conversations.conversation import (
    COMPACTED_SHARE,
    Event,
    Options,
    Simulation,
    TurnOutcome,
    play,
)
from hydra_core.routing.conversations.messages import MAX_BYTES, Conversation, parse_messages
from hydra_core.routing.query import Query
from hydra_core.routing.router import Scorer
from hydra_core.routing.sessions import assumed_cache


@dataclass(frozen=True, slots=True)
class Playing:
    """A conversation and what happens during it.

    Attributes:
        scene: Id of the shipped conversation, '' for the operator's `own`.
        threshold: Sticky threshold gamma, None for the catalog's.
        answer_tokens: Of an answer that is not there; None to estimate it as for a message.
        cached_share: Cached input price as a share of the input price, where none is named.
    """

    scene: str = ""
    own: Conversation | None = None
    mode: StickyMode = StickyMode.PER_SESSION
    images: tuple[int, ...] = ()
    compacted: tuple[int, ...] = ()
    health: Mapping[str, float] = field(default_factory=dict)
    health_from: int = 2
    threshold: float | None = None
    answer_tokens: int | None = None
    cached_share: float = 0.1

    @property
    def conversation(self) -> Conversation | None:
        """What is played; None before an own conversation has been given."""
        if not self.scene:
            return self.own
        return next(s.conversation for s in views.scenes() if s.id == self.scene)


def _scene(at: int = 0) -> dict[str, Any]:
    """A shipped conversation with what happens in it."""
    scene = views.scenes()[at]
    return {"scene": scene.id, "images": scene.images, "compacted": scene.compacted}


_PLAYING = Remembered("conversation", lambda link: Playing(**_scene()))
get, put = _PLAYING.get, _PLAYING.put


@dataclass(frozen=True, slots=True, eq=False)
class Memo:
    """A predictor that scores each message, turn and context once."""

    predictor: Scorer
    known: dict[str, Prediction] = field(default_factory=dict)

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        """As `Predictor.predict`."""
        asked = repr((texts, turns, contexts))
        if asked not in self.known:
            self.known[asked] = self.predictor.predict(texts, turns, contexts)
        return self.known[asked]


_KINDS = ("Example", "Paste", "Upload")
_EXAMPLE = "User: Why does my import fail?\nAssistant: What does the log say?\nUser: ..."


def source() -> None:
    """Choose a shipped conversation, or bring one in the OpenAI messages form."""
    st.session_state.setdefault("conversation.kind", _KINDS[0])
    kind = st.segmented_control(
        "Conversation", _KINDS, key="conversation.kind", required=True, persist_state="session",
        on_change=_kind_changed,
    )  # fmt: skip
    if kind == "Example":
        _examples()
    elif kind == "Paste":
        st.text_area(
            "Messages",
            height=150,
            key="conversation.pasted",
            placeholder=_EXAMPLE,
            help="Lines that begin with User: and Assistant:, or the OpenAI messages form: a list "
            "of messages, or a request with `messages`. Images are counted, never loaded.",
        )
        if st.button("Play", width="stretch", icon=":material/play_arrow:", key="conversation.go"):
            _read(st.session_state["conversation.pasted"] or "", "pasted text")
    else:
        limit = MAX_BYTES // 1_000_000
        given = st.file_uploader(
            "JSON or text file",
            type=["json", "txt", "md"],
            key="conversation.file",
            max_upload_size=limit,
        )
        if given is not None:
            _read(given.getvalue(), given.name)


def _kind_changed() -> None:
    if st.session_state["conversation.kind"] == "Example":
        put(**_scene())
    elif get().scene:
        put(scene="", own=None, images=(), compacted=())


def _examples() -> None:
    scenes = views.scenes()
    ids = [scene.id for scene in scenes]
    named = get().scene or ids[0]
    st.selectbox(
        "Example",
        ids,
        format_func=lambda name: scenes[ids.index(name)].title,
        label_visibility="collapsed",
        **bound("conversation.scene", named, lambda name: put(**_scene(ids.index(name)))),
    )
    st.caption(scenes[ids.index(named)].note)


def _read(raw: str | bytes, name: str) -> None:
    try:
        own = parse_messages(raw, literal(name) if not isinstance(raw, bytes) else name)
    except HydraError as error:
        put(own=None)
        widgets.problem(error)
        return
    if own != get().own:
        put(own=own, scene="", images=(), compacted=())


def events(catalog: Catalog, conversation: Conversation) -> None:
    """Images, compactions, health, and how costs are estimated."""
    count = len(conversation.turns)
    _turns("images", "Attach an image on turn", range(1, count + 1))
    _turns("compacted", "Compact the history before turn", range(2, count + 1))
    low = sum(value < 1.0 for value in get().health.values())
    health = f"Health ({low} lowered)" if low else "Health"
    with st.popover(health, icon=":material/ecg_heart:", width="stretch"):
        _health(catalog, count)
    with st.popover("Stickiness and prices", icon=":material/tune:", width="stretch"):
        _assumptions(catalog)


def _turns(field: str, label: str, numbers: range) -> None:
    chosen = [number for number in getattr(get(), field) if number in numbers]
    st.multiselect(
        label,
        list(numbers),
        placeholder="None",
        **bound(f"conversation.{field}", chosen, lambda now: put(**{field: tuple(sorted(now))})),
    )


def _health(catalog: Catalog, turns: int) -> None:
    now = get()
    floor = catalog.policy.health_floor
    st.caption(
        f"A model below {floor:.2f} is vetoed: it leaves the ranking, the others keep their order."
    )
    st.number_input("From turn", 1, turns, **_field("health_from", min(now.health_from, turns)))
    for model in catalog.models:
        health = now.health.get(model.id, 1.0)
        shown = bound(f"conversation.health.{model.id}", health, partial(_set_health, model.id))
        st.slider(literal(model.id), 0.0, 1.0, step=0.05, **shown)


def _set_health(model: str, value: float) -> None:
    put(health={**get().health, model: value})


def _field(name: str, value: object) -> dict[str, Any]:
    """What makes a widget show a field and write it back."""
    return bound(f"conversation.{name}", value, lambda changed: put(**{name: changed}))


def _assumptions(catalog: Catalog) -> None:
    now = get()
    threshold = catalog.policy.sticky.threshold if now.threshold is None else now.threshold
    st.number_input(
        "Sticky threshold γ", 0.0, 1.0, step=0.05, **_field("threshold", threshold),
        help="A routed turn whose largest requirement is below γ stays on its model.",
    )  # fmt: skip
    st.number_input(
        "Tokens of a missing answer", 0, 100_000, step=50, placeholder="estimated",
        help="For turns without an answer. Empty: estimated for each model, as on Message. 0 "
        "leaves those answers out of the costs.", **_field("answer_tokens", now.answer_tokens),
    )  # fmt: skip
    unnamed = sum(model.cached_input_usd_per_mtok is None for model in catalog.models)
    if unnamed:
        st.number_input(
            "Cached input price, share of the input price", 0.0, 1.0, step=0.05,
            help=f"An assumption for {unnamed} models whose cached price the catalog does not "
            "name. 1 means no discount.", **_field("cached_share", now.cached_share),
        )  # fmt: skip


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
    change = views.change(one.cost_usd, afresh.cost_usd) if one is not afresh else "no stickiness"
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


def lanes(played: Mapping[StickyMode, Simulation], mode: StickyMode) -> None:
    """The modes side by side, turn by turn."""
    order = views.cost_order(tuple(played.values()))
    chart = lanes_figure(
        views.lanes(played, mode), order, colors(), marks=views.marks(played[mode])
    )
    figure(chart, "conversation.lanes", alt="The model of every turn in each stickiness mode")


def modes(played: Mapping[StickyMode, Simulation]) -> None:
    """Cost, switches and models of each mode as a table."""
    table = views.mode_table(played)
    frame = tables.renamed(table, views.cost_order(tuple(played.values()))).copy()
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
    tables.offer_downloads(table, "conversation.modes")
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
    """Scores and token counts of a conversation, kept while it and the bundle stay the same."""
    return once(
        "conversation.scored", (conversation, cache.bundle().fingerprint),
        lambda: (
            Memo(cache.predictor()),
            lru_cache(maxsize=None)(cache.token_counter().count),
        ),
    )  # fmt: skip


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
            st.segmented_control(
                "Stickiness", list(MODES), format_func=MODES.__getitem__, required=True,
                label_visibility="collapsed",
                **bound("conversation.mode", mode, lambda mode: put(mode=mode)),
            )  # fmt: skip
        st.caption(MODE_MEANINGS[mode])
        lanes(played, mode)
        modes(played)
    assumptions(catalog, conversation)
    with st.container(border=True):
        st.markdown(f"**Turn by turn, {MODES[mode].lower()}**")
        turns(conversation, played, mode)


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
            source()
            conversation = get().conversation
            if conversation is not None:
                events(chosen[1], conversation)
        with wide:
            if conversation is None:
                widgets.empty(
                    "Nothing to play yet",
                    "Paste or upload a conversation in the OpenAI messages format, or choose an "
                    "example.",
                )
            else:
                played_out(chosen[1], conversation)
