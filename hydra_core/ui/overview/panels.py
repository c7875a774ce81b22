"""The panels of the Overview page: operating point, what is loaded, next steps."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st
from plotly.graph_objects import Figure

from hydra_core.errors import HydraError
from hydra_core.evaluation.replay.evaluation import Evaluation, evaluate
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.evaluation.replay.verdict import VerdictLabel
from hydra_core.figures.frontier import frontier_figure
from hydra_core.figures.theme import Palette, palette
from hydra_core.types import Rule
from hydra_core.ui import (
    bundles,
    cache,
    cache_evaluate,
    cache_learn,
    selectors,
    state,
    tables,
    widgets,
)
from hydra_core.ui import reports as reporting
from hydra_core.ui.cache import ReplayKey, SetEntry
from hydra_core.ui.demo import session
from hydra_core.ui.widgets import literal
from hydra_core.views.catalogs.pool import pool_table
from hydra_core.views.frontier import Axes, frontier_view
from hydra_core.views.numbers import RULES, knob_text

__all__ = ["doors", "frontier", "loaded", "next_steps", "operating_point", "prepare"]

_TUNE = "pages/evaluate/tune.py"
_EVAL_SETS = "pages/evaluate/eval_sets.py"
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
        st.switch_page("pages/evaluate/explore.py")


def _to_import(kind: str) -> None:  # loads what a first visit would wait for
    from hydra_core.evaluation.importers.formats import Kind
    from hydra_core.ui.evalsets.import_wizard import KIND

    st.session_state["eval_sets.view"] = "Import"
    st.session_state[KIND] = Kind(kind)
    st.switch_page(_EVAL_SETS)


def prepare() -> None:
    """Compute what a first visit shows, before there is one."""
    found = _current()
    if found is not None:
        _drawn(found[1], palette("light"))
    cache.bundle()


def operating_point() -> None:
    """The policy as it stands on the eval set in use: verdict, figures, small frontier."""
    found = _current()
    if found is None:
        widgets.empty(
            "Nothing can be replayed yet",
            "An eval set and a catalog that fit together are needed: the set must be scored by "
            "the predictor the catalog is bound to.",
            [(_EVAL_SETS, "Import or score an eval set")],
        )
        return
    entry, evaluation = found
    rule = evaluation.sweep.rule
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(
            f"{RULES[rule]} rule, **{literal(knob_text(rule, evaluation.knob))}** on "
            f"**{literal(entry.info.name)}** with catalog "
            f"**{literal(state.get().catalog)}**",
            width="content",
        )
        if entry.info.synthetic:
            widgets.synthetic_badge()
        st.space("stretch")
        reporting.button(evaluation.sweep, evaluation.knob, "overview")
    widgets.kpis(evaluation)
    learned = _learned()
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


def _current() -> tuple[SetEntry, Evaluation] | None:
    pair = selectors.current()
    if pair is None or pair[1].catalog is None:
        return None
    entry, catalog = pair[0], pair[1].catalog
    tuning = state.get()
    try:
        rule, weights = tuning.rule_for(catalog), tuning.weights_for(catalog)
        sweep = cache_learn.ruled_sweep(entry, catalog, rule, weights)
    except HydraError:
        return None
    return entry, _evaluated(entry, sweep, tuning.knob_for(sweep), tuning.baseline)


def _learned() -> Evaluation | None:
    """The set in use under the value rule; None where it is in force, or not learned."""
    pair = selectors.current()
    if pair is None or pair[1].catalog is None or pair[1].catalog.outcome_model is None:
        return None
    if state.get().rule_for(pair[1].catalog) is Rule.VALUE:
        return None
    entry, catalog = pair[0], pair[1].catalog
    try:
        sweep = cache_learn.ruled_sweep(entry, catalog, Rule.VALUE, catalog.policy.weights)
    except HydraError:
        return None  # the Catalog page says what is wrong with it
    return _evaluated(entry, sweep, sweep.own_knob, None)


def _evaluated(entry: SetEntry, sweep: Sweep, knob: float, baseline: str | None) -> Evaluation:
    """One evaluation for all parts of the page, and for the next visit."""
    return _kept(cache_evaluate.sweep_key(entry, sweep), knob, baseline, sweep)


@st.cache_resource(max_entries=32, show_spinner=False)
def _kept(key: ReplayKey, knob: float, baseline: str | None, _sweep: Sweep) -> Evaluation:
    del key
    return evaluate(_sweep, knob, baseline)


def frontier() -> None:
    """The frontier as the Tune page has it, without its controls."""
    found = _current()
    if found is None:
        return
    st.subheader("Where this policy stands", anchor=False)
    with st.container(border=True):
        widgets.figure(
            _drawn(found[1], widgets.colors()),
            "overview.frontier",
            alt="Quality against cost of the router for every setting, with the single models",
        )


def _drawn(evaluation: Evaluation, colors: Palette) -> Figure:
    learned, tuning = _learned(), state.get()
    axes = Axes(tuning.x, tuning.y, evaluation.baseline)
    beside = learned.sweep if learned else None
    view = frontier_view(evaluation.sweep, evaluation.knob, axes, beside=beside)
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


def next_steps() -> None:
    """The few things that would help most now, the most pressing first."""
    st.subheader("What to do next", anchor=False)
    for icon, title, text, page, label in _steps():
        with st.container(border=True):
            st.markdown(f":material/{icon}: **{title}**")
            st.caption(text)
            st.page_link(page, label=label, icon=":material/arrow_forward:")


def _steps() -> Iterator[tuple[str, str, str, str, str]]:
    found = _current()
    sets, learned = cache.evalsets(), _learned()
    if learned is not None and learned.verdict.label is VerdictLabel.BEATS:
        yield (
            "school",
            "Route by what was learned",
            "The value rule beats the best constant policy here. Learn says on what that rests, "
            "and takes it into your draft.",
            "pages/evaluate/learn.py",
            "See what was learned",
        )
    if found is not None and found[1].verdict.label is not VerdictLabel.BEATS:
        yield (
            "tune",
            "Look for a better operating point",
            "At this setting the router is not shown to beat a constant policy of the same cost.",
            _TUNE,
            "Tune",
        )
    elif found is not None:
        yield (
            "tune",
            "Fine-tune the operating point",
            "The router beats the best constant policy here; find the cost you want.",
            _TUNE,
            "Tune",
        )
    unscored = [entry.info.name for entry in sets if not entry.info.scored]
    if unscored:
        yield (
            "speed",
            "Score what is not scored",
            f"Without requirement scores a set cannot be replayed: {literal(', '.join(unscored))}.",
            _EVAL_SETS,
            "Score an eval set",
        )
