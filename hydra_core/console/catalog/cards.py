"""The Catalog page's cards and its map of capabilities."""

from __future__ import annotations

from datetime import date
from typing import Literal

import numpy as np
import streamlit as st

from hydra_core.base.types import Catalog, ModelSpec, ModelStatus
from hydra_core.catalog.prices.suggestions import stale_prices
from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.console import widgets
from hydra_core.console.catalog.models import STALE_DAYS, price_age
from hydra_core.console.figures.heat import HeatView, heat_figure
from hydra_core.console.widgets import literal

_STATUS: dict[ModelStatus, tuple[Literal["green", "gray", "orange", "red"], str]] = {
    ModelStatus.ACTIVE: ("green", ":material/check_circle:"),
    ModelStatus.DISABLED: ("gray", ":material/pause_circle:"),
    ModelStatus.RETIRING: ("orange", ":material/schedule:"),
    ModelStatus.RETIRED: ("red", ":material/cancel:"),
}


def cards(catalog: Catalog) -> None:
    """One card per model: what it costs, takes and can do."""
    values = capabilities(catalog)
    stale = {p.model_id: p.age_days for p in stale_prices(catalog, date.today(), STALE_DAYS)}
    for start in range(0, len(catalog.models), 3):
        for place, i in zip(st.columns(3), range(start, len(catalog.models)), strict=False):
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
            f"${model.input_usd_per_mtok:g} in · ${model.output_usd_per_mtok:g} out · "
            f"${blended:.2f} blended"
        )
    )
    facts = [f"{model.context_window:,} tokens"]
    facts += ["vision"] * model.vision + ["tools"] * model.tools
    st.caption(literal(f"USD per Mtok · {model.provider} · {' · '.join(facts)}"))
    for k, dimension in enumerate(catalog.dimensions):
        hand = " (by hand)" if dimension in model.overrides else ""
        name = dimension.replace("_", " ").capitalize()
        if np.isnan(values[k]):
            st.caption(f"{literal(name)}: no evidence")
        else:
            st.progress(float(values[k]), text=f"{literal(name)} {values[k]:.3f}{hand}")
    if age is not None:
        st.caption(f":orange[:material/schedule: {price_age(age)}]")


def capability_map(catalog: Catalog) -> None:
    """Models by dimensions, each column coloured over its own band."""
    values = capabilities(catalog)
    lo = np.array([band.lo for band in catalog.bands])
    width = np.array([band.width for band in catalog.bands])
    names = tuple(d.replace("_", " ").capitalize() for d in catalog.dimensions)
    rows = range(len(catalog.models))
    texts = tuple(
        tuple(
            f"{values[i, k]:.3f}" + (" ✎" if d in catalog.models[i].overrides else "")
            for k, d in enumerate(catalog.dimensions)
        )
        for i in rows
    )
    hover = tuple(
        tuple(
            f"<b>{catalog.models[i].id}</b><br>{names[k]} {values[i, k]:.4f}<br>"
            f"{'set by hand' if d in catalog.models[i].overrides else 'derived from evidence'}<br>"
            f"band {catalog.bands[k].lo:g} – {catalog.bands[k].hi:g}"
            for k, d in enumerate(catalog.dimensions)
        )
        for i in rows
    )
    view = HeatView(
        tuple(m.id for m in catalog.models), names, (values - lo) / width, texts, hover, (0.0, 1.0)
    )
    widgets.figure(
        heat_figure(view, widgets.colors()),
        "catalog.capabilities",
        alt="Capabilities of every model on every dimension",
    )
    st.caption(
        "Coloured over each dimension's band, from its low to its high end. ✎ set by hand. "
        "Evidence and bands are on the Profiles page."
    )
