"""Learned routers on the Compare page: fitted when they are picked, with progress, and kept."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hydra_core.console import replays
from hydra_core.console.cache import SetEntry
from hydra_core.console.compare.view import Kind, Side
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal, waiting
from hydra_core.replay.baselines.run import MODEL_COUPLED, BaselineRun, run_baselines
from hydra_core.replay.sweep import Sweep

#: Larger sets take too long to fit while somebody waits; the command line has no such limit.
MOST_QUERIES = 20_000


def fitted(entry: SetEntry, sweep: Sweep, sides: Sequence[Side]) -> dict[str, BaselineRun] | None:
    """The learned routers among the sides; None while one is not there, after saying why."""
    found: dict[str, BaselineRun] = {}
    for name in {side.model for side in sides if side.kind is Kind.LEARNED}:
        if len(sweep.data.rows) > MOST_QUERIES:
            st.info(
                f"Learned routers are fitted here on at most {MOST_QUERIES:,} queries; this set "
                f"has {len(sweep.data.rows):,}."
            )
            return None
        task = _fit(entry, sweep, name)
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


def _fit(entry: SetEntry, sweep: Sweep, name: str) -> Task:
    key = ("baseline", name, replays.sweep_key(entry, sweep))

    def work(task: Task) -> BaselineRun:
        texts = sweep.evalset.require_texts(name).iloc[sweep.data.rows].tolist()
        return run_baselines(sweep.data, texts, names=(name,), progress=task.progress)[0]

    return replays.tasks().get(key) or replays.tasks().start(key, work)
