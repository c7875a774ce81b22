"""One message: the decision, its requirements, what would change it, every candidate."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from hydra_core.base.digests import text_sha256
from hydra_core.base.spelling import short_number, signed, titled, usd
from hydra_core.base.types import CostBasis, Rule
from hydra_core.console import cache, tables
from hydra_core.console.browser import Line, LiveKnob, Message, live_knob
from hydra_core.console.figures.strip import MARGIN, strip_figure, strip_left
from hydra_core.console.figures.theme import model_colors, tint
from hydra_core.console.frame import write_address
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.inspect import value_rule, view
from hydra_core.console.inspect import view_words as words
from hydra_core.console.inspect.figures import requirements_figure
from hydra_core.console.inspect.view import Inspection, facts, knob_of, message_steps, settable
from hydra_core.console.numbers import RULES, knob_text
from hydra_core.console.state import bound
from hydra_core.console.widgets import colors, figure, literal
from hydra_core.lab.robustness.occlusion import Occlusion, occlude, spans
from hydra_core.predictor.onnx_predictor import Prediction, cores
from hydra_core.routing.decision import CAUSES, Cause, harness_text

_KEPT = "inspect.readings"
#: Both messages, and those that were compared with them.
_MOST = 8


@dataclass(frozen=True, slots=True)
class SessionPredictor:
    """The session's predictor; the last few scores are kept in the session by a digest."""

    def predict(
        self, texts: list[str], turns: list[int] | None = None, contexts: list[str] | None = None
    ) -> Prediction:
        """As the predictor's own; raises as `cache.predictor`."""
        read = hashlib.sha256(
            repr((texts, turns, contexts)).encode("utf-8", "surrogatepass")
        ).hexdigest()
        key = (cache.bundle().fingerprint, read)
        kept: dict[tuple[str, str], Prediction] = st.session_state.get(_KEPT, {})
        found = kept.pop(key, None) or cache.predictor().predict(texts, turns, contexts)
        last = [*kept.items(), (key, found)][-_MOST:]
        st.session_state[_KEPT] = dict(last)
        return found


#: Keys of the parts of the page that hold for the last setting only.
DECIDED = ("inspect.decision", "inspect.rules", "inspect.flips", "inspect.candidates")


def strip(
    shown: Mapping[str, Inspection], *, named: bool = False, fades: tuple[str, ...] = DECIDED
) -> None:
    """Which model for every tau or V; its knob, or a click, sets it and fades what it decides."""

    def turn(at: float) -> None:
        inspect_state.put(**{"value_usd" if rule is Rule.VALUE else "tau": at})

    def clicked() -> None:
        points = st.session_state[key]["selection"]["points"]
        knobs = [p["customdata"] for p in points if isinstance(p.get("customdata"), int | float)]
        if knobs:
            turn(settable(float(knobs[0]), rule))

    first = next(iter(shown.values()))
    rule, knob = knob_of(first)
    scale, strips = view.strip_scale(first), view.strips(dict(shown))
    whose = f", {RULES[rule].lower()} rule" if named else ""
    st.markdown(f"**Which model for every {scale.symbol}{whose}**")
    models = view.cost_order(first.decision)
    key = f"inspect.strip.{rule}"
    figure(
        strip_figure(strips, models, knob, colors(), scale),
        key,
        alt="The model chosen for every setting, with the current one marked",
        on_select=clicked,
        selection_mode="points",
    )
    live_knob(
        LiveKnob(
            rule,
            knob,
            message_steps(strips, scale, models, rule, knob),
            model_colors(models, colors()),
            messages=tuple(
                Message(label, f"model_{i}", text)
                for i, (label, text) in enumerate(zip(shown, facts(shown, models), strict=True))
            ),
            line=Line(key, "place", left=strip_left(strips), right=MARGIN),
            fades=fades,
        ),
        key=f"inspect.knob.{rule}",
        on_release=turn,
    )


#: Looked at without being asked when it takes at most this long.
_AT_ONCE_S = 2.0
_FOUND = "inspect.words.found"


