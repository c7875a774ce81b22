"""The Catalog page's dialog that adds a model: a form with all that it must state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.spelling import titled, usd
from hydra_core.base.types import Catalog, CostBasis
from hydra_core.catalog import profiles
from hydra_core.catalog.editing.model_grid import add_model, cell_problems, read_rate
from hydra_core.catalog.profiles import mean_tokens
from hydra_core.choosing.by_rate import Rehearsal, rehearse_profiles
from hydra_core.choosing.material import outcomes_of_replay, with_all_outcomes
from hydra_core.console import cache, drafts, tables, widgets
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.drafts import Working
from hydra_core.console.widgets import literal
from hydra_core.replay.sweep import Sweep


class Place(StrEnum):
    """What a new model's capabilities come from."""

    RATE = "Success rate"
    LIKE = "Like another model"
    BENCHMARKS = "Benchmark rates"
    BY_HAND = "By hand"
    NOTHING = "Nothing yet"


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
    _estimated_cost(catalog, values)
    if not st.button("Add to the draft", type="primary", icon=":material/add:"):
        return
    missing = missing_fields({**values, **evidence})
    if missing:
        st.error(f"Missing: {', '.join(missing)}.", title="Not added yet")
        return
    given = {"status": "active", **values, **evidence}
    _try(entry, working, {key: given[key] for key in _ORDER if key in given})


def missing_fields(values: Mapping[str, Any]) -> list[str]:
    """The fields that have to be filled in and are not, as the form calls them."""
    missing = [label for key, label in _FIELDS.items() if values.get(key) in (None, "")]
    by_hand = values.get("capabilities")
    if isinstance(by_hand, Mapping):
        missing += [titled(name) for name, value in by_hand.items() if value is None]
    return missing + [str(values[key]) for key in ("missing",) if key in values]


def _facts() -> dict[str, Any]:
    left, right = st.columns(2)
    values: dict[str, Any] = {
        "id": left.text_input(_FIELDS["id"], placeholder="claude-haiku-5").strip(),
        "provider": right.text_input(_FIELDS["provider"], placeholder="anthropic").strip(),
    }
    one, two, three = st.columns(3)
    for place, key in ((one, "input_usd_per_mtok"), (two, "output_usd_per_mtok")):
        price = place.number_input(_FIELDS[key], min_value=0.0, value=None, format="%.10g")
        values[key] = None if price is None else Decimal(repr(price))
    values["context_window"] = three.number_input(
        _FIELDS["context_window"], min_value=1, value=None, step=1000, placeholder="200000"
    )
    one, two, three = st.columns([2, 1, 1], vertical_alignment="bottom")
    values["price_source"] = one.text_input(_FIELDS["price_source"], "typed by hand").strip()
    values["price_date"] = two.date_input(
        _FIELDS["price_date"], value=date.today(), format="YYYY-MM-DD"
    )
    with three.container(horizontal=True):
        values["vision"] = st.checkbox("Vision")
        values["tools"] = st.checkbox("Tools", value=True)
    return values


def _evidence(catalog: Catalog) -> dict[str, Any]:
    """What its capabilities come from, in the fields of a model; `missing` names what is not."""
    known, queries = _success_rates(catalog)
    needs = {Place.RATE: known, Place.BENCHMARKS: catalog.benchmarks}
    offered = [one for one in Place if needs.get(one, True)]
    place = st.segmented_control(
        "What is known of it", offered, default=offered[0], required=True, key="catalog.new_place",
        help="Decides which queries it gets until outcomes replace it. Nothing is filled in for "
        "you: a model of which nothing is known is added as disabled.",
    )  # fmt: skip
    if place == Place.RATE:
        rate = st.number_input(
            f"How often does it solve {queries}? From a benchmark or a guess, %",
            0.0, 100.0, None, 1.0, format="%.10g",
            placeholder=f"{100 * float(np.median(list(known.values()))):.0f}",
            help=", ".join(f"{literal(m)} {100 * r:.0f} %" for m, r in known.items()),
        )  # fmt: skip
        if rate is None:
            return {"missing": "Success rate"}
        st.caption(f":material/info: {literal(_risk(catalog))}")
        return profiles.evidence_at_rate(catalog, rate / 100, known)
    if place == Place.LIKE:
        names = [model.id for model in catalog.models if model.scores or model.overrides]
        return profiles.evidence_like(catalog, st.selectbox("It resembles", names))
    if place == Place.BENCHMARKS:
        return _benchmark_rates(catalog)
    if place == Place.BY_HAND:
        places = st.columns(len(catalog.dimensions))
        known_bands = zip(places, catalog.dimensions, catalog.bands, strict=True)
        return {"capabilities": {
            name: column.number_input(
                titled(name), 0.0, 1.0, None, 0.01, format="%.10g", placeholder=f"{band.lo:g}",
                help=f"The predictor's score band is {band.lo:g} to {band.hi:g}.",
            )
            for column, name, band in known_bands
        }}  # fmt: skip
    st.caption(
        "Added as disabled: it gets no traffic. Give it rates or capabilities, then set its status "
        "to active."
    )
    return {"status": "disabled", "capabilities": "derived"}


