"""The Catalog page's dialog that adds a model: a form with all that it must state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.types import Catalog
from hydra_core.catalog.editing.model_grid import add_model, cell_problems
from hydra_core.console import cache, drafts, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal

_OWN = "Its own benchmark rates"
_BY_HAND = "Capabilities set by hand"
#: Every field that must be filled in, as the form calls it.
_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "id": "Model id",
        "provider": "Provider",
        "input_usd_per_mtok": "Input price, USD / Mtok",
        "output_usd_per_mtok": "Output price, USD / Mtok",
        "context_window": "Context window, tokens",
        "price_source": "Where the prices were read",
        "price_date": "Prices read on",
    }
)
_ORDER = (
    "id", "provider", "status", "input_usd_per_mtok", "output_usd_per_mtok", "context_window",
    "vision", "tools", "scores", "capabilities", "price_source", "price_date",
)  # fmt: skip


@st.dialog("Add a model", width="large")
def add(entry: CatalogEntry, working: Working) -> None:
    """A form with all that a model must state; nothing is filled in silently."""
    catalog = working.catalog or working.published
    if catalog is None:
        st.warning("Correct the problems of the draft first.")
        return
    values = _facts()
    evidence = _evidence(catalog)
    if not st.button("Add to the draft", type="primary", icon=":material/add:"):
        return
    empty = still_empty(values)
    if empty:
        st.error(f"Still empty: {', '.join(empty)}.", title="Not added yet")
        return
    given = {"status": "active", **values, **evidence}
    _try(entry, working, {key: given[key] for key in _ORDER if key in given})


def still_empty(values: Mapping[str, Any]) -> list[str]:
    """The fields that have to be filled in and are not, as the form calls them."""
    return [label for key, label in _FIELDS.items() if values.get(key) in (None, "")]


def _facts() -> dict[str, Any]:
    left, right = st.columns(2)
    values: dict[str, Any] = {
        "id": left.text_input(_FIELDS["id"], placeholder="claude-haiku-5").strip(),
        "provider": right.text_input(_FIELDS["provider"], placeholder="anthropic").strip(),
    }
    one, two, three = st.columns(3)
    for place, key in ((one, "input_usd_per_mtok"), (two, "output_usd_per_mtok")):
        price = place.number_input(_FIELDS[key], min_value=0.0, value=None, format="%.4g")
        values[key] = None if price is None else Decimal(repr(price))
    values["context_window"] = three.number_input(
        _FIELDS["context_window"], min_value=1, value=None, step=1000, placeholder="200000"
    )
    one, two, three = st.columns([2, 1, 1], vertical_alignment="bottom")
    values["price_source"] = one.text_input(_FIELDS["price_source"]).strip()
    values["price_date"] = two.date_input(
        _FIELDS["price_date"], value=date.today(), format="YYYY-MM-DD"
    )
    with three.container(horizontal=True):
        values["vision"] = st.checkbox("Vision")
        values["tools"] = st.checkbox("Tools", value=True)
    return values


def _evidence(catalog: Catalog) -> dict[str, Any]:
    """Benchmark rates, empty or begun from another model's, or capabilities set by hand."""
    twins = {f"Rates, begun from those of {m.id}": m for m in catalog.models if m.scores}
    own = [_OWN, *twins] if catalog.benchmarks else []
    chosen = st.selectbox(
        "Evidence",
        [*own, _BY_HAND],
        help="What its capabilities come from. A rate that is not known stays empty: it is never "
        "filled in. Rates of a similar model are a start; put its own in their place.",
    )
    if chosen == _BY_HAND:
        return {"capabilities": _by_hand(catalog)}
    start = twins[chosen].scores if chosen in twins else {}
    names = [benchmark.id for benchmark in catalog.benchmarks]
    frame = pd.DataFrame(
        {"benchmark": names, "rate": [start.get(name, float("nan")) for name in names]}
    )
    rates = st.data_editor(
        frame, key=f"catalog.new_rates.{chosen}", hide_index=True, disabled=["benchmark"],
        height="content", placeholder="–",
        column_config={
            "benchmark": st.column_config.TextColumn("Benchmark", width=240),
            "rate": st.column_config.NumberColumn("Resolution rate, 0 to 1", format="%.3f"),
        },
    )  # fmt: skip
    known = rates.dropna(subset="rate")
    scores = {str(b): float(r) for b, r in zip(known["benchmark"], known["rate"], strict=True)}
    return {"scores": scores, "capabilities": "derived"}


def _by_hand(catalog: Catalog) -> dict[str, float]:
    values = {}
    for place, name, band in zip(
        st.columns(len(catalog.dimensions)), catalog.dimensions, catalog.bands, strict=True
    ):
        values[name] = place.number_input(
            name.replace("_", " ").capitalize(),
            min_value=0.0,
            max_value=1.0,
            value=round((band.lo + band.hi) / 2, 4),
            step=0.01,
            format="%.4f",
            help=f"The predictor's band is {band.lo:g} to {band.hi:g}.",
        )
    return values


def _try(entry: CatalogEntry, working: Working, model: Mapping[str, Any]) -> None:
    """Save the model if it leaves a valid catalog, otherwise say here which field is wrong."""
    try:
        text = add_model(working.text, model)
    except HydraError as error:
        widgets.problem(error)
        return
    _, found = cache.parsed(text, entry.key)
    if found:
        lines = "\n".join(
            f"- {literal(one.told_of(str(model['id'])))}" for one in cell_problems(found)[:12]
        )
        st.error(lines, title="Not added yet", icon=":material/error:")
        return
    if drafts.edit(entry, lambda before: add_model(before, model), seen=working.text):
        st.rerun()
