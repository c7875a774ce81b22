"""Tune, By hand: the setting whose quality can be promised, and the promise in the draft."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Rule, Selection
from hydra_core.catalog.chosen_and_promised import with_promise
from hydra_core.choosing.sources.promise import Promise, promise_on
from hydra_core.console import chosen_on, drafts, selectors, state, widgets
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.widgets import literal
from hydra_core.replay.sweep import Sweep

_ASKED: Final = "tune.promise"
_CONFIDENCES: Final = (0.9, 0.95, 0.99)
_HELP: Final = (
    "Finds the cheapest setting whose mean quality is at most so far below the best single model. "
    "Settings are tested from the dearest to the cheapest, so the confidence holds at any number "
    "of queries. It holds for queries like these, not under drift."
)


def control(sweep: Sweep, entry: SetEntry, *, weights_edited: bool) -> None:
    """Ask how much quality may be lost, and show what can be promised."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    st.session_state.setdefault("tune.promise_within", 2.0)
    points = left.number_input(
        "Points below the best", 0.1, 50.0, step=0.5, format="%g",
        key="tune.promise_within", persist_state="session",
        help=_HELP,
    )  # fmt: skip
    st.session_state.setdefault("tune.promise_confidence", 0.95)
    confidence = right.selectbox(
        "Confidence", _CONFIDENCES, format_func=lambda p: f"{100 * p:g} %",
        key="tune.promise_confidence", persist_state="session",
    )  # fmt: skip
    wanted = points / 100, confidence
    asked = (entry.key, sweep.catalog.digest, sweep.rule, *wanted)

    def find() -> None:
        st.session_state[_ASKED] = asked
        with suppress(HydraError, ValueError):  # said where it is shown
            knob = _made(sweep, *wanted).knob(sweep.rule)
            if knob is not None:
                state.turn(sweep.rule, knob)

    st.button(
        "Find what can be promised", icon=":material/verified:", key="tune.promise_find",
        width="stretch", on_click=find, disabled=weights_edited,
        help="Go back to the catalog's weights first: weights tried on these queries cannot be "
        "tested on them." if weights_edited else None,
    )  # fmt: skip
    if st.session_state.get(_ASKED) != asked or weights_edited:
        return
    try:
        made = _made(sweep, *wanted)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)), icon=":material/block:")
        return
    _answer(made, sweep, entry)


@cached(24, "Testing settings")
def _made(sweep: Sweep, within: float, confidence: float) -> Promise:
    return promise_on(sweep, within=within, confidence=confidence)


def _answer(made: Promise, sweep: Sweep, entry: SetEntry) -> None:
    knob = made.knob(sweep.rule)
    title, sentence = promise_text(made, sweep.rule)
    tone, icon = ("success", "verified") if knob is not None else ("info", "balance")
    widgets.toned(tone, sentence, title, icon)
    st.caption(literal(forecast_text(made)))
    if knob is None:
        return
    at = state.get().knob_for(sweep)
    if at != knob:
        st.button(
            "Go to the promised setting", key="tune.promise_go", width="stretch",
            on_click=state.turn, args=(sweep.rule, knob),
        )  # fmt: skip
    if drafts.may_edit():
        st.button(
            "Put the promise into the draft", icon=":material/edit_note:", key="tune.promise_take",
            width="stretch", on_click=_draft, args=(made, sweep, entry, knob),
            help="Sets the knob and writes the promise into the policy; nothing is published.",
        )  # fmt: skip
    working = selectors.working()
    kept = None if working is None or working.catalog is None else working.catalog.policy.promise
    if kept is not None and (kept.claim, kept.saving) == (made.claim, made.promised.saving):
        st.caption(":material/check: Your draft makes this promise.")


def _draft(made: Promise, sweep: Sweep, entry: SetEntry, knob: float) -> None:
    turned = "value_usd" if sweep.rule is Rule.VALUE else "tau", knob
    selectors.edit(
        lambda text, source: with_promise(text, source, made.promised, turned),
        chosen_on.chosen(entry, Selection.LOOKED, knob_alone=True),
    )


def promise_text(made: Promise, rule: Rule) -> tuple[str, str]:
    """Return a title and a sentence."""
    claim = f"{made.claim[:1].upper()}{made.claim[1:]}"
    if not made.kept:
        return (
            "Nothing can be promised yet",
            f"{claim}: {made.n:,} queries are too few, or the loss is too large.",
        )
    if made.knob(rule) is None:
        return "No saving can be promised yet", f"{claim}: only the dearest setting holds."
    saved = f"{100 * made.saving:.0f} %"
    return f"Promised: {saved} saved", f"{claim}, and {saved} cheaper than it."


def forecast_text(made: Promise) -> str:
    """Say what other numbers of queries would allow, and what it was calibrated on."""
    more = [one for one in made.forecast if one.queries > made.n]
    said = ", ".join(f"with {one.queries:,} {100 * one.saving:.0f} %" for one in more)
    now = f"{100 * made.saving:.0f} % with these {made.n:,} queries"
    growth = f"Saved: {now}; {said}, if they are like these. " if said else ""
    return (
        f"{growth}Calibrated on {made.n:,} independent queries of {made.evalset} "
        f"({made.calibrated_on}). It does not hold under drift: Live watches it."
    )