@st.fragment
def words_panel(text: str, one: Inspection, turn: int, key: str) -> None:
    """Which words raised which requirement."""
    left, right = st.columns([3, 5], vertical_alignment="center")
    left.markdown("**Which words raised it**")
    by_name = {titled(dimension): dimension for dimension in one.decision.dimensions}
    names = list(by_name)
    linked = titled(inspect_state.get().part)
    wanted = linked if linked in by_name else names[0]
    shown = bound(
        "inspect.words.dimension", wanted, lambda name: inspect_state.put(part=by_name[name])
    )
    with right.container(horizontal=True, horizontal_alignment="right"):
        chosen = st.segmented_control(
            "Requirement", names, required=True, label_visibility="collapsed", **shown
        )
    write_address(link(one, key))
    place = st.empty()  # the last message's words go before this one's are looked for
    with place.container():
        found = _occlusion(text, turn)
    if found is None:
        return
    k = names.index(chosen or wanted)
    with place.container():
        st.html(words.highlighted(text, found, k, colors(), one.gap))
        _legend(text, found, k, names[k])


def _legend(text: str, found: Occlusion, k: int, name: str) -> None:
    raised = [f"“{literal(words.valid(word))}”" for word in words.strongest(text, found, k)]
    message = f"No single word raises {name.lower()} noticeably."
    if raised:
        message = f"{name} is raised most by {', '.join(raised)}."
    st.caption(
        f"{message} Green words raised the requirement, orange words lowered it. Measured by "
        "leaving out one word at a time."
    )


def _occlusion(text: str, turn: int) -> Occlusion | None:
    """Found before, found now because it is quick, or found on a button."""
    key = (cache.bundle().fingerprint, text_sha256(text), turn)
    kept: tuple[object, Occlusion] | None = st.session_state.get(_FOUND)
    if kept is not None and kept[0] == key:
        return kept[1]
    starts = cache.token_counter().starts(text)
    runs = len(spans(text, starts=starts)) + 1
    # Measured now: the decision's own run may have had to load the predictor first.
    began = time.perf_counter()
    cache.predictor().predict([text], [turn])
    expected_s = (time.perf_counter() - began) * runs / cores()
    if expected_s > _AT_ONCE_S and not st.button(
        f"Find the words ({runs} runs, about {max(expected_s, 1):.0f} s)", icon=":material/search:"
    ):
        st.caption("Scores the message again without each of its words, one at a time.")
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
            text = json.dumps(one.decision.receipt(), indent=2, ensure_ascii=False, allow_nan=False)
            st.caption("Everything needed to recompute the decision, without the text.")
            st.download_button(
                "Download JSON", text, "hydra-receipt.json", "application/json",
                icon=":material/download:", width="stretch", key="inspect.download",
                on_click="ignore",
            )  # fmt: skip
            st.code(text, language="json", height=320)
        with st.popover("Link", icon=":material/link:"):
            _link(one, key)


def _link(one: Inspection, key: str) -> None:
    now = inspect_state.get()
    size = len(now.text) + (len(now.other) if now.compare else 0)
    fits = 0 < size <= inspect_state.LINK_CHARS
    shown = bound(
        "inspect.share", now.share_text and fits, lambda on: inspect_state.put(share_text=on)
    )
    st.toggle("Include the text in the link", disabled=not fits, **shown)
    if size > inspect_state.LINK_CHARS:
        st.caption(f"A text of {size:,} characters is too long for a link.")
    elif now.share_text:
        st.caption("Anyone who sees the link, or a log of it, can read the text.")
    elif now.compare:
        st.caption("Without the texts, the link opens message A alone, from its scores.")
    else:
        text = "predictions" if one.decision.valuation is not None else "τ and weights"
        st.caption(
            f"The link carries scores, catalog and {text}: the same decision, without the text."
        )
    params = urlencode(link(one, key), safe=",")
    st.code(f"{st.context.url}?{params}", wrap_lines=True, language=None)


