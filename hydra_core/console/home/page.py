"""Home: what HyDRA does, what is published and serving, whether routing helps, what to do next."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st
from plotly.graph_objects import Figure

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, signed, titled, usd
from hydra_core.base.types import Catalog, Rule, SuccessSource
from hydra_core.console import (
    bundles,
    cache,
    drafts,
    frame,
    replays,
    reports,
    selectors,
    state,
    tables,
    view_result,
    widgets,
)
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog.models import pool_table
from hydra_core.console.demo import panel, session
from hydra_core.console.figures.frontier import frontier_figure
from hydra_core.console.figures.theme import Palette, palette
from hydra_core.console.numbers import RULES, knob_text, policy_text
from hydra_core.console.view_frontier import Axes, frontier_view
from hydra_core.console.widgets import literal
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import VerdictLabel

if TYPE_CHECKING:
    from hydra_core.live.traffic import Traffic

_DAY_S = 86_400


class InUse(NamedTuple):
    """An eval set under the rule in force, and under the learned one where that is another."""

    entry: SetEntry
    sweep: Sweep
    learned: Sweep | None


class Step(NamedTuple):
    """One thing to do next."""

    icon: str
    title: str
    text: str
    place: frame.Place
    label: str


def prepare() -> None:
    """Compute what a first visit shows, before there is one."""
    cache.bundle()
    used = in_use()
    if used is not None:
        with ThreadPoolExecutor(1, thread_name_prefix=threading.current_thread().name) as beside:
            learned = beside.submit(_learned, used)
            _current(used)
            learned.result()
        _drawn(used, palette("light"))


def show() -> None:
    """Draw the page."""
    head = frame.head("Home", (8, 2))
    with head.right.container(horizontal=True, horizontal_alignment="right"):
        panel.invitation()
    st.markdown(
        "HyDRA sends each message to the cheapest model that can handle it, and measures whether "
        "that beats a fixed mix.",
        help=view_result.FIXED_MIX,
    )
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _published()
    with right.container(border=True, height="stretch"):
        _traffic()
    used = in_use()
    pair = selectors.current()
    if used is not None:
        _result(used)
    elif pair is not None and selectors.fits(*pair):
        widgets.empty(
            "No result yet",
            f"Eval set **{literal(pair[0].info.name)}** cannot be replayed with catalog "
            f"**{literal(pair[1].key)}**: Tune says why.",
            [(frame.BY_HAND, "Tune")],
        )
    else:
        widgets.empty(
            "No result yet",
            "No eval set fits this catalog: it needs outcomes of at least two of its models, and "
            "scores of the predictor that the catalog is bound to.",
            [(frame.SETS, "Import or score an eval set")],
        )
    _next(used)
    if used is not None:
        _figures(used)
    loaded()


def _published() -> None:
    """The operator's newest catalog, or that there is none."""
    own = cache.own_catalogs()
    if not own:
        st.markdown(":material/rocket_launch: **Nothing of your own is published yet**")
        st.caption("What you see below is a sample that comes with the console.")
        return
    entry, others = own[0], own[1:]
    assert entry.catalog is not None
    newest = cache.store().newest(entry.key) if entry.revision else None
    number = f", revision {entry.revision}" if newest else ", not published yet"
    st.markdown(f":material/rocket_launch: **{literal(entry.key)}**{number}")
    policy = literal(policy_text(entry.catalog.policy))
    st.markdown(
        f"{counted(len(entry.catalog.models), 'model')}, {policy}",
        help=f"{view_result.TAU}\n\n{view_result.VALUE}",
    )
    if newest is not None:
        note = f": “{newest.note}”" if newest.note else "."
        by = f"Published by {newest.author} on {newest.created_at.astimezone():%-d %B %Y}{note}"
        st.caption(literal(by))
    if others:
        names = ", ".join(other.key for other in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        st.caption(literal(f"Also yours: {names}{more}."))


def _traffic() -> None:
    """What was routed in the last 24 hours, and by which text."""
    from hydra_core.console.live import cache as logs
    from hydra_core.console.live.traffic import decided_last

    st.markdown(":material/monitoring: **Traffic of the last 24 hours**")
    folders = () if session.demo() is not None else logs.folders()
    if not folders:
        st.caption("There is no decision log, so this console does not see any traffic.")
        frame.link(frame.TRAFFIC, "Connect your traffic")
        return
    try:
        traffic = logs.traffic(logs.key_of(folders[0], _DAY_S, datetime.now(UTC)))
    except (HydraError, OSError) as error:
        widgets.problem(error)
        return
    if not len(traffic):
        st.caption(literal(f"No requests in {folders[0]}/ in this time."))
        return
    counts, mix = day(traffic)
    st.markdown(f"**{literal(counts)}**")
    last, entry = decided_last(traffic)
    by = f"The newest decision used a text of {last['catalog']} that this console does not publish."
    if entry and entry.catalog and entry.catalog.digest == last["catalog_digest"]:
        which = f"revision {entry.revision}" if entry.revision else "its file"
        by = f"The newest decision used {entry.key}, {which}: what this console shows."
    st.caption(f"{literal(mix)}.  \n{literal(by)}")
    frame.link(frame.TRAFFIC, "Open Live")


def day(traffic: Traffic) -> tuple[str, str]:
    """Requests, cost and failures in one line, the largest shares in another."""
    from hydra_core.live.traffic import uncounted

    n, cost = len(traffic), traffic.rows["cost_usd"].astype(float)
    spent, found = f" · {usd(float(cost.sum()))}" if cost.notna().any() else "", uncounted(traffic)
    if found.unknown:
        about = f"about {usd(found.unknown_usd)} more" if np.isfinite(found.unknown_usd) else "more"
        spent += f" · {about} not counted by upstreams"
    failed = traffic.failed[np.isfinite(traffic.failed)]
    bad = f" · {100 * failed.mean():.1f} % failed" if failed.size else ""
    counts = traffic.models.value_counts()
    mix = ", ".join(f"{name} {100 * k / n:.0f} %" for name, k in counts.head(3).items())
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    return f"{counted(n, 'request')}{spent}{bad}", f"{mix}{more}"


def in_use() -> InUse | None:
    """The eval set and catalog that the page shows; None where nothing can be replayed."""
    pair = selectors.current()
    if pair is None or pair[1].catalog is None or not selectors.fits(*pair):
        return None
    entry, catalog = pair[0], pair[1].catalog
    tuning = state.get()
    try:
        rule, weights = tuning.rule_for(catalog), tuning.weights_for(catalog)
        sweep = replays.ruled_sweep(entry, catalog, rule, weights)
    except HydraError:
        return None
    other, learned = _more(catalog, rule), None
    if other is not None:
        with suppress(HydraError):  # the Catalog page says what is wrong with it
            learned = replays.ruled_sweep(entry, other, Rule.VALUE, catalog.policy.weights)
    return InUse(entry, sweep, learned)


def _more(catalog: Catalog, rule: Rule) -> Catalog | None:
    """The catalog under what it has learned beyond the rule in force; None where that is all."""
    source, model = catalog.success_source, catalog.outcome_model
    if rule is Rule.SHORTFALL:
        return None if source is None else catalog
    if source is not SuccessSource.SUCCESS_PROFILES or model is None:
        return None
    return replace(
        catalog, policy=replace(catalog.policy, success_from=SuccessSource.OUTCOME_MODEL)
    )


def _current(used: InUse) -> Evaluation:
    tuning = state.get()
    return replays.evaluated(used.sweep, tuning.knob_for(used.sweep), tuning.baseline)


def _learned(used: InUse) -> Evaluation | None:
    """The set under the value rule; None where that is in force, or not learned."""
    if used.learned is None:
        return None
    return replays.evaluated(used.learned, used.learned.own_knob)


def _result(used: InUse) -> None:
    """Whether routing helps, in one sentence; the rest behind Details."""
    evaluation, learned = _current(used), _learned(used)
    widgets.verdict_box(evaluation.verdict, details=False)
    rule = evaluation.sweep.rule
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"{RULES[rule]} rule, **{literal(knob_text(rule, evaluation.knob))}** on "
            f"**{literal(used.entry.info.name)}** with catalog **{literal(state.get().catalog)}**",
            width="content",
            help="\n\n".join(
                (view_result.TAU, view_result.VALUE, view_result.RETENTION, view_result.FIXED_MIX)
            ),
        )
        widgets.synthetic_badge(used.entry.info.synthetic)
        st.space("stretch")
        with st.popover("Details", icon=":material/info:", type="tertiary"):
            _details(evaluation, learned)
        reports.button(evaluation.sweep, evaluation.knob, "home")


