"""The panels of the Inspect page: decision, requirements, flips, candidates."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from hydra_core.figures.requirements import requirements_figure
from hydra_core.figures.theme import tint
from hydra_core.routing.decision import Cause
from hydra_core.routing.explain import CAUSES
from hydra_core.spelling import signed
from hydra_core.types import CostBasis, Rule
from hydra_core.ui import tables
from hydra_core.ui.inspect import value_rule
from hydra_core.ui.widgets import colors, figure, literal
from hydra_core.views import inspection
from hydra_core.views.frontier import usd
from hydra_core.views.inspection import Inspection
from hydra_core.views.numbers import knob_text

__all__ = ["candidates", "comparison", "decision", "differences", "flips", "needs"]

_FLAGS = {
    "err": ("Error", "Shows or names an error."),
    "file": ("File", "Names a file or a path."),
    "url": ("URL", "Holds a URL."),
    "cmd": ("Command", "Holds a shell command."),
    "code": ("Code", "Holds code."),
    "short": ("Short", "Says less than about eight English words would."),
}


_COSTS = {basis.unit: "${:,.4g}" for basis in CostBasis}


def decision(one: Inspection, *, label: str = "Chosen model") -> None:
    """The chosen model, why, and what the predictor read."""
    chosen = one.chosen
    with st.container(gap=None):
        st.caption(label)
        st.markdown(f"# {literal(one.decision.model)}")
    st.markdown(f"{literal(CAUSES[one.decision.cause])}.")
    if one.decision.valuation is not None:
        _valued(one)
        _read(one)
        return
    per = "Mtok, blended" if one.catalog.policy.cost_basis is CostBasis.LIST_PRICE else "query"
    fits = "≤" if one.decision.cause is Cause.CHEAPEST_ELIGIBLE else "against"
    shortfall = f"Shortfall **{chosen.shortfall:.3f}** {fits} τ {one.decision.tau:.4g}"
    st.markdown(f"{shortfall}  ·  **{literal(usd(chosen.cost))}** per {per}")
    _read(one)


def _valued(one: Inspection) -> None:
    """What the value rule weighed of the chosen model."""
    valued, i = one.decision.valuation, one.decision.index
    assert valued is not None
    success = inspection.success_text(valued, i)
    cost = usd(float(valued.cost_usd[i]))
    st.markdown(
        f"Predicted success **{literal(success)}** for **{literal(cost)}**  ·  value rule, "
        f"{literal(knob_text(Rule.VALUE, valued.value_usd))}"
    )


def _read(one: Inspection) -> None:
    """Flags found and tokens read; where the message was cut."""
    if one.signals is None:
        st.caption("Opened from a link that carries the scores, not the text.")
        return
    with st.container(horizontal=True, gap="small"):
        for field, (name, text) in _FLAGS.items():
            if getattr(one.signals, field):
                st.badge(name, color="blue", help=text)
        turn = one.signals.turn_bin
        st.badge(f"Turn {turn}" if turn == 1 else f"Turn {turn}+", color="gray")
    told = inspection.burden(one)
    if told:
        st.caption(f":material/payments: {literal(told)}")
    reading = one.decision.reading
    ignored = reading.ignored_chars if reading else 0
    if ignored:
        st.caption(
            f":material/filter_alt: The last {ignored:,} characters only claim that the request is "
            "difficult. They were not scored."
        )
    if reading is not None and reading.unusual:
        st.caption(
            f":material/explore_off: Unlike the messages that the predictor was trained on "
            f"({reading.distance:.2f} times the distance that nearly all of them keep): its scores "
            "say little here."
        )
    if one.gap is None:
        st.caption(f"{one.tokens:,} tokens, all of them read.")
        return
    st.caption(
        f":material/content_cut: {one.tokens:,} tokens read. Characters {one.gap.start + 1:,} to "
        f"{one.gap.end:,} were not: a long message keeps its beginning and its end."
    )


def needs(shown: Mapping[str, Inspection]) -> None:
    """The requirement bars on their bands."""
    st.markdown("**What it needs, and what the models offer**")
    chart = requirements_figure(inspection.requirements_view(dict(shown)), colors())
    figure(chart, "inspect.needs", alt="Requirement per dimension on its score band")


def flips(one: Inspection) -> None:
    """The nearest changes that would decide otherwise: towards cheaper, then towards dearer."""
    st.markdown("**What would change it**")
    if not one.flips:
        st.caption("No change of one number would: only one model can serve this request.")
        return
    for cheaper, title in ((True, "Cheaper if"), (False, "Dearer if")):
        found = [flip for flip in one.flips if flip.cheaper == cheaper]
        with st.container(gap="xxsmall"):
            st.markdown(f"{title}{'' if found else ': no change of one number'}")
            for flip in found:
                st.caption(
                    f"{literal(flip.subject)} {literal(flip.before)} → **{literal(flip.after)}** "
                    f"chooses **{literal(flip.model)}**"
                )
    st.caption("The smallest change of each kind, everything else as it is.")


def candidates(one: Inspection) -> None:
    """Every model, cheapest first: what decided, and one sentence."""
    if one.decision.valuation is not None:
        value_rule.candidates(one)
        return
    frame = inspection.candidate_table(one)
    frame["Model"] = [literal(name) for name in frame["Model"]]
    frame["Why"] = [literal(why) for why in frame["Why"]]
    deficits = [name.replace("_", " ").capitalize() for name in one.decision.dimensions]
    st.markdown("**Every model, cheapest first**")
    weights = dict(zip(deficits, one.decision.pool.weights.tolist(), strict=True))
    st.table(_heat(frame, weights, literal(one.decision.model)), border="horizontal")
    tables.take_along(inspection.candidate_table(one), "inspect.candidates.table")
    told = ", ".join(f"{name.lower()} {weight:.3g}" for name, weight in weights.items())
    st.caption(
        "Under each requirement: what the model lacks. Shortfall: the sum of that times the "
        f"weights, compensated for the score bands ({literal(told)}); the shade shows what each "
        "adds. The cheapest model with a shortfall within τ is chosen."
    )


def _heat(
    frame: pd.DataFrame, weights: Mapping[str, float], chosen: str
) -> pd.io.formats.style.Styler:
    """Deficits shaded by what they add to the shortfall; the chosen row bold.

    Cells are Markdown, so texts are literal.

    Args:
        weights: Column of a deficit -> its compensated weight.
    """
    added = frame[list(weights)].mul(pd.Series(weights))
    top = max(float(added.to_numpy().max()), 0.05)
    css = pd.DataFrame("", index=frame.index, columns=frame.columns)
    css.loc[frame["Model"] == chosen, :] = "font-weight: 700; "
    for name in weights:
        shades = [tint(colors().warn, round(0.75 * v / top, 3)) for v in added[name]]
        css[name] += [f"background-color: {shade}" for shade in shades]
    numbers = {name: "{:.3f}" for name in [*weights, "Shortfall"]}
    styled = frame.style.apply(lambda _: css, axis=None).hide(axis="index")
    return styled.format({**numbers, **_COSTS}, na_rep="–")


def comparison(shown: Mapping[str, Inspection]) -> None:
    """Shortfall and fate of every model for both messages."""
    st.markdown("**Every model, cheapest first**")
    frame = inspection.compare_table(dict(shown))
    numbers = {name: "{:.3f}" for name in frame.columns if name.startswith("Shortfall")}
    st.dataframe(
        frame.style.format({**numbers, **_COSTS}, na_rep="–"),
        hide_index=True,
        height="content",
    )
    tables.take_along(frame, "inspect.comparison")


def differences(shown: Mapping[str, Inspection]) -> None:
    """What the second message asks for beyond the first, and whether that changes the route."""
    (_, a), (_, b) = shown.items()
    st.markdown("**What differs**")
    same = a.decision.model == b.decision.model
    if same:
        st.success(f"Both go to {literal(a.decision.model)}.", icon=":material/check:")
    else:
        before, after = a.chosen.cost, b.chosen.cost
        st.warning(
            f"A goes to **{literal(a.decision.model)}**, B to **{literal(b.decision.model)}**: "
            f"{after / before:.1f} times the price.",
            icon=":material/alt_route:",
        )
    change = b.decision.requirements - a.decision.requirements
    for k, dimension in enumerate(a.decision.dimensions):
        name = literal(dimension.replace("_", " ").capitalize())
        st.markdown(f"{name}: **{signed(change[k], 3)}**")
    st.caption("Requirement of B minus that of A.")
