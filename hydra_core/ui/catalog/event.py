"""What-if events on the Catalog page: any model removed, added or repriced; no draft is touched."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.evaluation.study.portability import Event, EventKind
from hydra_core.types import Catalog
from hydra_core.ui.cache import SetEntry

__all__ = ["choose"]

_DRAFT = ""
_LABELS = {
    _DRAFT: "my draft",
    EventKind.REMOVE: "a model is removed",
    EventKind.ADD: "a model is added",
    EventKind.REPRICE: "a model is repriced",
}


def choose(place: DeltaGenerator, catalog: Catalog, chosen: SetEntry) -> Event | None:
    """The event to try out; None for the draft itself.

    Any model with outcomes can take part. "Added" compares with the pool before it was there.
    """
    models = [model.id for model in catalog.models if model.id in chosen.info.models]
    left, right = place.columns(2, vertical_alignment="bottom")
    kind = left.selectbox(
        "What if", list(_LABELS), format_func=_LABELS.__getitem__, key="catalog.event.kind",
        persist_state="session",
    )  # fmt: skip
    if kind == _DRAFT or not models:
        return None
    model = right.selectbox("Model", models, key="catalog.event.model", persist_state="session")
    if kind != EventKind.REPRICE:
        return Event(EventKind(kind), model)
    spec = catalog.model(model)
    prices = []
    for field, label, now, column in zip(
        ("input", "output"),
        ("Input", "Output"),
        (spec.input_usd_per_mtok, spec.output_usd_per_mtok),
        st.columns([5, 3, 3, 3])[2:],
        strict=True,
    ):
        key = f"catalog.event.{field}.{model}"
        st.session_state.setdefault(key, now)
        prices.append(
            column.number_input(
                f"{label}, USD per Mtok",
                0.001,
                100_000.0,
                step=0.1,
                format="%.6g",
                key=key,
                persist_state="session",
            )  # fmt: skip
        )
    return Event(EventKind.REPRICE, model, *prices)
