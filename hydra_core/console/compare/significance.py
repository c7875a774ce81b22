"""The significance table of the Compare page: any number of policies on the same queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from hydra_core.console import replays, tables
from hydra_core.console.cache import SetEntry, cached, sweep_key
from hydra_core.console.compare.state import POLICIES, sweep_of
from hydra_core.console.compare.view import Kind, Side, side_run
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal, waiting
from hydra_core.replay import significance_table as report
from hydra_core.replay.baselines import MODEL_COUPLED, BaselineRun, run_baselines
from hydra_core.replay.compare import constant_run
from hydra_core.replay.metrics import costliest
from hydra_core.replay.significance_table import Entry, SignificanceTable, significance_table
from hydra_core.replay.sweep import Sweep

_MOST = 30
#: Larger sets take too long to fit while somebody waits; the command line has no such limit.
MOST_QUERIES = 20_000


def significance(
    entry: SetEntry, own: Sweep, options: Mapping[str, Side], now: tuple[Side, Side]
) -> None:
    """Pick policies, at first both sides of the page; see each of them and every pair."""
    sides = _picked(own, options, now)
    if not sides:
        st.caption("Pick at least one policy.")
        return
    learned = fitted(own, sides)
    if learned is None:
        return
    pairs = tuple((side, sweep_of(entry, side, own)) for side in sides)
    table = _table(pairs, own, learned)
    _standings(table)
    if len(table.standings) > 1:
        st.markdown("**Row minus column, quality in pp** (* corrected p below 0.05)")
        st.dataframe(report.matrix(table), height="content")
        tables.offer_downloads(report.pair_frame(table), "compare.pairs")
    st.caption(literal(" ".join(table.methods)))
    st.download_button(
        "Both tables with their methods, LaTeX", lambda: report.latex(table).encode(),
        f"{entry.info.name} significance.tex", "text/x-tex", icon=":material/download:",
        key="compare.significance", on_click="ignore",
    )  # fmt: skip


def _picked(own: Sweep, options: Mapping[str, Side], now: tuple[Side, Side]) -> list[Side]:
    """The chosen policies; a side of the page keeps the setting that it has there."""
    strong = f"always:{costliest(own.data)}"
    first = [one for one in (now[1].id, now[0].id, strong) if one in options]
    st.session_state.setdefault(POLICIES, list(dict.fromkeys(first)))
    kept = [name for name in st.session_state[POLICIES] if name in options]
    st.session_state[POLICIES] = kept
    ids = st.multiselect(
        "Policies", list(options), format_func=lambda name: options[name].label, key=POLICIES,
        max_selections=_MOST, persist_state="session", wrap=True,
        help="Routers, pins, constants, imported policies and learned routers. Those that follow "
        "a cost spend what the first one does.",
    )  # fmt: skip
    here = {side.id: side for side in now}
    return [here.get(name, options[name]) for name in ids]


@cached(12, "Resampling the queries 10,000 times")
def _table(
    sides: tuple[tuple[Side, Sweep], ...], own: Sweep, _learned: Mapping[str, BaselineRun]
) -> SignificanceTable:
    entries: list[Entry] = []
    spend = None
    for side, sweep in sides:
        run = side_run(side, sweep, spend, _learned)
        spend = float(run.cost_usd.mean()) if spend is None else spend
        entries.append(Entry(run, _chosen(side, sweep)))
    strong = constant_run(own.data, costliest(own.data))
    rng = np.random.default_rng(0)
    return significance_table(entries, strong, own.evalset.clusters, rng=rng)


def _chosen(side: Side, sweep: Sweep) -> str:
    """How the policy came about."""
    if side.kind is Kind.ROUTER:
        return report.chosen_text(sweep.selection(side.knob or 0.0))
    words = {
        Kind.LEARNED: "cross-fitted",
        Kind.IMPORTED: "imported",
        Kind.ORACLE: "in hindsight",
        Kind.CASCADE: "simulated",
    }
    return words.get(side.kind, "constant")


def _standings(table: SignificanceTable) -> None:
    column = st.column_config
    frame = report.standing_frame(table)
    shown = frame.assign(
        **{f"{name}_range": tables.ranges(frame, name) for name in ("resolved", "qr", "cs")},
        split=[f"{one.only_it} : {one.only_strong}" for one in table.standings],
        p=[report.p_text(one.p_value) for one in table.standings],
    )
    tables.kept(
        shown,
        "compare.policies",
        rows=frame,
        columns={
            "policy": column.TextColumn("Policy", width=185),
            "chosen": column.TextColumn("Chosen", width=75),
            "resolved": column.NumberColumn("Resolved", format="%.1f %%", width=62),
            "resolved_range": column.TextColumn("95 %", width=84),
            "qr": column.NumberColumn("QR", format="%.1f %%", width=62),
            "qr_range": column.TextColumn("95 % ", width=84),
            "cs": column.NumberColumn("CS", format="%.1f %%", width=62),
            "cs_range": column.TextColumn("95 %  ", width=84),
            "cost": column.NumberColumn("Cost", format=tables.dollars(frame["cost"]), width=72),
            "split": column.TextColumn("It : strong", width=72),
            "p": column.TextColumn("p", width=58),
        },
    )


def fitted(sweep: Sweep, sides: Sequence[Side]) -> dict[str, BaselineRun] | None:
    """The learned routers among the sides; None while one is not there, after saying why."""
    found: dict[str, BaselineRun] = {}
    for name in {side.model for side in sides if side.kind is Kind.LEARNED}:
        if len(sweep.data.rows) > MOST_QUERIES:
            st.info(
                f"Learned routers are fitted here on at most {MOST_QUERIES:,} queries; this set "
                f"has {len(sweep.data.rows):,}."
            )
            return None
        task = _fit(sweep, name)
        if task.running:
            waiting(task, f"Fitting {name}, cross-fitted")
            return None
        if not isinstance(task.result, BaselineRun):
            st.error(literal(task.error or f"{name} could not be fitted"), icon=":material/error:")
            return None
        found[name] = task.result
    if found:
        st.caption(
            f":material/info: {', '.join(sorted(found))}: cross-fitted, none routes a query it "
            f"learned from; {MODEL_COUPLED}."
        )
    return found


def _fit(sweep: Sweep, name: str) -> Task:
    key = ("baseline", name, sweep_key(sweep))

    def work(task: Task) -> BaselineRun:
        texts = sweep.evalset.require_texts(name).iloc[sweep.data.rows].tolist()
        return run_baselines(sweep.data, texts, names=(name,), progress=task.progress)[0]

    return replays.tasks().get(key) or replays.tasks().start(key, work)
