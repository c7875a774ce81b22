"""The Inspect page's strips: which model for every tau or V, and the knob that runs along them."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from hydra_core.figures.strip import MARGIN, strip_figure, strip_left
from hydra_core.figures.theme import model_colors
from hydra_core.types import Rule
from hydra_core.ui.inspect import state as inspect_state
from hydra_core.ui.live_knob.component import Line, LiveKnob, Message, live_knob
from hydra_core.ui.widgets import colors, figure
from hydra_core.views import inspection
from hydra_core.views.inspection import Inspection
from hydra_core.views.knob.message import facts, knob_of, message_steps, settable
from hydra_core.views.numbers import RULES

__all__ = ["DECIDED", "both_strips", "strip"]

#: Keys of the parts of the page that hold for the last setting only.
DECIDED = ("inspect.decision", "inspect.rules", "inspect.flips", "inspect.candidates")


def both_strips(one: Inspection, other: Inspection | None) -> None:
    """The strip of the rule in force, then the other rule's, each with a knob of its own."""
    with st.container(border=True):
        strip({"": one}, named=other is not None)
    if other is not None:
        with st.container(border=True):
            strip({"": other}, named=True, fades=DECIDED[1:2])


def strip(
    shown: Mapping[str, Inspection], *, named: bool = False, fades: tuple[str, ...] = DECIDED
) -> None:
    """Which model for every tau or V; the knob below it, or a click, sets it.

    Args:
        named: Say whose rule it is, where both are shown.
        fades: Keys of what this knob decides.
    """
    first = next(iter(shown.values()))
    rule, knob = knob_of(first)
    scale, strips = inspection.strip_scale(first), inspection.strips(dict(shown))
    whose = f", {RULES[rule].lower()} rule" if named else ""
    st.markdown(f"**Which model for every {scale.symbol}{whose}**")
    models = inspection.cost_order(first.decision)
    key = f"inspect.strip.{rule}"
    figure(
        strip_figure(strips, models, knob, colors(), scale),
        key,
        alt="The model chosen for every setting, with the current one marked",
        on_select=lambda: _clicked(key, rule),
        selection_mode="points",
    )
    live_knob(
        LiveKnob(
            rule,
            knob,
            message_steps(strips, scale, models, rule, knob),
            model_colors(models, colors()),
            messages=tuple(
                Message(label, f"model_{i}", told)
                for i, (label, told) in enumerate(zip(shown, facts(shown, models), strict=True))
            ),
            line=Line(key, "place", left=strip_left(strips), right=MARGIN),
            fades=fades,
        ),
        key=f"inspect.knob.{rule}",
        on_release=lambda at: _turn(rule, at),
    )


def _clicked(key: str, rule: Rule) -> None:
    points = st.session_state[key]["selection"]["points"]
    knobs = [p["customdata"] for p in points if isinstance(p.get("customdata"), int | float)]
    if knobs:
        _turn(rule, settable(float(knobs[0]), rule))


def _turn(rule: Rule, knob: float) -> None:
    inspect_state.put(**{"value_usd" if rule is Rule.VALUE else "tau": knob})
