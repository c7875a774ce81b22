"""The `models` section: lifecycle, prices, facts, evidence and capabilities of each model."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Final

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.reading.fields import POSITIVE, Bounds, Section
from hydra_core.base.reading.yaml_reader import ListNode, MapNode, Node, ScalarNode, shown
from hydra_core.base.types import (
    Ability,
    Benchmark,
    CostBasis,
    ModelSpec,
    ModelStatus,
    Policy,
    RealisedCosts,
)
from hydra_core.catalog.identifiers import id_problem, skeleton

_MAX_BENCHMARKS: Final = 500


def _entries(
    parent: Section, key: str, remedy: str, limit: int, form: str
) -> Iterator[tuple[str, Section]]:
    """Id and section of every mapping in the list at `key`; `form` is how to write one."""
    seen: dict[str, tuple[str, int]] = {}
    for index, node in enumerate(parent.items(key, remedy, limit=limit)):
        place = f"{parent.at(key)}[{index}]"
        if not isinstance(node, MapNode):
            parent.problems.add(place, node.line, f"must be a mapping, got {shown(node)}", form)
            continue
        section = parent.inside(node, place)
        name = section.text("id", "give it a unique id")
        if name:
            section = parent.inside(node, f"{place} {name[:60]!r}")
            problem = id_problem(name)
            if problem is not None:
                section.wrong("id", *problem)
            _unique(section, name, seen)
        yield name, section


def _unique(section: Section, name: str, seen: dict[str, tuple[str, int]]) -> None:
    """Refuse an id that is, or looks like, one seen before; `seen` maps skeleton to id, line."""
    twin, line = seen.setdefault(skeleton(name), (name, section.node.line))
    if line == section.node.line and twin == name:
        return
    if twin == name:
        section.wrong("id", f"is given twice, first on line {line}", "rename or remove one")
    else:
        message = f"{name!r} looks the same as {twin!r} on line {line}"
        section.wrong("id", message, "rename one; ids may not differ by case or look-alikes only")


def read_benchmarks(root: Section, dimensions: tuple[str, ...]) -> tuple[Benchmark, ...]:
    """All benchmarks that have an id; what is wrong with them is recorded."""
    remedy = "give evidence: {benchmarks: [...]}"
    evidence = root.section("evidence", remedy, keys=("benchmarks",))
    if evidence is None:
        return ()
    found: dict[str, Benchmark] = {}
    form = "give id, importance and weights"
    for name, section in _entries(evidence, "benchmarks", remedy, _MAX_BENCHMARKS, form):
        benchmark = _benchmark(section, name, dimensions)
        if name:
            found.setdefault(name, benchmark)
    return tuple(found.values())


def _benchmark(section: Section, name: str, dimensions: tuple[str, ...]) -> Benchmark:
    section.known(("id", "importance", "weights"))
    importance = section.number("importance", Bounds(0.0), "alpha_b >= 0, such as 0.3")
    weights = section.section("weights", "omega per dimension, such as {reasoning: 0.5}")
    omega: dict[str, float] = {}
    if weights is not None:
        remedy = "how much it exercises this dimension, 0 to 1; leave out what it does not"
        omega = weights.rates(dimensions, "dimension", remedy)
        if dimensions and len(omega) == len(weights.node.entries) and not any(omega.values()):
            section.wrong("weights", "exercises no dimension", "give one > 0, or remove it")
    row = tuple(omega.get(dimension, 0.0) for dimension in dimensions)
    return Benchmark(name, 0.0 if importance is None else importance, row)


def _missing_evidence(
    model: Section,
    dimensions: Sequence[str],
    benchmarks: Sequence[Benchmark],
    given: Collection[str],
    overridden: Collection[str],
) -> None:
    """Record where a model lacks a rate that a derived capability stands on. Never imputed.

    A benchmark counts for a model where its importance is > 0 and it exercises a dimension that
    the model does not override by hand.

    Args:
        given: The benchmarks the model's `scores` names.
        overridden: The dimensions its `capabilities` sets by hand.
    """
    counting = [benchmark for benchmark in benchmarks if benchmark.importance > 0]
    derived = [k for k, name in enumerate(dimensions) if name not in overridden]
    lacking = [
        benchmark.id
        for benchmark in counting
        if benchmark.id not in given and any(benchmark.weights[k] for k in derived)
    ]
    if lacking:
        names = ", ".join(map(repr, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
        message = f"misses {names}: missing rates are not filled in"
        remedy = "add the measured rate, set the importance to 0, or override the capabilities"
        model.wrong("scores", message, remedy)
    bare = [dimensions[k] for k in derived if not any(b.weights[k] for b in counting)]
    if bare:
        message = f"{', '.join(map(repr, bare))}: no benchmark with importance > 0 exercises it"
        remedy = "give a benchmark a weight on it, or override the capability by hand"
        model.wrong("capabilities", message, remedy)


_REMEDY: Final = "mean realised cost in USD per query, such as 0.0123"


def read_realised_costs(
    root: Section, names: Sequence[str], policy: Policy | None
) -> RealisedCosts | None:
    """The section with costs of the models of these ids, None where there is none.

    A model without a cost gets an estimate from its prices (`profiles.estimated_costs`), for which
    at least one has to be measured.
    """
    keys = ("evalset", "digest", "usd_per_query")
    remedy = "give evalset, digest and usd_per_query"
    section = root.section("realised_costs", remedy, required=False, keys=keys)
    if section is None:
        return None
    evalset = section.text("evalset", "the name of the eval set they were measured on", limit=200)
    digest = section.text("digest", "that eval set's digest in quotes", limit=128)
    costs = section.section("usd_per_query", "model: mean cost in USD per query")
    if costs is None:
        return None
    costs.known(names, "model")
    found = {
        name: costs.checked_number(name, node, Bounds(0.0), _REMEDY)
        for name in names
        if (node := costs.node.get(name)) is not None
    }
    if policy is not None and policy.cost_basis is CostBasis.REALISED and names and not found:
        section.wrong("usd_per_query", "holds no realised cost", _REMEDY)
    known = {name: cost for name, cost in found.items() if cost is not None}
    return RealisedCosts(evalset, digest, known)


_MAX_MODELS: Final = 1000
#: As a `ModelSpec` names them, but for what sets capabilities by hand.
_KEYS: Final = (*(key for key in ModelSpec.__slots__ if key != "overrides"), "capabilities")
#: A price of long requests, in the order of its cell.
LONG_KEYS: Final = LongPromptPrice.__slots__
_LONG: Final = (
    "prices of long requests, such as [{above_tokens: 200000, ...}]; in a cell 200000: 4/18/0.4 "
    "(input tokens: USD per million in/out/cached)"
)
_PRICE: Final = (
    "give the price in USD per million tokens; a self-hosted model may state its cost; of one that "
    "costs nothing 0 for every price, and free in price_source"
)
#: What a variant may not take from its base.
_OWN: Final = ("id", "notes", "variant_of", "shares_prompt_cache")
#: Mappings in which a variant's entries stand beside its base's.
_MERGED: Final = ("scores", "capabilities")
_SHARES_CACHE: Final = "does the provider keep the cache over efforts?"
_BASE: Final = "the id of the model whose effort alone differs"
_TAGS: Final = "what holds for it, such as [eu, zdr]"
_LACKS: Final = "what it cannot do, such as [pdf, audio]"
#: What a client writes in place of a model's id to have its request routed.
_ROUTED: Final = "auto"
_TOKENS: Final = Bounds(1.0, 1e9)
_PRICES: Final = LONG_KEYS[1:]
#: Facts without which there is no model.
_NEEDED: Final = (*_PRICES[:2], "status", "context_window", "vision", "tools", "price_date")
_NOT_IN_POOL: Final = [one.value for one in ModelStatus if not one.in_pool]


def read_models(
    root: Section, dimensions: tuple[str, ...], benchmarks: tuple[Benchmark, ...]
) -> tuple[ModelSpec, ...]:
    """All models without a fault of their own; what is wrong with the others is recorded."""
    remedy, form = "list the models", "begin it with '- id: ...'"
    bases = _bases(root.node.get("models"))
    each = [
        _model(_whole(section, bases), name, dimensions, benchmarks)
        for name, section in _entries(root, "models", remedy, _MAX_MODELS, form)
    ]
    _some_routable(root)
    return tuple(model for model in each if model is not None)


def model_names(root: Section) -> tuple[str, ...]:
    """The ids that the list of models names, those with a fault included."""
    return tuple(_bases(root.node.get("models")))


def _bases(listed: Node | None) -> dict[str, MapNode]:
    bases = {}
    for node in listed.items if isinstance(listed, ListNode) else ():
        name = node.get("id") if isinstance(node, MapNode) else None
        if isinstance(node, MapNode) and isinstance(name, ScalarNode) and name.value is not None:
            bases[str(name.value)] = node
    return bases


def _whole(model: Section, bases: Mapping[str, MapNode]) -> Section:
    """A variant with what it takes from its base; another model as it is."""
    if model.node.get("variant_of") is None:
        if model.node.get("shares_prompt_cache") is not None:
            message, remedy = "is given, but the model is no variant", "give variant_of as well"
            model.wrong("shares_prompt_cache", message, remedy)
        return model
    named = model.text("variant_of", _BASE, required=False, limit=200)
    base = bases.get(named)
    if base is None or base is model.node:
        if named:
            others = [name for name in bases if bases[name] is not model.node]
            remedy = model.problems.suggest(named, others)
            model.wrong("variant_of", f"there is no other model {named[:60]!r}", remedy)
        return model
    if base.get("variant_of") is not None:
        remedy = "name the model that it is a variant of"
        model.wrong("variant_of", f"{named[:60]!r} is a variant itself", remedy)
    own = (*_OWN, "retire_on") if model.node.get("status") is not None else _OWN
    entries = {key: pair for key, pair in base.entries.items() if key not in own}
    for key, pair in model.node.entries.items():
        inherited = base.get(key)
        if key in _MERGED and isinstance(inherited, MapNode) and isinstance(pair[1], MapNode):
            merged = replace(pair[1], entries={**inherited.entries, **pair[1].entries})
            entries[key] = (pair[0], merged)
        else:
            entries[key] = pair
    return model.inside(replace(model.node, entries=entries), model.place)


def _some_routable(root: Section) -> None:
    """Refuse a catalog in which every model states that it is disabled or retired."""
    models = root.node.get("models")
    if not isinstance(models, ListNode):
        return
    each = [node for node in models.items if isinstance(node, MapNode)]
    inherited = [node.get("variant_of") and not node.get("status") for node in each]
    stated = [node.get("status") for node, same in zip(each, inherited, strict=True) if not same]
    off = [isinstance(node, ScalarNode) and node.value in _NOT_IN_POOL for node in stated]
    if all(off) and len(each) == len(models.items):
        root.wrong("models", "none can be routed to", "add one with status: active")


def _model(
    section: Section, name: str, dimensions: tuple[str, ...], benchmarks: tuple[Benchmark, ...]
) -> ModelSpec | None:
    section.known(_KEYS)
    if skeleton(name) == _ROUTED:
        section.wrong("id", f"{name!r} asks the router for a route", "name the model otherwise")
    status = section.choice("status", ModelStatus, "such as active")
    in_pool = status is None or status.in_pool
    scores, overrides = _evidence(section, dimensions, benchmarks, in_pool)
    seconds = "mean seconds, such as 2.4"
    facts: dict[str, Any] = {
        "provider": section.text("provider", "who serves it, such as openai", limit=200),
        "status": status,
        "retire_on": _retire_on(section, status),
        **_prices(section, free=_says_free(section.node.get("price_source"))),
        "context_window": section.integer(
            "context_window", _TOKENS, "the context window in tokens"
        ),
        "vision": section.flag("vision", "does it accept images?"),
        "tools": section.flag("tools", "does it accept tool definitions?"),
        "price_source": section.text("price_source", "where the prices were read", limit=500),
        "price_date": section.day("price_date", "the day the prices were read, as YYYY-MM-DD"),
        "notes": section.text("notes", "write text", required=False),
        "variant_of": section.text("variant_of", _BASE, required=False, limit=200),
        "shares_prompt_cache": bool(
            section.flag("shares_prompt_cache", _SHARES_CACHE, required=False)
        ),
        "tags": section.words("tags", _TAGS),
        "lacks": section.words("lacks", _LACKS, [one.value for one in Ability]),
        "long_prompts": _long_prompts(section),
        "latency_s": section.number("latency_s", POSITIVE, seconds, required=False),
        "ttft_s": section.number("ttft_s", POSITIVE, seconds, required=False),
    }
    if any(facts[key] is None for key in _NEEDED):
        return None
    return ModelSpec(id=name, scores=scores, overrides=overrides, **facts)


def _long_prompts(model: Section) -> tuple[LongPromptPrice, ...]:
    """Prices of long requests, the shortest first; wrong ones are recorded and left out."""
    found = []
    for section in model.sections("long_prompts", _LONG, limit=8, required=False):
        section.known(LONG_KEYS)
        above = section.integer("above_tokens", _TOKENS, "input tokens that still cost less")
        prices = _prices(section, free=False)
        read, written, cached = (prices[key] for key in _PRICES)
        if above is not None and read is not None and written is not None:
            found.append(LongPromptPrice(above, read, written, cached))
    limits = [one.above_tokens for one in found]
    if len(set(limits)) < len(limits):
        model.wrong("long_prompts", "names one number of tokens twice", "keep one of them")
    return tuple(sorted(found, key=lambda one: one.above_tokens))


def _retire_on(section: Section, status: ModelStatus | None) -> date | None:
    needed = status is ModelStatus.RETIRING
    day = section.day("retire_on", "the day it leaves, as YYYY-MM-DD", required=needed)
    if day is not None and status in (ModelStatus.ACTIVE, ModelStatus.DISABLED):
        message = f"is given, but the status is {status.value}"
        section.wrong("retire_on", message, "set status: retiring, or remove the date")
    return day


def _prices(section: Section, *, free: bool) -> dict[str, float | None]:
    """USD per million tokens in, out and of cached input; all may be 0 where it is `free`."""
    allowed = Bounds(0.0) if free else POSITIVE
    found = {
        key: section.price(key, _PRICE, allowed=allowed, required=key in _PRICES[:2])
        for key in _PRICES
    }
    if len({price == 0 for price in found.values() if price is not None}) > 1:
        section.wrong(_PRICES[0], "must be 0 as another price is, or no price may be 0", _PRICE)
    return found


def _says_free(source: Node | None) -> bool:
    text = source.value if isinstance(source, ScalarNode) else None
    return isinstance(text, str) and re.search(r"\bfree\b", text, re.IGNORECASE) is not None


def _evidence(
    section: Section,
    dimensions: tuple[str, ...],
    benchmarks: tuple[Benchmark, ...],
    in_pool: bool,
) -> tuple[dict[str, float], dict[str, float]]:
    """Benchmark rates and capabilities set by hand. `scores` may be left out where all are.

    A model that is not routed to needs neither.
    """
    remedy = "benchmark: rate, such as {swe_easy: 0.804}"
    scores = section.section("scores", remedy, required=False)
    rates: dict[str, float] = {}
    if scores is not None:
        names = [benchmark.id for benchmark in benchmarks]
        remedy = "a resolution rate between 0 and 1; 80.4 % is 0.804"
        rates = scores.rates(names, "benchmark", remedy)
    overrides = _capabilities(section, dimensions)
    readable = scores is not None or section.node.get("scores") is None
    if in_pool and overrides is not None and readable:
        given = () if scores is None else scores.node.entries.keys()
        _missing_evidence(section, dimensions, benchmarks, given, overrides)
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
