"""Cached results of the Compare and Explore pages, keyed by digests and frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import streamlit as st

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.sweep import Bench
from hydra_core.evaluation.study.baselines.run import BaselineRun
from hydra_core.evaluation.study.contents import Difficulty, difficulty
from hydra_core.figures.upset import SpreadView, UpsetView
from hydra_core.ui.cache import SetEntry, workspace
from hydra_core.ui.tasks import Tasks
from hydra_core.views.comparison import Kind, Paired, Side, pair, side_run
from hydra_core.views.explore import Bounds, bounds, spread_view, upset_view

__all__ = [
    "BenchKey",
    "bench_key",
    "difficulties",
    "paired",
    "set_bounds",
    "spread",
    "tasks",
    "upset",
]

#: Eval set, catalog, weights, predictor scores and day of a bench.
BenchKey = tuple[str, str, tuple[float, ...], int, date]


def bench_key(entry: SetEntry, bench: Bench) -> BenchKey:
    """What a bench was made of."""
    scores = entry.info.path / "scores" / f"{bench.catalog.predictor_fingerprint}.parquet"
    stamp = scores.stat().st_mtime_ns if scores.is_file() else 0
    return (entry.info.digest, bench.catalog.digest, bench.weights, stamp, date.today())


def paired(
    entry: SetEntry,
    a: tuple[Side, Bench],
    b: tuple[Side, Bench],
    own: Bench,
    learned: Mapping[str, BaselineRun],
) -> Paired:
    """Both sides replayed and compared.

    Args:
        own: The bench of the page, which clusters and costs are taken from.
        learned: The learned routers among the sides, by name.

    Raises:
        ValueError: They have no query in common.
    """
    benches = (a[1], b[1], own)
    keys = tuple(bench_key(entry, bench) for bench in benches)
    return _paired((a[0], b[0]), keys, benches, learned)


@st.cache_resource(max_entries=12, show_spinner="Comparing")
def _paired(
    sides: tuple[Side, Side],
    keys: tuple[BenchKey, ...],
    _benches: tuple[Bench, Bench, Bench],
    _learned: Mapping[str, BaselineRun],
) -> Paired:
    del keys
    (a, b), (of_a, of_b, own) = sides, _benches
    if a.kind in (Kind.MIX, Kind.LEARNED):
        run_b = side_run(b, of_b, None, _learned)
        return pair(side_run(a, of_a, float(run_b.cost_usd.mean()), _learned), run_b, own)
    run_a = side_run(a, of_a, None, _learned)
    return pair(run_a, side_run(b, of_b, float(run_a.cost_usd.mean()), _learned), own)


def tasks() -> Tasks:
    """The long computations of this console, shared by all sessions."""
    return _tasks(workspace())


@st.cache_resource(max_entries=4, show_spinner=False)
def _tasks(folder: Path) -> Tasks:
    del folder
    return Tasks()


def set_bounds(entry: SetEntry, bench: Bench) -> Bounds:
    """What a perfect router would win."""
    return _bounds(bench_key(entry, bench), bench)


@st.cache_resource(max_entries=24, show_spinner=False)
def _bounds(key: BenchKey, _bench: Bench) -> Bounds:
    del key
    return bounds(_bench)


@st.cache_resource(max_entries=16, show_spinner="Counting who solves what")
def upset(digest: str, _evalset: EvalSet) -> tuple[UpsetView, int, int] | None:
    """The upset plot of an eval set; see `exploring.upset_view`."""
    del digest
    return upset_view(_evalset)


@st.cache_resource(max_entries=16, show_spinner=False)
def spread(digest: str, _evalset: EvalSet) -> SpreadView | None:
    """The cost quantiles of an eval set."""
    del digest
    return spread_view(_evalset)


@st.cache_resource(max_entries=16, show_spinner=False)
def difficulties(digest: str, column: str, _evalset: EvalSet) -> tuple[Difficulty, ...]:
    """How hard each language or group is."""
    del digest
    return difficulty(_evalset, column)
