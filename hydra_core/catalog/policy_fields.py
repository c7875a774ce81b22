"""The `policy` section with its teams, and the outcome model that the value rule predicts with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hydra_core.base.digests import SHA256
from hydra_core.base.fitted_blocks import Promised
from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section
from hydra_core.base.types import (
    Chosen,
    CostBasis,
    Defences,
    OutcomeModelRef,
    Period,
    Policy,
    Rule,
    Selection,
    Stall,
    StickyMode,
    StickyPolicy,
    SuccessSource,
    Team,
    TeamBudget,
    WhenSpent,
)

_TEAM_REMEDY: Final = "a team's name: {models, tau, value_usd, budget}"
_BUDGET: Final = "such as {usd: 50, per: month}"
_FROM: Final = Bounds(0.0, 0.99)
_UNTIL: Final = Bounds(0.01, 1.0)
_LEAST: Final = Bounds(1e-6, 1.0)
_MOST_TEAMS: Final = 500
_KEYS: Final = (
    *("tau", "weights", "cost_basis", "price_ratio", "sticky", "health_floor"),
    *("rule", "value_usd", "success_from", "defences", "chosen_on", "stall", "require"),
    *("promise", "teams", "second_usd"),
)
_VALUE_REMEDY: Final = "value of one more resolved query in USD, such as 0.02"
_MODEL_REMEDY: Final = "give path and sha256, as printed by `hydra-router learn`"
_SECOND: Final = "what a second of waiting costs in USD, such as 0.0005"
_INSIDE: Final = Bounds(0.0, 1.0, above=True)
_FACTOR: Final = Bounds(1.0, 1e6, above=True)
_SOURCE_REMEDY: Final = "outcome_model or success_profiles, whichever the value rule shall use"
_MARK: Final = re.compile(r"[0-9a-f]{12}")


def read_policy(root: Section, dimensions: tuple[str, ...]) -> Policy | None:
    """The policy, None with at least one problem recorded."""
    section = root.section("policy", "give at least tau and weights", keys=_KEYS)
    if section is None:
        return None
    tau = section.number("tau", Bounds(0.0), "the largest acceptable shortfall, such as 0.24")
    weights = _weights(section, dimensions)
    ratio_remedy = "input tokens per output token, such as 3"
    stated = _stated(
        cost_basis=section.choice(
            "cost_basis", CostBasis, "list_price or realised", required=False
        ),
        price_ratio=section.number("price_ratio", POSITIVE, ratio_remedy, required=False),
        health_floor=section.number("health_floor", SHARE, "such as 0.1", required=False),
        rule=section.choice("rule", Rule, "shortfall or value", required=False),
        value_usd=section.number("value_usd", POSITIVE, _VALUE_REMEDY, required=False),
        success_from=section.choice("success_from", SuccessSource, _SOURCE_REMEDY, required=False),
        chosen_on=_chosen_on(section),
        sticky=_sticky(section),
        defences=_defences(section, dimensions),
        stall=_stall(section),
        teams=_teams(section),
        second_usd=section.number("second_usd", Bounds(0.0), _SECOND, required=False),
        require=section.words("require", "tags that every model must have, such as [eu]"),
        promise=_promise(section),
    )
    if stated.get("rule") is Rule.VALUE and section.node.get("value_usd") is None:
        section.wrong("value_usd", "is missing, and the rule is 'value'", _VALUE_REMEDY)
    return None if tau is None else Policy(tau=tau, weights=weights, **stated)


def _stated(**values: object) -> dict[str, Any]:
    """The values that the file gives; the others keep their default."""
    return {name: value for name, value in values.items() if value is not None}


def _defences(policy: Section, dimensions: tuple[str, ...]) -> Defences | None:
    keys = ("score_caps", "budget_usd")
    remedy = "give score_caps, budget_usd or both"
    section = policy.section("defences", remedy, required=False, keys=keys)
    if section is None:
        return None
    budget = section.number("budget_usd", POSITIVE, "USD, such as 0.50", required=False)
    return Defences(_caps(section, dimensions), budget)


def _caps(section: Section, dimensions: tuple[str, ...]) -> Mapping[str, float]:
    remedy = "the largest score that counts, in [0, 1], for one or more dimensions"
    caps = section.section("score_caps", remedy, required=False)
    return {} if caps is None else caps.rates(dimensions, "dimension", remedy)


def _stall(policy: Section) -> Stall | None:
    keys = ("after", "requirement_step", "value_factor")
    section = policy.section("stall", "give after, such as {after: 3}", required=False, keys=keys)
    if section is None:
        return None
    after = section.integer("after", Bounds(2.0, 1000.0), "such as 3 failures in a row")
    step = section.number("requirement_step", _INSIDE, "such as 0.1", required=False)
    factor = section.number("value_factor", _FACTOR, "such as 4", required=False)
    if after is None:
        return None
    return Stall(after, **_stated(requirement_step=step, value_factor=factor))


def read_outcome_model(root: Section, policy: Policy | None) -> OutcomeModelRef | None:
    """The outcome model the catalog names; the value rule needs it, or success profiles."""
    _require_source(root, policy)
    keys = ("path", "sha256")
    section = root.section("outcome_model", _MODEL_REMEDY, required=False, keys=keys)
    if section is None:
        return None
    path = section.text("path", "the folder that `learn` has written", limit=1_000)
    digest = section.text("sha256", "the digest that `learn` has printed, in quotes", limit=64)
    if digest and not SHA256.fullmatch(digest):
        section.wrong("sha256", f"must be a SHA-256 in hex, got {digest!r}", _MODEL_REMEDY)
    return OutcomeModelRef(path, digest)


def _require_source(root: Section, policy: Policy | None) -> None:
    """The value rule predicts with one of the two, and the policy says with which."""
    if policy is None:
        return
    held = [one for one in SuccessSource if root.node.get(one.value) is not None]
    named = policy.success_from
    if not held and policy.rule is Rule.VALUE:
        message = "is missing, as are success_profiles, and the rule is 'value'"
        root.wrong("outcome_model", message, _MODEL_REMEDY)
    section = root.section("policy", "")
    if section is None:
        return
    if len(held) > 1 and named is None:
        message = "is missing, and the catalog has an outcome model and success profiles"
        section.wrong("success_from", message, _SOURCE_REMEDY)
    elif named is not None and named not in held:
        message = f"is {named.value}, and the catalog has none"
        section.wrong("success_from", message, "leave it out, or add what it names")


def _weights(policy: Section, dimensions: tuple[str, ...]) -> tuple[float, ...]:
    remedy = "a weight > 0 for each dimension; 1 for all treats them alike"
    section = policy.section("weights", remedy)
    if section is None:
        return ()
    if dimensions:
        section.known(dimensions, "dimension")
    found = [section.number(dimension, POSITIVE, remedy) for dimension in dimensions]
    return tuple(weight for weight in found if weight is not None)


def _chosen_on(policy: Section) -> tuple[Chosen, ...]:
    """Which queries the policy was chosen on, by their digest; usually nothing."""
    remedy = "digest of the queries: {evalset, how, knob_alone, sample}, as the console writes it"
    section = policy.section("chosen_on", remedy, required=False)
    if section is None:
        return ()
    found = []
    for digest in section.node.entries:
        if not SHA256.fullmatch(digest):
            section.wrong(digest, "must be a SHA-256 in hex", remedy)
            continue
        keys = ("evalset", "how", "knob_alone", "sample")
        entry = section.section(digest, remedy, keys=keys)
        if entry is None:
            continue
        name = entry.text("evalset", "the name of the eval set", limit=200)
        how = entry.choice("how", Selection, "looked, cross_fitted or fixed")
        alone = entry.flag("knob_alone", "true if tau (or V) is all that was chosen there")
        marks = entry.text(
            "sample", "as the console writes it", required=False, limit=1_000
        ).split()
        if not all(_MARK.fullmatch(mark) for mark in marks):
            entry.wrong("sample", "must be marks of 12 hex digits", "as the console writes it")
        elif how is not None and alone is not None:
            found.append(Chosen(digest, name, how, alone, tuple(marks)))
    return tuple(found)


def _promise(policy: Section) -> Promised | None:
    remedy = "as `hydra-router promise --out` or Tune writes it"
    section = policy.section("promise", remedy, required=False, keys=Promised.__slots__)
    if section is None:
        return None
    within, confidence = (section.number(key, _INSIDE, remedy) for key in ("within", "confidence"))
    floor = section.number("floor", Bounds(-1.0, 1.0), remedy)
    saving = section.number("saving", Bounds(-1e6, 1.0), remedy)
    queries = section.number("queries", Bounds(1.0, 1e12), remedy)
    baseline, evalset, calibrated_on = (
        section.text(key, remedy, limit=200) for key in ("baseline", "evalset", "calibrated_on")
    )
    routes_by = section.text("routes_by", remedy, limit=64)
    if routes_by and not SHA256.fullmatch(routes_by):
        section.wrong("routes_by", "must be a SHA-256 in hex", remedy)
    if within is None or confidence is None or floor is None or saving is None or queries is None:
        return None
    return Promised(
        within, confidence, baseline, floor, saving, int(queries), evalset, calibrated_on, routes_by
    )


def _sticky(policy: Section) -> StickyPolicy | None:
    keys = ("mode", "threshold", "ttl_s", "margin")
    remedy = "give mode, threshold and ttl_s"
    section = policy.section("sticky", remedy, required=False, keys=keys)
    if section is None:
        return None
    given = _stated(
        mode=section.choice("mode", StickyMode, "such as per_session", required=False),
        threshold=section.number("threshold", SHARE, "such as 0.3", required=False),
        ttl_s=section.number("ttl_s", POSITIVE, "seconds, such as 3600", required=False),
        margin=section.number("margin", Bounds(0.0), "such as 0.05", required=False),
    )
    return StickyPolicy(**given)


def _teams(policy: Section) -> Mapping[str, Team]:
    """Every team without a fault; what is wrong with the others is recorded."""
    section = policy.section("teams", _TEAM_REMEDY, required=False)
    if section is None:
        return {}
    if len(section.node.entries) > _MOST_TEAMS:
        message = f"has more than {_MOST_TEAMS} teams"
        policy.wrong("teams", message, "leave out those without limits")
        return {}
    keys = ("models", "tau", "value_usd", "budget")
    named = {name: section.section(name, _TEAM_REMEDY, keys=keys) for name in section.node.entries}
    return {name: _team(one) for name, one in named.items() if one is not None}


def _team(section: Section) -> Team:
    models = section.words("models", "ids of the catalog's models")
    return Team(
        models if section.node.get("models") is not None else None,
        section.number("tau", Bounds(0.0), "such as 0.24", required=False),
        section.number("value_usd", POSITIVE, "USD, such as 0.02", required=False),
        _budget(section),
    )


def _budget(team: Section) -> TeamBudget | None:
    section = team.section("budget", _BUDGET, required=False, keys=TeamBudget.__slots__)
    if section is None:
        return None
    usd = section.number("usd", POSITIVE, _BUDGET)
    given = _stated(
        per=section.choice("per", Period, "day or month", required=False),
        falls_from=section.number("falls_from", _FROM, "such as 0.5", required=False),
        cheapest_from=section.number("cheapest_from", _UNTIL, "such as 0.9", required=False),
        least=section.number("least", _LEAST, "such as 0.1", required=False),
        when_spent=section.choice("when_spent", WhenSpent, "refuse or cheapest", required=False),
    )
    if usd is None:
        return None
    budget = TeamBudget(usd, **given)
    if budget.falls_from >= budget.cheapest_from:
        message = f"must be above falls_from, {budget.falls_from:g}; is {budget.cheapest_from:g}"
        section.wrong("cheapest_from", message, "such as 0.9")
        return None
    return budget
