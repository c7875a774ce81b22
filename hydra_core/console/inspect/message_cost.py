"""How the costs of a message are found: by the outcome model, else by counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from hydra_core.base.errors import MismatchError
from hydra_core.base.types import BoolArray, Catalog, Rule
from hydra_core.console import cache, selectors
from hydra_core.console.inspect.view import (
    Answers,
    Inspection,
    MessageCosts,
    counted_costs,
    further_tokens,
    predicted_costs,
)
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router, Scorer
from hydra_core.routing.valuation import Valuation


def message_costs(catalog: Catalog, predictor: Scorer, one: Inspection) -> MessageCosts | None:
    """What the inspected message costs on each model; None where a link left its text out.

    Raises:
        HydraError: The outcome model or an eval set cannot be read.
    """
    query, further = one.decision.query, further_tokens(one)
    valued = one.decision.valuation
    if valued is None and query is not None and query.text:
        valued = valuation(catalog, predictor, query)
    if valued is not None:
        return predicted_costs(catalog, valued, further)
    if query is None or not query.text:
        return None
    counted = cache.token_counter().count(query.text)
    return counted_costs(catalog, counted, further, mean_answers(catalog))


def valuation(catalog: Catalog, predictor: Scorer, query: Query) -> Valuation | None:
    """What the catalog predicts for a query, whatever the rule; None where it cannot.

    Raises:
        HydraError: The outcome model cannot be read.
    """
    if catalog.success_source is None:
        return None
    policy = replace(catalog.policy, rule=Rule.VALUE, value_usd=catalog.policy.value_usd or 1.0)
    try:
        return Router(replace(catalog, policy=policy), predictor).route(query).valuation
    except MismatchError:  # the catalog was rebound to another predictor than its outcome model's
        return None


def mean_answers(catalog: Catalog) -> Answers:
    """From the eval set in use, else from the first that has tokens of these models."""
    pair, ids = selectors.current(), {model.id for model in catalog.models}
    sets = [*([pair[0]] if pair else []), *cache.evalsets()]
    for entry in sets:
        if entry.info.problem or not ids & set(entry.info.models):
            continue
        means = _means(entry.info.digest, cache.evalset(entry.info.path, entry.info.digest))
        known = {name: mean for name, mean in means.items() if name in ids}
        if known:
            return Answers(known, entry.info.name)
    return Answers({})


@st.cache_resource(max_entries=32, show_spinner=False)
def _means(digest: str, _evalset: EvalSet) -> dict[str, float]:
    """Model id -> mean tokens of its answers, of those that have some."""
    del digest
    written = _evalset.extras.get("output_tokens")
    if written is None:
        return {}
    known: BoolArray = np.asarray(np.isfinite(written).any(axis=0))
    return {
        name: float(np.nanmean(written[:, i])) for i, name in enumerate(_evalset.models) if known[i]
    }
