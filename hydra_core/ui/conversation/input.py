"""The Conversation page's controls: what is played, and what happens during it."""

from __future__ import annotations

import streamlit as st

from hydra_core.errors import HydraError
from hydra_core.routing.conversations.messages import MAX_BYTES, Conversation, parse_messages
from hydra_core.types import Catalog
from hydra_core.ui import widgets
from hydra_core.ui.conversation import state as conversation_state
from hydra_core.ui.conversation.state import get, put
from hydra_core.views import samples

__all__ = ["events", "source"]

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
        conversation_state.load_scene(samples.scenes()[0].id)
    elif get().scene:
        put(scene="", own=None, images=(), compacted=())


def _examples() -> None:
    scenes = {scene.id: scene for scene in samples.scenes()}
    key = "conversation.scene"
    st.session_state[key] = get().scene or next(iter(scenes))
    st.selectbox(
        "Example",
        list(scenes),
        format_func=lambda name: scenes[name].title,
        key=key,
        label_visibility="collapsed",
        on_change=lambda: conversation_state.load_scene(st.session_state[key]),
    )
    st.caption(scenes[st.session_state[key]].note)


def _read(raw: str | bytes, name: str) -> None:
    try:
        own = parse_messages(raw, widgets.literal(name) if not isinstance(raw, bytes) else name)
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
    with st.popover(_health_label(), icon=":material/ecg_heart:", width="stretch"):
        _health(catalog, count)
    with st.popover("Stickiness and prices", icon=":material/tune:", width="stretch"):
        _assumptions(catalog)


def _turns(field: str, label: str, numbers: range) -> None:
    key = f"conversation.{field}"
    st.session_state[key] = [number for number in getattr(get(), field) if number in numbers]
    st.multiselect(
        label,
        list(numbers),
        key=key,
        placeholder="None",
        on_change=lambda: put(**{field: tuple(sorted(st.session_state[key]))}),
    )


def _health_label() -> str:
    low = sum(value < 1.0 for value in get().health.values())
    return f"Health ({low} lowered)" if low else "Health"


def _health(catalog: Catalog, turns: int) -> None:
    now = get()
    floor = catalog.policy.health_floor
    st.caption(
        f"A model below {floor:.2f} is vetoed: it leaves the ranking, the others keep their order."
    )
    key = "conversation.health_from"
    st.session_state[key] = min(now.health_from, turns)
    st.number_input(
        "From turn", 1, turns, key=key, on_change=lambda: put(health_from=st.session_state[key])
    )
    for model in catalog.models:
        slider = f"conversation.health.{model.id}"
        st.session_state[slider] = now.health.get(model.id, 1.0)
        st.slider(
            widgets.literal(model.id), 0.0, 1.0, step=0.05, key=slider,
            on_change=_set_health, args=(model.id,),
        )  # fmt: skip


def _set_health(model: str) -> None:
    value = float(st.session_state[f"conversation.health.{model}"])
    put(health={**get().health, model: value})


def _assumptions(catalog: Catalog) -> None:
    now = get()
    threshold = catalog.policy.sticky.threshold if now.threshold is None else now.threshold
    _number(
        "threshold", "Sticky threshold γ", threshold, 0.0, 1.0, 0.05,
        "A routed turn whose largest requirement is below γ stays on its model.",
    )  # fmt: skip
    _number(
        "answer_tokens", "Tokens of an answer that is not there", now.answer_tokens, 0, 100_000, 50,
        "For turns without an answer in the conversation; 0 leaves those answers out of the costs.",
    )  # fmt: skip
    unnamed = sum(model.cached_input_usd_per_mtok is None for model in catalog.models)
    if unnamed:
        _number(
            "cached_share", "Cached input price, share of the input price", now.cached_share,
            0.0, 1.0, 0.05, f"An assumption for {unnamed} models whose cached price the catalog "
            "does not name. 1 means no discount.",
        )  # fmt: skip


def _number(
    field: str, label: str, value: float, low: float, high: float, step: float, text: str
) -> None:
    key = f"conversation.{field}"
    st.session_state[key] = value
    st.number_input(
        label, low, high, step=step, key=key, help=text,
        on_change=lambda: put(**{field: st.session_state[key]}),
    )  # fmt: skip
