"""The Catalog page's dialogs: paste rows, import prices."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.model_grid import cell_problems
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.quotes import PriceList
from hydra_core.catalog.prices.suggestions import PriceMatch, apply_price, suggest_matches
from hydra_core.console import cache, drafts, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.catalog.paste import apply_pasted, read_pasted
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal


@st.dialog("Paste rows from a spreadsheet", width="large")
def paste(entry: CatalogEntry, working: Working) -> None:
    """Text with a heading row; a preview in words before anything is changed."""
    catalog = working.catalog or working.published
    if catalog is None:
        st.warning("Correct the problems of the draft first.")
        return
    st.caption(
        "Copy cells with their heading row. Known models are changed, unknown ones added; empty "
        "cells change nothing. Columns: Model, Provider, Status, Input price, Output price, "
        "Cached input price, Context window, Vision, Tools, Price date, Price source, any "
        "benchmark, any dimension. Prices are USD per million tokens."
    )
    text = st.text_area(
        "Rows", height=150, label_visibility="collapsed", key="catalog.paste",
        placeholder="Model\tInput price\tOutput price\nclaude-haiku-4.5\t0.80\t4.00",
    )  # fmt: skip
    if not text.strip():
        return
    try:
        pasted = read_pasted(text, catalog)
        changed = apply_pasted(working.text, pasted)
    except HydraError as error:
        widgets.problem(error)
        return
    after, found = cache.parsed(changed, entry.key)
    if after is None:
        lines = "\n".join(f"- {literal(str(one))}" for one in cell_problems(found)[:12])
        st.error(lines, title="These rows do not make a valid catalog", icon=":material/error:")
        return
    _preview(working, catalog, after)
    if st.button("Put into the draft", type="primary", icon=":material/check:"):
        done = drafts.edit(entry, lambda before: apply_pasted(before, pasted), seen=working.text)
        if done:
            st.rerun()


def _preview(working: Working, before: Catalog, after: Catalog) -> None:
    changes = semantic_diff(before, after)
    st.markdown(f"**{len(changes)} change{'s' * (len(changes) != 1)}**")
    st.dataframe(
        pd.DataFrame({"Change": [str(change) for change in changes]}),
        hide_index=True,
        height=min(40 + 35 * max(len(changes), 1), 220),
    )


@st.dialog("Import prices", width="large")
def prices(entry: CatalogEntry, working: Working) -> None:
    """A price list as file; each match is confirmed by hand."""
    if working.catalog is None:
        st.warning("Correct the problems of the draft first.")
        return
    st.caption(
        "LiteLLM's model_prices_and_context_window.json, OpenRouter's models JSON, or "
        "models.dev JSON or TOML. Nothing is applied until you tick it."
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    upload = left.file_uploader("Price list", type=["json", "toml"])
    day = right.date_input(
        "Taken on", value=date.today(), max_value=date.today(), format="YYYY-MM-DD"
    )
    if upload is None:
        return
    try:
        text = upload.getvalue().decode("utf-8-sig")
        listed = read_prices(text, upload.name, as_of=day)
    except UnicodeDecodeError:
        st.error("The file is not UTF-8 text.", icon=":material/error:")
        return
    except HydraError as error:
        widgets.problem(error)
        return
    matches = suggest_matches(working.catalog, listed.quotes)
    _said(working.catalog, listed, matches)
    chosen = _confirm(matches) if matches else []
    names = [match.model_id for match in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        st.warning(f"Tick one quote only for {literal(', '.join(twice))}.")
    label = f"Put {len(chosen)} price{'s' * (len(chosen) != 1)} into the draft"
    if st.button(label, type="primary", disabled=not chosen or bool(twice)):
        done = drafts.edit(entry, lambda text: _apply(text, chosen), seen=working.text)
        if done:
            st.rerun()


def _said(catalog: Catalog, listed: PriceList, matches: tuple[PriceMatch, ...]) -> None:
    matched = {match.model_id for match in matches}
    missing = [model.id for model in catalog.models if model.id not in matched]
    dropped = sum(one.count for one in listed.dropped)
    priced = len(listed.quotes)
    told = f"{listed.source.value}: {priced:,} price{'s' * (priced != 1)} read"
    entries = "entry" if dropped == 1 else "entries"
    told += f", {dropped:,} {entries} without a usable price left out." if dropped else "."
    if missing:
        told += f" No match for {', '.join(missing)}."
    st.caption(literal(told))


def _confirm(matches: tuple[PriceMatch, ...]) -> list[PriceMatch]:
    """The matches as a list to tick; those that change something and are closest come first."""
    today = date.today()
    frame = pd.DataFrame(
        {
            "take": [False] * len(matches),
            "model": [match.model_id for match in matches],
            "quote": [match.quote.id for match in matches],
            "why": [str(match.closeness) for match in matches],
            "input": [_arrow(m.old_input, m.quote.input_usd_per_mtok) for m in matches],
            "output": [_arrow(m.old_output, m.quote.output_usd_per_mtok) for m in matches],
            "cached": [_arrow(m.old_cached, m.quote.cached_input_usd_per_mtok) for m in matches],
            "read": [f"{m.old_date} → {m.quote.as_of}" for m in matches],
            "look": ["; ".join(match.warnings(today)) for match in matches],
        }
    )
    column = st.column_config
    edited = st.data_editor(
        frame,
        key="catalog.prices.confirm",
        hide_index=True,
        num_rows="fixed",
        disabled=[name for name in frame.columns if name != "take"],
        height=min(40 + 36 * len(frame), 330),
        column_config={
            "take": column.CheckboxColumn("", width=36),
            "model": column.TextColumn("Model", width=130),
            "quote": column.TextColumn("In the list", width=160),
            "why": column.TextColumn("Agrees by", width=245),
            "input": column.TextColumn("Input / Mtok", width=105),
            "output": column.TextColumn("Output / Mtok", width=110),
            "cached": column.TextColumn("Cached / Mtok", width=105),
            "read": column.TextColumn("Price read", width=170),
            "look": column.TextColumn("Look at", width=95),
        },
    )
    return [match for match, take in zip(matches, edited["take"], strict=True) if take]


def _arrow(old: Decimal | None, new: Decimal | None) -> str:
    """What a quote makes of a price; one that it does not name stays as it is."""
    before = "none" if old is None else f"${old.normalize():f}"
    return before if new is None or old == new else f"{before} → ${new.normalize():f}"


def _apply(text: str, matches: list[PriceMatch]) -> str:
    document = CatalogDocument.parse(text)
    for match in matches:
        apply_price(document, match)
    return document.text()
