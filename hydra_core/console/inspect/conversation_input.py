"""The controls of Conversation: what is played, and what happens during it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog, StickyMode
from hydra_core.console import widgets
from hydra_core.console.inspect import samples
from hydra_core.console.state import Remembered, bound
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.conversations.context import context_at
from hydra_core.routing.conversations.messages import MAX_BYTES, Conversation, parse_messages
from hydra_core.routing.router import Scorer


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
        return next(s.conversation for s in samples.scenes() if s.id == self.scene)


def _scene(at: int = 0) -> dict[str, Any]:
    """A shipped conversation with what happens in it."""
    scene = samples.scenes()[at]
    return {"scene": scene.id, "images": scene.images, "compacted": scene.compacted}


_PLAYING = Remembered("conversation", lambda link: Playing(**_scene()))
get, put = _PLAYING.get, _PLAYING.put


class Memo:
    """A predictor that scores each (message, turn, context) of a conversation once."""

    def __init__(self, predictor: Scorer, conversation: Conversation) -> None:
        self._predictor = predictor
        self._known: dict[tuple[str, int, str], Prediction] = {}
        for number, turn in enumerate(conversation.turns, 1):
            self.predict([turn.text], [number], [context_at(conversation.turns, number)])

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        """As `Predictor.predict`."""
        numbers, before = turns or [1] * len(texts), contexts or [""] * len(texts)
        rows = [self._one(asked) for asked in zip(texts, numbers, before, strict=True)]
        joined: dict[str, Any] = {
            part.name: None
            if getattr(rows[0], part.name) is None
            else np.concatenate([getattr(row, part.name) for row in rows])
            for part in fields(Prediction)
        }
        return Prediction(**joined)

    def _one(self, asked: tuple[str, int, str]) -> Prediction:
        if asked not in self._known:
            text, turn, context = asked
            self._known[asked] = self._predictor.predict([text], [turn], [context])
        return self._known[asked]


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
    scenes = samples.scenes()
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
        st.slider(widgets.literal(model.id), 0.0, 1.0, step=0.05, **shown)


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
