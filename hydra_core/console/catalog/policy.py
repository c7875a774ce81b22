"""The Catalog page's policy and teams: each setting edited in the draft, and what it alone does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.reading.fields import LARGEST
from hydra_core.base.spelling import short_number
from hydra_core.base.types import (
    Catalog,
    CostBasis,
    FloatArray,
    Period,
    Policy,
    Rule,
    StickyMode,
    SuccessSource,
    Team,
    TeamBudget,
    WhenSpent,
)
from hydra_core.catalog.diff import team_text
from hydra_core.catalog.editing.document import CatalogDocument, Data, Value
from hydra_core.console import cache, drafts, replays, selectors
from hydra_core.console.cache import CatalogEntry, SetEntry
from hydra_core.console.catalog import what_if as what_if_view
from hydra_core.console.drafts import Working
from hydra_core.console.inspect.view_conversation import MODE_MEANINGS, MODES
from hydra_core.console.widgets import literal
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import what_if

#: The score caps of the defences, one a dimension.
CAPS: Final = "defences.score_caps"
#: Whether agents' stalls raise anything.
STALL: Final = "stall.after"
_ROUTES: Final = (
    "require",
    "second_usd",
    "rule",
    "tau",
    "value_usd",
    "success_from",
    "cost_basis",
    "price_ratio",
)
_THEN: Final = {WhenSpent.REFUSE: "Refuse (429)", WhenSpent.CHEAPEST: "Cheapest model goes on"}
_NEW: Final = "A new team"


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting: its place in the policy, its label, help, and how it is entered.

    Attributes:
        empty: What an empty field means, for a setting that may be absent.
    """

    name: str
    label: str
    text: str
    step: float = 0.01
    most: float = LARGEST
    least: float = 0.0
    empty: str = ""
    options: Mapping[Any, str] = field(default_factory=dict)


_RULE = _Setting(
    "rule", "Rule",
    "Shortfall: the cheapest model that falls short by no more than τ. Value: the model whose "
    "predicted success is worth most against its cost; Tune, Learned makes what it predicts with.",
    options={Rule.SHORTFALL: "Shortfall", Rule.VALUE: "Value"},
)  # fmt: skip
_TAU = _Setting(
    "tau", "Threshold τ", "Largest weighted shortfall a model may have and still be eligible."
)
_VALUE = _Setting(
    "value_usd", "Value V, USD", "What one more resolved query is worth to you.", step=0.001
)
_SECOND = _Setting(
    "second_usd", "Price of a second, USD",
    "What a second of waiting costs you. Weighed beside cost; needs the seconds of every model in "
    "the table of models.", step=0.0001,
)  # fmt: skip
_SOURCE = _Setting(
    "success_from", "Predicts with",
    "Success profiles stand in this catalog. An outcome model reads more of a message, and lies "
    "beside it.",
    options={
        SuccessSource.SUCCESS_PROFILES: "Success profiles",
        SuccessSource.OUTCOME_MODEL: "Outcome model",
    },
)  # fmt: skip
_BASIS = _Setting(
    "cost_basis", "Cost basis",
    "What orders the models by cost: blended list prices, or their mean realised cost.",
    options={CostBasis.LIST_PRICE: "List price", CostBasis.REALISED: "Realised cost"},
)  # fmt: skip
_RATIO = _Setting(
    "price_ratio", "Input tokens per output token",
    "Blends the two list prices into one: 3 means three tokens in for one out.", step=0.5,
)  # fmt: skip
_STICKY = (
    _Setting("sticky.mode", "Stickiness", "\n\n".join(MODE_MEANINGS.values()), options=MODES),
    _Setting(
        "sticky.threshold", "Sticky threshold γ",
        "A later turn whose largest requirement is below γ keeps its model unseen.",
        step=0.05, most=1.0,
    ),
    _Setting("sticky.ttl_s", "Kept for, seconds", "How long a conversation's model is remembered.",
             step=60.0),
)  # fmt: skip
_MARGIN = _Setting(
    "sticky.margin", "Margin beyond τ", "How far beyond τ a kept model may fall short (adaptive)."
)
_FLOOR = _Setting(
    "health_floor", "Health floor",
    "A model whose health is below this is left out of the ranking.", step=0.05, most=1.0,
)  # fmt: skip
_BUDGET = _Setting(
    "defences.budget_usd", "Budget of a conversation, USD",
    "Once the request says that so much was spent, only the cheapest model is left. In force with "
    "`serve` and wherever a request carries `spent_usd`.", step=0.1, empty="no limit",
)  # fmt: skip


