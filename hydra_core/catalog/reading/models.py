"""The `models` section: lifecycle, prices, facts, evidence and capabilities of each model."""

from __future__ import annotations

from datetime import date
from typing import Final

from hydra_core.catalog.identifiers import skeleton
from hydra_core.catalog.reading.evidence import missing_evidence, read_id, unique
from hydra_core.catalog.reading.fields import POSITIVE, Interval, Section
from hydra_core.catalog.reading.nodes import ListNode, MapNode, ScalarNode, shown
from hydra_core.types import Benchmark, ModelSpec, ModelStatus

__all__ = ["MAX_MODELS", "read_models"]

MAX_MODELS: Final = 1000
_KEYS: Final = (
    "id",
    "provider",
    "status",
    "input_usd_per_mtok",
    "output_usd_per_mtok",
    "cached_input_usd_per_mtok",
    "context_window",
    "vision",
    "tools",
    "scores",
    "capabilities",
    "price_source",
    "price_date",
    "retire_on",
    "notes",
)
#: What a client writes in place of a model's id to have its request routed.
_ROUTED: Final = "auto"
_TOKENS: Final = Interval(1.0, 1e9)
#: Below this a price is taken for USD per token: 0.001 USD per Mtok is sold nowhere.
_LEAST_PRICE: Final = 1e-3
_NOT_IN_POOL: Final = [one.value for one in ModelStatus if not one.in_pool]


def read_models(
    root: Section, dimensions: tuple[str, ...], benchmarks: tuple[Benchmark, ...]
) -> tuple[ModelSpec, ...]:
    """All models without a fault of their own; what is wrong with the others is recorded."""
    found: list[ModelSpec] = []
    seen: dict[str, tuple[str, int]] = {}
    for index, node in enumerate(root.items("models", "list the models", limit=MAX_MODELS)):
        if not isinstance(node, MapNode):
            message = f"must be a mapping, got {shown(node)}"
            root.problems.add(f"models[{index}]", node.line, message, "begin it with '- id: ...'")
            continue
        name, section = read_id(root, "models", index, node)
        unique(section, name, seen)
        model = _model(section, name, dimensions, benchmarks)
        if model is not None:
            found.append(model)
    _some_routable(root)
    return tuple(found)


def _some_routable(root: Section) -> None:
    """Refuse a catalog in which every model states that it is disabled or retired."""
    models = root.node.get("models")
    if not isinstance(models, ListNode):
        return
    stated = [node.get("status") for node in models.items if isinstance(node, MapNode)]
    off = [isinstance(node, ScalarNode) and node.value in _NOT_IN_POOL for node in stated]
    if all(off) and len(off) == len(models.items):
        root.wrong("models", "none can be routed to", "add one with status: active")


def _model(
    section: Section, name: str, dimensions: tuple[str, ...], benchmarks: tuple[Benchmark, ...]
) -> ModelSpec | None:
    """The model, or None where a problem was recorded."""
    section.known(_KEYS)
    if skeleton(name) == _ROUTED:
        section.wrong("id", f"{name!r} asks the router for a route", "name the model otherwise")
    provider = section.text("provider", "who serves it, such as openai", limit=200)
    status = section.choice("status", ModelStatus, "such as active")
    retire_on = _retire_on(section, status)
    price_in = _price(section, "input_usd_per_mtok")
    price_out = _price(section, "output_usd_per_mtok")
    cached = _price(section, "cached_input_usd_per_mtok", required=False)
    window = section.integer("context_window", _TOKENS, "the context window in tokens")
    vision = section.flag("vision", "does it accept images?")
    tools = section.flag("tools", "does it accept tool definitions?")
    scores, overrides = _evidence(section, dimensions, benchmarks)
    source = section.text("price_source", "where the prices were read", limit=500)
    day = section.day("price_date", "the day the prices were read, as YYYY-MM-DD")
    notes = section.text("notes", "write text", required=False)
    if status is None or price_in is None or price_out is None or window is None:
        return None
    if vision is None or tools is None or day is None:
        return None
    return ModelSpec(
        id=name,
        provider=provider,
        status=status,
        input_usd_per_mtok=price_in,
        output_usd_per_mtok=price_out,
        context_window=window,
        vision=vision,
        tools=tools,
        scores=scores,
        overrides=overrides,
        price_source=source,
        price_date=day,
        cached_input_usd_per_mtok=cached,
        retire_on=retire_on,
        notes=notes,
    )


def _retire_on(section: Section, status: ModelStatus | None) -> date | None:
    needed = status is ModelStatus.RETIRING
    day = section.day("retire_on", "the day it leaves, as YYYY-MM-DD", required=needed)
    if day is not None and status in (ModelStatus.ACTIVE, ModelStatus.DISABLED):
        message = f"is given, but the status is {status.value}"
        section.wrong("retire_on", message, "set status: retiring, or remove the date")
    return day


def _price(section: Section, key: str, *, required: bool = True) -> float | None:
    remedy = "give the price in USD per million tokens; a self-hosted model may state its cost"
    price = section.number(key, POSITIVE, remedy, required=required)
    if price is not None and price < _LEAST_PRICE:
        message = f"{price:g} looks like a price per token"
        section.wrong(key, message, f"per million tokens it would be {price * 1e6:g}")
    return price


def _evidence(
    section: Section, dimensions: tuple[str, ...], benchmarks: tuple[Benchmark, ...]
) -> tuple[dict[str, float], dict[str, float]]:
    """Benchmark rates and capabilities set by hand. `scores` may be left out where all are."""
    rates: dict[str, float] = {}
    scores = None
    if section.node.get("scores") is not None:
        scores = section.section("scores", "benchmark: rate, such as {swe_easy: 0.804}")
    if scores is not None:
        names = tuple(benchmark.id for benchmark in benchmarks)
        remedy = "a resolution rate between 0 and 1; 80.4 % is 0.804"
        rates = scores.rates(names, "benchmark", remedy)
    overrides = _capabilities(section, dimensions)
    if overrides is not None and (scores is not None or section.node.get("scores") is None):
        given = () if scores is None else scores.node.entries.keys()
        missing_evidence(section, dimensions, benchmarks, given, overrides)
    return rates, {} if overrides is None else overrides


def _capabilities(section: Section, dimensions: tuple[str, ...]) -> dict[str, float] | None:
    """Overrides by dimension; ``derived`` for all or for one means none. None where wrong."""
    remedy = "write 'derived' or {dimension: value in [0, 1]}"
    node = section.node.get("capabilities")
    if isinstance(node, ScalarNode) and node.value == "derived":
        return {}
    if isinstance(node, ScalarNode) and node.value is not None:
        section.wrong("capabilities", f"must be derived or a mapping, got {shown(node)}", remedy)
        return None
    values = section.section("capabilities", remedy)
    if values is None:
        return None
    return values.rates(dimensions, "dimension", remedy, skip="derived")
