"""The Catalog page's teams: who may use which models, at which knob, with which budget."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from hydra_core.base.types import Catalog, Period, Rule, Team, TeamBudget, WhenSpent
from hydra_core.catalog.diff import team_text
from hydra_core.catalog.editing.render import Value
from hydra_core.console import drafts
from hydra_core.console.cache import CatalogEntry
from hydra_core.console.catalog.view_policy import with_field
from hydra_core.console.widgets import literal

_THEN: Final = {WhenSpent.REFUSE: "Refuse (429)", WhenSpent.CHEAPEST: "Cheapest model goes on"}
_NEW: Final = "A new team"


def teams(entry: CatalogEntry, catalog: Catalog) -> None:
    """Every team in a line, and a form for one."""
    now = catalog.policy.teams
    st.caption(
        "A token carries its team. As a budget is used up, V falls (τ grows), then only the "
        "cheapest eligible model is left. Tune, Budgets shows what that does."
    )
    for name, team in now.items():
        st.markdown(f"**{literal(name)}**  {literal(team_text(team))}")
    names = [_NEW, *now]
    chosen = st.selectbox("Edit", names, key="catalog.teams.which", width=260)
    _form(entry, catalog, chosen if chosen in now else "")


def _removed(entry: CatalogEntry, name: str) -> None:
    drafts.edit(entry, lambda text: with_field(text, f"teams.{name}", None))


def _form(entry: CatalogEntry, catalog: Catalog, name: str) -> None:
    team = catalog.policy.teams.get(name, Team())
    budget = team.budget or TeamBudget(0.0)
    by_value = catalog.policy.rule is Rule.VALUE
    key = f"catalog.teams.{name}.{drafts.generation()}"
    with st.form(key, border=False):
        left, middle, right = st.columns(3)
        said = left.text_input("Team", name, disabled=bool(name), placeholder="search")
        ids = [one.id for one in catalog.models]
        allowed = sorted(team.models or ())
        models = middle.multiselect("Models", ids, [m for m in allowed if m in ids],
                                    placeholder="all models")  # fmt: skip
        knob = right.number_input(
            "Value V, USD" if by_value else "Threshold τ",
            0.0, None, team.value_usd if by_value else team.tau, format="%.6g",
            placeholder="as the policy",
        )  # fmt: skip
        usd = left.number_input("Budget, USD", 0.0, None, budget.usd or None, format="%.6g",
                                placeholder="no limit")  # fmt: skip
        per = middle.selectbox("For each", list(Period), list(Period).index(budget.per))
        then = right.selectbox("At 100 %", list(_THEN), list(_THEN).index(budget.when_spent),
                               format_func=_THEN.__getitem__)  # fmt: skip
        begins = left.number_input("Cheaper from, %", 0.0, 99.0, 100 * budget.falls_from, 5.0)
        ends = middle.number_input(
            "Cheapest alone from, %", 1.0, 100.0, 100 * budget.cheapest_from, 5.0
        )
        least = right.number_input(
            "V falls to (share)" if by_value else "τ is divided by up to 1 /",
            0.001,
            1.0,
            budget.least,
            0.05,
        )
        saved = st.form_submit_button("Save team", disabled=not drafts.may_edit())
    if name:
        st.button(
            "Remove team", icon=":material/delete:", disabled=not drafts.may_edit(),
            on_click=_removed, args=(entry, name),
        )  # fmt: skip
    if not saved:
        return
    known: dict[str, Any] = {"models": models or None, "value_usd" if by_value else "tau": knob}
    if usd:
        known["budget"] = {
            "usd": usd, "per": str(per or Period.MONTH), "falls_from": begins / 100,
            "cheapest_from": ends / 100, "least": least,
            "when_spent": str(then or WhenSpent.REFUSE),
        }  # fmt: skip
    written: Value = {field: value for field, value in known.items() if value is not None}
    if said.strip():
        drafts.edit(entry, lambda text: with_field(text, f"teams.{said.strip()}", written))
        st.rerun()
