"""Profile cells on the Tuner page: which may move, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.evaluation.choose.policy_search import FoundPolicy
from hydra_core.evaluation.choose.space import Cell
from hydra_core.evaluation.replay.sweep import Sweep
from hydra_core.ui import tables

__all__ = ["moved", "wanted"]

_MODELS, _DIMENSIONS, _REACH = "tuner.cells.models", "tuner.cells.dimensions", "tuner.cells.reach"
#: With fewer independent queries than this for every number chosen on them, chance has its way.
_ENOUGH = 20
_ROWS = 10
_SAME = "the same way"


def wanted(sweep: Sweep) -> tuple[tuple[Cell, ...], float]:
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
            format_func=_spoken, wrap=True,
        )  # fmt: skip
        st.session_state.setdefault(_REACH, 0.05)
        reach = places[2].number_input(
            "At most ±", 0.01, 0.50, step=0.01, format="%.2f", key=_REACH, persist_state="session",
            help="How far a cell may move from where it is; it never leaves 0 to 1.",
        )  # fmt: skip
        cells = tuple((m, k) for m in ids if m in models for k in _numbers(names, dimensions))
        if cells:
            _burden(sweep, len(cells))
        elif models or dimensions:
            st.caption("Pick models and dimensions; until then no cell moves.")
    return cells, float(reach) if cells else 0.0


def _numbers(names: Sequence[str], picked: Sequence[str]) -> list[int]:
    return [k for k, name in enumerate(names) if name in picked]


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
    told = (
        f"{cells} {'cell' if cells == 1 else 'cells'}, {len(sweep.catalog.dimensions)} weights "
        f"and τ: {numbers} numbers from {n // 2:,} independent queries in each half."
    )
    if n // 2 >= _ENOUGH * numbers:
        st.caption(told)
        return
    st.warning(f"{told} Too few to trust; pick fewer cells.", icon=":material/warning:")


def moved(result: FoundPolicy, sweep: Sweep, cells: Sequence[Cell]) -> None:
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


def _table(result: FoundPolicy, sweep: Sweep, cells: Sequence[Cell]) -> pd.DataFrame:
    """One row a cell, those that moved first, the largest move on top."""
    pool, (a, b) = sweep.data.pool, (half.setting.cells for half in result.halves)
    before = np.array([pool.capabilities[pool.ids.index(model), k] for model, k in cells])
    tuned, on_a, on_b = (
        np.array([one.get(cell, np.nan) for cell in cells]) for one in (result.setting.cells, a, b)
    )
    frame = pd.DataFrame(
        {
            "Model": [model for model, _ in cells],
            "Dimension": [_spoken(sweep.catalog.dimensions[k]) for _, k in cells],
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
    told = f"{len(used)} of {len(frame)} cells moved{stay}."
    if not sure:
        return f"{told} **No move is borne out by both halves: likely chance, better left out.**"
    if sure == len(used):
        return f"{told} Both halves move {'it' if sure == 1 else 'each'} the same way."
    return f"{told} Both halves bear out {sure} of {len(used)} moves; the rest is likely chance."


def _spoken(name: str) -> str:
    return name.replace("_", " ").capitalize()
