"""The `policy` section with its teams, and what the value rule predicts success and cost with."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hydra_core.base.digests import SHA256
from hydra_core.base.fitted_blocks import ModelSuccess, PerDimension, Promised, SuccessBlock
from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section
from hydra_core.base.reading.yaml_reader import ListNode, shown
from hydra_core.base.types import (
    LEVEL_DIMENSION,
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
    return {name: value for name, value in values.items() if value is not None}


def _defences(policy: Section, dimensions: tuple[str, ...]) -> Defences | None:
    keys = ("score_caps", "budget_usd")
    remedy = "give score_caps, budget_usd or both"
    section = policy.section("defences", remedy, required=False, keys=keys)
    if section is None:
        return None
    budget = section.number("budget_usd", POSITIVE, "USD, such as 0.50", required=False)
    remedy = "the largest score that counts, in [0, 1], for one or more dimensions"
    caps = section.section("score_caps", remedy, required=False)
    rates = {} if caps is None else caps.rates(dimensions, "dimension", remedy)
    return Defences(rates, budget)


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


_ANY: Final = Bounds(-100.0, 100.0)
_TOKENS: Final = Bounds(0.0, 1e9)
_MOST_KNOTS: Final = 20
_REMEDY: Final = "as `hydra-router fit --as success` writes it"
_KNOTS_REMEDY: Final = "requirements in ascending order that end at 1, such as [0.1, 0.3, 1]"


def read_success_profiles(
    root: Section, dimensions: tuple[str, ...], names: Sequence[str], pool: Sequence[str]
) -> SuccessBlock | None:
    """The section, None where there is none or where it has at least one problem.

    Args:
        names: Ids of the models that may have a profile.
        pool: Those of which at least one must have one.
    """
    keys = ("evalset", "queries", "knots", "cost_factor", "models")
    section = root.section("success_profiles", _REMEDY, required=False, keys=keys)
    if section is None:
        return None
    remedy = "give name and digest of the eval set"
    evalset = section.section("evalset", remedy, keys=("name", "digest"))
    name = digest = ""
    if evalset is not None:
        name = evalset.text("name", "the name of the eval set", limit=200)
        digest = evalset.text("digest", "its digest in quotes", limit=128)
    dimensions = tuple(name for name in dimensions if name != LEVEL_DIMENSION)
    queries = section.integer("queries", POSITIVE, "how many queries it was fitted to")
    knots = _knots(section, dimensions)
    factor = _curve(section.section("cost_factor", _REMEDY), dimensions, knots, ())
    found = _models(section, dimensions, knots, names, pool)
    if queries is None or factor is None or evalset is None:
        return None
    return SuccessBlock(name, digest, queries, knots, *factor, found)


def _knots(root: Section, dimensions: tuple[str, ...]) -> PerDimension:
    section = root.section("knots", _KNOTS_REMEDY)
    if section is None:
        return ()
    section.known(dimensions, "dimension")
    found = []
    for name in dimensions:
        points = _numbers(section, name, SHARE)
        rising = all(low < high for low, high in zip((0.0, *points), points, strict=False))
        if points and not (rising and points[-1] == 1.0):
            section.wrong(name, f"must ascend from above 0 to 1, got {points}", _KNOTS_REMEDY)
        found.append(points)
    return tuple(found)


def _curve(
    section: Section | None,
    dimensions: tuple[str, ...],
    knots: PerDimension,
    others: tuple[str, ...],
) -> tuple[float, PerDimension] | None:
    """Intercept, and what is added at the knots."""
    if section is None:
        return None
    section.known(("intercept", "adds", *others))
    intercept = section.number("intercept", _ANY, "a number, such as 0.9")
    adds = section.section("adds", "what each dimension adds at its knots")
    if adds is None or intercept is None:
        return None
    adds.known(dimensions, "dimension")
    found = []
    for name, points in zip(dimensions, knots, strict=False):
        values = _numbers(adds, name, _ANY)
        if values and len(values) != len(points):
            message = f"has {len(values)} numbers, and {name} has {len(points)} knots"
            adds.wrong(name, message, "give one number a knot")
        found.append(values)
    return intercept, tuple(found)


def _models(
    root: Section,
    dimensions: tuple[str, ...],
    knots: PerDimension,
    names: Sequence[str],
    pool: Sequence[str],
) -> dict[str, ModelSuccess]:
    section = root.section("models", "model: intercept, adds and tokens or cost")
    if section is None:
        return {}
    section.known(names, "model")
    found = {}
    for name in (one for one in names if section.node.get(one) is not None):
        own = section.section(name, _REMEDY)
        curve = _curve(own, dimensions, knots, ("input_tokens", "output_tokens", "cost_usd"))
        if own is not None and curve is not None:
            found[name] = _model(own, *curve)
    if not any(section.node.get(name) is not None for name in pool):
        root.wrong("models", "has no profile of a model that is routed to", "fit again")
    return found


def _model(own: Section, intercept: float, adds: PerDimension) -> ModelSuccess:
    read, written = (
        own.number(key, _TOKENS, "mean tokens a query, such as 310", required=False)
        for key in _TOKEN_KEYS
    )
    remedy = "mean cost of a query in USD, where tokens are not known"
    cost = own.number("cost_usd", POSITIVE, remedy, required=False)
    named = [key for key in _TOKEN_KEYS if own.node.get(key) is not None]
    if own.node.get("cost_usd") is not None:
        if named:
            own.wrong("cost_usd", "stands beside tokens", "keep one: tokens follow the prices")
        return ModelSuccess(intercept, adds, cost_usd=cost)
    for key in _TOKEN_KEYS:
        if key not in named:
            own.wrong(key, "is missing", "give both token counts, or cost_usd alone")
    return ModelSuccess(intercept, adds, tokens=(read or 0.0, written or 0.0))


_TOKEN_KEYS: Final = ("input_tokens", "output_tokens")


def _numbers(section: Section, key: str, allowed: Bounds) -> tuple[float, ...]:
    nodes = section.items(key, "a list of numbers, one a knot", limit=_MOST_KNOTS)
    node = section.node.get(key)
    if isinstance(node, ListNode) and not nodes:
        section.wrong(key, f"must hold numbers, got {shown(node)}", "one a knot")
    found = [section.checked_number(key, one, allowed, "a number a knot") for one in nodes]
    return tuple(value for value in found if value is not None)
