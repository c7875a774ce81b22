"""The `success_profiles` section: success and cost of each model as curves of the requirements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra_core.base.fitted_blocks import ModelSuccess, PerDimension, SuccessBlock
from hydra_core.base.reading.fields import POSITIVE, SHARE, Bounds, Section
from hydra_core.base.reading.yaml_reader import ListNode, shown
from hydra_core.base.types import LEVEL_DIMENSION, ModelSpec

_ANY: Final = Bounds(-100.0, 100.0)
_TOKENS: Final = Bounds(0.0, 1e9)
_MOST_KNOTS: Final = 20
_REMEDY: Final = "as `hydra-router fit --as success` writes it"
_KNOTS_REMEDY: Final = "requirements in ascending order that end at 1, such as [0.1, 0.3, 1]"


def read_success_profiles(
    root: Section, dimensions: tuple[str, ...], models: Sequence[ModelSpec]
) -> SuccessBlock | None:
    """The section, None where there is none or where it has at least one problem."""
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
    found = _models(section, dimensions, knots, models)
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
    root: Section, dimensions: tuple[str, ...], knots: PerDimension, models: Sequence[ModelSpec]
) -> dict[str, ModelSuccess]:
    section = root.section("models", "model: intercept, adds and tokens or cost")
    if section is None:
        return {}
    names = [model.id for model in models]
    section.known(names, "model")
    found = {}
    for name in (one for one in names if section.node.get(one) is not None):
        own = section.section(name, _REMEDY)
        curve = _curve(own, dimensions, knots, ("input_tokens", "output_tokens", "cost_usd"))
        if own is not None and curve is not None:
            found[name] = _model(own, *curve)
    if not any(section.node.get(model.id) is not None for model in models if model.status.in_pool):
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
