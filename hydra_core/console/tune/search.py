"""What the tuner found: promised against kept, the setting, and where to take it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import CatalogError, HydraError, Problem
from hydra_core.base.spelling import counted, signed, signed_usd, titled, usd
from hydra_core.base.types import Catalog, Rule, Selection
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.evidence_grid import edit_capabilities
from hydra_core.catalog.editing.model_grid import model_rows
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.choosing.policy_search import SearchedPolicy, Setting, with_cells
from hydra_core.console import cache, drafts, selectors, state, tables, widgets
from hydra_core.console.cache import SetEntry
from hydra_core.console.frame import BY_HAND, COMPARE, MODELS, PUBLISH, SETS, Head, go, link
from hydra_core.console.state import Pin
from hydra_core.console.tune import search_form
from hydra_core.console.tune.details import keep_under_name, kept_message
from hydra_core.console.tune.search_form import Wanted
from hydra_core.console.widgets import literal, metric_row
from hydra_core.replay.metrics import oracle_quality
from hydra_core.replay.operating_point import aim_at
from hydra_core.replay.replay import data_frontier
from hydra_core.replay.sweep import Sweep

_NEXT = ((COMPARE, "Compare"), (MODELS, "Look at the draft"), (PUBLISH, "Publish"))


def basis() -> None:
    """Which state of the catalog is searched on, and that an unpublished draft is not."""
    try:
        working = selectors.working()
    except HydraError as error:
        widgets.problem(error)
        return
    if working is None:
        return
    searched = f"revision {working.revision}" if working.revision else "the catalog file"
    searched = f"Searches on {searched} of {literal(working.key)}."
    if not working.edited:
        st.caption(f":material/history: {searched}")
        return
    n = len(working.changes)
    what = f"{n} change{'s' * (n != 1)}" if n else "edits"
    st.warning(
        f"{searched} It does not see your draft, which has {what}, until you publish it.",
        icon=":material/edit_note:",
    )


def take(result: SearchedPolicy, entry: SetEntry, sweep: Sweep) -> None:
    """One click to Tune, to the pin, to the store, or to the catalog draft.

    Cells that moved are part of the catalog: Tune, pins and kept points hold tau and weights only,
    which mean something else without the cells. Then only the draft is offered.
    """
    setting = result.setting
    kept = kept_message()
    text = st.session_state.pop("tuner.message", "") or kept
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if not setting.cells:
            _onward(result, sweep)
        if drafts.may_edit():
            st.button(
                "To the catalog draft", icon=":material/edit_note:", key="tuner.draft",
                type="primary" if setting.cells else "secondary",
                on_click=_draft, args=(result, sweep, entry),
                help=f"Sets {_parts(setting)} in your draft of the catalog; nothing is published.",
            )  # fmt: skip
        if setting.cells:
            st.caption(
                "The moved cells belong to the catalog. Tune and Compare see them once the draft "
                "is published."
            )
    if text:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(f":material/check: {literal(text)}", width="content")
            for place, label in _NEXT:
                link(place, label)
    widgets.show_error()


def _pin(setting: Setting) -> None:
    state.put(pin=Pin(setting.tau, setting.weights))
    st.session_state["tuner.message"] = f"Pinned: τ {setting.tau:.4g} with the tuned weights."


def _onward(result: SearchedPolicy, sweep: Sweep) -> None:
    setting, plain = result.setting, result.tau_alone_better
    if plain and st.button(
        "Use τ alone", type="primary", icon=":material/tune:", key="tuner.tau_alone",
        help="Opens By hand with the weights of the catalog, and τ that serves this aim.",
    ):  # fmt: skip
        aimed = aim_at(sweep.curve, result.aim, sweep.oracle.quality.value, sweep.data)
        state.put(tau=sweep.curve.tidy(aimed.knob), weights=None, aim=result.aim)
        go(BY_HAND)
    if st.button(
        "Open in By hand", type="secondary" if plain else "primary", icon=":material/tune:",
        key="tuner.open",
    ):  # fmt: skip
        state.put(tau=setting.tau, weights=setting.weights)
        go(BY_HAND)
    st.button(
        "Pin to compare", icon=":material/keep:", key="tuner.pin", on_click=_pin,
        args=(setting,), help="Keeps it on the plot of Tune and offers it on Compare.",
    )  # fmt: skip
    policy = replace(
        sweep.catalog.policy, rule=Rule.SHORTFALL, tau=setting.tau, weights=setting.weights
    )
    metrics = {
        "how": Selection.CROSS_FITTED.value,
        "qr": result.metrics.qr.value,
        "mean_cost_usd": result.metrics.mean_cost_usd.value,
        "optimism_qr": result.optimism_qr,
        "aim": str(result.aim),
    }
    keep_under_name(policy, sweep.evalset.digest, metrics, "tuner")


def _parts(setting: Setting) -> str:
    moved = len(setting.cells)
    if not moved:
        return "τ and weights"
    return f"τ, weights and {counted(moved, 'profile cell')}"


def _draft(result: SearchedPolicy, sweep: Sweep, entry: SetEntry) -> None:
    tuned_on = drafts.chosen_by(entry, Selection.CROSS_FITTED, knob_alone=False)
    if selectors.edit(lambda text, source: _drafted(text, source, result, sweep), tuned_on):
        parts = _parts(result.setting)
        st.session_state["tuner.message"] = f"Your draft of the catalog has the tuned {parts}."


def _drafted(text: str, source: str, result: SearchedPolicy, sweep: Sweep) -> str:
    """The catalog text with the tuned policy, in few digits that route as the tuned ones do."""
    setting = result.setting
    weights = [round(weight, 4) for weight in setting.weights]
    tuned = with_cells(sweep.data, setting.cells)
    curve = data_frontier(tuned, compensated_weights(weights, sweep.catalog.bands))
    # A shortfall may lie exactly at tau, where a rounded weight would put it beyond.
    aimed = aim_at(curve, result.aim, oracle_quality(tuned), tuned)
    document = CatalogDocument.parse(text, source)
    document.set("policy", "tau", curve.tidy(aimed.knob))
    for name, weight in zip(sweep.catalog.dimensions, weights, strict=True):
        document.set("policy", "weights", name, weight)
    rows = [str(row["id"]) for row in model_rows(document)]
    edits: dict[int, dict[str, object]] = {}
    for (model, k), value in setting.cells.items():
        if model not in rows:
            gone = Problem("models", f"{model!r} is not in your draft", "search again")
            raise CatalogError(source, [gone])
        edits.setdefault(rows.index(model), {})[sweep.catalog.dimensions[k]] = value
    return edit_capabilities(document.text(), edits)


#: Weights of the two halves within this factor count as much the same.
_ALIKE = 2.0


def show_result(result: SearchedPolicy, entry: SetEntry, sweep: Sweep, want: Wanted) -> None:
    """What was found: the result, promised against kept, the setting, where to take it."""
    _headline(result)
    widgets.verdict_box(result.verdict)
    _figures(result)
    take(result, entry, sweep)
    plain = search_form.without_cells(sweep, want) if want.cells else None
    left, right = st.columns([12, 8], gap="medium")
    with left:
        st.markdown("**Promised and kept**")
        _halves(result, plain)
        st.caption(
            "A setting mostly promises more where it was chosen than it keeps on the other half. "
            "Expect the kept figures, not the promised ones."
        )
        if want.cells and plain is None:
            st.caption("Search once without cells to see here what the cells add.")
    with right:
        st.markdown(f"**The setting to use** :gray[·] τ {result.setting.tau:.4g}")
        _weights(result, sweep)
        st.caption(_agreement(result))
    if want.cells:
        search_form.moved(result, sweep, want.cells)


def _headline(result: SearchedPolicy) -> None:
    """An aim that is missed comes first, and so does τ alone where it does better."""
    tuned, plain = (
        f"QR {100 * one.qr.value:.1f} % at {usd(one.mean_cost_usd.value)} per query"
        for one in (result.metrics, result.tau_only)
    )
    if not result.met:
        text = f"The search comes to {tuned} on queries it was not tuned on."
        if result.tau_alone_better:
            text += f" τ alone comes to {plain}: use it, or ask for less."
        else:
            text += " Ask for less, or leave some margin."
        limit = search_form.limit(result.aim)
        widgets.toned("warning", text, f"The aim of {limit} is missed", "flag")
    elif result.tau_alone_better:
        text = f"τ alone comes to {plain}, the search to {tuned}. Keep the weights as they are."
        widgets.toned("info", text, "τ alone does better than tuned weights", "tune")


def _agreement(result: SearchedPolicy) -> str:
    """Whether both halves asked for much the same weights."""
    first, second = (np.asarray(half.setting.weights) for half in result.halves)
    apart = float(np.maximum(first / second, second / first).max())
    if apart <= _ALIKE:
        return "Searched on all queries. Both halves asked for much the same weights."
    return (
        f"Searched on all queries. The halves ask for weights up to {apart:.0f} times apart: the "
        "queries hardly say which weights are right, so rely on τ more than on them."
    )


def _figures(result: SearchedPolicy) -> None:
    kept, gain = result.metrics, result.over_tau_only
    qr, cost, least = kept.qr.scaled(100.0), kept.mean_cost_usd, "≥ " if kept.unknown else ""
    more, saved = gain.quality.scaled(100.0), gain.saving and gain.saving.scaled(100.0)
    certain = saved is not None and -100.0 <= saved.lo <= saved.hi <= 100.0
    entries = (
        ("QR kept", f"{least}{qr.value:.1f} %", qr.bounds() + (" %" if qr.known else ""),
         "Quality retention on queries the setting was not chosen on."),
        ("Cost per query", usd(cost.value), f"{usd(cost.lo)} to {usd(cost.hi)}",
         "Mean realised cost on the same queries."),
        ("Promised − kept", f"{signed(100 * result.optimism_qr)} pp",
         cost_apart(cost.value, result.optimism_cost_usd),
         "QR promised minus QR kept; below, cost measured against cost promised."),
        ("Gain at equal cost", f"{signed(more.value)} pp",
         f"{signed(more.lo)} to {signed(more.hi)} pp",
         "Quality against choosing τ alone, with the weights left as they are, at the same cost; "
         "paired by query."),
        ("Saved at equal quality", f"{signed(saved.value)} %" if saved and certain else "–",
         "quality buys nothing here" if saved is None else "too few queries to say"
         if not certain else f"{signed(saved.lo)} to {signed(saved.hi)} %",
         "The same gain against τ alone as cost saved, at the price that fixed models pay for "
         "quality here."),
    )  # fmt: skip
    metric_row(entries)


def cost_apart(kept_usd: float, more_usd: float) -> str:
    """How much more is spent than was promised, in percent; in dollars where that was nothing."""
    promised = kept_usd - more_usd
    if promised <= 0.0:
        return f"cost {signed_usd(more_usd)}"
    return f"cost {signed(100 * more_usd / promised)} %"


def _halves(result: SearchedPolicy, without_cells: SearchedPolicy | None) -> None:
    rows: list[tuple[str | int | float | None, ...]] = [
        (
            f"Chosen on {'AB'[i]}, kept on {'BA'[i]}", half.queries, 100 * half.promised.qr,
            100 * half.qr, half.promised.mean_cost_usd, half.mean_cost_usd,
        )
        for i, half in enumerate(result.halves)
    ]  # fmt: skip
    both = result.metrics
    qr, cost = both.qr.value, both.mean_cost_usd.value
    promised = 100 * (qr + result.optimism_qr), cost - result.optimism_cost_usd
    rows.append(("Together", both.n, promised[0], 100 * qr, promised[1], cost))
    others = [("τ alone, together", result.tau_only)]
    if without_cells is not None:
        others.insert(0, ("Without cells, together", without_cells.metrics))
    for part, one in others:
        rows.append((part, one.n, None, 100 * one.qr.value, None, one.mean_cost_usd.value))
    column = st.column_config
    money = tables.dollars([half.mean_cost_usd for half in result.halves])
    tables.kept(
        rows,
        "tuner.parts",
        placeholder="",
        columns={
            "part": column.TextColumn("", width=145),
            "n": column.NumberColumn("Queries", format="localized", width=62),
            "promised": column.NumberColumn("QR promised", format="%.1f %%", width=82),
            "kept": column.NumberColumn("QR kept", format="%.1f %%", width=62),
            "promised_cost": column.NumberColumn("Cost promised", format=money, width=90),
            "kept_cost": column.NumberColumn("Cost kept", format=money, width=80),
        },
    )


def _weights(result: SearchedPolicy, sweep: Sweep) -> None:
    columns = {
        "Dimension": [titled(name) for name in sweep.catalog.dimensions],
        "Catalog": sweep.catalog.policy.weights,
        "Tuned": result.setting.weights,
    } | {f"On {'AB'[i]}": half.setting.weights for i, half in enumerate(result.halves)}
    number = st.column_config.NumberColumn(format="%.2f", width=55)
    tables.kept(
        pd.DataFrame(columns),
        "tuner.weights",
        column_config={
            "Dimension": st.column_config.TextColumn(width=105),
            **{name: number for name in columns if name != "Dimension"},
        },
    )


_FEWEST = 20


def tuner(entry: SetEntry, catalog: Catalog) -> None:
    """The wishes on the left; the search or what it found on the right."""
    try:
        sweep = cache.sweep(entry, catalog, catalog.policy.weights)
    except HydraError as error:
        st.warning(widgets.literal(str(error)), icon=":material/link_off:")
        link(SETS, "Go to Eval sets")
        return
    if state.get().rule_for(catalog) is Rule.VALUE:
        search_form.by_value()
        return
    if sweep.data.independent < _FEWEST:
        st.info(f"Fewer than {_FEWEST} independent queries cannot be cut in two and tuned on.")
        return
    search(entry, sweep)


def search(entry: SetEntry, sweep: Sweep) -> None:
    """Controls above, so that the result has the whole width."""
    with st.container(border=True):
        places = st.columns([4, 2, 4, 2], vertical_alignment="bottom", gap="small")
        want = search_form.wanted(sweep, places)
        cells, reach = search_form.cells_wanted(sweep)
        want = replace(want, cells=cells, reach=reach)
        with places[3]:
            task = search_form.search(sweep, want)
    basis()
    widgets.notes(sweep)
    if task is None:
        search_form.nothing_yet(sweep, want)
    elif task.running:
        widgets.waiting(task, "Searching", unit="settings tried")
    elif isinstance(task.result, SearchedPolicy):
        show_result(task.result, entry, sweep, want)
    else:
        search_form.stopped(task, sweep, want)


def show(head: Head) -> None:
    """The part Search: weights, threshold and, if asked for, profile cells."""
    selectors.on_data(head, tuner, baseline=False, link={})