_REQUIRE = _Setting(
    "require", "Required tags",
    "Only models that have all of these tags are routed to. Words between commas, such as eu, zdr; "
    "a model's tags are in the table of models.", empty="none",
)  # fmt: skip
_STALL = _Setting(
    STALL, "Failed tool results in a row",
    "From so many tool results in a row that report failure, or calls that are the same, an "
    "agent's request counts as harder; after twice as many, twice as much harder.",
    step=1.0, least=2.0, empty="off",
)  # fmt: skip
_STALL_STEP = _Setting(
    "stall.requirement_step", "Added to every requirement", "Under the shortfall rule.",
    step=0.05, most=1.0,
)  # fmt: skip
_STALL_FACTOR = _Setting(
    "stall.value_factor", "V is multiplied by", "Under the value rule.", step=1.0, least=1.0,
)  # fmt: skip


def decides_routes(name: str) -> bool:
    """Whether a field decides routes of single queries, so that a replay shows its effect."""
    return name in _ROUTES or name.startswith(f"{CAPS}.")


def value_of(policy: Policy, name: str) -> object:
    """The value of `tau`, `sticky.mode` and so on; None for what is not there."""
    found: object = policy
    for step in name.split("."):
        found = found.get(step) if isinstance(found, Mapping) else getattr(found, step, None)
    return found


def defences_text(policy: Policy) -> str:
    """The defences that are switched on, in a few words."""
    caps = [f"{name.replace('_', ' ')} {cap:g}" for name, cap in policy.defences.score_caps.items()]
    lines = [f"scores count up to {', '.join(caps)}"] if caps else []
    if policy.defences.budget_usd is not None:
        lines.append(f"${short_number(policy.defences.budget_usd, 10)} a conversation")
    return "; ".join(lines) or "none"


def alone(before: Catalog, after: Catalog, name: str) -> Catalog:
    """`before` with this one field of its policy as `after` has it."""
    head, _, tail = name.partition(".")
    given = getattr(after.policy, head)
    if name.startswith(f"{CAPS}."):
        dimension, caps = tail.partition(".")[2], dict(before.policy.defences.score_caps)
        caps.pop(dimension, None)
        if dimension in given.score_caps:
            caps[dimension] = given.score_caps[dimension]
        given = replace(before.policy.defences, score_caps=caps)
    changed = replace(before, policy=replace(before.policy, **{head: given}))
    if head in ("rule", "value_usd", "success_from"):  # needs what it predicts with
        policy = replace(changed.policy, success_from=after.policy.success_from)
        return replace(
            changed, policy=policy, outcome_model=after.outcome_model,
            success_profiles=after.success_profiles,
        )  # fmt: skip
    return changed


def with_field(text: str, name: str, value: Value) -> str:
    """The catalog text with one field of its policy written; None takes it out.

    Raises:
        CatalogError: It cannot be written there.
    """
    document = CatalogDocument.parse(text)
    # a team's name may hold points, as in eu.search
    steps = ["policy", *name.split(".", 1 if name.startswith("teams.") else -1)]
    if value is None:
        steps = steps[:2] if name == STALL else steps  # without it the section means nothing
        if _at(document.data(), steps) is not None:
            document.remove(*steps)
        return document.text()
    # Sections that are not there yet are written around the value.
    while len(steps) > 2 and not isinstance(_at(document.data(), steps[:-1]), dict):
        value = {steps.pop(): value}
    document.set(*steps, value)
    return document.text()


def _at(data: Data, steps: Sequence[str]) -> Data:
    for step in steps:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def conversation_note(name: str, policy: Policy, evalset: EvalSet, requirements: FloatArray) -> str:
    """What a field on conversations or health would act on; replays route every query alone.

    Args:
        name: One of the fields that decide no route of a single query.
        policy: The policy worked on.
        evalset: The set in use.
        requirements: (n, K) of its queries.
    """
    if name == "health_floor":
        return "Eval sets carry no health, so no route here changes."
    if name == "defences.budget_usd":
        return (
            "Eval sets carry no spending, so no route here changes. A request says spent_usd; from "
            "the budget on only the cheapest model is left."
        )
    if name.startswith("stall."):
        return "Eval sets carry no tool results, so no route here changes."
    if name == "sticky.ttl_s":
        return "Eval sets carry no times, so no route here changes."
    if name == "sticky.threshold":
        below = float((requirements.max(axis=1) < policy.sticky.threshold).mean())
        return f"{100 * below:.0f} % of the queries ask for less than this on every dimension."
    later = 0
    if "conversation_id" in evalset.queries.columns:
        known = evalset.queries["conversation_id"].dropna()
        later = len(known) - known.nunique()
    if not later:
        return "No query of this set continues a conversation, so no route here changes."
    return (
        f"{later:,} of {evalset.n:,} queries continue a conversation: what the mode is about. "
        "A replay routes each by itself; play one on the page Conversation."
    )


