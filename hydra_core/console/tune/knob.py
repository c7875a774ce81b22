"""The knob of the Tune page: the rule, its setting, and what finds one: an aim or a promise."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import signed, usd
from hydra_core.base.types import Catalog, Rule, Selection
from hydra_core.catalog.chosen_and_promised import with_promise
from hydra_core.choosing.sources.promise import Promise, promise_on
from hydra_core.console import drafts, replays, selectors, state, widgets
from hydra_core.console.browser import Bar, LiveKnob, Point, live_knob
from hydra_core.console.cache import SetEntry, cached
from hydra_core.console.figures.theme import model_colors
from hydra_core.console.frame import LEARNED, link
from hydra_core.console.numbers import RULES, SYMBOLS
from hydra_core.console.tune import search_form
from hydra_core.console.view_frontier import XAxis, YAxis
from hydra_core.console.view_result import Measure, mean_seconds, step_table, tiles
from hydra_core.console.widgets import literal
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.operating_point import Aim, AimKind, CrossFit, InfeasibleError, aim_at
from hydra_core.replay.sweep import Sweep

_CHECKED = "tune.checked"


def held_out(evaluation: Evaluation) -> CrossFit | None:
    """What the aim in force comes to on queries its setting was not chosen on.

    None where no aim was set, or the knob is not where the aim puts it.
    """
    aim, sweep = state.get().aim, evaluation.sweep
    if aim is None:
        return None
    try:
        serves = setting(sweep, aim) == evaluation.knob
    except InfeasibleError:
        return None
    return replays.held_out(sweep, aim) if serves else None


def setting(sweep: Sweep, aim: Aim) -> float:
    """The knob that serves an aim; InfeasibleError where none does."""
    at = aim_at(sweep.curve, aim, sweep.oracle.quality.value, sweep.data, strict=True)
    return sweep.curve.tidy(at.knob)


def result(evaluation: Evaluation, held_out: CrossFit | None) -> None:
    """The result at the point, what its interval does not cover, and the check that covers it."""
    widgets.verdict_box(evaluation.verdict)
    if held_out is not None and not evaluation.weights_edited:
        _on_other_queries(held_out, evaluation.sweep.rule)
    if not evaluation.caution:
        return
    if evaluation.sweep.rule is Rule.VALUE:
        st.caption(literal(evaluation.caution))
        link(LEARNED, "See the cross-fitted gain", ":material/school:")
        return
    sweep, tuning = evaluation.sweep, state.get()
    here = tuning.evalset, tuning.catalog, sweep.rule, evaluation.knob, sweep.weights
    left, right = st.columns([8, 2], vertical_alignment="center", gap="small")
    left.caption("This interval does not cover weights, profiles or a pool tuned on this set.")
    right.button(
        "Check cross-fitted",
        icon=":material/fact_check:",
        key="tune.check",
        width="stretch",
        help="Chooses weights and τ anew on one half of the queries for the same QR, and "
        "measures them on the other half; both ways round.",
        on_click=lambda: st.session_state.__setitem__(_CHECKED, here),
    )
    if st.session_state.get(_CHECKED) != here:
        return
    try:
        qr = round(evaluation.router.qr.value, 4)
        found = replays.cross_fitted_check(evaluation.sweep, qr)
    except (HydraError, ValueError) as error:
        st.warning(literal(str(error)), icon=":material/error:")
        return
    st.markdown("**Tuned weights on queries they were not tuned on**")
    widgets.verdict_box(found)


def _on_other_queries(held_out: CrossFit, rule: Rule) -> None:
    """What Find's choice comes to where it was not made; a second figure, so it says why."""
    metrics, judged = held_out.metrics, held_out.verdict
    difference = judged.judged_by.scaled(100.0)
    st.caption(
        literal(
            f"On queries it was not tuned on (cross-fitted): {100 * metrics.quality.value:.1f} % "
            f"quality at {usd(metrics.mean_cost_usd.value)} per query, "
            f"{signed(difference.value)} points against the fixed mix at that cost "
            f"({difference.bounds(signed)}). It differs from the figures "
            f"above because each half of the queries gets the {SYMBOLS[rule]} of the other half."
        )
    )