def _details(evaluation: Evaluation, learned: Evaluation | None) -> None:
    """What the result rests on; and the result of the learned rule, where that is another one."""
    if learned is not None:
        st.markdown(_named(evaluation))
    st.markdown(widgets.bullets(evaluation.verdict.details))
    if learned is None:
        return
    st.markdown(_named(learned))
    widgets.verdict_box(learned.verdict, details=False)
    st.markdown(widgets.bullets(learned.verdict.details))


def _named(evaluation: Evaluation) -> str:
    """A rule with its setting and what it stands on."""
    sweep = evaluation.sweep
    knob = literal(knob_text(sweep.rule, evaluation.knob))
    if sweep.rule is Rule.SHORTFALL:
        return f"**Shortfall rule** · {knob} · from profiles"
    if sweep.source is SuccessSource.SUCCESS_PROFILES:
        return f"**Value rule** · {knob} · success profiles in the catalog"
    return f"**Value rule** · {knob} · success heads learned from outcomes, cross-fitted"


def _next(used: InUse | None) -> None:
    """Draw the few things that would help most now, the most pressing first."""
    st.subheader("What to do next", anchor=False)
    ways = _ways_in() if _only_samples() else {}
    steps = list(_steps(used))[: 1 if ways else 3]
    places = iter(st.columns(len(steps) + len(ways)))
    for kind, step in (*(("", one) for one in steps), *ways.items()):
        with next(places).container(border=True, height="stretch"):
            st.markdown(f":material/{step.icon}: **{step.title}**")
            st.caption(step.text)
            if not kind:
                frame.link(step.place, step.label)
            elif st.button(step.label, key=f"home.way.{kind}", icon=":material/arrow_forward:"):
                _go_in(kind, step.place)


