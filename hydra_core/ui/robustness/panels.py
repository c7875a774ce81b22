"""The panels of the Robustness page: the answer, then one question at a time."""

from __future__ import annotations

import numpy as np
import streamlit as st

from hydra_core.evaluation.robustness.findings import Exchange, Findings, RoutedAttacks
from hydra_core.evaluation.significance import Interval
from hydra_core.figures.intervals import IntervalsView, intervals_figure
from hydra_core.figures.robustness.knob_rate import knob_rate_figure
from hydra_core.ui import tables, widgets
from hydra_core.ui.widgets import colors, figure, literal, metric_row
from hydra_core.views import robustness as views
from hydra_core.views.numbers import percent

__all__ = ["answer", "figures", "questions"]

_PARTS = ("Families", "Languages", "Along the knob", "Slips", "Messages")
_STEPS = 41


def answer(found: Findings) -> None:
    """The answer in a sentence."""
    tone, title, text = views.headline(found)
    widgets.toned(tone, text, title)


def figures(found: Findings) -> None:
    """The row of figures."""
    own, english = (found.overall(localised=mine) for mine in (True, False))
    flip = max(found.flips, key=lambda one: np.nan_to_num(one.rate.value))
    entries = [
        ("Own language", *_percent(own.success),
         "Attacks whose suffix, in the message's own language, moved it to one of the two dearest "
         "models."),
        ("In English", *_percent(english.success), "The same with the suffix in English."),
        ("Cost ratio", _ratio(own.cost_ratio), "own language",
         "Cost of the attacked routes over that of the clean ones, by what orders the models."),
        ("Harmless change", *_percent(flip.rate),
         f"Messages that go to another model: {flip.change}, the worst of "
         f"{len(found.flips)} changes."),
        ("Attacked", f"{found.cheap:,}", f"of {found.n:,} messages",
         "Only messages that are routed below the two dearest models as they are."),
    ]  # fmt: skip
    metric_row(entries)


def questions(routed: RoutedAttacks, found: Findings) -> None:
    """Families, languages, the knob, slips, or single messages."""
    if st.session_state.get("robustness.part") not in _PARTS:
        st.session_state["robustness.part"] = _PARTS[0]
    part = st.segmented_control(
        "Part", _PARTS, key="robustness.part", required=True,
        label_visibility="collapsed", persist_state="session",
    )  # fmt: skip
    if part == "Messages":
        _messages(routed.exchanges(found.knob), views.unusual_text(routed.attacked))
    elif part == "Along the knob":
        _along(routed, found)
    elif part == "Slips":
        _intervals(views.slips_view(found), "Share of messages that a harmless change re-routes")
        st.caption(
            "Upper and lower case, and two neighbouring letters swapped in about every twelfth "
            "word, leave the task as it is. So does another wording, where the set holds several "
            "of a task (its clusters): in the same language if there is one, else a translation."
        )
    else:
        view = views.languages_view(found) if part == "Languages" else views.families_view(found)
        _intervals(view, f"Share of attacks that succeed by {str(part).lower()}")
        st.caption(
            "Lines are 95 % intervals (Wilson). The suffix claims difficulty and leaves the task "
            "as it is: a route should not change."
        )


def _intervals(view: IntervalsView, alt: str) -> None:
    with st.container(border=True):
        figure(intervals_figure(view, colors()), "robustness.intervals", alt=alt)


def _along(routed: RoutedAttacks, found: Findings) -> None:
    by_value = routed.valuer is not None
    if by_value:
        knobs = (found.knob * np.geomspace(0.02, 50.0, _STEPS)).tolist()
    else:
        knobs = np.linspace(0.0, max(0.5, 2 * found.knob), _STEPS).tolist()
    rows = routed.along(knobs, localised=True)
    view = views.knob_view(knobs, rows, found.knob, by_value=by_value)
    with st.container(border=True):
        figure(
            knob_rate_figure(view, colors()), "robustness.along",
            alt="Share of attacks that succeed for every setting of the knob",
        )  # fmt: skip
    st.caption("Suffixes in the message's own language; the band is the 95 % interval at each "
               "setting, the dashed line your setting.")  # fmt: skip


def _messages(exchanges: tuple[Exchange, ...], unusual: str) -> None:
    won = sum(one.won for one in exchanges)
    only = won > 0 and st.toggle(f"Successes only ({won:,})", value=True, key="robustness.only")
    shown = tuple(one for one in exchanges if one.won or not only)
    table = views.exchange_table(shown)
    column = st.column_config
    picked = st.dataframe(
        table, hide_index=True, height=320, key="robustness.table", on_select="rerun",
        selection_mode="single-row",
        column_config={
            "message": column.TextColumn("Message with suffix", width=280 if only else 206),
            "family": column.TextColumn("Family", width=126),
            "wording": column.TextColumn("Suffix", width=94),
            "ignored": column.NumberColumn(
                "Not scored", width=78, format="localized",
                help="Characters at the end that the predictor took for a claim of difficulty.",
            ),
            "distance": column.NumberColumn(
                "Distance", width=70, format="%.2f",
                help="From the messages that the predictor was trained on. Nearly all ordinary "
                "messages stay below 1; above it a message is unlike them.",
            ) if unusual else None,
            "before": column.TextColumn("Without", width=118),
            "after": column.TextColumn("With", width=118),
            "success": None if only else column.CheckboxColumn("Success", width=70),
        },
    )  # fmt: skip
    told = [unusual] if unusual else []
    if len(shown) > len(table):
        told.append(f"The first {len(table):,} of {len(shown):,} attacks, successes first.")
    left, right = st.columns([8.4, 1.6], vertical_alignment="top")
    with left:
        if told:
            st.caption(literal(" ".join(told)))
    with right:
        tables.take_along(table, "robustness")
    rows = picked.selection.rows
    if rows and rows[0] < len(shown):
        _one(shown[rows[0]])
    else:
        st.caption("Select a row to read the whole message and what was not scored of it.")


def _one(one: Exchange) -> None:
    """A whole message; what was taken for a claim is struck out."""
    end = len(one.text) - one.ignored
    with st.container(border=True):
        widgets.message(one.text[:end], one.text[end:])
        told = "struck out: taken for a claim and not scored" if one.ignored else (
            "nothing was taken for a claim: the whole text was scored")  # fmt: skip
        st.caption(literal(f"{one.before} → {one.after}; {told}."))


def _percent(rate: Interval) -> tuple[str, str]:
    value, ends = percent(rate)
    return value, ends or "nothing attacked"


def _ratio(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
