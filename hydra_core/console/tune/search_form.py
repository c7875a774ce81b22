"""Tune, Search: what is wanted, and the search while it runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.spelling import counted, titled, usd
from hydra_core.base.types import Rule
from hydra_core.choosing.policy_search import (
    Cell,
    SearchedPolicy,
    Space,
    cells_around,
    search_policy,
)
from hydra_core.console import replays, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.access.identity import stop_button
from hydra_core.console.cache import sweep_key
from hydra_core.console.demo import session
from hydra_core.console.frame import BY_HAND
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.sweep import Sweep

_MODELS, _DIMENSIONS, _REACH = "tuner.cells.models", "tuner.cells.dimensions", "tuner.cells.reach"
#: With fewer independent queries than this for every number chosen on them, chance has its way.
_ENOUGH = 20
_ROWS = 10
_SAME = "the same way"


def cells_wanted(sweep: Sweep) -> tuple[tuple[Cell, ...], float]:
    """The cells that may move and how far; none and 0 unless models and dimensions are picked."""
    ids, names = sweep.data.pool.ids, sweep.catalog.dimensions
    _forget_unknown(_MODELS, ids)
    _forget_unknown(_DIMENSIONS, names)
    count = len(st.session_state.get(_MODELS, [])) * len(st.session_state.get(_DIMENSIONS, []))
    label = "Also tune profile cells" + (f" ({count})" if count else "")
    with st.expander(label, key="tuner.cells"):
        st.caption(
            "A cell is one model's capability on one dimension. Move cells where you believe the "
            "profile is wrong, not to raise a figure: each is one more number that can follow the "
            "chance of these queries (overfitting). A tuned cell counts as set by hand and no "
            "longer follows the evidence."
        )
        places = st.columns([10, 10, 4], vertical_alignment="top", gap="small")
        models = places[0].multiselect(
            "Models", ids, key=_MODELS, placeholder="None: profiles stay as they are",
            persist_state="session", wrap=True,
        )  # fmt: skip
        dimensions = places[1].multiselect(
            "Dimensions", names, key=_DIMENSIONS, placeholder="None", persist_state="session",
            format_func=titled, wrap=True,
        )  # fmt: skip
        st.session_state.setdefault(_REACH, 0.05)
        reach = places[2].number_input(
            "At most ±", 0.01, 0.50, step=0.01, format="%.2f", key=_REACH, persist_state="session",
            help="How far a cell may move from where it is; it never leaves 0 to 1.",
        )  # fmt: skip
        picked = [k for k, name in enumerate(names) if name in dimensions]
        cells = tuple((m, k) for m in ids if m in models for k in picked)
        if cells:
            _burden(sweep, len(cells))
        elif models or dimensions:
            st.caption("Pick models and dimensions; until then no cell moves.")
    return cells, float(reach) if cells else 0.0


def _forget_unknown(key: str, known: Sequence[str]) -> None:
    """Another catalog may not have what was picked."""
    held = st.session_state.get(key, [])
    if not set(held) <= set(known):
        st.session_state[key] = [name for name in held if name in known]


def _burden(sweep: Sweep, cells: int) -> None:
    """Say how many numbers are chosen on how many independent queries."""
    clusters = sweep.data.clusters
    n = len(sweep.data.rows) if clusters is None else int(np.unique(clusters).size)
    numbers = cells + len(sweep.catalog.dimensions) + 1
    text = (
        f"{counted(cells, 'cell')}, {len(sweep.catalog.dimensions)} weights "
        f"and τ: {numbers} numbers from {n // 2:,} independent queries in each half."
    )
    if n // 2 >= _ENOUGH * numbers:
        st.caption(text)
        return
    st.warning(f"{text} Too few to trust; pick fewer cells.", icon=":material/warning:")


def moved(result: SearchedPolicy, sweep: Sweep, cells: Sequence[Cell]) -> None:
    """Before and after of the cells, and whether both halves asked for the same."""
    st.markdown("**Profile cells**")
    frame = _table(result, sweep, cells)
    number = st.column_config.NumberColumn
    tables.kept(
        frame,
        "tuner.cells",
        {"Change": tables.change("+.3f")},
        height="content" if len(frame) <= _ROWS else 35 * (_ROWS + 1) + 3,
        placeholder="–",
        column_config={
            "Model": st.column_config.TextColumn(width=170),
            "Dimension": st.column_config.TextColumn(width=140),
            "Change": number(width=80),
            "Halves move it": st.column_config.TextColumn(width=130),
            **{
                name: number(format="%.3f", width=80)
                for name in ("Catalog", "Tuned", "On A", "On B")
            },
        },
    )
    st.caption(_agreement(frame))


def _table(result: SearchedPolicy, sweep: Sweep, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell, those that moved first, the largest move on top."""
    pool, (a, b) = sweep.data.pool, (half.setting.cells for half in result.halves)
    before = np.array([pool.capabilities[pool.ids.index(model), k] for model, k in cells])
    tuned, on_a, on_b = (
        np.array([one.get(cell, np.nan) for cell in cells]) for one in (result.setting.cells, a, b)
    )
    frame = pd.DataFrame(
        {
            "Model": [model for model, _ in cells],
            "Dimension": [titled(sweep.catalog.dimensions[k]) for _, k in cells],
            "Catalog": before,
            "Tuned": tuned,
            "Change": tuned - before,
            "On A": on_a,
            "On B": on_b,
            "Halves move it": [
                _together(x, y) for x, y in zip(on_a - before, on_b - before, strict=True)
            ],
        }
    )
    order = np.argsort(-np.nan_to_num(np.abs(tuned - before)), kind="stable")
    return frame.iloc[order].reset_index(drop=True)


