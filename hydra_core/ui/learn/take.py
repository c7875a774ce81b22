"""One click takes what was learned into the catalog draft."""

from __future__ import annotations

import streamlit as st

from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.outcome_model.find import FOLDER
from hydra_core.outcome_model.model import OutcomeModel
from hydra_core.types import Rule, Selection
from hydra_core.ui import cache, chosen_on, drafts, selectors, widgets
from hydra_core.ui.cache import SetEntry
from hydra_core.ui.widgets import literal
from hydra_core.views.frontier import usd
from hydra_core.views.learn.answer import headline

__all__ = ["take"]


def take(model: OutcomeModel, value_usd: float, entry: SetEntry) -> None:
    """V, and the way into the catalog draft."""
    recommended, _, _ = headline(model)
    st.markdown(f"**One more resolved query is worth {literal(usd(value_usd))}**")
    st.caption(
        "This V spends half of what the rule can: between its cheapest and its dearest routes."
    )
    if drafts.may_edit():
        st.button(
            "Take it into the catalog draft", icon=":material/edit_note:", key="learn.take",
            type="primary" if recommended else "secondary", width="stretch",
            on_click=_draft, args=(model, value_usd, entry),
            help="Sets rule, V and the outcome model in your draft; nothing is published.",
        )  # fmt: skip
    told = st.session_state.pop("learn.told", "")
    if told:
        st.caption(f":material/check: {literal(told)}")
        st.page_link(
            "pages/ship/export.py", label="Review and publish", icon=":material/rocket_launch:"
        )
    problem = drafts.kept_error()
    if problem is not None:
        widgets.problem(problem)


def _draft(model: OutcomeModel, value_usd: float, entry: SetEntry) -> None:
    pair = selectors.current()
    if pair is None:
        return
    learned_on = chosen_on.chosen(entry, Selection.CROSS_FITTED, knob_alone=True)
    key = pair[1].key
    if drafts.edit(pair[1], lambda text: drafted(text, key, model, value_usd), chosen=learned_on):
        st.session_state["learn.told"] = "Your draft of the catalog routes by value."


def drafted(text: str, source: str, model: OutcomeModel, value_usd: float) -> str:
    """The catalog text with the value rule, V, and the outcome model it predicts with.

    Raises:
        CatalogError: The draft cannot be written.
    """
    document = CatalogDocument.parse(text, source)
    document.set("policy", "rule", Rule.VALUE.value)
    document.set("policy", "value_usd", value_usd)
    known = cache.parsed(text, source)[0]
    named = None if known is None else known.outcome_model
    if named is None or named.sha256 != model.digest:
        reference = {"path": f"{FOLDER}/{model.path.name}", "sha256": model.digest}
        document.set("outcome_model", reference)
    return document.text()