def link(one: Inspection, key: str) -> dict[str, str]:
    """The parameters that reopen what is on screen."""
    needs = tuple(one.decision.requirements.tolist())
    valued = one.decision.valuation
    predicted = None if valued is None else (valued.success.tolist(), valued.cost_usd.tolist())
    return inspect_state.to_link(inspect_state.get(), key, one.catalog.policy, needs, predicted)


_FLAGS = {
    "err": ("Error", "The message shows or names an error."),
    "file": ("File", "The message names a file or a path."),
    "url": ("URL", "The message contains a URL."),
    "cmd": ("Command", "The message contains a shell command."),
    "code": ("Code", "The message contains code."),
    "short": ("Short", "The message is shorter than about eight English words."),
}


_COSTS: dict[str, Any] = {f"Order, {basis.unit}": usd for basis in CostBasis} | dict.fromkeys(
    (view.COST, "Cost A", "Cost B"), usd
)


def decision(one: Inspection, *, label: str = "Chosen model") -> None:
    """The chosen model, why, and what the predictor read."""
    with st.container(gap=None):
        st.caption(label)
        st.markdown(f"# {literal(one.decision.model)}")
    st.markdown(f"{literal(CAUSES[one.decision.cause])}.")
    valued, cost = one.decision.valuation, literal(one.cost_text(one.decision.model))
    if valued is not None:
        success = literal(view.success_text(valued, one.decision.index))
        knob = literal(knob_text(Rule.VALUE, valued.value_usd)).replace(" ", chr(160))
        st.markdown(f"Predicted success **{success}** for **{cost}**  ·  value rule, {knob}")
    else:
        fits = "≤" if one.decision.cause is Cause.CHEAPEST_ELIGIBLE else "against"
        shortfall = (
            f"Shortfall **{one.chosen.shortfall:.3f}** {fits} τ {short_number(one.decision.tau)}"
        )
        st.markdown(f"{shortfall}  ·  **{cost}** for this message" if cost else shortfall)
    _read(one)


def _read(one: Inspection) -> None:
    """Flags found and tokens read; where the message was cut."""
    if one.signals is None:
        st.caption("Opened from a link that has the scores but not the text.")
        return
    with st.container(horizontal=True, gap="small"):
        for field, (name, text) in _FLAGS.items():
            if getattr(one.signals, field):
                st.badge(name, color="blue", help=text)
        turn = one.signals.turn_bin
        st.badge(f"Turn {turn}" if turn == 1 else f"Turn {turn}+", color="gray")
    harness = one.decision.query.harness_tokens if one.decision.query else 0
    if harness:
        st.caption(f":material/smart_toy: {harness_text(harness)}")
    message = view.burden(one)
    if message:
        st.caption(f":material/payments: {literal(message)}")
    reading = one.decision.reading
    ignored = reading.ignored_chars if reading else 0
    if ignored:
        st.caption(
            f":material/filter_alt: The last {ignored:,} characters only claim that the request is "
            "difficult, so they were not scored."
        )
    if reading is not None and reading.unusual:
        st.caption(
            f":material/explore_off: This message is unlike the predictor's training messages "
            f"(distance {reading.distance:.2f}; nearly all of them are below 1), so its scores are "
            "less reliable."
        )
    if one.gap is None:
        st.caption("The predictor read the whole message.")
        return
    st.caption(
        f":material/content_cut: Characters {one.gap.start + 1:,} to {one.gap.end:,} were not "
        "read: the predictor reads the beginning and the end of a long message."
    )


def needs(shown: Mapping[str, Inspection]) -> None:
    """The requirement bars on their bands."""
    st.markdown("**What it needs, and what the models offer**")
    chart = requirements_figure(view.requirements_view(dict(shown)), colors())
    figure(chart, "inspect.needs", alt="Requirement per dimension on its score band")


