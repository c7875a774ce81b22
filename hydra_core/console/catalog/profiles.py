"""Catalog, Profiles: Algorithm 1 step by step, edited in tables, and what it does to routing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import short_number, titled
from hydra_core.base.types import Band, Catalog, FloatArray
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.editing import evidence_grid as grid
from hydra_core.catalog.editing.document import CatalogDocument, entries, mapping
from hydra_core.catalog.profiles import capabilities, compensated_weights, contributions
from hydra_core.console import cache, drafts, replays, tables, widgets
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import models as models_view
from hydra_core.console.catalog import sensitivity
from hydra_core.console.catalog import what_if as what_if_view
from hydra_core.console.catalog.dialogs import add_benchmark, add_dimension
from hydra_core.console.drafts import Working
from hydra_core.console.figures.shares import ContributionsView, contributions_figure
from hydra_core.console.figures.theme import apart
from hydra_core.console.frame import LEARNED, POLICY, link
from hydra_core.console.widgets import literal
from hydra_core.predictor.score_bands import score_bands

_NUMBER = partial(st.column_config.NumberColumn, format="%.3f")
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
    numbers = dict.fromkeys(frame.columns.drop("id"), ".10g")
    frame.insert(0, "tick", False)
    columns = _evidence_columns(frame)
    order = _evidence_order(list(frame.columns), columns)
    shown = "" if order is None else f".{order[-1][0]}"
    ticked = drafts.table(
        frame, f"profiles.evidence{shown}.{entry.key}", fixed=["id"], columns=columns,
        edited=_edits(entry, grid.edit_evidence), numbers=numbers, column_order=order,
        height="content" if len(frame) <= 12 else 460,
    )  # fmt: skip
    taken = tables.plain_numbers(frame.drop(columns="tick"), numbers)
    tables.offer_downloads(taken, "profiles.evidence")
    with tools:
        _evidence_tools(entry, working, ticked)


def _evidence_columns(frame: pd.DataFrame) -> dict[str, Any]:
    column, number = st.column_config, tables.number_column
    config: dict[str, Any] = {
        "tick": column.CheckboxColumn("", width=36, pinned=True),
        "id": column.TextColumn("Benchmark", width=tables.wide(frame["id"], 110, 200), pinned=True),
        "importance": number("α", width=60, help="Importance of the benchmark, 0 or more."),
    }
    heads = apart([str(name)[2:] for name in frame.columns if str(name).startswith("s.")], 28)
    first = Counter(str(name).split("_")[0] for name in frame.columns)
    for name in frame.columns:
        kind, _, of = str(name).partition(".")
        if kind == "w":
            text = f"ω: how much the benchmark exercises {of}, 0 to 1."
            short = of.split("_")[0] if first[f"w.{of.split('_')[0]}"] == 1 else of
            config[name] = number(
                f"ω {short}", width=tables.wide([f"ω {short}"], 104, 200), help=text
            )
        elif kind == "s":
            text = f"Resolution rate of {of} on the benchmark, 0 to 1."
            head = heads[of]
            config[name] = number(head, width=tables.wide([head], 112, 330), help=text)
    return config


def _evidence_order(names: list[str], columns: dict[str, Any]) -> list[str] | None:
    """The columns to show: all where they fit, else those that are asked for."""
    if sum(columns[name]["width"] for name in names) <= _ROOM_PX:
        return None
    part = widgets.switch("Evidence", _PARTS, "profiles.evidence.part")
    return [name for name in names if not name.startswith(_PARTS[part])]


def _evidence_tools(entry: CatalogEntry, working: Working, ticked: list[int]) -> None:
    may = drafts.may_edit()
    for kind, dialog in (("benchmark", add_benchmark), ("dimension", add_dimension)):
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


def capability_table(entry: CatalogEntry, working: Working) -> None:
    """Steps 1 and 2: raw capability and its place on the band; the latter can be set by hand.

    While the draft is no valid catalog, the derived cells are empty.
    """
    catalog = working.catalog
    rows = grid.capability_rows(CatalogDocument.parse(working.text, entry.key))
    held = pd.DataFrame(rows)
    dimensions = [str(name) for name in held.columns.drop("model", errors="ignore")]
    if held.empty:
        st.caption("There is no model yet.")
        return
    values, raw = held[dimensions].to_numpy(), None
    if catalog is not None:
        values, raw = capabilities(catalog), contributions(catalog).sum(axis=1)
    columns: dict[str, Any] = {"model": held["model"]}
    width = tables.wide(held["model"], 140, 330)
    config: dict[str, Any] = {"model": st.column_config.TextColumn("Model", width=width)}
    for k, name in enumerate(dimensions):
        columns[name], text = values[:, k], "Type to set by hand, clear to derive."
        if catalog is not None and raw is not None:
            columns[f"raw.{name}"] = raw[:, k]
            config[f"raw.{name}"] = _NUMBER("raw", width=66)
            text = f"On the band {catalog.bands[k].lo:g} to {catalog.bands[k].hi:g}. {text}"
        shown = titled(name)
        config[name] = tables.number_column(shown, width=max(8 * len(shown) + 13, 125), help=text)
    columns["hand"] = [
        ", ".join(d.replace("_", " ") for d in dimensions if row[d] is not None) for row in rows
    ]
    config["hand"] = st.column_config.TextColumn("✎ set by hand", width="medium")
    frame = pd.DataFrame(columns)
    fixed = ["model", "hand", *(name for name in frame.columns if name.startswith("raw."))]
    order = ["model"] + (["hand"] if any(columns["hand"]) else [])
    numbers = dict.fromkeys(dimensions, ".4g")
    drafts.table(
        frame, f"profiles.capabilities.{entry.key}", fixed=fixed, columns=config,
        edited=_edits(entry, grid.edit_capabilities), numbers=numbers,
        column_order=[*order, *(n for n in frame.columns if n not in ("model", "hand"))],
    )  # fmt: skip
    tables.offer_downloads(tables.plain_numbers(frame, numbers), "profiles.capabilities")


def success_table(entry: CatalogEntry, working: Working) -> None:
    """Success profiles, every number in a cell; or where they come from."""
    document = CatalogDocument.parse(working.text, entry.key)
    block = mapping(mapping(document.data()).get("success_profiles"))
    if not block:
        widgets.empty(
            "No success profiles in this catalog",
            "Success and cost of each model as a few numbers, fitted to outcomes. The value rule "
            "routes by them, and a price stays an edit.",
            [(LEARNED, "Fit them to outcomes")],
        )
        return
    queries, source = block.get("queries"), mapping(block.get("evalset")).get("name")
    fitted = f"{queries:,}" if isinstance(queries, int) else queries
    st.caption(
        literal(
            f"Fitted to {fitted} queries of {source}. Success of a query that "
            "requires nothing, then what each requirement adds to it; between two columns a "
            "straight line. The first row is the log of the cost compared with the mean query."
        )
    )
    number = tables.number_column
    rows = grid.success_rows(document)
    config: dict[str, Any] = {
        "model": st.column_config.TextColumn(
            "Model", width=tables.wide([str(row["model"]) for row in rows], 180, 330), pinned=True
        ),
        "intercept": number("Requires nothing", width=150),
    }
    for dimension, knots in mapping(block.get("knots")).items():
        for i, at in enumerate(entries(knots)):
            label = f"{titled(dimension)} {at:g}" if isinstance(at, int | float) else f"{at}"
            config[f"{dimension}@{i}"] = number(label, width=8 * len(label) + 45)
    config["input_tokens"] = number("Tokens read", width=90)
    config["output_tokens"] = number("Tokens written", width=100)
    config["cost_usd"] = number("Mean cost, $", width=95)
    frame = pd.DataFrame(rows).reindex(columns=list(config))
    order = [name for name in frame.columns if frame[name].notna().any()]
    numbers = dict.fromkeys(frame.columns.drop("model"), ".6g")
    drafts.table(
        frame, f"profiles.success.{entry.key}", fixed=["model"], columns=config,
        edited=_edits(entry, grid.edit_success), column_order=order, numbers=numbers,
    )  # fmt: skip
    tables.offer_downloads(tables.plain_numbers(frame, numbers), "profiles.success")


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


def scales(entry: CatalogEntry, working: Working) -> None:
    """Bands, stored weights w and what they become: w~ (Eq. 4)."""
    catalog = working.catalog
    frame = pd.DataFrame(grid.scale_rows(CatalogDocument.parse(working.text, entry.key)))
    if frame.empty:
        st.caption("There is no dimension yet.")
        return
    dimensions = list(frame["dimension"])
    frame["dimension"] = [titled(name) for name in dimensions]
    frame["tilde"] = np.nan
    if catalog is not None:
        frame["tilde"] = compensated_weights(catalog.policy.weights, catalog.bands)
    numbers = dict.fromkeys(("lo", "hi", "weight"), ".6g")
    column = st.column_config

    def edited(cells: drafts.Cells) -> None:
        edits = {dimensions[row]: changed for row, changed in cells.items()}
        drafts.edit(entry, lambda text: grid.edit_scales(text, edits), restart=False)

    drafts.table(
        frame,
        f"profiles.scales.{entry.key}",
        fixed=["dimension", "tilde"],
        columns={
            "dimension": column.TextColumn("Dimension", width=170),
            "lo": tables.number_column("Band, low end", width=125),
            "hi": tables.number_column("Band, high end", width=125),
            "weight": tables.number_column("Stored weight w", width=130),
            "tilde": _NUMBER(
                "Compensated w̃ (Eq. 4)", width=170,
                help="A narrow band weighs more: w divided by the band's width, their sum kept.",
            ),
        },
        edited=edited,
        numbers=numbers,
    )  # fmt: skip
    tables.offer_downloads(tables.plain_numbers(frame, numbers), "profiles.scales")
    st.caption(
        "Bands are where the predictor's scores lie in practice. Edit them only if you know your "
        "traffic's."
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


def from_evalset(entry: CatalogEntry, working: Working, catalog: Catalog) -> None:
    """Bands as the set in use has them, what they would change, and the button."""
    chosen = drafts.set_in_view(working.published or catalog)
    if chosen is None:
        return
    with st.container(border=True):
        st.markdown(
            "**Bands from your own queries**: 5th to 95th percentile of the scores of "
            + literal(chosen.info.name)
        )
        try:
            bands, text = _preview(chosen, catalog, working.text)
        except HydraError as error:
            widgets.problem(error)
            return
        left, right = st.columns([7, 4], vertical_alignment="center")
        left.caption(text)
        right.button(
            "Put into the draft", icon=":material/straighten:", key="profiles.bands",
            on_click=drafts.editing(entry, lambda t: _rebound(t, catalog, bands), working.text),
            width="stretch",
            disabled=not drafts.may_edit() or bands == catalog.bands,
            help="Writes them into the table above, where they can be edited.",
        )  # fmt: skip


def _preview(chosen: SetEntry, catalog: Catalog, text: str) -> tuple[tuple[Band, ...], str]:
    """Draw both bands; the new ones, and what they do to queries that no model is eligible for."""
    requirements = replays.requirements(chosen, catalog)
    bands = score_bands(requirements)
    _both_bands(catalog, requirements, bands)
    after, _ = cache.parsed(_rebound(text, catalog, bands), "draft")
    if after is None:
        return bands, ""
    least = [replays.replayed(chosen, one).data.shortfalls() for one in (catalog, after)]
    before_share, share = (
        100 * float((shortfalls.min(axis=1) > one.policy.tau).mean())
        for shortfalls, one in zip(least, (catalog, after), strict=True)
    )
    by_hand = any(model.overrides for model in catalog.models)
    kept = " Capabilities set by hand keep their place on the score band." * by_hand
    return bands, literal(
        f"Queries that no model is eligible for at τ {short_number(catalog.policy.tau)}, so that "
        f"the nearest gets them: {before_share:.0f} % now, {share:.0f} % then. Tune τ anew "
        f"afterwards.{kept}"
    )


def _both_bands(catalog: Catalog, requirements: FloatArray, proposed: Sequence[Band]) -> None:
    """A row a dimension: both bands, and the share of scored queries below and above each."""
    scored = requirements[np.isfinite(requirements).all(axis=1)]
    rows: dict[str, Sequence[object]] = {"dimension": [titled(one) for one in catalog.dimensions]}
    for when, bands in (("now", catalog.bands), ("then", proposed)):
        lo, hi = ([getattr(band, end) for band in bands] for end in ("lo", "hi"))
        rows[f"{when}_band"] = [f"{band.lo:.3f} to {band.hi:.3f}" for band in bands]
        rows[f"{when}_below"] = 100 * (scored < lo).mean(axis=0)
        rows[f"{when}_above"] = 100 * (scored > hi).mean(axis=0)
    column = st.column_config
    share = {
        f"{when}_{side}": column.NumberColumn(f"{side} it{blank}", format="%.0f %%", width=85)
        for when, blank in (("now", ""), ("then", " "))
        for side in ("below", "above")
    }
    tables.kept(
        pd.DataFrame(rows), "profiles.bands",
        column_config={
            "dimension": column.TextColumn("Dimension", width=150),
            "now_band": column.TextColumn("Band now", width=120),
            "then_band": column.TextColumn("From this set", width=120),
            **share,
        },
    )  # fmt: skip


def _rebound(text: str, catalog: Catalog, bands: tuple[Band, ...]) -> str:
    """The text on other bands; capabilities set by hand keep their place on them."""
    predictor = catalog.predictor, catalog.predictor_fingerprint
    return rebind(text, *predictor, bands, keep_places=True)


VIEWS = ("Evidence", "Capabilities", "Success profiles", "Score bands, weights", "Sensitivity")


def show(entry: CatalogEntry, working: Working, view: str) -> None:
    """One view of the profiles."""
    if view == "Evidence":
        evidence(entry, working)
    models_view.problems(working)
    tables_of = {
        "Success profiles": success_table,
        "Capabilities": capability_table,
        "Score bands, weights": scales,
    }
    if view in tables_of:
        tables_of[view](entry, working)
    catalog = working.catalog
    if catalog is None:
        derived = {"Capabilities": "Derived capabilities", "Sensitivity": "Reach and effects"}
        if view in derived:
            st.caption(f"{derived[view]} are shown once the values above are corrected.")
        return
    if view == "Sensitivity":
        sensitivity.show(catalog)
        return
    what_if_view.draft_effect(working, knob=True)
    if view == "Capabilities":
        with st.container(border=True):
            contribution_plot(catalog)
    elif view == "Score bands, weights":
        from_evalset(entry, working, catalog)
