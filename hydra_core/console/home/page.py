"""The panels of the Overview page: operating point, what is loaded, next steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import streamlit as st
from plotly.graph_objects import Figure
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Rule
from hydra_core.console import (
    bundles,
    cache,
    frame,
    learned_models,
    replays,
    selectors,
    state,
    tables,
    widgets,
)
from hydra_core.console import reports as reporting
from hydra_core.console.cache import ReplayKey, SetEntry
from hydra_core.console.catalog.view_pool import pool_table
from hydra_core.console.demo import panel, session
from hydra_core.console.figures.frontier import frontier_figure
from hydra_core.console.figures.theme import Palette, palette
from hydra_core.console.numbers import RULES, knob_text
from hydra_core.console.view_frontier import Axes, frontier_view
from hydra_core.console.widgets import literal
from hydra_core.replay.evaluation import Evaluation, evaluate
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import VerdictLabel

#: Icon, title, text, the format that the import begins with, and what the button says.
_DOORS = (
    (
        "upload_file", "Bring your own file",
        "A table of your messages with what each model achieved and cost, or a public benchmark's "
        "records. Columns are guessed from their names and shown before anything is imported.",
        "table", "Import a file",
    ),
    (
        "cable", "Connect to a log",
        "What you log already: HyDRA's decisions, LiteLLM's spend logs, Langfuse, OpenTelemetry "
        "spans. One query a served request, with its feedback.",
        "spend-logs", "Import a log",
    ),
)  # fmt: skip


def doors() -> None:
    """Three ways in, as long as nothing but samples is loaded; a demo has its own story."""
    sets = cache.evalsets()
    if session.demo() is not None or not all(entry.shipped for entry in sets):
        return
    st.subheader("Only samples are loaded: where to begin", anchor=False)
    places = st.columns(3)
    real = next((entry for entry in sets if not entry.info.synthetic), None)
    with places[0].container(border=True, height="stretch"):
        _real_data(real)
    for place, (icon, title, text, kind, label) in zip(places[1:], _DOORS, strict=True):
        with place.container(border=True, height="stretch"):
            st.markdown(f":material/{icon}: **{title}**")
            st.caption(text)
            if st.button(label, key=f"overview.door.{kind}", icon=":material/arrow_forward:"):
                _to_import(kind)


def _real_data(real: SetEntry | None) -> None:
    """The real set among the samples, or the public records that can be got."""
    st.markdown(":material/public: **Look at real data**")
    if real is None:
        st.caption(
            "Public records of what models achieved on the same tasks: SWE-bench, LiveCodeBench, "
            "LLMRouterBench, RouterArena, RouteLLM. Download one, give it here."
        )
        if st.button("Import public records", key="overview.door.real"):
            _to_import("swebench")
        return
    st.caption(
        f"{literal(real.info.name)}: {real.info.n:,} queries with what {len(real.info.models)} "
        "models really achieved and cost. See first whether routing can help there."
    )
    if st.button("Explore it", key="overview.door.real", icon=":material/arrow_forward:"):
        state.put(evalset=real.key, catalog="", tau=None, weights=None, pin=None)
        frame.go(frame.ROUTING_HELP)


def _to_import(kind: str) -> None:  # loads what a first visit would wait for
    from hydra_core.console.eval_sets.import_wizard import KIND
    from hydra_core.evalsets.importers.formats import Kind

    st.session_state["eval_sets.view"] = "Import"
    st.session_state[KIND] = Kind(kind)
    frame.go(frame.SETS)


_SEEN = "overview.seen"
#: Height of the operating point with two verdicts at 1280 pixels, pixels.
_POINT_PX = 352


class InUse(NamedTuple):
    """An eval set under the rule in force, and under the learned one where that is another."""

    entry: SetEntry
    sweep: Sweep
    learned: Sweep | None


def prepare() -> None:
    """Compute what a first visit shows, before there is one."""
    cache.bundle()
    found = in_use()
    if found is not None:
        _drawn(found, palette("light"), banded=False)
        _current(found)
        _learned(found)


def place_of_the_point() -> DeltaGenerator:
    """Where the operating point goes; on a first visit as high as that will be.

    So nothing that is there before it moves away under the reader's eyes.
    """
    place = st.empty()
    if _SEEN not in st.session_state:
        st.session_state[_SEEN] = True
        with place.container(height=_POINT_PX, border=False):
            st.caption(":material/hourglass_top: The verdict and its band are being computed.")
    return place


def operating_point(found: InUse | None) -> None:
    """The policy as it stands on the eval set in use: verdict and figures."""
    if found is None:
        widgets.empty(
            "Nothing can be replayed yet",
            "An eval set and a catalog that fit together are needed: the set must be scored by "
            "the predictor the catalog is bound to.",
            [(frame.SETS, "Import or score an eval set")],
        )
        return
    evaluation = _current(found)
    rule = evaluation.sweep.rule
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"{RULES[rule]} rule, **{literal(knob_text(rule, evaluation.knob))}** on "
            f"**{literal(found.entry.info.name)}** with catalog "
            f"**{literal(state.get().catalog)}**",
            width="content",
        )
        if found.entry.info.synthetic:
            widgets.synthetic_badge()
        st.space("stretch")
        reporting.button(evaluation.sweep, evaluation.knob, "overview")
    widgets.kpis(evaluation)
    learned = _learned(found)
    if learned is None:
        widgets.verdict_box(evaluation.verdict)
        return
    left, right = st.columns(2)
    with left:
        st.markdown(f"**Shortfall rule** · τ {evaluation.knob:.4g} · from profiles")
        widgets.verdict_box(evaluation.verdict)
    with right:
        worth = literal(knob_text(Rule.VALUE, learned.knob))
        st.markdown(f"**Value rule** · {worth} · learned from outcomes, cross-fitted")
        widgets.verdict_box(learned.verdict)


def in_use() -> InUse | None:
    """What the page is about; None where nothing can be replayed."""
    pair = selectors.current()
    if pair is None or pair[1].catalog is None:
        return None
    entry, catalog = pair[0], pair[1].catalog
    tuning = state.get()
    try:
        rule, weights = tuning.rule_for(catalog), tuning.weights_for(catalog)
        sweep = learned_models.ruled_sweep(entry, catalog, rule, weights)
    except HydraError:
        return None
    if catalog.outcome_model is None or rule is Rule.VALUE:
        return InUse(entry, sweep, None)
    try:
        learned = learned_models.ruled_sweep(entry, catalog, Rule.VALUE, catalog.policy.weights)
    except HydraError:
        learned = None  # the Catalog page says what is wrong with it
    return InUse(entry, sweep, learned)


def _current(found: InUse) -> Evaluation:
    tuning = state.get()
    return _evaluated(found.entry, found.sweep, tuning.knob_for(found.sweep), tuning.baseline)


def _learned(found: InUse) -> Evaluation | None:
    """The set under the value rule; None where that is in force, or not learned."""
    if found.learned is None:
        return None
    return _evaluated(found.entry, found.learned, found.learned.own_knob, None)


def _evaluated(entry: SetEntry, sweep: Sweep, knob: float, baseline: str | None) -> Evaluation:
    """One evaluation for all parts of the page, and for the next visit."""
    return _kept(replays.sweep_key(entry, sweep), knob, baseline, sweep)


@st.cache_resource(max_entries=32, show_spinner=False)
def _kept(key: ReplayKey, knob: float, baseline: str | None, _sweep: Sweep) -> Evaluation:
    del key
    return evaluate(_sweep, knob, baseline)


def frontier(found: InUse | None) -> Callable[[], None]:
    """The frontier as the Tune page has it, without its controls.

    Returns:
        Draws it again with its band, where that was not known: it takes longer than the curve.
    """
    if found is None:
        return lambda: None
    st.subheader("Where this policy stands", anchor=False)
    with st.container(border=True):
        place = st.empty()

    def draw(key: str, banded: bool) -> None:
        with place.container():
            widgets.figure(
                _drawn(found, widgets.colors(), banded=banded),
                key,
                alt="Quality against cost of the router for every setting, with the single models",
            )

    if found.sweep.has_band:
        draw("overview.frontier", banded=True)
        return lambda: None
    draw("overview.curve", banded=False)
    return lambda: draw("overview.frontier", banded=True)


def _drawn(found: InUse, colors: Palette, *, banded: bool) -> Figure:
    tuning = state.get()
    view = frontier_view(
        found.sweep, tuning.knob_for(found.sweep),
        Axes(tuning.x, tuning.y, tuning.baseline_on(found.sweep.data)),
        beside=found.learned, banded=banded,
    )  # fmt: skip
    return frontier_figure(view, colors, height=340, width=430)


def loaded() -> None:
    """Catalog, predictor bundle and eval sets."""
    st.subheader("What is loaded", anchor=False)
    pair = selectors.current()
    catalog = pair[1].catalog if pair else None
    if pair is not None and catalog is not None:
        with st.container(border=True):
            st.markdown(f":material/list_alt: **Catalog** {literal(pair[1].key)}")
            st.caption(
                f"{len(catalog.models)} models · bound to predictor {literal(catalog.predictor)} "
                f"({literal(catalog.predictor_fingerprint[:12])})"
            )
            tables.pool(pool_table(catalog))
            tables.take_along(pool_table(catalog), "overview.pool")
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _bundle()
    with right.container(border=True, height="stretch"):
        sets = cache.evalsets()
        st.markdown(f":material/dataset: **Eval sets** {len(sets)}")
        for entry in sets:
            scored = "scored" if entry.info.scored else "not scored"
            kind = " · :orange[synthetic]" if entry.info.synthetic else ""
            st.caption(f"{literal(entry.info.name)} · {entry.info.n:,} queries · {scored}{kind}")


def _bundle() -> None:
    bundles.choose()
    try:
        bundle = cache.bundle()
    except HydraError as error:
        st.markdown(":material/neurology: **Predictor** not usable")
        st.caption(literal(str(error)))
        return
    st.markdown(f":material/neurology: **Predictor** {literal(bundle.name)} {bundle.version}")
    bands = ", ".join(
        f"{name.replace('_', ' ')} {band.lo:.2f} – {band.hi:.2f}"
        for name, band in zip(bundle.dimensions, bundle.bands, strict=True)
    )
    st.caption(f"Fingerprint {literal(bundle.fingerprint[:12])} · score bands: {literal(bands)}")


def next_steps(found: InUse | None) -> None:
    """The few things that would help most now, the most pressing first."""
    st.subheader("What to do next", anchor=False)
    for icon, title, text, place, label in _steps(found):
        with st.container(border=True):
            st.markdown(f":material/{icon}: **{title}**")
            st.caption(text)
            frame.link(place, label)


def _steps(found: InUse | None) -> Iterator[tuple[str, str, str, frame.Place, str]]:
    current = _current(found) if found is not None else None
    learned = _learned(found) if found is not None else None
    if learned is not None and learned.verdict.label is VerdictLabel.BETTER:
        yield (
            "school",
            "Route by what was learned",
            "The value rule does better than the best fixed mix here. Learned shows on what that "
            "rests, and takes it into your draft.",
            frame.LEARNED,
            "See what was learned",
        )
    if current is not None and current.verdict.label is not VerdictLabel.BETTER:
        yield (
            "tune",
            "Look for a better operating point",
            "At this setting the router shows no gain over a fixed mix of the same cost.",
            frame.BY_HAND,
            "Tune",
        )
    elif current is not None:
        yield (
            "tune",
            "Fine-tune the operating point",
            "The router does better than the best fixed mix here. Find the cost you want.",
            frame.BY_HAND,
            "Tune",
        )
    unscored = [entry.info.name for entry in cache.evalsets() if not entry.info.scored]
    if unscored:
        yield (
            "speed",
            "Score what is not scored",
            f"Without requirement scores a set cannot be replayed: {literal(', '.join(unscored))}.",
            frame.SETS,
            "Score an eval set",
        )


def show() -> None:
    """The whole page."""
    head = frame.head("Home", (8, 2))
    with head.right.container(horizontal=True, horizontal_alignment="right"):
        panel.door()
    point = place_of_the_point()
    doors()
    left, right = st.columns([8, 5], gap="medium")
    loaded()
    found = in_use()
    # The browser loads what draws these while the band and the verdicts are computed.
    with left:
        complete = frontier(found)
    with point.container():
        operating_point(found)
    complete()
    with right:
        next_steps(found)
