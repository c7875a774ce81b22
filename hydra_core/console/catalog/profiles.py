"""The Profiles page's editors: evidence, capabilities, bands and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.spelling import titled
from hydra_core.base.types import Catalog
from hydra_core.catalog.editing import evidence_grid as grid
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import capabilities, compensated_weights, contributions
from hydra_core.console import cache, drafts, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.figures.shares import ContributionsView, contributions_figure
from hydra_core.console.frame import LEARNED, POLICY, link
from hydra_core.console.widgets import literal


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
        dimension: place.number_input(titled(dimension), 0.0, 1.0, 0.0, 0.05, format="%.3f")
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
        text = grid.add_benchmark(working.text, name, importance, weights, scores)
        _, problems = cache.parsed(text, entry.key)
        if problems:
            st.error(widgets.bullets(problems, 10), title="Not added yet", icon=":material/error:")
        elif drafts.edit(entry, lambda _: text, seen=working.text):
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
    if st.button(
        "Add to the draft", type="primary", icon=":material/add:", disabled=not ready
    ) and drafts.edit(
        entry,
        lambda text: grid.add_dimension(text, name, lo, hi, weight),
        seen=working.text,
    ):
        st.rerun()


#: Pixels of a table in a window 1,280 pixels wide.
_ROOM_PX = 885
#: What is looked at where both do not fit, and the columns that wait.
_PARTS = {"Rates of the models": "w.", "What each benchmark exercises": "s."}


def evidence(entry: CatalogEntry, working: Working) -> None:
    """Step 0 of Algorithm 1: benchmarks by what they exercise and what each model reached."""
    tools = st.container(horizontal=True, gap="small", vertical_alignment="center")
    document = CatalogDocument.parse(working.text, entry.key)
    frame = pd.DataFrame(grid.evidence_rows(document))
    if frame.empty:
        st.caption("There is no benchmark yet.")
        frame = pd.DataFrame(columns=["id", "importance"])
    for name in frame.columns.drop("id"):
        frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("float64")
    frame.insert(0, "tick", False)
    columns = _evidence_columns(frame)
    order = _evidence_order(list(frame.columns), columns)
    shown = "" if order is None else f".{order[-1][0]}"
    ticked = drafts.table(
        frame, f"profiles.evidence{shown}.{entry.key}", fixed=["id"], columns=columns,
        edited=_edits(entry, grid.edit_evidence), column_order=order,
        height="content" if len(frame) <= 12 else 460,
    )  # fmt: skip
    tables.offer_downloads(frame.drop(columns="tick"), "profiles.evidence")
    with tools:
        _evidence_tools(entry, working, ticked)


def _evidence_columns(frame: pd.DataFrame) -> dict[str, Any]:
    column = st.column_config
    config: dict[str, Any] = {
        "tick": column.CheckboxColumn("", width=36, pinned=True),
        "id": column.TextColumn("Benchmark", width=_wide(frame["id"], 110, 200), pinned=True),
        "importance": column.NumberColumn(
            "α", format="%.3f", width=60, help="Importance of the benchmark, 0 or more."
        ),
    }
    for name in frame.columns:
        kind, _, of = str(name).partition(".")
        if kind == "w":
            text = f"ω: how much the benchmark exercises {of}, 0 to 1."
            config[name] = column.NumberColumn(
                f"ω {of.split('_')[0]}", format="%.3f", width=104, help=text
            )
        elif kind == "s":
            text = f"Resolution rate of {of} on the benchmark, 0 to 1."
            config[name] = column.NumberColumn(
                of, format="%.3f", width=_wide([of], 112, 240), help=text
            )
    return config


def _evidence_order(names: list[str], columns: dict[str, Any]) -> list[str] | None:
    """The columns to show: all where they fit, else those that are asked for."""
    if sum(columns[name]["width"] for name in names) <= _ROOM_PX:
        return None
    part = widgets.switch("Evidence", _PARTS, "profiles.evidence.part")
    return [name for name in names if not name.startswith(_PARTS[part])]


def _wide(names: Iterable[str], least: int, most: int) -> int:
    """Pixels that hold the longest name beside the sign of an editable column."""
    longest = max((len(str(name)) for name in names), default=0)
    return min(max(7 * longest + 44, least), most)


def _evidence_tools(entry: CatalogEntry, working: Working, ticked: list[int]) -> None:
    may = drafts.may_edit()
    for kind, dialog in (("benchmark", add_benchmark_dialog), ("dimension", add_dimension_dialog)):
        if st.button(
            f"Add {kind}", icon=":material/add:", disabled=not may, key=f"profiles.add_{kind}"
        ):
            dialog(entry, working)
    st.button(
        "Remove", icon=":material/delete:", disabled=not (may and ticked), key="profiles.remove",
        on_click=drafts.editing(entry, lambda t: grid.remove_benchmarks(t, ticked), working.text),
        help=None if ticked else "Tick benchmarks in the table first.",
    )  # fmt: skip
    st.space("stretch")
    with st.popover("From rates to capabilities", icon=":material/function:"):
        _formula()


def _formula() -> None:
    """Algorithm 1 in two lines, with every letter named."""
    st.latex(
        r"\text{raw}_{m,k} = \sum_b \frac{\alpha_b\,\omega_{b,k}}{\sum_{b'} \alpha_{b'}}\; s_{m,b}"
    )
    st.latex(
        r"c_{m,k} = \text{lo}_k + (\text{hi}_k - \text{lo}_k)\,"
        r"\frac{\text{raw}_{m,k} - \min \text{raw}_k}{\max \text{raw}_k - \min \text{raw}_k}"
    )
    st.markdown(
        "**α** how much benchmark *b* counts · **ω** how much it exercises dimension *k* · **s** "
        "the rate model *m* reached on it · **lo, hi** the predictor's score band · **c** the "
        "capability. Minimum and maximum are taken over the active and retiring models, so "
        "capabilities are relative to the pool."
    )


def capability_table(entry: CatalogEntry, catalog: Catalog) -> None:
    """Steps 1 and 2: raw capability and its place on the band; the latter can be set by hand."""
    raw = contributions(catalog).sum(axis=1)
    values = capabilities(catalog)
    columns: dict[str, Any] = {"model": [model.id for model in catalog.models]}
    config: dict[str, Any] = {"model": st.column_config.TextColumn("Model", width=140)}
    number = st.column_config.NumberColumn
    for k, name in enumerate(catalog.dimensions):
        shown = name.replace("_", " ")
        columns[name] = values[:, k]
        columns[f"raw.{name}"] = raw[:, k]
        config[f"raw.{name}"] = number("raw", format="%.3f", width=66)
        band = catalog.bands[k]
        text = f"On the band {band.lo:g} to {band.hi:g}. Type to set by hand, clear to derive."
        config[name] = number(shown.capitalize(), format="%.3f", width=125, help=text)
    columns["hand"] = [
        ", ".join(d.replace("_", " ") for d in catalog.dimensions if d in model.overrides)
        for model in catalog.models
    ]
    config["hand"] = st.column_config.TextColumn("✎ set by hand", width="medium")
    frame = pd.DataFrame(columns)
    fixed = ["model", "hand", *(name for name in frame.columns if name.startswith("raw."))]
    order = ["model"] + (["hand"] if any(columns["hand"]) else [])
    drafts.table(
        frame, f"profiles.capabilities.{entry.key}", fixed=fixed, columns=config,
        edited=_edits(entry, grid.edit_capabilities),
        column_order=[*order, *(n for n in frame.columns if n not in ("model", "hand"))],
    )  # fmt: skip
    tables.offer_downloads(frame, "profiles.capabilities")


def success_table(entry: CatalogEntry, catalog: Catalog) -> None:
    """Success profiles, every number in a cell; or where they come from."""
    block = catalog.success_profiles
    if block is None:
        widgets.empty(
            "No success profiles in this catalog",
            "Success and cost of each model as a few numbers, fitted to outcomes. The value rule "
            "routes by them, and a price stays an edit.",
            [(LEARNED, "Fit them to outcomes")],
        )
        return
    st.caption(
        literal(
            f"Fitted to {block.queries:,} queries of {block.evalset}. Success of a query that "
            "requires nothing, then what each requirement adds to it; between two columns a "
            "straight line. The first row is the log of the cost compared with the mean query."
        )
    )
    frame = pd.DataFrame(grid.success_rows(catalog))
    number = st.column_config.NumberColumn
    config: dict[str, Any] = {
        "model": st.column_config.TextColumn("Model", width=180, pinned=True),
        "intercept": number("Requires nothing", format="%.3f", width=150),
        "input_tokens": number("Tokens read", format="%.1f", width=90),
        "output_tokens": number("Tokens written", format="%.1f", width=100),
        "cost_usd": number("Mean cost, $", format="%.5f", width=95),
    }
    for dimension, knots in zip(catalog.dimensions, block.knots, strict=False):
        shown = titled(dimension)
        for i, at in enumerate(knots):
            config[f"{dimension}@{i}"] = number(
                f"{shown} {at:g}", format="%.3f", width=8 * len(f"{shown} {at:g}") + 45
            )
    order = [name for name in frame.columns if frame[name].notna().any()]
    drafts.table(
        frame, f"profiles.success.{entry.key}", fixed=["model"], columns=config,
        edited=_edits(entry, grid.edit_success), column_order=order,
    )  # fmt: skip
    tables.offer_downloads(frame, "profiles.success")


def contribution_plot(catalog: Catalog) -> None:
    """What each benchmark adds to the raw capability on one dimension."""
    left, right = st.columns([4, 7], vertical_alignment="center")
    left.markdown("**What each benchmark adds**")
    names = [titled(name) for name in catalog.dimensions]
    with right.container(horizontal=True, horizontal_alignment="right"):
        k = names.index(widgets.switch("Dimension", names, "profiles.dimension"))
    values = contributions(catalog)[:, :, k]
    if not values.size or np.isnan(values).all():
        st.caption("No model has rates on the benchmarks that count here.")
        return
    counting = np.nansum(np.abs(values), axis=0) > 0
    view = ContributionsView(
        tuple(model.id for model in catalog.models),
        tuple(b.id for b, used in zip(catalog.benchmarks, counting, strict=True) if used),
        values[:, counting],
    )
    widgets.figure(
        contributions_figure(view, widgets.colors()),
        "profiles.contributions",
        alt="What each benchmark adds to each model's raw capability",
    )


def scales(entry: CatalogEntry, catalog: Catalog) -> None:
    """Bands, stored weights w and what they become: w~ (Eq. 4)."""
    weights = catalog.policy.weights
    tilde = compensated_weights(weights, catalog.bands)
    rows = [
        (titled(name), band.lo, band.hi, *both)
        for name, band, *both in zip(catalog.dimensions, catalog.bands, weights, tilde, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["dimension", "lo", "hi", "weight", "tilde"])
    column = st.column_config

    def edited(cells: drafts.Cells) -> None:
        edits = {catalog.dimensions[row]: changed for row, changed in cells.items()}
        drafts.edit(entry, lambda text: grid.edit_scales(text, edits), restart=False)

    drafts.table(
        frame,
        f"profiles.scales.{entry.key}",
        fixed=["dimension", "tilde"],
        columns={
            "dimension": column.TextColumn("Dimension", width=170),
            "lo": column.NumberColumn("Band, low end", format="%.4f", width=125),
            "hi": column.NumberColumn("Band, high end", format="%.4f", width=125),
            "weight": column.NumberColumn("Stored weight w", format="%.3f", width=130),
            "tilde": column.NumberColumn(
                "Compensated w̃ (Eq. 4)", format="%.3f", width=170,
                help="A narrow band weighs more: w divided by the band's width, their sum kept.",
            ),
        },
        edited=edited,
    )  # fmt: skip
    tables.offer_downloads(frame, "profiles.scales")
    st.caption(
        f"Bands are those of predictor {widgets.literal(catalog.predictor)}: where its scores lie "
        "in practice. Edit them only if you know your traffic's."
    )
    link(POLICY, "τ, cost basis and price ratio: Policy")


def _edits(
    entry: CatalogEntry, change: Callable[[str, drafts.Cells], str]
) -> Callable[[drafts.Cells], None]:
    """What writes a table's edits into the draft; the same values again change nothing."""

    def edited(cells: drafts.Cells) -> None:
        # a cleared capability shows its derived value: draw it anew
        cleared = any(value is None for edits in cells.values() for value in edits.values())
        drafts.edit(entry, lambda text: change(text, cells), restart=cleared)

    return edited
