"""Catalog, Models: the table with its tools, the cards and the map of capabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from functools import reduce
from typing import Any, Literal

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.spelling import titled, usd
from hydra_core.base.types import Catalog, ModelSpec, ModelStatus
from hydra_core.catalog.editing import model_grid as grid
from hydra_core.catalog.editing.document import CatalogDocument, Data
from hydra_core.catalog.prices.suggestions import stale_prices
from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.console import drafts, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.figures.heat import HeatView, heat_figure
from hydra_core.console.view_frontier import together
from hydra_core.console.widgets import literal

#: Prices read longer ago than this are flagged.
STALE_DAYS = 180
#: The columns of numbers, as their cells are written.
_NUMBERS = {
    "input_usd_per_mtok": ".10g",
    "output_usd_per_mtok": ".10g",
    "cached_input_usd_per_mtok": ".10g",
    "context_window": ",.10g",
    "latency_s": ".6g",
    "ttft_s": ".6g",
}
_DATES = ("retire_on", "price_date")


def problems(working: Working) -> None:
    """What a callback refused, and what keeps the draft from being a catalog, by cell."""
    widgets.show_error()
    if not working.problems:
        return
    found = grid.cell_problems(working.problems)
    lines = [f"- {_problem_text(one)}" for one in found[:20]]
    lines += [f"- and {len(found) - 20} more"] * (len(found) > 20)
    st.error(
        "\n".join(lines),
        title=f"{len(found)} cell{'s' * (len(found) != 1)} to correct before this can be published",
        icon=":material/error:",
    )


def _problem_text(one: grid.CellProblem) -> str:
    where = " · ".join(literal(part) for part in (one.model, one.column) if part)
    remedy = f" *{literal(one.remedy)}*" if one.remedy else ""
    return f"**{where}** {literal(one.message)}.{remedy}" if where else literal(str(one))


def table(entry: CatalogEntry, working: Working) -> list[int]:
    """The pool as an editable table; returns the ticked rows."""
    document = CatalogDocument.parse(working.text, entry.key)
    rows = grid.model_rows(document)
    places = together([str(row["variant_of"] or row["id"]) for row in rows])
    rows = _unmoved(entry, [rows[place] for place in places])
    frame = pd.DataFrame(rows, columns=list(grid.FIELDS))
    frame.insert(0, "tick", False)
    frame["check"] = _checks(rows, places, working)
    for name in _DATES:
        frame[name] = pd.to_datetime(frame[name], errors="coerce")
    faulty = bool(working.problems)

    def edited(cells: drafts.Cells) -> None:
        now = drafts.load(entry)
        models = (
            now.catalog.models if now.catalog else grid.model_rows(CatalogDocument.parse(now.text))
        )
        if len(models) != len(places):
            drafts.refuse(entry)
            return
        edits = {places[row]: changed for row, changed in cells.items()}
        drafts.edit(entry, lambda text: grid.edit_cells(text, edits), restart=False)

    ticked = drafts.table(
        frame, f"catalog.table.{entry.key}", fixed=["check"],
        columns=_columns(faulty, frame["id"].astype(str)),
        edited=edited, numbers=_NUMBERS, column_order=_order(faulty, rows), row_height=36,
    )  # fmt: skip
    taken = frame[[*grid.FIELDS, "check"]]
    tables.offer_downloads(tables.plain_numbers(taken, _NUMBERS), "catalog.models")
    return [places[row] for row in ticked]


def _unmoved(entry: CatalogEntry, rows: list[dict[str, Data]]) -> list[dict[str, Data]]:
    """The rows that the table began with, as long as its own edits lead to the present ones.

    It is then sent to the browser once, and an edited cell redraws the figures alone. After any
    other change (undo, another window) the present rows are a new beginning.
    """
    held = f"catalog.began.{entry.key}"
    generation, began = st.session_state.get(held, (-1, []))
    if generation == drafts.generation():
        edits = drafts.edited_rows(drafts.table_key(f"catalog.table.{entry.key}"))
        if grid.rows_after(began, edits) == rows:
            return list(began)
        drafts.renew()
    st.session_state[held] = (drafts.generation(), rows)
    return rows


def _order(faulty: bool, rows: list[dict[str, Data]]) -> list[str]:
    """Behind the id: what is to be corrected, and what a model is a variant of, if any is."""
    variants = any(row["variant_of"] for row in rows)
    last = ["provider", "price_source", "notes", *["variant_of"] * (not variants)]
    first = ["id", *["variant_of"] * variants]
    shown = [*first, *(name for name in grid.FIELDS if name not in (*last, *first))]
    if faulty:
        return ["tick", "id", "check", *shown[1:], *last]
    return ["tick", *shown, "check", *last]


def _checks(rows: list[dict[str, Data]], places: list[int], working: Working) -> list[str]:
    """Per row: what is wrong with it, or why to look at it again."""
    says = [""] * len(rows)
    shown = {place: i for i, place in enumerate(places)}
    for one in grid.cell_problems(working.problems):
        if one.row is not None and (i := shown.get(one.row)) is not None:
            text = f"✕ {one.column}: {one.message}" + (f" ({one.remedy})" if one.remedy else "")
            says[i] = f"{says[i]}; {text}" if says[i] else text
    if working.catalog is not None:
        old = stale_prices(working.catalog, date.today(), STALE_DAYS)
        for i, row in enumerate(rows):
            if str(row["id"]) in old:
                says[i] = price_age(old[str(row["id"])])
    return says


def price_age(days: int) -> str:
    """How old a price is, in words."""
    return f"Price is {days} days old" if days >= 0 else "Price date lies in the future"


def _columns(faulty: bool, ids: Iterable[str]) -> dict[str, Any]:
    column = st.column_config
    number = tables.number_column
    return {
        "tick": column.CheckboxColumn("", width=36, help="Tick rows, then choose what to do."),
        "check": column.TextColumn("Check", width=260 if faulty else 150),
        "id": column.TextColumn("Model", width=tables.wide(ids, 242, 330), required=True),
        "provider": column.TextColumn("Provider", width=92),
        "status": column.SelectboxColumn(
            "Status", options=[status.value for status in ModelStatus], width=90, required=True
        ),
        "input_usd_per_mtok": number("In, $/Mtok", width=100, help="USD per million input tokens."),
        "output_usd_per_mtok": number(
            "Out, $/Mtok", width=100, help="USD per million output tokens."
        ),
        "cached_input_usd_per_mtok": number(
            "Cached, $", width=100, help="USD per million cached input tokens; may be empty."
        ),
        "long_prompts": column.TextColumn(
            "Long requests",
            width=150,
            help="Prices above a number of input tokens: 200000: 4/18/0.4 is $4 in, $18 out and "
            "$0.4 cached per million tokens above 200,000. Several stand between semicolons.",
        ),
        "context_window": number("Context", width=92, help="Tokens, such as 128000 or 128k."),
        "vision": column.CheckboxColumn("Vision", width=84),
        "tools": column.CheckboxColumn("Tools", width=80),
        "variant_of": column.TextColumn(
            "Variant of",
            width=130,
            help="The model that this one is with another effort. Its empty cells are as there.",
        ),
        "tags": column.TextColumn(
            "Tags", width=100, help="What holds for it, such as eu, zdr; requests may require it."
        ),
        "lacks": column.TextColumn(
            "Lacks",
            width=120,
            help="What it cannot do: structured_output, parallel_tools, pdf, audio.",
        ),
        "latency_s": number("Seconds", width=84, help="Mean seconds to the end of an answer."),
        "ttft_s": number("First token, s", width=104, help="Mean seconds to the first token."),
        "retire_on": column.DateColumn("Retires on", width=120, format="YYYY-MM-DD"),
        "price_date": column.DateColumn("Price read", width=120, format="YYYY-MM-DD"),
        "price_source": column.TextColumn("Price source", width="medium"),
        "notes": column.TextColumn("Notes", width="medium"),
    }


def row_tools(entry: CatalogEntry, working: Working, ticked: list[int]) -> None:
    """What can be done with the ticked rows."""
    ready = bool(ticked) and drafts.may_edit()

    def run(change: Callable[[str], str]) -> None:
        drafts.edit(entry, change, seen=working.text)

    def each(change: Callable[[str, int], str]) -> Callable[[str], str]:
        return lambda text: reduce(change, ticked, text)

    tools = (
        ("Effort level", ":material/add:", each(grid.add_variant)),
        ("Duplicate", ":material/content_copy:", each(grid.duplicate_model)),
        ("Disable", ":material/pause:", lambda t: grid.set_status(t, ticked, ModelStatus.DISABLED)),
        (
            "Activate",
            ":material/play_arrow:",
            lambda t: grid.set_status(t, ticked, ModelStatus.ACTIVE),
        ),
        ("Remove", ":material/delete:", lambda text: grid.remove_models(text, ticked)),
    )
    for label, icon, change in tools:
        st.button(
            label, icon=icon, disabled=not ready, on_click=run, args=(change,),
            key=f"catalog.rows.{label}", help=None if ready else "Tick rows in the table first.",
        )  # fmt: skip


_STATUS: dict[ModelStatus, tuple[Literal["green", "gray", "orange", "red"], str]] = {
    ModelStatus.ACTIVE: ("green", ":material/check_circle:"),
    ModelStatus.DISABLED: ("gray", ":material/pause_circle:"),
    ModelStatus.RETIRING: ("orange", ":material/schedule:"),
    ModelStatus.RETIRED: ("red", ":material/cancel:"),
}


def cards(catalog: Catalog) -> None:
    """One card per model: what it costs, takes and can do."""
    values = capabilities(catalog)
    stale = stale_prices(catalog, date.today(), STALE_DAYS)
    order = together([model.base for model in catalog.models])
    for start in range(0, len(order), 3):
        for place, i in zip(st.columns(3), order[start : start + 3], strict=False):
            with place.container(border=True, height="stretch"):
                _card(catalog, catalog.models[i], values[i], stale.get(catalog.models[i].id))


def _card(
    catalog: Catalog, model: ModelSpec, values: np.typing.NDArray[np.float64], age: int | None
) -> None:
    color, icon = _STATUS[model.status]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{literal(model.id)}**", width="stretch")
        label = model.status.value.capitalize()
        st.badge(f"{label} {model.retire_on or ''}".strip(), icon=icon, color=color)
    blended = blended_price(model, catalog.policy.price_ratio)
    st.markdown(
        literal(
            f"${model.input_usd_per_mtok:,.10g} in · ${model.output_usd_per_mtok:,.10g} out · "
            f"{usd(blended)} blended"
        )
    )
    facts = [f"{model.context_window:,} tokens"]
    facts += [f"effort level of {model.variant_of}"] * bool(model.variant_of)
    facts += ["vision"] * model.vision + ["tools"] * model.tools + sorted(model.tags)
    facts += [f"no {one.replace('_', ' ')}" for one in sorted(model.lacks)]
    st.caption(literal(f"USD per Mtok · {model.provider} · {' · '.join(facts)}"))
    for k, dimension in enumerate(catalog.dimensions):
        hand = " (by hand)" if dimension in model.overrides else ""
        name = titled(dimension)
        if np.isnan(values[k]):
            st.caption(f"{literal(name)}: no evidence")
        else:
            st.progress(float(values[k]), text=f"{literal(name)} {values[k]:.3f}{hand}")
    if age is not None:
        st.caption(f":orange[:material/schedule: {price_age(age)}]")


def capability_map(catalog: Catalog) -> None:
    """Models by dimensions, each column coloured over its own band."""
    order = together([model.base for model in catalog.models])
    models, values = [catalog.models[i] for i in order], capabilities(catalog)[order]
    lo = np.array([band.lo for band in catalog.bands])
    width = np.array([band.width for band in catalog.bands])
    names = tuple(titled(d) for d in catalog.dimensions)
    texts, hover = [], []
    for model, row in zip(models, values, strict=True):
        hand = [name in model.overrides for name in catalog.dimensions]
        cells = list(zip(names, row, hand, catalog.bands, strict=True))
        texts.append(tuple(f"{value:.3f}" + " ✎" * by for _, value, by, _ in cells))
        hover.append(tuple(
            f"<b>{model.id}</b><br>{name} {value:.4f}<br>"
            f"{'set by hand' if by else 'derived from evidence'}<br>"
            f"band {band.lo:g} – {band.hi:g}"
            for name, value, by, band in cells
        ))  # fmt: skip
    view = HeatView(
        tuple(model.id for model in models), names, (values - lo) / width, tuple(texts),
        tuple(hover), (0.0, 1.0),
    )  # fmt: skip
    widgets.figure(
        heat_figure(view, widgets.colors()),
        "catalog.capabilities",
        alt="Capabilities of every model on every dimension",
    )
    st.caption(
        "Coloured over each dimension's band, from its low to its high end. ✎ set by hand. "
        "Evidence and bands are under Profiles."
    )


def pool_table(catalog: Catalog) -> pd.DataFrame:
    """One row per model, cheapest first: status, prices in USD per Mtok, capabilities."""
    ratio = catalog.policy.price_ratio
    rows = [
        (model.id, model.status.value, blended_price(model, ratio), *values)
        for model, values in zip(catalog.models, capabilities(catalog), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["model", "status", "price", *catalog.dimensions])
    return frame.sort_values("price", ignore_index=True, kind="stable")