#: Keys of what follows the knob, and of the place of the plot, or of its curve alone at first.
PLOT, VERDICT, PLACE = "tune.plot", "tune.verdict", "tune.place"


def rule(catalog: Catalog) -> None:
    """The toggle between both rules; where there is only one, the way to the other."""
    if catalog.success_source is None:
        st.caption("Routes by profiles. With outcomes learned it can route by value as well.")
        link(LEARNED, "Learn from outcomes", ":material/school:")
        return
    now = state.get().rule_for(catalog)
    st.segmented_control(
        "Rule",
        list(Rule),
        format_func=RULES.__getitem__,
        required=True,
        width="stretch",
        help="Shortfall: the cheapest model whose profile falls short of the requirements by at "
        "most τ. Value: the largest predicted success minus predicted cost / V, by success "
        "profiles or by the outcome model that was learned.",
        **state.bound("tune.rule", now, lambda rule: state.put(rule=Rule(rule), aim=None)),
    )


def knob(sweep: Sweep, at: float) -> None:
    """The setting as a number."""
    key, label, least, step = "tune.tau", "Threshold τ", 0.0, 0.005
    text = (
        "Largest weighted shortfall a model may have and still be eligible. The cheapest "
        "eligible model gets the query."
    )
    if sweep.rule is Rule.VALUE:
        key, label = "tune.value", "V: one more resolved query is worth, USD"
        least, step = min(1e-9, at), float(f"{at / 10:.1g}")
        text = (
            "What you would pay for one more resolved query. The model with the largest predicted "
            "success minus predicted cost / V gets the query."
        )
    st.number_input(
        label, least, max(sweep.steps[-1], at, 0.01), None, step, format="%.6g", help=text,
        **state.bound(key, at, partial(state.turn, sweep.rule)),
    )  # fmt: skip


def live(evaluation: Evaluation) -> None:
    """The figures where the policy stands, and the knob that they follow while it is dragged."""
    sweep, tuning = evaluation.sweep, state.get()
    by_savings = tuning.x is XAxis.SAVINGS and sweep.cost_of(evaluation.baseline) > 0
    live_knob(
        LiveKnob(
            sweep.rule,
            evaluation.knob,
            step_table(sweep, evaluation.baseline),
            model_colors(sweep.models, widgets.colors()),
            tiles(evaluation),
            bars=(Bar("", "share", tuple(evaluation.router.shares[one] for one in sweep.models)),),
            point=Point(
                PLOT,
                x=Measure.CS if by_savings else Measure.COST,
                y=Measure.QR if tuning.y is YAxis.QR else Measure.QUALITY,
            ),
            fades=(VERDICT,),
            lift=100 * evaluation.verdict.delta,
        ),
        key="tune.knob",
        on_release=partial(state.turn, sweep.rule),
    )
    seconds = mean_seconds(evaluation)
    if seconds is not None:
        st.caption(f":material/schedule: {literal(seconds)}")
    widgets.cautions(evaluation.router, sweep.data)


#: The aim that the widgets were last seeded with.
_SEEDED = "tune.aim_shown"


def solver(sweep: Sweep, held_out: CrossFit | None) -> None:
    """Ask for an aim, and say what the setting found keeps on queries it was not tuned on."""
    aim = state.get().aim
    if aim is not None and st.session_state.get(_SEEDED) != aim:  # as a link asks for it
        st.session_state[_SEEDED] = aim
        st.session_state["tune.aim"] = aim.kind
        if aim.kind is AimKind.CHEAPEST_WITH_QR:
            st.session_state["tune.goal_qr"] = min(round(100 * aim.value, 10), 100.0)
        elif aim.kind is AimKind.BEST_WITH_COST:
            st.session_state["tune.goal_cost"] = aim.value
    kind = search_form.aim_kind(
        st.container(), "Find an operating point", "tune.aim", "Knee",
        help="The cheapest point that keeps QR, the best one within a cost, or the knee of the "
        "curve.",
    )  # fmt: skip
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    costs = sweep.curve.mean_cost_usd
    asked = search_form.goal(
        sweep, kind, left, qr=("tune.goal_qr", 97 * sweep.best_qr),
        cost=("tune.goal_cost", (costs[0] + costs[-1]) / 2),
        otherwise="farthest above the straight line", label_visibility="collapsed",
    )  # fmt: skip
    right.button(
        f"Find {SYMBOLS[sweep.rule]}", on_click=_find, args=(sweep, asked), width="stretch",
        key="tune.find",
    )  # fmt: skip
    if aim is not None:
        _answer(sweep, aim, held_out)


