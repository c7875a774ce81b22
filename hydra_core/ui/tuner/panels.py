"""The panels of the Tuner page: what is wanted, the search while it runs, what it found."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.evaluation.choose.aims import Aim, AimKind
from hydra_core.evaluation.choose.policy_search import FoundPolicy, Space, search_policy
from hydra_core.evaluation.choose.space import Cell, cells_around
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.types import Rule
from hydra_core.ui import cache_evaluate, state, widgets
from hydra_core.ui.access import identity
from hydra_core.ui.access.stopping import stop_button
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.demo import session
from hydra_core.ui.tasks import Task
from hydra_core.ui.widgets import literal

__all__ = [
    "Wanted",
    "by_value",
    "nothing_yet",
    "search",
    "stopped",
    "wanted",
    "without_cells",
]

_AIMS = {
    AimKind.CHEAPEST_WITH_QR: "QR ≥",
    AimKind.BEST_WITH_COST: "Cost ≤",
    AimKind.HYPERVOLUME: "Whole curve",
}
_BUDGETS = {300: "300", 1_000: "1,000", 2_000: "2,000"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for and how long.

    Attributes:
        cells: Profile cells that may move, each by at most `reach`.
    """

    aim: Aim
    trials: int
    seed: int
    cells: tuple[Cell, ...] = ()
    reach: float = 0.0


def wanted(sweep: Sweep, places: Sequence[DeltaGenerator]) -> Wanted:
    """The controls of a search: aim, goal, budget, each in its own place."""
    st.session_state.setdefault("tuner.aim", AimKind.CHEAPEST_WITH_QR)
    kind = places[0].segmented_control(
        "Aim", list(_AIMS), format_func=_AIMS.__getitem__, key="tuner.aim", required=True,
        persist_state="session", width="stretch",
        help="The cheapest policy that keeps QR, the best quality within a cost, or the largest "
        "area under the frontier with τ at its knee.",
    ) or AimKind.CHEAPEST_WITH_QR  # fmt: skip
    aim = Aim(kind, _goal(sweep, kind, places[1]))
    st.session_state.setdefault("tuner.trials", 1_000)
    trials = places[2].segmented_control(
        "Settings to try", list(_BUDGETS), format_func=_BUDGETS.__getitem__, key="tuner.trials",
        required=True, persist_state="session", width="stretch",
        help="Of weights, τ and any cells: a third on each half of the queries, a third on all.",
    ) or 1_000  # fmt: skip
    return Wanted(aim, int(trials), 0)


def _goal(sweep: Sweep, kind: AimKind, place: DeltaGenerator) -> float:
    if kind is AimKind.CHEAPEST_WITH_QR:
        best = 100 * sweep.best_qr
        st.session_state.setdefault("tuner.qr", float(np.floor(0.98 * best)))
        percent = place.number_input(
            "QR in %", 0.0, 100.0, step=0.5, format="%.1f", key="tuner.qr",
            persist_state="session", help=f"At most {best:.1f} % with the weights as they are.",
        )  # fmt: skip
        return percent / 100
    if kind is AimKind.BEST_WITH_COST:
        costs = sweep.curve.mean_cost_usd
        st.session_state.setdefault("tuner.cost", float((costs.min() + costs.max()) / 2))
        return place.number_input(
            "USD per query", 0.0, step=float(costs.max() / 50), format="%.4f", key="tuner.cost",
            persist_state="session",
        )  # fmt: skip
    place.caption("τ at the knee of the best curve")
    return 0.0


def search(entry: SetEntry, sweep: Sweep, want: Wanted) -> Task | None:
    """Start, stop and resume; the search with exactly these wishes, if there is one."""
    key = _key(entry, sweep, want)
    task = cache_evaluate.tasks().get(key)
    if task is not None and task.running:
        stop_button(
            task, "tuner.stop", help="What was tried is kept; the search can go on from there."
        )
        return task
    halted = task is not None and task.result is None and task.cancel.is_set()
    label = "Resume" if halted else "Search"
    done = task is not None and task.result is not None
    if st.button(
        label, type="primary", icon=":material/play_arrow:", key="tuner.start", width="stretch",
        disabled=done, help="This search is done; change the aim, the budget or the cells for "
        "another." if done else None,
    ):  # fmt: skip
        _start(key, sweep, want)
        st.rerun()
    return task


def _key(entry: SetEntry, sweep: Sweep, want: Wanted) -> Hashable:
    return ("tuner", cache_evaluate.sweep_key(entry, sweep), want)


def without_cells(entry: SetEntry, sweep: Sweep, want: Wanted) -> FoundPolicy | None:
    """What the same search found with the profiles as they are; None if it was not run."""
    task = cache_evaluate.tasks().get(_key(entry, sweep, replace(want, cells=(), reach=0.0)))
    return task.result if task is not None and isinstance(task.result, FoundPolicy) else None


def _start(key: Hashable, sweep: Sweep, want: Wanted) -> Task:
    storage = session.folder() / "tuner.sqlite"
    storage.parent.mkdir(parents=True, exist_ok=True)

    cells = cells_around(sweep.data.pool, want.cells, want.reach) if want.cells else {}

    def work(task: Task) -> FoundPolicy:
        return search_policy(
            sweep.data,
            Space(sweep.catalog.bands, cells=cells),
            want.aim,
            trials=want.trials,
            seed=want.seed,
            progress=task.progress,
            cancel=task.cancel,
            storage=storage,
        )

    return cache_evaluate.tasks().start(key, work, identity.actor().name)


def stopped(task: Task, sweep: Sweep, want: Wanted) -> None:
    """A search that was stopped or could not reach its aim."""
    if task.cancel.is_set() and not task.error:
        widgets.empty(
            "Stopped",
            f"{task.done:,} of {task.total:,} settings were tried and are kept. Resume goes on "
            "from there and gives the same result as a search that was never stopped.",
        )
        return
    st.warning(literal(task.error), title="The aim cannot be met", icon=":material/block:")
    best = 100 * sweep.best_qr
    if want.aim.kind is AimKind.CHEAPEST_WITH_QR:
        st.caption(f"With the weights as they are QR reaches {best:.1f} % at most. Ask for less.")


def by_value() -> None:
    """Under the value rule there are no weights to look for."""
    widgets.empty(
        "The value rule has nothing to tune but V",
        "Weights and profiles do not decide here: V alone says what one more resolved query is "
        "worth. Find it on Tune, judged on queries it was not chosen on.",
        [("pages/evaluate/tune.py", "Find V on Tune")],
    )
    with st.container(horizontal_alignment="center"):
        st.button(
            "Tune the shortfall rule instead", key="tuner.shortfall", type="tertiary",
            on_click=lambda: state.put(rule=Rule.SHORTFALL),
        )  # fmt: skip


def nothing_yet(sweep: Sweep, want: Wanted) -> None:
    """What the tuner will do, before it did."""
    n = len(sweep.data.rows)
    widgets.empty(
        f"Let the tuner look for weights{',' if want.cells else ' and'} τ"
        + (" and profile cells" if want.cells else ""),
        f"The {n:,} queries are cut in two, translations and conversations kept whole. A setting "
        "is chosen on each half and **measured on the other one**, so that what is reported here "
        "is what to expect on queries it was not tuned on.",
    )
