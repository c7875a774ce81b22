"""The panels of the Tuner page: what is wanted, the search while it runs, what it found."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.catalog.document import CatalogDocument
from hydra_core.errors import HydraError
from hydra_core.evaluation.aims import Aim, AimKind
from hydra_core.evaluation.tuning import Setting, Space, Tuning, tune
from hydra_core.store.roles import Action
from hydra_core.ui import cache, cache_evaluate, drafting, selectors, state, who, widgets
from hydra_core.ui.bench import Bench
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.state import Pin
from hydra_core.ui.tasks import Task
from hydra_core.ui.views import usd
from hydra_core.ui.widgets import literal

__all__ = ["Wanted", "found", "nothing_yet", "running", "search", "stopped", "wanted"]

_AIMS = {
    AimKind.CHEAPEST_WITH_QR: "QR ≥",
    AimKind.BEST_WITH_COST: "Cost ≤",
    AimKind.HYPERVOLUME: "Whole curve",
}
_BUDGETS = {300: "300", 1_000: "1,000", 2_000: "2,000"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for and how long."""

    aim: Aim
    trials: int
    seed: int


def wanted(bench: Bench, places: Sequence[DeltaGenerator]) -> Wanted:
    """The controls of a search: aim, goal, budget, each in its own place."""
    st.session_state.setdefault("tuner.aim", AimKind.CHEAPEST_WITH_QR)
    kind = places[0].segmented_control(
        "Aim", list(_AIMS), format_func=_AIMS.__getitem__, key="tuner.aim", required=True,
        persist_state="session", width="stretch",
        help="The cheapest policy that keeps QR, the best quality within a cost, or the largest "
        "area under the frontier with τ at its knee.",
    ) or AimKind.CHEAPEST_WITH_QR  # fmt: skip
    aim = Aim(kind, _goal(bench, kind, places[1]))
    st.session_state.setdefault("tuner.trials", 1_000)
    trials = places[2].segmented_control(
        "Settings to try", list(_BUDGETS), format_func=_BUDGETS.__getitem__, key="tuner.trials",
        required=True, persist_state="session", width="stretch",
        help="Of weights and τ: a third on each half of the queries, a third on all.",
    ) or 1_000  # fmt: skip
    return Wanted(aim, int(trials), 0)


def _goal(bench: Bench, kind: AimKind, place: DeltaGenerator) -> float:
    if kind is AimKind.CHEAPEST_WITH_QR:
        best = 100 * float(bench.curve.quality.max()) / (bench.oracle.quality.value or 1.0)
        st.session_state.setdefault("tuner.qr", float(np.floor(0.98 * best)))
        percent = place.number_input(
            "QR in %", 0.0, 100.0, step=0.5, format="%.1f", key="tuner.qr",
            persist_state="session", help=f"At most {best:.1f} % with the weights as they are.",
        )  # fmt: skip
        return percent / 100
    if kind is AimKind.BEST_WITH_COST:
        costs = bench.curve.mean_cost_usd
        st.session_state.setdefault("tuner.cost", float((costs.min() + costs.max()) / 2))
        return place.number_input(
            "USD per query", 0.0, step=float(costs.max() / 50), format="%.4f", key="tuner.cost",
            persist_state="session",
        )  # fmt: skip
    place.caption("τ at the knee of the best curve")
    return 0.0


def search(entry: SetEntry, bench: Bench, want: Wanted) -> Task | None:
    """Start, stop and resume; the search with exactly these wishes, if there is one."""
    key: Hashable = ("tuner", cache_evaluate.bench_key(entry, bench), want)
    task = cache_evaluate.tasks().get(key)
    if task is not None and task.running:
        st.button(
            "Stop", icon=":material/stop:", key="tuner.stop", width="stretch",
            on_click=task.cancel.set, disabled=task.cancel.is_set(),
            help="What was tried is kept; the search can go on from there.",
        )  # fmt: skip
        return task
    halted = task is not None and task.result is None and task.cancel.is_set()
    label = "Resume" if halted else "Search"
    done = task is not None and task.result is not None
    if st.button(
        label, type="primary", icon=":material/play_arrow:", key="tuner.start", width="stretch",
        disabled=done, help="This search is done; change the aim or the budget for another."
        if done else None,
    ):  # fmt: skip
        _start(key, bench, want)
        st.rerun()
    return task


def _start(key: Hashable, bench: Bench, want: Wanted) -> Task:
    storage = cache.workspace() / "tuner.sqlite"
    storage.parent.mkdir(parents=True, exist_ok=True)

    def work(task: Task) -> Tuning:
        return tune(
            bench.data,
            Space(bench.catalog.bands),
            want.aim,
            trials=want.trials,
            seed=want.seed,
            progress=task.progress,
            cancel=task.cancel,
            storage=storage,
        )

    return cache_evaluate.tasks().start(key, work)


@st.fragment(run_every=0.7)
def running(task: Task) -> None:
    """Progress; the page runs once more when the search ends."""
    if not task.running:
        st.rerun()
    share = task.done / task.total if task.total else 0.0
    left = task.left_s
    rest = "" if left is None else f", about {max(left, 1):.0f} s left"
    word = "Stopping" if task.cancel.is_set() else "Searching"
    st.progress(share, text=f"{word}: {task.done:,} of {task.total or '…'} settings tried{rest}")
    st.caption("You may leave this page; the search goes on and its result waits here.")


def stopped(task: Task, bench: Bench, want: Wanted) -> None:
    """A search that was stopped or could not reach its aim."""
    if task.cancel.is_set() and not task.error:
        widgets.empty(
            "Stopped",
            f"{task.done:,} of {task.total:,} settings were tried and are kept. Resume goes on "
            "from there and gives the same result as a search that was never stopped.",
        )
        return
    st.warning(literal(task.error), title="The aim cannot be met", icon=":material/block:")
    best = 100 * float(bench.curve.quality.max()) / (bench.oracle.quality.value or 1.0)
    if want.aim.kind is AimKind.CHEAPEST_WITH_QR:
        st.caption(f"With the weights as they are QR reaches {best:.1f} % at most. Ask for less.")


def nothing_yet(bench: Bench) -> None:
    """What the tuner will do, before it did."""
    n = len(bench.data.rows)
    widgets.empty(
        "Let the tuner look for weights and τ",
        f"The {n:,} queries are cut in two, translations and conversations kept whole. A setting "
        "is chosen on each half and **measured on the other one**, so that what is reported here "
        "is what to expect on queries it was not tuned on.",
    )


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
        st.caption("Searched on all queries. Halves that agree make a setting trustworthy.")


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
