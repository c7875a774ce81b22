"""Where a tuned policy goes: Tune, the pin, the store, or the catalog draft."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.evidence_grid import edit_capabilities
from hydra_core.catalog.editing.model_grid import model_rows
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.errors import CatalogError, HydraError, Problem
from hydra_core.evaluation.choose.aims import aim_at
from hydra_core.evaluation.choose.policy_search import FoundPolicy, Setting
from hydra_core.evaluation.choose.space import with_cells
from hydra_core.evaluation.replay.metrics import oracle_quality
from hydra_core.evaluation.replay.replay import data_frontier
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Rule, Selection
from hydra_core.ui import chosen_on, drafts, selectors, state, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.compare import keep
from hydra_core.ui.state import Pin
from hydra_core.ui.widgets import literal

__all__ = ["basis", "take"]

_NEXT = (
    ("pages/evaluate/compare.py", "Compare"),
    ("pages/configure/catalog.py", "Look at the draft"),
    ("pages/ship/export.py", "Publish"),
)


def basis() -> None:
    """Which state of the catalog is searched on, and that an unpublished draft is not."""
    pair = selectors.current()
    if pair is None:
        return
    try:
        working = drafts.load(pair[1])
    except HydraError as error:
        widgets.problem(error)
        return
    searched = f"revision {working.revision}" if working.revision else "the catalog file"
    if not working.edited:
        st.caption(f":material/history: Searches on {searched} of {literal(pair[1].key)}.")
        return
    n = len(working.changes)
    what = f"{n} change{'s' * (n != 1)}" if n else "edits"
    st.warning(
        f"Searches on {searched} of {literal(pair[1].key)}. Your draft has {what} that "
        "count only once they are published.",
        icon=":material/edit_note:",
    )


def take(result: FoundPolicy, entry: SetEntry, sweep: Sweep) -> None:
    """One click to Tune, to the pin, to the store, or to the catalog draft.

    Cells that moved are part of the catalog: Tune, pins and kept points hold tau and weights only,
    which mean something else without the cells. Then only the draft is offered.
    """
    setting = result.setting
    kept = keep.told()
    told = st.session_state.pop("tuner.told", "") or kept
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        if not setting.cells:
            _onward(result, entry)
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
    if told:
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.caption(f":material/check: {literal(told)}", width="content")
            for page, label in _NEXT:
                st.page_link(page, label=label, icon=":material/arrow_forward:")
    problem = drafts.kept_error()
    if problem is not None:
        widgets.problem(problem)


def _pin(setting: Setting) -> None:
    state.put(pin=Pin(setting.tau, setting.weights))
    st.session_state["tuner.told"] = f"Pinned: τ {setting.tau:.4g} with the tuned weights."


def _keep(result: FoundPolicy, entry: SetEntry) -> None:
    """Keep it under a name in the store, where the catalog has a published revision."""
    pair = selectors.current()
    if pair is None or pair[1].catalog is None:
        return
    found = result.setting
    policy = replace(
        pair[1].catalog.policy, rule=Rule.SHORTFALL, tau=found.tau, weights=found.weights
    )
    metrics = {
        "how": Selection.CROSS_FITTED.value,
        "qr": result.metrics.qr.value,
        "mean_cost_usd": result.metrics.mean_cost_usd.value,
        "optimism_qr": result.optimism_qr,
        "aim": str(result.aim),
    }
    keep.keep(policy, entry.info.digest, metrics, "tuner")


def _onward(result: FoundPolicy, entry: SetEntry) -> None:
    setting = result.setting
    if st.button("Open in Tune", type="primary", icon=":material/tune:", key="tuner.open"):
        state.put(tau=setting.tau, weights=setting.weights)
        st.switch_page("pages/evaluate/tune.py")
    st.button(
        "Pin to compare", icon=":material/keep:", key="tuner.pin", on_click=_pin,
        args=(setting,), help="Keeps it on the plot of Tune and offers it on Compare.",
    )  # fmt: skip
    _keep(result, entry)


def _parts(setting: Setting) -> str:
    moved = len(setting.cells)
    if not moved:
        return "τ and weights"
    return f"τ, weights and {moved} profile {'cell' if moved == 1 else 'cells'}"


def _draft(result: FoundPolicy, sweep: Sweep, entry: SetEntry) -> None:
    pair = selectors.current()
    if pair is None:
        return
    tuned_on = chosen_on.chosen(entry, Selection.CROSS_FITTED, knob_alone=False)
    key = pair[1].key
    if drafts.edit(pair[1], lambda text: _drafted(text, key, result, sweep), chosen=tuned_on):
        parts = _parts(result.setting)
        st.session_state["tuner.told"] = f"Your draft of the catalog has the tuned {parts}."


def _drafted(text: str, source: str, result: FoundPolicy, sweep: Sweep) -> str:
    """The catalog text with the tuned policy, in few digits that route as the tuned ones do.

    Raises:
        CatalogError: The draft has no such model or dimension, or cannot be written.
    """
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
