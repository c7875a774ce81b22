"""Make a catalog for an eval set; offered wherever no catalog fits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, short_number
from hydra_core.catalog.prices.price_file import GivenPrice, free_entries
from hydra_core.catalog.prices.quotes import PriceQuote
from hydra_core.catalog.prices.recorded import cost_gaps
from hydra_core.choosing import initial_catalog as new_catalog
from hydra_core.choosing.initial_catalog import InitialCatalog
from hydra_core.console import cache, replays, selectors, state, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import SetEntry
from hydra_core.console.eval_sets import scoring
from hydra_core.console.frame import BY_HAND, SETS, go
from hydra_core.console.widgets import literal, uploaded_text
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.export.release import measured
from hydra_core.store.roles import Action

_OPEN = "make_catalog.set"


def possible(entry: SetEntry) -> bool:
    """Whether a catalog of this set could be replayed on it: it has scores or texts, and costs."""
    loaded = cache.evalset(entry)
    return loaded.costed and (bool(entry.info.scored) or loaded.texts is not None)


def offer(entry: SetEntry, *, primary: bool = True) -> None:
    """The button that leads to a catalog for this set, where one is possible."""
    if possible(entry) and st.button(
        "Make a catalog", type="primary" if primary else "secondary",
        icon=":material/add_notes:", key="make_catalog.offer", on_click=open_for,
        args=(entry.key,), help="A catalog with the models, prices and profiles of this eval set",
    ):  # fmt: skip
        go(SETS)


def open_for(key: str) -> None:
    """Have Eval sets show the steps to a catalog for this set (in a callback)."""
    st.session_state[_OPEN] = key
    selectors.use_set(key)
    st.session_state["eval_sets.view"] = "All sets"


def is_open(entry: SetEntry) -> bool:
    """Whether the steps to a catalog are shown for this set."""
    return bool(st.session_state.get(_OPEN) == entry.key)


def panel(entry: SetEntry, loaded: EvalSet) -> None:
    """Scores, prices, then the catalog: what is missing is named at each step."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("#### A catalog for this set", width="stretch")
        st.button(
            "Not now", type="tertiary", key="make_catalog.close",
            on_click=lambda: widgets.forget(_OPEN),
        )  # fmt: skip
    try:
        scored = scoring.score_now(entry, loaded)
        entered = _prices(entry, loaded)
        agreed = entered.complete and _agreement(loaded, entered)
        if scored and agreed:
            _catalog(entry, loaded, entered)
    except HydraError as error:
        widgets.problem(error)


def _prices(entry: SetEntry, loaded: EvalSet) -> new_catalog.EnteredPrices:
    """The table of prices, filled from the set and a file."""
    given, free = new_catalog.recorded_prices(loaded.prices), dict[str, PriceQuote]()
    table = st.container()
    left, upload = st.columns([4, 3], gap="medium")
    with upload:
        file = st.file_uploader(
            "Prices from a file", ["yaml", "yml", "json", "toml", "csv", "tsv", "md"],
            key=f"make_catalog.file.{entry.key}",
            help="`models: {gpt-4o: {input: 2.5, output: 10}}` in USD per million tokens, or a "
            "table with model, input and output, or a list of LiteLLM, OpenRouter, Vercel or "
            "models.dev.",
        )  # fmt: skip
    if file is not None:
        text = uploaded_text(file)
        given |= _given(text, file.name, file.file_id, loaded)
        free = free_entries(text, file.name, loaded.models, as_of=date.today())
    with table:
        edited = _edited(loaded, given, f"{entry.key}.{file.file_id if file else ''}.{len(given)}")
    entered = new_catalog.entered_prices(edited, given, free)
    with left:
        _lacking(entered)
    return entered


def _given(text: str, name: str, stamp: str, loaded: EvalSet) -> dict[str, GivenPrice]:
    """Prices of a file; where a list has a model under another name, that entry is offered."""
    given = new_catalog.prices_of_text(text, name, loaded.models, date.today())
    lacking = [model for model in loaded.models if model not in given]
    near = new_catalog.proposed_entries(text, name, lacking, date.today())
    taken = {}
    for model, quote in near.items():
        label = literal(f"{model}: take the price of {quote.entry} ({quote.in_words})")
        if st.checkbox(label, key=f"make_catalog.near.{stamp}.{model}"):
            taken[model] = quote.entry
    if not taken:
        return given
    return given | new_catalog.prices_of_text(text, name, list(taken), date.today(), taken)


def _agreement(loaded: EvalSet, entered: new_catalog.EnteredPrices) -> bool:
    """Whether prices agree with recorded tokens and costs, or somebody says that they are right."""
    known = {model: one.price for model, one in entered.prices}
    gaps = [gap for gap in cost_gaps(loaded, known) if gap.must_be_confirmed]
    right = True
    for gap in gaps:
        st.error(literal(f"{gap}. Correct the price, or confirm it."), icon=":material/payments:")
        price = known[gap.model]
        key = (
            f"make_catalog.right.{gap.model}.{price.input_usd_per_mtok}.{price.output_usd_per_mtok}"
        )
        right &= st.checkbox(literal(f"The price of {gap.model} is right"), key=key)
    return right