def _cap(dimension: str) -> _Setting:
    named = dimension.replace("_", " ")
    return _Setting(
        f"{CAPS}.{dimension}", f"Cap on {named}",
        f"Scores of {named} count up to here under the shortfall rule, whatever a message claims. "
        "Inspect, Robustness shows what it keeps out.", step=0.05, most=1.0, empty="no cap",
    )  # fmt: skip


def policy(entry: CatalogEntry, working: Working) -> None:
    """All settings, then the effect of the whole draft."""
    catalog = working.catalog
    if catalog is None or working.published is None:
        st.caption("Undo the last edit. A fault of a model can also be corrected under Models.")
        return
    place, _ = st.columns([4, 7])
    chosen = selectors.choose_evalset(place, working.published)

    def row(setting: _Setting) -> None:
        """A setting, and beside it what it alone does."""
        left, right = st.columns([4, 7], vertical_alignment="bottom", gap="medium")
        with left:
            _control(entry, working, catalog, setting)
        right.caption(_effect(setting, working, catalog, chosen))

    with st.container(border=True):
        for setting in _settings(catalog):
            row(setting)
    with st.expander("Defences", icon=":material/shield:", key="catalog.defences"):
        st.caption(f"Switched on: {literal(defences_text(catalog.policy))}.")
        for setting in (*map(_cap, catalog.dimensions), _BUDGET):
            row(setting)
    with st.expander("Teams", icon=":material/groups:", key="catalog.teams"):
        teams(entry, catalog)
    with st.expander("Agent stalls", icon=":material/smart_toy:", key="catalog.stall"):
        st.caption(
            "An agent that tries the same again and again needs a stronger model. Off unless you "
            "say after how many failures."
        )
        for setting in _stall(catalog.policy):
            row(setting)
    if chosen is not None:
        st.subheader("All edits together", anchor=False)
        found = what_if_view.compared(chosen, working.published, catalog)
        if found is not None:
            what_if_view.deltas(found, working.before)


def _settings(catalog: Catalog) -> tuple[_Setting, ...]:
    """The settings that count under the present rule, basis and mode."""
    now = catalog.policy
    by_value, both = now.rule is Rule.VALUE, now.success_from is not None
    knobs = (_VALUE, _SECOND, *((_SOURCE,) if both else ())) if by_value else (_TAU,)
    ratio = (_RATIO,) if now.cost_basis is CostBasis.LIST_PRICE else ()
    margin = (_MARGIN,) if now.sticky.mode is StickyMode.ADAPTIVE else ()
    return (_RULE, *knobs, _BASIS, *ratio, *_STICKY, *margin, _FLOOR, _REQUIRE)


def _stall(now: Policy) -> tuple[_Setting, ...]:
    """The settings of a stall that count under the present rule."""
    if now.stall is None:
        return (_STALL,)
    return (_STALL, _STALL_STEP if now.rule is Rule.SHORTFALL else _STALL_FACTOR)


def _control(entry: CatalogEntry, working: Working, catalog: Catalog, setting: _Setting) -> None:
    version = working.draft.version if working.draft else 0
    key = f"catalog.policy.{setting.name}.{drafts.generation()}.{version}"
    now: Any = value_of(catalog.policy, setting.name)
    given: dict[str, Any] = {
        "key": key, "help": setting.text, "disabled": not drafts.may_edit(),
        "on_change": _edited, "args": (entry, key, setting.name),
    }  # fmt: skip
    if setting.options:
        # the value rule needs something to predict with and a V: Tune, Learned sets both
        by_value = catalog.success_source is not None
        options = [one for one in setting.options if by_value or one is not Rule.VALUE]
        names = {one: setting.options[one] for one in options}
        st.selectbox(
            setting.label, options, options.index(now), format_func=names.__getitem__, **given
        )
        return
    if isinstance(now, frozenset):
        words = ", ".join(sorted(now))
        st.text_input(setting.label, words, placeholder=setting.empty, **given)
        return
    shown = None if setting.empty else float(now or 0.0)
    if setting.empty:  # only a field whose own value is nothing can be emptied in the browser
        st.session_state.setdefault(key, now)
    st.number_input(
        setting.label, setting.least, setting.most, shown, setting.step, "%.10g",
        placeholder=setting.empty or None, **given,
    )  # fmt: skip


def _edited(entry: CatalogEntry, key: str, name: str) -> None:
    """Write an entered value as the policy keeps it; words between commas become a list."""
    value: StrEnum | str | float | None = st.session_state[key]
    plain: Value = None
    if isinstance(value, StrEnum):
        plain = value.value
    elif isinstance(value, str):
        plain = [word.strip() for word in value.split(",") if word.strip()] or None
    elif value is not None:
        plain = float(value)
    drafts.edit(entry, lambda text: with_field(text, name, plain))