def _only_samples() -> bool:
    """Whether nothing of the operator's own is loaded; a demo has its own story."""
    shipped = all(entry.shipped for entry in cache.evalsets())
    return session.demo() is None and shipped and not cache.own_catalogs()


def _ways_in() -> dict[str, Step]:
    """Three ways to begin, as long as only samples are loaded, by the format of the import."""
    real = _real()
    public = Step(
        "public", "See public outcomes",
        "Import records of a public benchmark: SWE-bench, LLMRouterBench, RouterArena and others.",
        frame.SETS, "Import public records",
    ) if real is None else Step(
        "public", "See public outcomes",
        f"{real.info.n:,} benchmark questions with what {len(real.info.models)} models achieved "
        "and cost.",
        frame.ROUTING_HELP, "Can routing help?",
    )  # fmt: skip
    return {
        "swebench": public,
        "table": Step(
            "upload_file", "Bring your own file",
            "A table of your messages with what each model achieved and cost.",
            frame.SETS, "Import a file",
        ),
        "spend-logs": Step(
            "cable", "Bring your logs",
            "Decisions of HyDRA, spend logs of LiteLLM, Langfuse, Helicone or OpenTelemetry.",
            frame.SETS, "Import a log",
        ),
    }  # fmt: skip


def _real() -> SetEntry | None:
    """The sample with measured outcomes."""
    return next((entry for entry in cache.evalsets() if not entry.info.synthetic), None)


def _go_in(kind: str, place: frame.Place) -> None:
    real = _real()
    if place == frame.ROUTING_HELP and real is not None:
        state.put(evalset=real.key, catalog="", tau=None, weights=None, pin=None)
        frame.go(place)
    # Imported here: a first visit would wait for it.
    from hydra_core.console.eval_sets.import_wizard import KIND
    from hydra_core.evalsets.importers.formats import Kind

    st.session_state["eval_sets.view"] = "Import"
    st.session_state[KIND] = Kind(kind)
    frame.go(place)


def _steps(used: InUse | None) -> Iterator[Step]:
    yield from _own_steps()
    current = None if used is None else _current(used).verdict
    learned = None if used is None else _learned(used)
    if learned is not None and learned.verdict.label is VerdictLabel.BETTER:
        gain = learned.verdict.judged_by.scaled(100.0)
        by_heads = learned.sweep.source is SuccessSource.OUTCOME_MODEL
        knob = literal(knob_text(learned.sweep.rule, learned.knob))
        yield Step(
            "school", "Route by what was learned",
            f"At {knob}, success {'heads' if by_heads else 'profiles'} reach {signed(gain.value)} "
            f"points over the best fixed mix ({signed(gain.lo)} to {signed(gain.hi)}).",
            frame.LEARNED, "See what was learned",
        )  # fmt: skip
    if current is not None and current.alone:
        yield Step(
            "add", "Add a second model", "Routing chooses between models, and this pool has one.",
            frame.MODELS, "Catalog",
        )  # fmt: skip
    elif current is not None:
        title = "Find a better setting"
        text = "At this setting the router shows no gain over a fixed mix of the same cost."
        if current.label is VerdictLabel.BETTER:
            title = "Choose quality and cost"
            text = "Turn the knob on Tune until quality and cost suit you."
        yield Step("tune", title, text, frame.BY_HAND, "Tune")
    infos = [entry.info for entry in cache.evalsets()]
    unscored = [info.name for info in infos if not info.scored and info.texts]
    if unscored:
        names = ", ".join(unscored[:3]) + (" and more" if len(unscored) > 3 else "")
        yield Step(
            "speed", "Score an eval set",
            literal(f"Without requirement scores it cannot be replayed: {names}."),
            frame.SETS, "Score it",
        )  # fmt: skip
    yield Step(
        "troubleshoot", "Try a message",
        "See which model it goes to, why, and what would change that.",
        frame.MESSAGE, "Inspect",
    )  # fmt: skip


