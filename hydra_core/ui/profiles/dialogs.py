"""The Profiles page's dialogs: a benchmark or a dimension more."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from hydra_core.catalog.editing.evidence_grid import add_benchmark, add_dimension
from hydra_core.ui import cache, drafts
from hydra_core.ui.cache import CatalogEntry
from hydra_core.ui.drafts import Working
from hydra_core.ui.widgets import literal

__all__ = ["add_benchmark_dialog", "add_dimension_dialog"]


@st.dialog("Add a benchmark", width="large")
def add_benchmark_dialog(entry: CatalogEntry, working: Working) -> None:
    """Name, importance, what it exercises, and every model's rate on it."""
    catalog = working.catalog
    if catalog is None:
        st.warning("Correct the problems of the draft first.")
        return
    left, right = st.columns([3, 1])
    name = left.text_input("Benchmark id", placeholder="terminal_bench").strip()
    importance = right.number_input("Importance α", min_value=0.0, value=0.1, step=0.05)
    st.caption("How much it exercises each dimension, 0 to 1 (ω)")
    weights = {
        dimension: place.number_input(
            dimension.replace("_", " ").capitalize(), 0.0, 1.0, 0.0, 0.05, format="%.3f"
        )
        for place, dimension in zip(
            st.columns(len(catalog.dimensions)), catalog.dimensions, strict=True
        )
    }
    st.caption("Each model's resolution rate on it, 0 to 1. A missing rate is never filled in.")
    frame = pd.DataFrame({"model": [m.id for m in catalog.models], "rate": float("nan")})
    rates = st.data_editor(
        frame, key="profiles.new_rates", hide_index=True, disabled=["model"], height="content",
        placeholder="–",
        column_config={
            "model": st.column_config.TextColumn("Model", width=240),
            "rate": st.column_config.NumberColumn("Rate", format="%.3f", width=120),
        },
    )  # fmt: skip
    scores = {
        str(model): float(rate)
        for model, rate in zip(rates["model"], rates["rate"], strict=True)
        if not pd.isna(rate)
    }
    if st.button("Add to the draft", type="primary", icon=":material/add:", disabled=not name):
        text = add_benchmark(working.text, name, importance, weights, scores)
        if _valid(entry, text) and drafts.edit(entry, lambda _: text, seen=working.text):
            st.rerun()


@st.dialog("Add a dimension")
def add_dimension_dialog(entry: CatalogEntry, working: Working) -> None:
    """Name, band and weight; evidence on it is given in the table afterwards."""
    st.caption(
        "A catalog's dimensions are its predictor's: without a predictor that scores the new one, "
        "no query can be routed with it. The draft stays unfinished until benchmarks exercise it."
    )
    name = st.text_input("Dimension", placeholder="long_context").strip()
    one, two, three = st.columns(3)
    lo = one.number_input("Band, low end", 0.0, 1.0, 0.0, 0.05)
    hi = two.number_input("Band, high end", 0.0, 1.0, 0.5, 0.05)
    weight = three.number_input("Weight w", min_value=0.01, value=1.0, step=0.1)
    ready = bool(name) and lo < hi
    if st.button("Add to the draft", type="primary", icon=":material/add:", disabled=not ready):
        done = drafts.edit(
            entry, lambda text: add_dimension(text, name, lo, hi, weight), seen=working.text
        )
        if done:
            st.rerun()


def _valid(entry: CatalogEntry, text: str) -> bool:
    _, problems = cache.parsed(text, entry.key)
    if problems:
        lines = "\n".join(f"- {literal(str(problem))}" for problem in problems[:10])
        st.error(lines, title="Not added yet", icon=":material/error:")
    return not problems