def _effect(setting: _Setting, working: Working, catalog: Catalog, chosen: SetEntry | None) -> str:
    """What this setting alone does on the set, in one sentence."""
    assert working.published is not None
    was, now = (value_of(c.policy, setting.name) for c in (working.published, catalog))
    if isinstance(was, frozenset):
        shown = ", ".join(sorted(was)) or setting.empty
    elif isinstance(was, StrEnum):
        shown = setting.options[was]
    else:
        shown = short_number(float(was), 6) if isinstance(was, int | float) else setting.empty
    before = f"{'Published' if working.newest else 'File'}: {literal(shown)}. "
    as_before = "As published." if working.newest else "As in the file."
    if was == now and decides_routes(setting.name):
        learn = setting is _RULE and catalog.success_source is None
        return as_before + (" Tune, Learned offers the value rule." if learn else "")
    before = f"{as_before} " if was == now else before
    if chosen is None:
        return before + "No eval set fits this catalog, so its effect cannot be shown."
    try:
        replayed = replays.replayed(chosen, working.published)
        if not decides_routes(setting.name):
            evalset = cache.evalset(chosen)
            needs = replayed.data.requirements
            return before + conversation_note(setting.name, catalog.policy, evalset, needs)
        changed = alone(working.published, catalog, setting.name)
        found = what_if(replayed, replays.replayed(chosen, changed))
    except (HydraError, ValueError) as error:
        return before + literal(str(error))
    return before + literal(what_if_view.alone(found))


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


def _form(entry: CatalogEntry, catalog: Catalog, name: str) -> None:
    team = catalog.policy.teams.get(name, Team())
    budget = team.budget or TeamBudget(0.0)
    by_value = catalog.policy.rule is Rule.VALUE
    key, viewing = f"catalog.teams.{name}.{drafts.generation()}", not drafts.may_edit()
    with st.form(key, border=False):
        left, middle, right = st.columns(3)
        said = left.text_input("Team", name, disabled=bool(name) or viewing, placeholder="search")
        ids = [one.id for one in catalog.models]
        allowed = sorted(team.models or ())
        ids += [model for model in allowed if model not in ids]  # kept until taken out
        models = middle.multiselect("Models", ids, allowed,
                                    placeholder="all models", disabled=viewing)  # fmt: skip
        knob = right.number_input(
            "Value V, USD" if by_value else "Threshold τ",
            0.0, LARGEST, team.value_usd if by_value else team.tau, format="%.10g",
            placeholder="as the policy", disabled=viewing,
        )  # fmt: skip
        usd = left.number_input("Budget, USD", 0.0, LARGEST, budget.usd or None, format="%.10g",
                                placeholder="no limit", disabled=viewing)  # fmt: skip
        per = middle.selectbox("For each", list(Period), list(Period).index(budget.per),
                               disabled=viewing)  # fmt: skip
        then = right.selectbox("At 100 %", list(_THEN), list(_THEN).index(budget.when_spent),
                               format_func=_THEN.__getitem__, disabled=viewing)  # fmt: skip
        begins = left.number_input(
            "Cheaper from, %", 0.0, 99.0, 100 * budget.falls_from, 5.0, "%.10g",
            disabled=viewing,
        )  # fmt: skip
        ends = middle.number_input(
            "Cheapest alone from, %", 1.0, 100.0, 100 * budget.cheapest_from, 5.0, "%.10g",
            disabled=viewing,
        )  # fmt: skip
        least = right.number_input(
            "V falls to (share)" if by_value else "τ is divided by up to 1 /",
            1e-6, 1.0, budget.least, 0.05, format="%.10g", disabled=viewing,
        )  # fmt: skip
        saved = st.form_submit_button("Save team", disabled=viewing)
    if name:
        removed = drafts.editing(entry, lambda text: with_field(text, f"teams.{name}", None))
        st.button("Remove team", icon=":material/delete:", disabled=viewing, on_click=removed)
    if not saved:
        return
    if not said.strip():
        st.warning("Give the team its name: the one that its tokens carry.")
        return
    if not name and said.strip() in catalog.policy.teams:
        st.warning(f"There is a team {literal(said.strip())}: choose it under Edit to change it.")
        return
    known: dict[str, Any] = {"models": models or None, "tau": team.tau, "value_usd": team.value_usd}
    known["value_usd" if by_value else "tau"] = knob
    if usd:
        known["budget"] = {
            "usd": usd, "per": str(per or Period.MONTH), "falls_from": round(begins, 9) / 100,
            "cheapest_from": round(ends, 9) / 100, "least": least,
            "when_spent": str(then or WhenSpent.REFUSE),
        }  # fmt: skip
    written: Value = {field: value for field, value in known.items() if value is not None}
    drafts.edit(entry, lambda text: with_field(text, f"teams.{said.strip()}", written))
    st.rerun()
