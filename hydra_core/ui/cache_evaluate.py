"""Cached results of the Compare and Explore pages, keyed by digests and frozen values."""

from __future__ import annotations

from datetime import date

import streamlit as st

from hydra_core.ui.bench import Bench
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.comparison import Kind, Paired, Side, pair, side_run

__all__ = ["BenchKey", "bench_key", "paired"]

#: Eval set, catalog, weights, predictor scores and day of a bench.
BenchKey = tuple[str, str, tuple[float, ...], int, date]


def bench_key(entry: SetEntry, bench: Bench) -> BenchKey:
    """What a bench was made of."""
    scores = entry.info.path / "scores" / f"{bench.catalog.predictor_fingerprint}.parquet"
    stamp = scores.stat().st_mtime_ns if scores.is_file() else 0
    return (entry.info.digest, bench.catalog.digest, bench.weights, stamp, date.today())


def paired(entry: SetEntry, a: tuple[Side, Bench], b: tuple[Side, Bench], own: Bench) -> Paired:
    """Both sides replayed and compared.

    Args:
        own: The bench of the page, which clusters and costs are taken from.

    Raises:
        ValueError: They have no query in common.
    """
    benches = (a[1], b[1], own)
    keys = tuple(bench_key(entry, bench) for bench in benches)
    return _paired((a[0], b[0]), keys, benches)


@st.cache_resource(max_entries=12, show_spinner="Comparing")
def _paired(
    sides: tuple[Side, Side], keys: tuple[BenchKey, ...], _benches: tuple[Bench, Bench, Bench]
) -> Paired:
    del keys
    (a, b), (of_a, of_b, own) = sides, _benches
    if a.kind is Kind.MIX:
        run_b = side_run(b, of_b, None)
        return pair(side_run(a, of_a, float(run_b.cost_usd.mean())), run_b, own)
    run_a = side_run(a, of_a, None)
    return pair(run_a, side_run(b, of_b, float(run_a.cost_usd.mean())), own)