def _edited(loaded: EvalSet, given: Mapping[str, GivenPrice], stamp: str) -> pd.DataFrame:
    """The table as the operator left it."""
    st.markdown("**Prices**, in USD per million tokens")
    column = st.column_config
    table = new_catalog.price_table(loaded.models, given)
    texts = {name: tables.number_texts(table[name], ".15g") for name in new_catalog.PRICE_COLUMNS}
    frame: pd.DataFrame = st.data_editor(
        table.assign(**texts),
        key=f"make_catalog.prices.{stamp}",
        hide_index=True,
        num_rows="fixed",
        disabled=["model", "source"],
        placeholder="–",
        height="content" if len(loaded.models) <= 12 else 460,
        column_config={
            "use": column.CheckboxColumn("Use", width=60),
            "model": column.TextColumn("Model", width="medium"),
            "input": tables.number_column("Input", width=85),
            "output": tables.number_column("Output", width=85),
            "cached": tables.number_column("Cached", width=85),
            "source": column.TextColumn("From", width=110),
        },
    )
    return frame


def _lacking(entered: new_catalog.EnteredPrices) -> None:
    """What the prices lack, or that nothing is."""
    for problem in entered.problems:
        st.error(literal(str(problem)), icon=":material/error:")
    if not entered.models:
        st.warning("Select at least one model.", icon=":material/checklist:")
    elif entered.missing:
        st.warning(
            literal(f"{', '.join(entered.missing)}. Type them in, or untick these models."),
            title=f"Prices of {len(entered.missing)} of {len(entered.models)} models are missing",
            icon=":material/payments:",
        )  # fmt: skip
    elif entered.complete:
        st.caption(":material/check_circle: Every selected model has a price.")


def _catalog(entry: SetEntry, loaded: EvalSet, entered: new_catalog.EnteredPrices) -> None:
    """The proposed catalog, what to know about it, and its publication."""
    cut = bool(st.session_state.get("make_catalog.cut", True))
    made = replays.new_catalog(entry, entered, cut)
    with st.container(border=True):
        policy = made.catalog.policy
        order = {"realised": "mean cost in this set", "list_price": "list price"}
        st.markdown(
            literal(
                f"{counted(len(made.catalog.models), 'model')}, ordered by "
                f"{order[policy.cost_basis.value]}. "
                f"Profiles and τ {short_number(policy.tau)} come from {made.trained_on:,} of "
                f"{counted(loaded.n, 'query')}, bands from all of them."
            )
        )
        if made.under_hull:
            names = ", ".join(one.model for one in made.under_hull)
            st.checkbox(
                literal(f"Leave out {names}"), value=True, key="make_catalog.cut",
                help="The shortfall rule loses most with a model that costs more than a mix of "
                "other models and is worse.",
            )  # fmt: skip
            for one in made.under_hull:
                st.caption(literal(str(one)))
        for warning in made.warnings:
            st.warning(literal(warning), icon=":material/warning:")
        st.caption(":material/info: Edit in the catalog what is not so. "
                   + " ".join(literal(text) for text in made.assumptions))  # fmt: skip
        _publication(entry, loaded, made)


def _publication(entry: SetEntry, loaded: EvalSet, made: InitialCatalog) -> None:
    """Name it, then publish it and tune, or take the file where the actor may not publish."""
    left, right = st.columns([4, 3], vertical_alignment="bottom")
    name = left.text_input("Name", loaded.name, key="make_catalog.name", max_chars=120)
    key = new_catalog.free_key(name, [one.key for one in cache.catalogs()])
    text = new_catalog.named(made.text, name.strip() or key)
    if not identity.may(Action.PUBLISH):
        st.caption("Publishing needs the role publisher. Download the catalog and give it to one.")
        right.download_button(
            "Download the catalog", text, f"{key}.yaml", "application/yaml",
            icon=":material/download:", width="stretch", key="make_catalog.download",
        )  # fmt: skip
        return
    if right.button(
        "Publish and open Tune", type="primary", icon=":material/publish:", width="stretch",
        key="make_catalog.publish",
    ):  # fmt: skip
        _publish(entry, key, text)


def _publish(entry: SetEntry, key: str, text: str) -> None:
    catalog, _ = cache.parsed(text, key)
    metrics = {} if catalog is None else measured(replays.replayed(entry, catalog), entry.info)
    note = f"Made from eval set {entry.info.name}"
    cache.store().publish(
        key, text, actor=identity.actor(), base_revision=0, note=note, metrics=metrics
    )
    widgets.forget(_OPEN)
    state.put(evalset=entry.key, catalog=key, tau=None, weights=None, pin=None, baseline="")
    go(BY_HAND)