def flips(one: Inspection) -> None:
    """The nearest changes to another model: cheaper ones first, then more expensive ones."""
    st.markdown("**What would change it**")
    if not one.flips:
        st.caption("Nothing: only one model can serve this request.")
        return
    for cheaper, title in ((True, "To a cheaper model"), (False, "To a more expensive model")):
        found = [flip for flip in one.flips if flip.cheaper == cheaper]
        with st.container(gap="xxsmall"):
            st.markdown(f"{title}{'' if found else ': no change of one number'}")
            for flip in found:
                st.caption(
                    literal(flip.sentence)
                    or f"{literal(flip.subject)} {literal(flip.before)} → "
                    f"**{literal(flip.after)}** chooses **{literal(flip.model)}**"
                )
    st.caption("The smallest change of each kind, with everything else unchanged.")


def candidates(one: Inspection) -> None:
    """Every model, cheapest first: what decided, and one sentence."""
    if one.decision.valuation is not None:
        value_rule.candidates(one)
        return
    table = view.candidate_table(one)
    frame = tables.renamed(table, table["Model"])
    bold = table["Model"] == one.decision.model
    frame[["Model", "Why"]] = frame[["Model", "Why"]].map(literal)
    deficits = [titled(name) for name in one.decision.dimensions]
    st.markdown("**Every model, cheapest first**")
    weights = dict(zip(deficits, one.decision.pool.weights.tolist(), strict=True))
    st.table(_heat(frame, weights, bold), border="horizontal")
    tables.offer_downloads(table, "inspect.candidates.table")
    text = ", ".join(f"{name.lower()} {weight:.3g}" for name, weight in weights.items())
    costs = f" {literal(one.costs.basis)}" if one.costs else ""
    st.caption(
        "Under each requirement: the model's deficit. Shortfall: the sum of the deficits times "
        f"the compensated weights ({literal(text)}); the shade shows what each adds. The rule "
        f"takes the first model, by the order, whose shortfall is within τ.{costs}"
    )


def _heat(
    frame: pd.DataFrame, weights: Mapping[str, float], bold: pd.Series[bool]
) -> pd.io.formats.style.Styler:
    """Deficits shaded by what they add, as weighted by column; the chosen row is bold."""
    added = frame[list(weights)].mul(pd.Series(weights))
    top = max(float(added.to_numpy().max()), 0.05)
    css = pd.DataFrame("", index=frame.index, columns=frame.columns)
    css.loc[bold, :] = "font-weight: 700; "
    for name in weights:
        shades = [tint(colors().warn, round(0.75 * v / top, 3)) for v in added[name]]
        css[name] += [f"background-color: {shade}" for shade in shades]
    numbers = {name: "{:.3f}" for name in [*weights, "Shortfall"]}
    styled = frame.style.apply(lambda _: css, axis=None).hide(axis="index")
    return styled.format({**numbers, **_COSTS}, na_rep="–")


def comparison(shown: Mapping[str, Inspection]) -> None:
    """Shortfall and fate of every model for both messages."""
    st.markdown("**Every model, cheapest first**")
    frame = view.compare_table(dict(shown))
    numbers = {name: "{:.3f}" for name in frame.columns if name.startswith("Shortfall")}
    st.dataframe(
        frame.style.format({**numbers, **_COSTS}, na_rep="–"), hide_index=True, height="content"
    )
    tables.offer_downloads(frame, "inspect.comparison")


def differences(shown: Mapping[str, Inspection]) -> None:
    """What the second message asks for beyond the first, and whether that changes the route."""
    (_, a), (_, b) = shown.items()
    st.markdown("**What differs**")
    if a.decision.model == b.decision.model:
        st.success(f"Both go to {literal(a.decision.model)}.", icon=":material/check:")
    else:
        here, there = (one.cost_text(one.decision.model) for one in (a, b))
        costs = f" A costs {here}, B costs {there}." if here and there else ""
        st.warning(
            f"A goes to **{literal(a.decision.model)}**, B to **{literal(b.decision.model)}**."
            f"{literal(costs)}",
            icon=":material/alt_route:",
        )
    change = b.decision.requirements - a.decision.requirements
    for k, dimension in enumerate(a.decision.dimensions):
        name = literal(titled(dimension))
        st.markdown(f"{name}: **{signed(change[k], 3)}**")
    st.caption("Requirement of B minus that of A.")