def _find(sweep: Sweep, aim: Aim) -> None:
    st.session_state[_SEEDED] = aim
    with suppress(InfeasibleError):  # why not is said beside it
        state.turn(sweep.rule, setting(sweep, aim))
    state.put(aim=aim)


def _answer(sweep: Sweep, aim: Aim, held_out: CrossFit | None) -> None:
    if held_out is None:
        _infeasible(sweep, aim)
        return
    metrics = held_out.metrics
    qr, cost = metrics.qr.scaled(100.0), metrics.mean_cost_usd.value
    said = (
        f"On queries it was not tuned on: QR {qr.value:.1f} % ({qr.bounds()}) at "
        f"{usd(cost)} per query."
    )
    if aim.met_by(metrics.qr.value, cost):
        st.caption(literal(said))
        return
    st.warning(
        literal(f"{said} That misses the aim of {search_form.limit(aim)}: leave some margin."),
        title="The aim is missed",
    )


def _infeasible(sweep: Sweep, aim: Aim) -> None:
    """Say why nothing serves an aim; nothing where the knob was merely moved elsewhere."""
    try:
        setting(sweep, aim)
    except InfeasibleError as error:
        text = (
            f"No {SYMBOLS[sweep.rule]} reaches QR {100 * aim.value:.1f} %: the most is "
            f"{100 * sweep.best_qr:.1f} %. Ask for less, or change the catalog."
            if aim.kind is AimKind.CHEAPEST_WITH_QR
            else str(error)
        )
        st.caption(literal(text))


_ASKED: Final = "tune.promise"
_CONFIDENCES: Final = (0.9, 0.95, 0.99)
_HELP: Final = (
    "Finds the cheapest setting whose mean quality is at most so far below the best single model. "
    "Settings are tested from the dearest to the cheapest, so the confidence holds at any number "
    "of queries. It holds for queries like these, not under drift."
)


def promise(sweep: Sweep, entry: SetEntry, *, weights_edited: bool) -> None:
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
    _promised(made, sweep, entry)


@cached(24, "Testing settings")
def _made(sweep: Sweep, within: float, confidence: float) -> Promise:
    return promise_on(sweep, within=within, confidence=confidence)


def _promised(made: Promise, sweep: Sweep, entry: SetEntry) -> None:
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
        drafts.chosen_by(entry, Selection.LOOKED, knob_alone=True),
    )


def promise_text(made: Promise, rule: Rule) -> tuple[str, str]:
    """Return a title and a sentence."""
    claim = f"{made.claim[:1].upper()}{made.claim[1:]}"
    if not made.kept:
        return (
            "Nothing can be promised yet",
            f"{claim}: {made.n:,} independent queries are too few, or the loss is too large.",
        )
    if made.knob(rule) is None:
        return "No saving can be promised yet", f"{claim}: only the dearest setting holds."
    saved = f"{100 * made.saving:.0f} %"
    return f"Promised: {saved} saved", f"{claim}, and {saved} cheaper than it."


def forecast_text(made: Promise) -> str:
    """Say what other numbers of queries would allow, and what it was calibrated on."""
    more = [one for one in made.forecast if one.queries > made.n]
    said = ", ".join(f"with {one.queries:,} {100 * one.saving:.0f} %" for one in more)
    now = f"{100 * made.saving:.0f} % with these {made.n:,} independent queries"
    growth = f"Saved: {now}; {said}, if they are like these. " if said else ""
    return (
        f"{growth}Calibrated on these queries of {made.evalset} ({made.calibrated_on}). It does "
        "not hold under drift: Live watches it."
    )
