"""What the tuner found: promised against kept, the setting, and where to take it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.catalog.document import CatalogDocument
from hydra_core.errors import HydraError
from hydra_core.evaluation.tuning import Setting, Tuning
from hydra_core.store.roles import Action
from hydra_core.ui import cache, drafting, selectors, state, who, widgets
from hydra_core.ui.bench import Bench
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.state import Pin
from hydra_core.ui.views import usd
from hydra_core.ui.widgets import literal

__all__ = ["found"]

#: Weights of the two halves within this factor count as much the same.
_ALIKE = 2.0


def found(result: Tuning, entry: SetEntry, bench: Bench) -> None:
    """What was found: the verdict, promised against kept, the setting, where to take it."""
    widgets.verdict_box(result.verdict)
    _figures(result)
    _take(result, entry, bench)
    left, right = st.columns([12, 8], gap="medium")
    with left:
        st.markdown("**Chosen on, reported on**")
        _halves(result)
        st.caption(
            "Optimism is what a setting promised where it was chosen minus what it kept on the "
            "other half. Expect the kept figures, not the promised ones."
        )
    with right:
        st.markdown(f"**The setting to use** :gray[·] τ {result.setting.tau:.4g}")
        _weights(result, bench)
        st.caption(_agreement(result))


def _agreement(result: Tuning) -> str:
    """Whether both halves asked for much the same weights."""
    first, second = (np.asarray(half.setting.weights) for half in result.halves)
    apart = float(np.maximum(first / second, second / first).max())
    if apart <= _ALIKE:
        return "Searched on all queries. Both halves asked for much the same weights."
    return (
        f"Searched on all queries. The halves ask for weights up to {apart:.0f} times apart: the "
        "queries hardly say which weights are right, so rely on τ more than on them."
    )


def _figures(result: Tuning) -> None:
    kept, gain = result.metrics, result.over_tau_only
    qr, cost = kept.qr.scaled(100.0), kept.mean_cost_usd
    more, saved = gain.quality.scaled(100.0), gain.savings.scaled(100.0)
    entries = (
        ("QR kept", f"{qr.value:.1f} %", f"{qr.lo:.1f} to {min(qr.hi, 100.0):.1f} %",
         "Quality retention on queries the setting was not chosen on."),
        ("Cost per query", usd(cost.value), f"{usd(cost.lo)} to {usd(cost.hi)}",
         "Mean realised cost on the same queries."),
        ("Optimism", f"{100 * result.optimism_qr:+.1f} pp",
         f"{usd(abs(result.optimism_cost_usd))} "
         f"{'more' if result.optimism_cost_usd >= 0 else 'less'} spent",
         "QR promised minus QR kept; below, cost measured against cost promised."),
        ("Over τ alone", f"{more.value:+.1f} pp", f"{more.lo:+.1f} to {more.hi:+.1f} pp",
         "Mean quality against choosing τ alone with the weights left as they are, paired by "
         "query."),
        ("Saved over τ alone", f"{saved.value:+.1f} %", f"{saved.lo:+.1f} to {saved.hi:+.1f} %",
         "Cost saved against choosing τ alone."),
    )  # fmt: skip
    for column, (label, value, below, text) in zip(st.columns(len(entries)), entries, strict=True):
        column.metric(
            label, literal(value), delta=literal(below), delta_color="off", delta_arrow="off",
            help=text, border=True,
        )  # fmt: skip


def _halves(result: Tuning) -> None:
    rows = [
        {
            "part": f"Chosen on {'AB'[i]}, kept on {'BA'[i]}",
            "n": half.queries,
            "promised": 100 * half.promised.qr,
            "kept": 100 * half.qr,
            "promised_cost": half.promised.mean_cost_usd,
            "kept_cost": half.mean_cost_usd,
        }
        for i, half in enumerate(result.halves)
    ]
    qr, cost = result.metrics.qr.value, result.metrics.mean_cost_usd.value
    rows.append(
        {
            "part": "Together",
            "n": result.metrics.n,
            "promised": 100 * (qr + result.optimism_qr),
            "kept": 100 * qr,
            "promised_cost": cost - result.optimism_cost_usd,
            "kept_cost": cost,
        }
    )
    plain = result.tau_only
    rows.append(
        {
            "part": "τ alone, together",
            "n": plain.n,
            "kept": 100 * plain.qr.value,
            "kept_cost": plain.mean_cost_usd.value,
        }
    )
    column = st.column_config
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        height="content",
        placeholder="",
        column_config={
            "part": column.TextColumn("", width=145),
            "n": column.NumberColumn("Queries", format="localized", width=62),
            "promised": column.NumberColumn("QR promised", format="%.1f %%", width=82),
            "kept": column.NumberColumn("QR kept", format="%.1f %%", width=62),
            "promised_cost": column.NumberColumn("Cost promised", format="$%.4f", width=90),
            "kept_cost": column.NumberColumn("Cost kept", format="$%.4f", width=80),
        },
    )


def _weights(result: Tuning, bench: Bench) -> None:
    columns: dict[str, object] = {
        "Dimension": [name.replace("_", " ").capitalize() for name in bench.catalog.dimensions],
        "Catalog": list(bench.catalog.policy.weights),
        "Tuned": list(result.setting.weights),
    }
    for name, half in zip(("On A", "On B"), result.halves, strict=False):
        columns[name] = list(half.setting.weights)
    number = st.column_config.NumberColumn(format="%.2f", width=55)
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        height="content",
        column_config={
            "Dimension": st.column_config.TextColumn(width=105),
            **{name: number for name in columns if name != "Dimension"},
        },
    )


def _take(result: Tuning, entry: SetEntry, bench: Bench) -> None:
    """One click to Tune, to the pin, to the store, or to the catalog draft."""
    setting = result.setting
    told = st.session_state.pop("tuner.told", "")
    with st.container(horizontal=True, gap="small"):
        if st.button("Open in Tune", type="primary", icon=":material/tune:", key="tuner.open"):
            state.put(tau=setting.tau, weights=setting.weights)
            st.switch_page("pages/evaluate/tune.py")
        st.button(
            "Pin to compare", icon=":material/keep:", key="tuner.pin", on_click=_pin,
            args=(setting,), help="Keeps it on the plot of Tune and offers it on Compare.",
        )  # fmt: skip
        _keep(result, entry)
        if drafting.may_edit():
            st.button(
                "To the catalog draft", icon=":material/edit_note:", key="tuner.draft",
                on_click=_draft, args=(setting, bench.catalog.dimensions),
                help="Sets τ and weights in your draft of the catalog; nothing is published.",
            )  # fmt: skip
    if told:
        st.caption(f":material/check: {literal(told)}")
    problem = drafting.told()
    if problem is not None:
        widgets.problem(problem)


def _pin(setting: Setting) -> None:
    state.put(pin=Pin(setting.tau, setting.weights))
    st.session_state["tuner.told"] = f"Pinned: τ {setting.tau:.4g} with the tuned weights."


def _keep(result: Tuning, entry: SetEntry) -> None:
    """Keep it under a name in the store, where the catalog has a published revision."""
    pair = selectors.current()
    if pair is None or not pair[1].revision or not who.may(Action.PIN):
        return
    with st.popover("Keep under a name", icon=":material/bookmark:"):
        st.text_input("Name", key="tuner.name", placeholder="nightly batch, cheap")
        st.button(
            "Keep", key="tuner.keep", width="stretch", on_click=_store,
            args=(result, entry.info.digest, pair[1].key, pair[1].revision),
        )  # fmt: skip


def _store(result: Tuning, digest: str, catalog: str, revision: int) -> None:
    metrics = {
        "qr": result.metrics.qr.value,
        "mean_cost_usd": result.metrics.mean_cost_usd.value,
        "optimism_qr": result.optimism_qr,
        "aim": str(result.aim),
    }
    name = str(st.session_state.get("tuner.name") or "")
    try:
        point = cache.store().points.pin(
            catalog, name, actor=who.actor(), revision=revision, evalset_digest=digest,
            tau=result.setting.tau, weights=result.setting.weights, metrics=metrics,
        )  # fmt: skip
    except HydraError as error:
        drafting.tell(error)
        return
    st.session_state["tuner.told"] = f"Kept as “{point.name}”; Compare offers it."


def _draft(setting: Setting, dimensions: tuple[str, ...]) -> None:
    pair = selectors.current()
    if pair is None:
        return

    def change(text: str) -> str:
        document = CatalogDocument.parse(text, pair[1].key)
        document.set("policy", "tau", float(f"{setting.tau:.6g}"))
        for name, weight in zip(dimensions, setting.weights, strict=True):
            document.set("policy", "weights", name, round(weight, 4))
        return document.text()

    if drafting.edit(pair[1], change):
        st.session_state["tuner.told"] = "Your draft of the catalog has this τ and these weights."