def _success_rates(catalog: Catalog) -> tuple[dict[str, float], str]:
    """What share each model resolves, and of which queries: the set in view, or the benchmarks."""
    entry = drafts.set_in_view(catalog)
    if entry is None:
        return profiles.benchmark_rates(catalog), "the benchmarks"
    loaded = cache.evalset(entry)
    ids = {model.id for model in catalog.models}
    known = {
        model: float(np.nanmean(loaded.quality[:, i]))
        for i, model in enumerate(loaded.models)
        if model in ids and np.isfinite(loaded.quality[:, i]).any()
    }
    return known, f"queries like {literal(entry.info.name)}"


def _risk(catalog: Catalog) -> str:
    """What a rate is worth on the set in view, and what more outcomes would bring."""
    entry, found = drafts.set_in_view(catalog), None
    if entry is not None:
        with suppress(HydraError):  # not scored yet: nothing can be rehearsed
            found = _rehearsed(cache.sweep(entry, catalog, catalog.policy.weights))
    if found is None:
        return (
            "A rate alone says how strong it is, not on which queries. A wrong rate sends it the "
            "wrong queries until outcomes correct it: about 50 do."
        )
    return found.sentence


@cache.cached(8, "Rehearsing the rate on your models")
def _rehearsed(sweep: Sweep) -> Rehearsal | None:
    data = with_all_outcomes(sweep.data, sweep.evalset)
    return rehearse_profiles(outcomes_of_replay(data, sweep.evalset))


def _benchmark_rates(catalog: Catalog) -> dict[str, Any]:
    """Its own rates; one that is not known stays empty."""
    names = [benchmark.id for benchmark in catalog.benchmarks]
    rates = st.data_editor(
        pd.DataFrame({"benchmark": names, "rate": tables.number_texts([None] * len(names))}),
        key="catalog.new_rates", hide_index=True, disabled=["benchmark"],
        height="content", placeholder="–",
        column_config={
            "benchmark": st.column_config.TextColumn("Benchmark", width=240),
            "rate": tables.number_column("Resolution rate, 0 to 1"),
        },
    )  # fmt: skip
    rated = zip(rates["benchmark"], rates["rate"], strict=True)
    scores = {str(benchmark): read_rate(rate) for benchmark, rate in rated if rate}
    return {"scores": scores, "capabilities": "derived"}


def _estimated_cost(catalog: Catalog, values: Mapping[str, Any]) -> None:
    """What a query will be taken to cost, where measured costs order the models."""
    prices = values["input_usd_per_mtok"], values["output_usd_per_mtok"]
    costs = catalog.realised_costs
    if catalog.policy.cost_basis is not CostBasis.REALISED or costs is None or None in prices:
        return
    blended = ListPrice(float(prices[0]), float(prices[1])).blended(catalog.policy.price_ratio)
    st.caption(
        literal(
            f"Estimated at {usd(mean_tokens(catalog, costs.usd_per_query) * blended)} per query: "
            "its prices times the mean tokens of the other models. A measured cost replaces it."
        )
    )


def _try(entry: CatalogEntry, working: Working, model: Mapping[str, Any]) -> None:
    """Save the model if it leaves a valid catalog, otherwise say here which field is wrong."""
    try:
        text = add_model(working.text, model)
    except HydraError as error:
        widgets.problem(error)
        return
    _, problems = cache.parsed(text, entry.key)
    if problems:
        found = [one.in_form_of(str(model["id"])) for one in cell_problems(problems)]
        st.error(widgets.bullets(found, 12), title="Not added yet", icon=":material/error:")
        return
    if drafts.edit(entry, lambda before: add_model(before, model), seen=working.text):
        st.rerun()