def _own_steps() -> Iterator[Step]:
    """What is left to do with the operator's own sets and drafts."""
    own = cache.own_catalogs()
    if not own and not _only_samples() and session.demo() is None:
        yield Step(
            "post_add", "Make a catalog",
            "Your eval set has no catalog yet: models, prices and a policy to start from.",
            frame.SETS, "Make a catalog",
        )  # fmt: skip
    for entry in own[:1]:
        working = drafts.load(entry)
        if working.edited or not entry.revision:
            what = "Your draft is not published" if working.edited else "It is not published"
            yield Step(
                "rocket_launch", "Review and publish",
                literal(f"{what}: {entry.key}. See first what it changes."),
                frame.PUBLISH, "Review it",
            )  # fmt: skip


def _figures(used: InUse) -> None:
    """The figures at this setting, and quality against cost for every setting."""
    st.subheader("Figures at this setting", anchor=False)
    widgets.kpis(_current(used))
    widgets.notes(used.sweep)
    with st.container(border=True):
        widgets.figure(
            _drawn(used, widgets.colors()),
            "home.frontier",
            alt="Quality against cost of the router for every setting, with the single models",
        )


def _drawn(used: InUse, colors: Palette) -> Figure:
    tuning = state.get()
    shown = frontier_view(
        used.sweep, tuning.knob_for(used.sweep),
        Axes(tuning.x, tuning.y, tuning.baseline_on(used.sweep.data)),
        beside=used.learned,
    )  # fmt: skip
    return frontier_figure(shown, colors, height=340, width=780)


def loaded() -> None:
    """Draw what is loaded: catalog, predictor bundle and eval sets."""
    st.subheader("What is loaded", anchor=False)
    pair = selectors.current()
    if pair is not None and pair[1].catalog is not None:
        _catalog(pair[1])
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _bundle()
    with right.container(border=True, height="stretch"):
        sets = cache.evalsets()
        st.markdown(f":material/dataset: **Eval sets** {len(sets)}")
        for entry in sets:
            scored = "scored" if entry.info.scored else "not scored"
            kind = " · :orange[synthetic]" if entry.info.synthetic else ""
            st.caption(
                f"{literal(entry.info.name)} · {counted(entry.info.n, 'query')} · {scored}{kind}"
            )


def _catalog(entry: CatalogEntry) -> None:
    assert entry.catalog is not None
    catalog = entry.catalog
    with st.container(border=True):
        st.markdown(f":material/list_alt: **Catalog** {literal(entry.key)}")
        st.caption(
            f"{counted(len(catalog.models), 'model')} · bound to predictor "
            f"{literal(catalog.predictor)} ({literal(catalog.predictor_fingerprint[:12])})"
        )
        _pool(catalog)


def _pool(catalog: Catalog) -> None:
    """A catalog's models with blended price and capabilities in [0, 1]."""
    frame = pool_table(catalog)
    column = st.column_config
    blended = f"USD per million tokens, {catalog.policy.price_ratio:g} of input to 1 of output"
    columns = {
        "model": column.TextColumn("Model", width=185),
        "status": column.TextColumn("Status", width=66),
        "price": column.NumberColumn("Blended price", format="$%.6g", width=100, help=blended),
    }
    share = partial(column.ProgressColumn, min_value=0, max_value=1, format="%.2f", width=115)
    further = {name: share(titled(name)) for name in frame.columns if name not in columns}
    written = {"model": tables.named(185, frame["model"])}
    tables.kept(frame, "home.pool", written, column_config=columns | further)


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
