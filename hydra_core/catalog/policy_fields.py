"""The `policy` section with its teams, and the outcome model that the value rule predicts with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

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

_REMEDY: Final = "give score_caps, budget_usd or both"
_TEAM_REMEDY: Final = "a team's name: {models, tau, value_usd, budget}"
_BUDGET: Final = "such as {usd: 50, per: month}"
_FROM: Final = Bounds(0.0, 0.99)
_UNTIL: Final = Bounds(0.01, 1.0)
_LEAST: Final = Bounds(1e-6, 1.0)
MOST_TEAMS: Final = 500


def read_defences(policy: Section, dimensions: tuple[str, ...]) -> Defences:
    """The defences that are switched on; none where the section is not there."""
    if policy.node.get("defences") is None:
        return Defences()
    section = policy.section("defences", _REMEDY)
    if section is None:
        return Defences()
    section.known(("score_caps", "budget_usd"))
    budget = section.number("budget_usd", POSITIVE, "USD, such as 0.50", required=False)
    return Defences(_caps(section, dimensions), budget)


def _caps(section: Section, dimensions: tuple[str, ...]) -> Mapping[str, float]:
    if section.node.get("score_caps") is None:
        return {}
    remedy = "the largest score that counts, in [0, 1], for one or more dimensions"
    caps = section.section("score_caps", remedy)
    if caps is None:
        return {}
    if dimensions:
        caps.known(dimensions, "dimension")
    given = [name for name in dimensions if caps.node.get(name) is not None]
    found = {name: caps.number(name, SHARE, remedy) for name in given}
    return {name: cap for name, cap in found.items() if cap is not None}


_KEYS: Final = (
    *("tau", "weights", "cost_basis", "price_ratio", "sticky", "health_floor"),
    *("rule", "value_usd", "success_from", "defences", "chosen_on", "stall", "require"),
    *("promise", "teams", "second_usd"),
)
_VALUE_REMEDY: Final = "value of one more resolved query in USD, such as 0.02"
_MODEL_REMEDY: Final = "give path and sha256, as printed by `hydra-router learn`"
_SECOND: Final = "what a second of waiting costs in USD, such as 0.0005"
_STEP: Final = Bounds(0.0, 1.0, above=True)
_INSIDE: Final = Bounds(0.0, 1.0, above=True)
_FACTOR: Final = Bounds(1.0, 1e6, above=True)
_SOURCE_REMEDY: Final = "outcome_model or success_profiles, whichever the value rule shall use"
_MARK: Final = re.compile(r"[0-9a-f]{12}")


def read_policy(root: Section, dimensions: tuple[str, ...]) -> Policy | None:
    """The policy, None with at least one problem recorded."""
    section = root.section("policy", "give at least tau and weights")
    if section is None:
        return None
    section.known(_KEYS)
    tau = section.number("tau", Bounds(0.0), "the largest acceptable shortfall, such as 0.24")
    weights = _weights(section, dimensions)
    basis = section.choice("cost_basis", CostBasis, "list_price or realised", required=False)
    ratio = section.number(
        "price_ratio", POSITIVE, "input tokens per output token, such as 3", required=False
    )
    floor = section.number("health_floor", SHARE, "such as 0.1", required=False)
    rule = section.choice("rule", Rule, "shortfall or value", required=False)
    value = section.number("value_usd", POSITIVE, _VALUE_REMEDY, required=False)
    if rule is Rule.VALUE and section.node.get("value_usd") is None:
        section.wrong("value_usd", "is missing, and the rule is 'value'", _VALUE_REMEDY)
    source = section.choice("success_from", SuccessSource, _SOURCE_REMEDY, required=False)
    chosen_on = _chosen_on(section)
    sticky, defences = _sticky(section), read_defences(section, dimensions)
    if tau is None or sticky is None:
        return None
    default = Policy(tau=tau, weights=weights)
    return Policy(
        tau=tau,
        weights=weights,
        cost_basis=default.cost_basis if basis is None else basis,
        price_ratio=default.price_ratio if ratio is None else ratio,
        sticky=sticky,
        health_floor=default.health_floor if floor is None else floor,
        rule=default.rule if rule is None else rule,
        value_usd=value,
        success_from=source,
        defences=defences,
        chosen_on=chosen_on,
        stall=_stall(section),
        teams=read_teams(section),
        second_usd=section.number("second_usd", Bounds(0.0), _SECOND, required=False) or 0.0,
        require=section.words("require", "tags that every model must have, such as [eu]"),
        promise=_promise(section),
    )


def _stall(policy: Section) -> Stall | None:
    """What an agent's stall raises; None where the section is not there."""
    if policy.node.get("stall") is None:
        return None
    section = policy.section("stall", "give after, such as {after: 3}")
    if section is None:
        return None
    section.known(("after", "requirement_step", "value_factor"))
    after = section.integer("after", Bounds(2.0, 1000.0), "such as 3 failures in a row")
    step = section.number("requirement_step", _STEP, "such as 0.1", required=False)
    factor = section.number("value_factor", _FACTOR, "such as 4", required=False)
    if after is None:
        return None
    default = Stall(after)
    return Stall(
        after,
        default.requirement_step if step is None else step,
        default.value_factor if factor is None else factor,
    )


