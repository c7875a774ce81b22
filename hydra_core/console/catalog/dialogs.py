"""The Catalog page's dialogs: paste rows, import prices, add a benchmark or a dimension."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Final

import pandas as pd
import streamlit as st

from hydra_core.base.errors import CatalogError, HydraError, Problem
from hydra_core.base.reading.csv_rows import BrokenRow, csv_rows
from hydra_core.base.reading.fields import did_you_mean
from hydra_core.base.spelling import titled
from hydra_core.base.types import Catalog
from hydra_core.catalog.diff import semantic_diff
from hydra_core.catalog.editing import evidence_grid
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.editing.model_grid import (
    FIELDS,
    cell_problems,
    edit_cells,
    model_rows,
    read_rate,
)
from hydra_core.catalog.prices.lists import read_prices
from hydra_core.catalog.prices.price_table import (
    BLANK,
    date_of,
    price_per_mtok,
    priced_by,
)
from hydra_core.catalog.prices.quotes import PriceList, price_number
from hydra_core.catalog.prices.suggestions import PriceMatch, apply_price, suggest_matches
from hydra_core.console import cache, drafts, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal

MAX_ROWS: Final = 1000
_MAX_CHARS: Final = 2_000_000
_SOURCE: Final = "the pasted rows"
#: Other headings that people use, folded.
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "id", "modelid": "id", "name": "id", "vendor": "provider",
        "input": "input_usd_per_mtok", "inputprice": "input_usd_per_mtok",
        "inputusdmtok": "input_usd_per_mtok", "inputusdpermtok": "input_usd_per_mtok",
        "output": "output_usd_per_mtok", "outputprice": "output_usd_per_mtok",
        "outputusdmtok": "output_usd_per_mtok", "outputusdpermtok": "output_usd_per_mtok",
        "cached": "cached_input_usd_per_mtok", "cachedinput": "cached_input_usd_per_mtok",
        "cachedinputprice": "cached_input_usd_per_mtok", "context": "context_window",
        "contexttokens": "context_window", "retireson": "retire_on", "source": "price_source",
        "date": "price_date", "pricedate": "price_date", "pricesource": "price_source",
        "check": "check",  # of the table's own download: what is wrong with a row
    }
)  # fmt: skip
#: Column of a price -> what its heading is said to name.
#: What a dash or "none" may be the value of.
_WORDS: Final = ("id", "provider", "status", "tags", "lacks", "price_source", "notes")
_PRICED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input_usd_per_mtok": "input",
        "output_usd_per_mtok": "output",
        "cached_input_usd_per_mtok": "cached",
    }
)


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
        lines = widgets.bullets(cell_problems(found), 12)
        st.error(lines, title="These rows do not make a valid catalog", icon=":material/error:")
        return
    _preview(catalog, after)
    if st.button("Put into the draft", type="primary", icon=":material/check:") and drafts.edit(
        entry, lambda before: apply_pasted(before, pasted), seen=working.text
    ):
        st.rerun()


def _preview(catalog: Catalog, after: Catalog) -> None:
    changes = semantic_diff(catalog, after)
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
        "LiteLLM's model_prices_and_context_window.json, OpenRouter's or Vercel's models JSON, "
        "models.dev JSON or TOML, or a table of your own (CSV). Nothing is applied until you tick "
        "it."
    )
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    upload = left.file_uploader("Price list", type=["json", "toml", "csv", "tsv", "md"])
    day = right.date_input(
        "Taken on", value=date.today(), max_value=date.today(), format="YYYY-MM-DD"
    )
    if upload is None:
        return
    try:
        listed = read_prices(widgets.uploaded_text(upload), upload.name, as_of=day)
    except HydraError as error:
        widgets.problem(error)
        return
    matches = suggest_matches(working.catalog, listed.quotes)
    _said(working.catalog, listed, matches)
    chosen = _confirm(matches) if matches else []
    for match in chosen:
        told = [*(match.changes or ["no price changes"]), *match.warnings(date.today())]
        st.caption(f"**{literal(match.model.id)}**: {literal('; '.join(told))}.")
    names = [match.model.id for match in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        st.warning(f"Tick one quote only for {literal(', '.join(twice))}.")
    label = f"Put {len(chosen)} price{'s' * (len(chosen) != 1)} into the draft"
    ready = bool(chosen) and not twice
    if st.button(label, type="primary", disabled=not ready) and drafts.edit(
        entry, lambda text: _apply(text, chosen), seen=working.text
    ):
        st.rerun()


def _said(catalog: Catalog, listed: PriceList, matches: tuple[PriceMatch, ...]) -> None:
    matched = {match.model.id for match in matches}
    missing = [model.id for model in catalog.models if model.id not in matched]
    dropped = sum(map(len, listed.dropped.values()))
    priced = len(listed.quotes)
    text = f"{listed.source.value}: {priced:,} price{'s' * (priced != 1)} read"
    entries = "entry" if dropped == 1 else "entries"
    text += f", {dropped:,} {entries} without a usable price left out." if dropped else "."
    if missing:
        text += f" No match for {', '.join(missing)}."
    st.caption(literal(text))


def _confirm(matches: tuple[PriceMatch, ...]) -> list[PriceMatch]:
    """The matches as a list to tick; those that change something and are closest come first."""
    today = date.today()
    frame = pd.DataFrame(
        {
            "take": [False] * len(matches),
            "model": [match.model.id for match in matches],
            "quote": [match.quote.id for match in matches],
            "why": [str(match.closeness) for match in matches],
            "input": [_arrow(*m.prices["input_usd_per_mtok"]) for m in matches],
            "output": [_arrow(*m.prices["output_usd_per_mtok"]) for m in matches],
            "cached": [_arrow(*m.prices["cached_input_usd_per_mtok"]) for m in matches],
            "read": [f"{m.model.price_date} → {m.quote.as_of}" for m in matches],
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
    """What a quote makes of a price; one that it does not name is taken out."""
    before, after = ("none" if one is None else f"${one.normalize():f}" for one in (old, new))
    return before if old == new else f"{before} → {after}"


def _apply(text: str, matches: list[PriceMatch]) -> str:
    document = CatalogDocument.parse(text)
    for match in matches:
        apply_price(document, match)
    return document.text()


@st.dialog("Add a benchmark", width="large")
def add_benchmark(entry: CatalogEntry, working: Working) -> None:
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
    ids = [model.id for model in catalog.models]
    frame = pd.DataFrame({"model": ids, "rate": tables.number_texts([None] * len(ids))})
    rates = st.data_editor(
        frame, key="profiles.new_rates", hide_index=True, disabled=["model"], height="content",
        placeholder="–",
        column_config={
            "model": st.column_config.TextColumn("Model", width=240),
            "rate": tables.number_column("Rate", width=120),
        },
    )  # fmt: skip
    scores = dict(zip(rates["model"].astype(str), rates["rate"], strict=True))
    if st.button("Add to the draft", type="primary", icon=":material/add:", disabled=not name):
        text = evidence_grid.add_benchmark(working.text, name, importance, weights, scores)
        _, problems = cache.parsed(text, entry.key)
        if problems:
            st.error(widgets.bullets(problems, 10), title="Not added yet", icon=":material/error:")
        elif drafts.edit(entry, lambda _: text, seen=working.text):
            st.rerun()


@st.dialog("Add a dimension")
def add_dimension(entry: CatalogEntry, working: Working) -> None:
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
        lambda text: evidence_grid.add_dimension(text, name, lo, hi, weight),
        seen=working.text,
    ):
        st.rerun()


#: Catalog key, ``scores.<benchmark>`` or ``capabilities.<dimension>`` -> cell.
Pasted = Mapping[str, str]


def read_pasted(text: str, catalog: Catalog) -> tuple[Pasted, ...]:
    """Read tab- or comma-separated rows with a heading.

    Raises:
        CatalogError: No heading, an unknown column, no id, too much; all problems are listed.
    """
    if len(text) > _MAX_CHARS:
        raise _refused([Problem("", f"has {len(text):,} characters, at most {_MAX_CHARS:,}")])
    try:
        table = [row for _, row in csv_rows(io.StringIO(text)) if any(map(str.strip, row))]
    except BrokenRow as error:
        raise _refused([Problem(f"line {error.line}", str(error))]) from error
    if len(table) < 2:
        remedy = "copy the heading row too: Model, Input price, Output price, ..."
        raise _refused([Problem("", "needs a heading and at least one row", remedy)])
    columns, problems = _columns(table[0], catalog)
    problems += _shape(table, len(table[0]))
    if problems:
        raise _refused(problems)
    rows = []
    for cells in table[1:]:
        row = zip(columns, table[0], map(str.strip, cells), strict=False)
        rows.append({key: _as_kept(key, heading, cell) for key, heading, cell in row})
        rows[-1].pop("check", None)
    problems = [
        Problem(f"row {i + 1}", f"names {row['id']} again", "keep one row of each model")
        for i, row in enumerate(rows)
        if row.get("id") and any(one.get("id") == row["id"] != "" for one in rows[:i])
    ]
    if problems:
        raise _refused(problems[:20])
    unnamed = [i for i, row in enumerate(rows) if not row.get("id")]
    if unnamed:
        raise _refused([Problem(f"row {i + 1}", "has no model id") for i in unnamed[:20]])
    return tuple(rows)


def apply_pasted(text: str, pasted: Sequence[Pasted]) -> str:
    """The catalog text with the pasted cells: known ids are changed, unknown ones are added.

    Empty cells change nothing. The result need not be valid: parse it to see what is missing.

    Raises:
        CatalogError: A cell cannot be written.
    """
    document = CatalogDocument.parse(text)
    index = {str(row["id"]): i for i, row in enumerate(model_rows(document))}
    edits: dict[int, dict[str, object]] = {}
    nested: dict[int, dict[str, str]] = {}
    for row in pasted:
        if row["id"] not in index:
            index[row["id"]] = len(index)
            document.append("models", {"id": row["id"], "capabilities": "derived"})
        at = index[row["id"]]
        given = {key: value for key, value in row.items() if value}
        edits.setdefault(at, {}).update({k: v for k, v in given.items() if k in FIELDS})
        nested.setdefault(at, {}).update({k: v for k, v in given.items() if k not in FIELDS})
    document = CatalogDocument.parse(edit_cells(document.text(), edits))
    for at, cells in nested.items():
        for path, value in cells.items():
            _set_nested(document, at, path, value)
    return document.text()


def _set_nested(document: CatalogDocument, row: int, path: str, value: str) -> None:
    section, _, name = path.partition(".")
    written = read_rate(value)
    model = document.get("models", row)
    inside = model.get(section) if isinstance(model, dict) else None
    if isinstance(inside, dict):
        document.set("models", row, section, name, written)
    else:
        document.set("models", row, section, {name: written})


def _as_kept(key: str, heading: str, cell: str) -> str:
    """A cell as the catalog keeps it: prices in USD per million tokens, by the stated units."""
    if cell.lower() in BLANK and key not in _WORDS:
        return ""
    if key in ("price_date", "retire_on"):
        return str(date_of(cell) or cell)
    price = price_per_mtok(cell, heading) if key in _PRICED else None
    return cell if price is None or price == price_number(cell) else f"{price.normalize():f}"


def _columns(headings: list[str], catalog: Catalog) -> tuple[list[str], list[Problem]]:
    """The key of each column that is known, and what is wrong with the others."""
    exact = {benchmark.id: f"scores.{benchmark.id}" for benchmark in catalog.benchmarks}
    exact |= {name: f"capabilities.{name}" for name in catalog.dimensions}
    folded = [_folded(name) for name in exact]
    known = dict(_ALIASES)
    known |= {_folded(one): key for one, key in exact.items() if folded.count(_folded(one)) == 1}
    for name, field in FIELDS.items():
        known |= {_folded(name): name, _folded(field.label): name}
    columns: list[str] = []
    problems = []
    for heading in headings:
        key = exact.get(heading.strip()) or known.get(_folded(heading))
        named, unclear = priced_by(heading) if key in _PRICED else ("", [])
        if key is None or _PRICED.get(key, "") != named:
            names = [field.label for field in FIELDS.values()]
            names += [*(b.id for b in catalog.benchmarks), *catalog.dimensions]
            hint = did_you_mean(heading.strip(), names)
            problems.append(Problem(f"column {heading.strip()[:60]!r}", "is not known", hint))
        elif key in columns:
            problems.append(Problem(f"column {heading.strip()[:60]!r}", "is given twice"))
        elif unclear:
            problems += unclear
        else:
            columns.append(key)
    if "id" not in columns and not problems:
        problems.append(Problem("", "has no column with the model id", "head it 'Model' or 'id'"))
    return columns, problems


def _shape(table: list[list[str]], width: int) -> list[Problem]:
    if len(table) > MAX_ROWS + 1:
        return [Problem("", f"has {len(table) - 1:,} rows, at most {MAX_ROWS:,}", "split it")]
    return [
        Problem(f"row {i}", f"has {len(cells)} cells, the heading {width}")
        for i, cells in enumerate(table)
        if len(cells) > width
    ][:20]


def _folded(heading: str) -> str:
    return re.sub(r"[\W_]", "", re.sub(r"\(.*?\)|\$|usd|/m(tok)?$", "", heading.lower()))


def _refused(problems: list[Problem]) -> CatalogError:
    return CatalogError(_SOURCE, problems)