def _together(a: float, b: float) -> str:
    """How the halves move a cell; NaN where they leave it."""
    if np.isnan(a) or np.isnan(b):
        return "neither" if np.isnan(a) and np.isnan(b) else "only A" if np.isnan(b) else "only B"
    return _SAME if (a > 0) == (b > 0) else "opposite ways"


def _agreement(frame: pd.DataFrame) -> str:
    """Which moves both halves bear out."""
    used = frame[frame["Tuned"].notna()]
    if used.empty:
        return "No move earned anything on all queries, so every cell stays as the catalog has it."
    alike = (used["Change"] > 0) == (used["On A"] > used["Catalog"])
    sure = int((used["Halves move it"].eq(_SAME) & alike).sum())
    stay = "" if len(used) == len(frame) else ", the others (–) earned nothing and stay"
    text = f"{len(used)} of {len(frame)} cells moved{stay}."
    if not sure:
        return f"{text} **No move is borne out by both halves: likely chance, better left out.**"
    if sure == len(used):
        return f"{text} Both halves move {'it' if sure == 1 else 'each'} the same way."
    return f"{text} Both halves bear out {sure} of {len(used)} moves; the rest is likely chance."


_BUDGETS = {300: "300", 1_000: "1,000", 2_000: "2,000"}


def limit(aim: Aim) -> str:
    """The number that an aim keeps, as it is written."""
    if aim.kind is AimKind.CHEAPEST_WITH_QR:
        return f"QR {100 * aim.value:.1f} %"
    return f"{usd(aim.value)} per query"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to search for and how long.

    Attributes:
        cells: Profile cells that may move, each by at most `reach`.
    """

    aim: Aim
    trials: int
    cells: tuple[Cell, ...] = ()
    reach: float = 0.0


def wanted(sweep: Sweep, places: Sequence[DeltaGenerator]) -> Wanted:
    """The controls of a search: aim, goal, budget, each in its own place."""
    kind = aim_kind(
        places[0], "Aim", "tuner.aim", "Whole curve", width="stretch",
        help="The cheapest policy that keeps QR, the best quality within a cost, or the largest "
        "area under the frontier with τ at its knee.",
    )  # fmt: skip
    best, costs = 100 * sweep.best_qr, sweep.curve.mean_cost_usd
    middle = (costs.min() + costs.max()) / 2
    aim = goal(
        sweep, kind, places[1], qr=("tuner.qr", 0.98 * best), cost=("tuner.cost", middle),
        otherwise="τ at the knee of the best curve",
        help=f"At most {best:.1f} % with the weights as they are.",
    )  # fmt: skip
    st.session_state.setdefault("tuner.trials", 1_000)
    trials = places[2].segmented_control(
        "Settings to try", list(_BUDGETS), format_func=_BUDGETS.__getitem__, key="tuner.trials",
        required=True, persist_state="session", width="stretch",
        help="Of weights, τ and any cells: a third on each half of the queries, a third on all.",
    ) or 1_000  # fmt: skip
    return Wanted(aim, int(trials))


def aim_kind(place: DeltaGenerator, label: str, key: str, knee: str, **shown: Any) -> AimKind:  # noqa: ANN401
    """Ask for the kind of an aim; `knee` is what the aim without a number is called."""
    names = {
        AimKind.CHEAPEST_WITH_QR: "QR ≥",
        AimKind.BEST_WITH_COST: "Cost ≤",
        AimKind.HYPERVOLUME: knee,
    }
    st.session_state.setdefault(key, AimKind.CHEAPEST_WITH_QR)
    kind: AimKind | None = place.segmented_control(
        label, list(names), format_func=names.__getitem__, key=key, required=True,
        persist_state="session", **shown,
    )  # fmt: skip
    return kind or AimKind.CHEAPEST_WITH_QR


def goal(
    sweep: Sweep,
    kind: AimKind,
    place: DeltaGenerator,
    *,
    qr: tuple[str, float],
    cost: tuple[str, float],
    otherwise: str,
    help: str | None = None,
    label_visibility: Literal["visible", "collapsed"] = "visible",
) -> Aim:
    """Ask for the number that an aim keeps.

    Args:
        qr, cost: Keys of what is asked for, and their first values, in percent and in USD.
        otherwise: Said where the aim has no number.
        help: On the QR.
    """
    if kind is AimKind.CHEAPEST_WITH_QR:
        st.session_state.setdefault(qr[0], float(np.floor(qr[1])))
        percent = place.number_input(
            "QR in %", 0.0, 100.0, step=0.5, format="%.1f", key=qr[0], persist_state="session",
            help=help, label_visibility=label_visibility,
        )  # fmt: skip
        return Aim(kind, percent / 100)
    if kind is AimKind.BEST_WITH_COST:
        st.session_state.setdefault(cost[0], float(cost[1]))
        step = float(sweep.curve.mean_cost_usd.max() / 50)
        usd = place.number_input(
            "USD per query", 0.0, step=step, format="%.4g", key=cost[0], persist_state="session",
            label_visibility=label_visibility,
        )  # fmt: skip
        return Aim(kind, usd)
    place.caption(otherwise)
    return Aim(kind, 0.0)


def search(sweep: Sweep, want: Wanted) -> Task | None:
    """Start, stop and resume; the search with exactly these wishes, if there is one."""
    key = _key(sweep, want)
    task = replays.tasks().get(key)
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
        disabled=done,
        help="This search is done. For another, change the aim, the settings to try or the cells."
        if done else None,
    ):  # fmt: skip
        _start(key, sweep, want)
        st.rerun()
    return task


def _key(sweep: Sweep, want: Wanted) -> Hashable:
    return ("tuner", sweep_key(sweep), want)


def without_cells(sweep: Sweep, want: Wanted) -> SearchedPolicy | None:
    """What the same search found with the profiles as they are; None if it was not run."""
    task = replays.tasks().get(_key(sweep, replace(want, cells=(), reach=0.0)))
    return task.result if task is not None and isinstance(task.result, SearchedPolicy) else None


def _start(key: Hashable, sweep: Sweep, want: Wanted) -> None:
    storage = session.folder() / "tuner.sqlite"
    storage.parent.mkdir(parents=True, exist_ok=True)
    cells = cells_around(sweep.data.pool, want.cells, want.reach) if want.cells else {}

    def work(task: Task) -> SearchedPolicy:
        return search_policy(
            sweep.data,
            Space(sweep.catalog.bands, cells=cells),
            want.aim,
            trials=want.trials,
            progress=task.progress,
            cancel=task.cancel,
            storage=storage,
        )

    replays.tasks().start(key, work, identity.actor().name)


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
        "worth. Find it by hand, measured on queries it was not picked on.",
        [(BY_HAND, "Find V by hand")],
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
        f"Search for weights{',' if want.cells else ' and'} τ"
        + (" and profile cells" if want.cells else ""),
        f"The {n:,} queries are cut in two, translations and conversations kept whole. A setting "
        "is chosen on each half and **measured on the other one**, so that what is reported here "
        "is what to expect on queries it was not tuned on.",
    )