def read_outcome_model(root: Section, policy: Policy | None) -> OutcomeModelRef | None:
    """The outcome model the catalog names; the value rule needs it, or success profiles."""
    _require_source(root, policy)
    if root.node.get("outcome_model") is None:
        return None
    section = root.section("outcome_model", _MODEL_REMEDY)
    if section is None:
        return None
    section.known(("path", "sha256"))
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
        entry = section.section(digest, remedy)
        if entry is None:
            continue
        entry.known(("evalset", "how", "knob_alone", "sample"))
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
    """What was promised about quality; None where the section is not there."""
    if policy.node.get("promise") is None:
        return None
    remedy = "as `hydra-router promise --out` or Tune writes it"
    section = policy.section("promise", remedy)
    if section is None:
        return None
    section.known(Promised.__slots__)
    within, confidence = (section.number(key, _INSIDE, remedy) for key in ("within", "confidence"))
    floor = section.number("floor", Bounds(-1.0, 1.0), remedy)
    saving = section.number("saving", Bounds(-1e6, 1.0), remedy)
    queries = section.number("queries", Bounds(1.0, 1e12), remedy)
    names = (
        section.text(key, remedy, limit=200) for key in ("baseline", "evalset", "calibrated_on")
    )
    baseline, evalset, calibrated_on = names
    routes_by = section.text("routes_by", remedy, limit=64)
    if routes_by and not SHA256.fullmatch(routes_by):
        section.wrong("routes_by", "must be a SHA-256 in hex", remedy)
    if within is None or confidence is None or floor is None or saving is None or queries is None:
        return None
    return Promised(
        within, confidence, baseline, floor, saving, int(queries), evalset, calibrated_on, routes_by
    )


def _sticky(policy: Section) -> StickyPolicy | None:
    default = StickyPolicy()
    if policy.node.get("sticky") is None:
        return default
    section = policy.section("sticky", "give mode, threshold and ttl_s")
    if section is None:
        return None
    section.known(("mode", "threshold", "ttl_s", "margin"))
    mode = section.choice("mode", StickyMode, "such as per_session", required=False)
    threshold = section.number("threshold", SHARE, "such as 0.3", required=False)
    ttl_s = section.number("ttl_s", POSITIVE, "seconds, such as 3600", required=False)
    margin = section.number("margin", Bounds(0.0), "such as 0.05", required=False)
    return StickyPolicy(
        mode=default.mode if mode is None else mode,
        threshold=default.threshold if threshold is None else threshold,
        ttl_s=default.ttl_s if ttl_s is None else ttl_s,
        margin=default.margin if margin is None else margin,
    )


def read_teams(policy: Section) -> Mapping[str, Team]:
    """Every team without a fault; what is wrong with the others is recorded."""
    if policy.node.get("teams") is None:
        return {}
    section = policy.section("teams", _TEAM_REMEDY)
    if section is None:
        return {}
    if len(section.node.entries) > MOST_TEAMS:
        policy.wrong("teams", f"has more than {MOST_TEAMS} teams", "leave out those without limits")
        return {}
    found = {}
    for name in section.node.entries:
        one = section.section(name, _TEAM_REMEDY)
        if one is not None:
            found[name] = _team(one)
    return found


def _team(section: Section) -> Team:
    section.known(("models", "tau", "value_usd", "budget"))
    models = section.words("models", "ids of the catalog's models")
    return Team(
        models if section.node.get("models") is not None else None,
        section.number("tau", Bounds(0.0), "such as 0.24", required=False),
        section.number("value_usd", POSITIVE, "USD, such as 0.02", required=False),
        _budget(section),
    )


def _budget(team: Section) -> TeamBudget | None:
    if team.node.get("budget") is None:
        return None
    section = team.section("budget", _BUDGET)
    if section is None:
        return None
    section.known(TeamBudget.__slots__)
    usd = section.number("usd", POSITIVE, _BUDGET)
    given = {
        "per": section.choice("per", Period, "day or month", required=False),
        "falls_from": section.number("falls_from", _FROM, "such as 0.5", required=False),
        "cheapest_from": section.number("cheapest_from", _UNTIL, "such as 0.9", required=False),
        "least": section.number("least", _LEAST, "such as 0.1", required=False),
        "when_spent": section.choice("when_spent", WhenSpent, "refuse or cheapest", required=False),
    }
    if usd is None:
        return None
    budget = TeamBudget(usd, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
    if budget.falls_from >= budget.cheapest_from:
        message = f"must be above falls_from, {budget.falls_from:g}; is {budget.cheapest_from:g}"
        section.wrong("cheapest_from", message, "such as 0.9")
        return None
    return budget
