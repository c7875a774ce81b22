"""Inspect under the value rule: both rules side by side, candidates, similar queries, costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from hydra_core.base.errors import MismatchError
from hydra_core.base.spelling import set_usd
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import BoolArray, Catalog, Rule
from hydra_core.console import cache, selectors, tables
from hydra_core.console.inspect import view
from hydra_core.console.numbers import knob_text, policy_text
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router, Scorer
from hydra_core.routing.valuation import Valuation

_TEXT_CHARS = 160


def other_rule(catalog: Catalog) -> Catalog | None:
    """The catalog under the other rule; None where it has one rule only."""
    policy = catalog.policy
    if catalog.success_source is None or policy.value_usd is None:
        return None
    rule = Rule.SHORTFALL if policy.rule is Rule.VALUE else Rule.VALUE
    return replace(catalog, policy=replace(policy, rule=rule))


def both(one: view.Inspection, other: view.Inspection) -> None:
    """What each rule decides and why, the one in force first."""
    agree = one.decision.model == other.decision.model
    st.markdown(
        "**Both rules choose the same model**" if agree else "**The rules choose different models**"
    )
    for place, shown, active in zip(st.columns(2), (one, other), (True, False), strict=True):
        with place.container(gap="xxsmall"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(f"**{literal(shown.decision.model)}**", width="content")
                if active:
                    st.badge("in force", color="green")
            st.caption(literal(policy_text(shown.catalog.policy)))
            st.markdown(literal(shown.chosen.reason))


def candidates(one: view.Inspection) -> None:
    """Every model with predicted success, cost and one sentence."""
    table, valued = view.value_table(one), one.decision.valuation
    assert valued is not None
    bold = (table["Model"] == one.decision.model).map({True: "font-weight: 700", False: ""})
    styled = tables.renamed(table, table["Model"]).map(literal).style.apply(lambda _: bold)
    st.markdown("**Every model, cheapest first**")
    st.table(styled.hide(axis="index"), border="horizontal")
    tables.offer_downloads(table, "inspect.candidates.table")
    st.caption(_basis(valued) + (f" {literal(one.costs.basis)}" if one.costs else ""))


def _basis(valued: Valuation) -> str:
    valuer = valued.valuer
    text = (
        f"Worth: predicted success less cost / V, at {knob_text(Rule.VALUE, valued.value_usd)}; "
        "the rule takes the largest."
    )
    if valued.seconds is not None:
        text += f" A second of waiting counts as {set_usd(valued.second_usd)} of cost."
    if valuer.outcome_model is None:
        text += f" By success profiles, fitted to the outcomes of {valuer.evalset}."
    else:
        text = f"In brackets: 95 % interval, from what similar predictions came to. {text}"
        text += f" Learned from the outcomes of {valuer.evalset}."
    if placed := valuer.predictions.placed:
        text += f" No outcomes of {', '.join(placed)}: predicted from the other models and "
        text += "from the profile."
    return literal(text)


def neighbours(one: view.Inspection) -> None:
    """The learned queries most like this message, and what the models achieved on them."""
    valued, model = one.decision.valuation, one.decision.model
    assert valued is not None
    if valued.valuer.outcome_model is None:
        st.caption(
            "Success profiles read the requirements alone, so there are no similar queries to show."
        )
        return
    if not valued.columns.size:
        st.caption("This link has no text, so similar learned queries cannot be shown.")
        return
    frame = view.neighbour_table(one, _texts(valued))
    known = frame[model].dropna()
    st.markdown("**Outcomes of similar queries**")
    if known.empty:
        st.caption(literal(f"{model} has no outcome on the queries most like this one."))
    else:
        won = int((known >= 50).sum())
        st.markdown(
            literal(f"{model} resolved {won} of the {len(known)} learned queries most like this.")
        )
    column = st.column_config
    tables.kept(
        frame.assign(text=frame["text"].str.slice(0, _TEXT_CHARS)), "inspect.neighbours",
        columns={
            "query": column.TextColumn("Query", width=110),
            **({"text": column.TextColumn("Text", width=220)} if frame["text"].any() else {}),
            "likeness": column.NumberColumn(
                "Likeness", format="%.2f", width=70,
                help="Cosine similarity of the two messages; 1 means equal.",
            ),
            **{
                # all of a usual pool's columns fit beside each other
                name: column.NumberColumn(
                    name, format="%.0f %%", width=min(max(8 * len(name) + 16, 70), 140)
                )
                for name in frame.columns[3:]
            },
        },
    )  # fmt: skip


def _texts(valued: Valuation) -> dict[str, str]:
    """Texts of the learned set by query id, where that set is here and has texts."""
    digest = valued.valuer.evalset_digest
    entry = next((one for one in cache.evalsets() if one.info.digest == digest), None)
    loaded = None if entry is None else cache.evalset(entry)
    if loaded is None or loaded.texts is None:
        return {}
    return dict(zip(loaded.query_ids, loaded.texts.tolist(), strict=True))


def message_costs(
    catalog: Catalog, predictor: Scorer, one: view.Inspection
) -> view.MessageCosts | None:
    """What the inspected message costs on each model; None where a link left its text out."""
    query, further = one.decision.query, view.further_tokens(one)
    valued = one.decision.valuation
    if valued is None and query is not None and query.text:
        valued = valuation(catalog, predictor, query)
    if valued is not None:
        size = 0.0 if query is None else further + text_tokens(query.text) + one.left_out
        return view.predicted_costs(catalog, valued, further, size)
    if query is None or not query.text:
        return None
    counted = cache.token_counter().count(query.text)
    return view.counted_costs(catalog, counted, further, mean_answers(catalog))


def valuation(catalog: Catalog, predictor: Scorer, query: Query) -> Valuation | None:
    """What the catalog predicts for a query, whatever the rule; None where it cannot."""
    if catalog.success_source is None:
        return None
    policy = replace(catalog.policy, rule=Rule.VALUE, value_usd=catalog.policy.value_usd or 1.0)
    try:
        return Router(replace(catalog, policy=policy), predictor).route(query).valuation
    except MismatchError:  # the catalog was rebound to another predictor than its outcome model's
        return None


def mean_answers(catalog: Catalog) -> view.Answers:
    """From the eval set in use, else from the first that has tokens of these models."""
    pair, ids = selectors.current(), {model.id for model in catalog.models}
    sets = [*([pair[0]] if pair else []), *cache.evalsets()]
    for entry in sets:
        if entry.info.problem or not ids & set(entry.info.models):
            continue
        means = _means(cache.evalset(entry))
        known = {name: mean for name, mean in means.items() if name in ids}
        if known:
            return view.Answers(known, entry.info.name)
    return view.Answers({})


@cache.cached(32)
def _means(evalset: EvalSet) -> dict[str, float]:
    """Model id -> mean tokens of its answers, of those that have some."""
    written = evalset.extras.get("output_tokens")
    if written is None:
        return {}
    known: BoolArray = np.asarray(np.isfinite(written).any(axis=0))
    return {
        name: float(np.nanmean(written[:, i])) for i, name in enumerate(evalset.models) if known[i]
    }
