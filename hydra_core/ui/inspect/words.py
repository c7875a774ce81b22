"""The Inspect page's words panel, and what can be taken away: receipt and link."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from urllib.parse import urlencode

import streamlit as st

from hydra_core.digests import text_sha256
from hydra_core.predictor.checks.occlusion import Occlusion, occlude, spans
from hydra_core.ui import cache
from hydra_core.ui.demo import address
from hydra_core.ui.inspect import state as inspect_state
from hydra_core.ui.widgets import colors, literal
from hydra_core.views import marked_words as words
from hydra_core.views.inspection import Inspection

__all__ = ["link", "share", "words_panel"]

#: Looked at without being asked when it takes at most this long.
_AT_ONCE_S = 2.0
_FOUND = "inspect.words.found"


@st.fragment
def words_panel(text: str, one: Inspection, turn: int, key: str) -> None:
    """Which words raised which requirement."""
    left, right = st.columns([3, 5], vertical_alignment="center")
    left.markdown("**Which words raised it**")
    names = [name.replace("_", " ").capitalize() for name in one.decision.dimensions]
    by_link = dict(zip(one.decision.dimensions, names, strict=True))
    wanted = by_link.get(inspect_state.get().part, names[0])
    st.session_state["inspect.words.dimension"] = wanted
    with right.container(horizontal=True, horizontal_alignment="right"):
        chosen = st.segmented_control(
            "Requirement", names, key="inspect.words.dimension", required=True,
            label_visibility="collapsed", on_change=_look_at, args=(by_link,),
        )  # fmt: skip
    address.write(link(one, key))
    place = st.empty()  # the last message's words go before this one's are looked for
    with place.container():
        found = _occlusion(text, turn)
    if found is None:
        return
    k = names.index(chosen or names[0])
    with place.container():
        st.html(words.highlighted(text, found, k, colors(), one.gap))
        _legend(text, found, k, names[k])


def _look_at(names: Mapping[str, str]) -> None:
    chosen = st.session_state["inspect.words.dimension"]
    inspect_state.put(part=next(one for one, name in names.items() if name == chosen))


def _legend(text: str, found: Occlusion, k: int, name: str) -> None:
    raised = words.strongest(text, found, k)
    if raised:
        listed = ", ".join(f"“{literal(words.valid(word))}”" for word in raised)
        told = f"{name} is raised most by {listed}."
    else:
        told = f"No word by itself raises {name.lower()} noticeably."
    st.caption(
        f"{told} Green raised the requirement, orange lowered it: the change of the score when "
        "the word is left out."
    )


def _occlusion(text: str, turn: int) -> Occlusion | None:
    """Found before, found now because it is quick, or found on a button."""
    key = (text_sha256(text), turn)
    kept: tuple[object, Occlusion] | None = st.session_state.get(_FOUND)
    if kept is not None and kept[0] == key:
        return kept[1]
    starts = cache.token_counter().starts(text)
    runs = len(spans(text, starts=starts)) + 1
    # Measured now: the decision's own run may have had to load the predictor first.
    began = time.perf_counter()
    cache.predictor().predict([text], [turn])
    expected_s = (time.perf_counter() - began) * runs / (os.cpu_count() or 1)
    if expected_s > _AT_ONCE_S and not st.button(
        f"Find the words ({runs} runs, about {max(expected_s, 1):.0f} s)", icon=":material/search:"
    ):
        st.caption("Scores the message again without each of its words.")
        return None
    label = "Leaving out one word at a time"
    bar = st.progress(0.0, label)

    def step(done: int, total: int) -> None:
        bar.progress(min(done / total, 1.0), label)

    found = occlude(cache.predictor(), text, turn=turn, starts=starts, progress=step)
    st.session_state[_FOUND] = (key, found)
    return found


def share(one: Inspection, key: str) -> None:
    """Two popovers: the receipt, and the link that reopens this page."""
    with st.container(horizontal=True, gap="small"):
        with st.popover("Receipt", icon=":material/receipt_long:"):
            _receipt(one)
        with st.popover("Link", icon=":material/link:"):
            _link(one, key)


def _receipt(one: Inspection) -> None:
    told = json.dumps(one.decision.receipt(), indent=2, ensure_ascii=False, allow_nan=False)
    st.caption("Everything that decided, enough to recompute the decision. Without the text.")
    st.download_button(
        "Download JSON", told, "hydra-receipt.json", "application/json",
        icon=":material/download:", width="stretch", key="inspect.download", on_click="ignore",
    )  # fmt: skip
    st.code(told, language="json", height=320)


def _link(one: Inspection, key: str) -> None:
    now = inspect_state.get()
    size = len(now.text) + (len(now.other) if now.compare else 0)
    fits = 0 < size <= inspect_state.LINK_CHARS
    st.session_state["inspect.share"] = now.share_text and fits
    st.toggle(
        "Include the text in the link",
        key="inspect.share",
        disabled=not fits,
        on_change=lambda: inspect_state.put(share_text=bool(st.session_state["inspect.share"])),
    )
    if size > inspect_state.LINK_CHARS:
        st.caption(f"A text of {size:,} characters is too long for a link.")
    elif now.share_text:
        st.caption("Whoever sees the link, or a log of it, can read the text.")
    elif now.compare:
        st.caption("Without the texts the link opens message A alone, by its scores.")
    else:
        told = "predictions" if one.decision.valuation is not None else "τ and weights"
        st.caption(f"Carries the scores, catalog, {told}: the same decision, no text.")
    params = urlencode(link(one, key), safe=",")
    st.code(f"{st.context.url}?{params}", wrap_lines=True, language=None)


def link(one: Inspection, key: str) -> dict[str, str]:
    """The parameters that reopen what is on screen."""
    needs = tuple(one.decision.requirements.tolist())
    valued = one.decision.valuation
    predicted = None if valued is None else (valued.success.tolist(), valued.cost_usd.tolist())
    return inspect_state.to_link(inspect_state.get(), key, one.catalog.policy, needs, predicted)
