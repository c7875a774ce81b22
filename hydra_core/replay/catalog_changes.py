"""What a change of the catalog does to a running policy, without retraining anything.

An event removes, adds or reprices a model: capabilities, weights and the cost order follow by
Algorithm 1, and the router is replayed at the same tau on the same queries. A new price moves the
realised costs as an edit of the catalog does (`pricing`). A nudge moves one number of the evidence
up and down by a stated step, alone: the queries that change their model are counted, and the
models that no query can reach are named.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import partial
from itertools import product

import numpy as np

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.types import (
    Benchmark,
    BoolArray,
    Catalog,
    FloatArray,
    IntArray,
    ModelSpec,
    ModelStatus,
    Selection,
)
from hydra_core.catalog.profiles import capabilities
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import Comparison, compare, policy_run
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice, picked
from hydra_core.replay.pricing import RECORDED_COSTS, CostSource, priced_costs
from hydra_core.replay.replay import ReplayData, align_catalog, replay
from hydra_core.replay.verdict import Verdict, verdict
from hydra_core.routing.matcher import choose


class EventKind(StrEnum):
    """What happens to one model of the catalog."""

    REMOVE = "remove"
    ADD = "add"
    REPRICE = "reprice"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; prices (USD per million tokens) only where it is a new price."""

    kind: EventKind
    model: str
    input_usd_per_mtok: float | None = None
    output_usd_per_mtok: float | None = None

    def __str__(self) -> str:
        if self.kind is EventKind.REPRICE:
            return f"{self.model} at {self.input_usd_per_mtok:.10g}/{self.output_usd_per_mtok:.10g}"
        return f"{self.kind.value} {self.model}"


@dataclass(frozen=True, slots=True, eq=False)
class EventReport:
    """The same policy before and after one event, at the same tau.

    Attributes:
        before, after: Each on its own pool's queries.
        verdict: Of the policy after the event, against the best fixed mix of its pool.
        comparison: After minus before, paired by query, with the QR of both.
        moved: Fraction of the queries that change model.
    """

    event: Event
    before: PolicyMetrics
    after: PolicyMetrics
    comparison: Comparison
    verdict: Verdict
    notes: tuple[str, ...] = ()


def parse_event(text: str) -> Event:
    """An event from `remove:ID`, `add:ID` or `reprice:ID=INPUT,OUTPUT`, or CatalogError."""
    kind, _, rest = text.partition(":")
    try:
        if kind == EventKind.REPRICE:
            model, _, prices = rest.rpartition("=")
            given, answer = (float(part) for part in prices.split(","))
            if model and np.isfinite([given, answer]).all() and min(given, answer) > 0:
                return Event(EventKind.REPRICE, model, given, answer)
        elif rest:
            return Event(EventKind(kind), rest)
    except ValueError:
        pass
    remedy = "remove:ID, add:ID or reprice:ID=INPUT,OUTPUT (USD per million tokens)"
    raise CatalogError("--event", [Problem(repr(text), "is not an event", remedy)])


def default_events(catalog: Catalog, data: ReplayData) -> tuple[Event, ...]:
    """Each model of the replay removed, and each added to the catalog without it.

    One that leaves no other model is passed over.
    """
    kinds, ids = (EventKind.REMOVE, EventKind.ADD), data.pool.ids
    every = [Event(kind, model) for kind in kinds for model in ids]
    without = [min(event_catalogs(catalog, one), key=_in_pool) for one in every]
    known = data.with_outcomes.pool.ids
    left = [any(spec.status.in_pool and spec.id in known for spec in c.models) for c in without]
    return tuple(one for one, some in zip(every, left, strict=True) if some)


def _in_pool(catalog: Catalog) -> int:
    return sum(spec.status.in_pool for spec in catalog.models)


def portability(
    catalog: Catalog,
    evalset: EvalSet,
    requirements: FloatArray,
    events: Sequence[Event],
    *,
    today: date,
    tau: float | None = None,
    selection: Selection = Selection.FIXED,
    critical: float | None = None,
) -> tuple[EventReport, ...]:
    """Replay every event on its own; nothing is learned or tuned anew.

    Args:
        catalog: The catalog as it is; an added model must be in it (it is taken out for "before").
        requirements: (rows of the eval set, K) predicted requirements.
        tau: Default the catalog's.
        selection, critical: How tau was chosen, and the band of the curve that it was picked from
            on these queries; as in `verdict`.

    Raises:
        CatalogError: An event names a model the catalog does not have: all of them.
        MismatchError: Nothing to replay.
    """
    known = [model.id for model in catalog.models]
    problems = [
        Problem(str(event), f"the catalog has no {event.model!r}", f"one of {', '.join(known)}")
        for event in events
        if event.model not in known
    ]
    CatalogError.raise_any(catalog.source or catalog.name, problems)
    used = catalog.policy.tau if tau is None else tau
    judged = partial(verdict, selection=selection, critical=critical)
    return tuple(
        _report(catalog, evalset, requirements, event, today, used, judged) for event in events
    )


def _report(
    catalog: Catalog,
    evalset: EvalSet,
    requirements: FloatArray,
    event: Event,
    today: date,
    tau: float,
    judged: Callable[[ReplayData, IntArray], Verdict],
) -> EventReport:
    first, second = event_catalogs(catalog, event)
    notes = []
    source = priced_costs(evalset, second).sources.get(event.model)
    if event.kind is EventKind.REPRICE and source is CostSource.RECORDED:
        notes.append(f"{RECORDED_COSTS}: it has neither tokens nor the price of {event.model}.")
    before, after = (
        align_catalog(evalset, one, requirements, today=today) for one in (first, second)
    )
    choices = replay(before, tau), replay(after, tau)
    runs = policy_run("before", before, choices[0]), policy_run("after", after, choices[1])
    found = compare(*runs, evalset.clusters)
    return EventReport(
        event=event,
        before=evaluate_choice(before, choices[0]),
        after=evaluate_choice(after, choices[1]),
        comparison=found,
        verdict=judged(after, choices[1]),
        notes=(*notes, *after.notes),
    )


def event_catalogs(catalog: Catalog, event: Event) -> tuple[Catalog, Catalog]:
    """The catalog before and after an event; an added model is taken out for "before".

    It is one of the model's effort levels too, where their price or status was the model's.

    Raises:
        KeyError: The catalog has no such model.
    """
    old = catalog.model(event.model)
    if event.kind is EventKind.REPRICE:
        models = tuple(
            _repriced(spec, old, event) if spec.base == event.model or spec is old else spec
            for spec in catalog.models
        )
        repriced = replace(catalog, models=models, digest=f"{catalog.digest}:{event}")
        return catalog, repriced
    off = tuple(  # its evidence no longer sets any range
        replace(spec, status=ModelStatus.DISABLED)
        if spec is old or (spec.base == event.model and spec.status is old.status)
        else spec
        for spec in catalog.models
    )
    without = replace(catalog, models=off, digest=f"{catalog.digest}:-{event.model}")
    return (without, catalog) if event.kind is EventKind.ADD else (catalog, without)


def _repriced(spec: ModelSpec, old: ModelSpec, event: Event) -> ModelSpec:
    """The model, or an effort level of it, with each new price in place of the old one."""
    prices = {
        name: new
        for name in ("input_usd_per_mtok", "output_usd_per_mtok")
        if (new := getattr(event, name)) and getattr(spec, name) == getattr(old, name)
    }
    return replace(spec, **prices)


class Cell(StrEnum):
    SCORE = "score"
    IMPORTANCE = "importance"
    WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Steps:
    """How far each kind of number is nudged: rates and omega absolutely, alpha as a share of it."""

    score: float = 0.05
    importance: float = 0.5
    weight: float = 0.1


@dataclass(frozen=True, slots=True)
class Effect:
    """What nudging one number does.

    Attributes:
        of: The model for a score, the dimension for a weight, '' for an importance.
        delta_quality: Mean quality after minus before, over all queries.
    """

    cell: Cell
    benchmark: str
    of: str
    before: float
    after: float
    flips: int
    delta_quality: float
    delta_cost_usd: float


@dataclass(frozen=True, slots=True)
class Reach:
    """What of the traffic a model gets and could get.

    Attributes:
        share: Of all queries, at the policy's tau.
        at_some_tau: Of all queries, those that some tau sends to it.
        dominated_by: A model ranked before it that is at least as capable on every dimension, so
            that no query ever reaches it; '' for none.
    """

    model: str
    share: float
    at_some_tau: float
    dominated_by: str


def sensitivity(data: ReplayData, catalog: Catalog, steps: Steps = Steps()) -> tuple[Effect, ...]:  # noqa: B008
    """Every number's largest effect of the two directions, those that flip most queries first.

    A nudge that leaves [0, 1] is cut there; a number that is cut to itself has no effect.

    Args:
        catalog: With the policy's tau.
    """
    base = replay(data, catalog.policy.tau)
    quality, cost = (float(picked(v, base).mean()) for v in (data.quality, data.cost_usd))
    rows = [[model.id for model in catalog.models].index(name) for name in data.pool.ids]
    largest: dict[tuple[Cell, str, str], Effect] = {}
    for cell, benchmark, of, before, after, changed in _nudges(catalog, steps):
        pool = replace(data.pool, capabilities=capabilities(changed)[rows])
        choice = replay(replace(data, pool=pool), catalog.policy.tau)
        effect = Effect(
            cell, benchmark, of, before, after, int((choice != base).sum()),
            float(picked(data.quality, choice).mean()) - quality,
            float(picked(data.cost_usd, choice).mean()) - cost,
        )  # fmt: skip
        key = (cell, benchmark, of)
        if key not in largest or effect.flips > largest[key].flips:
            largest[key] = effect
    return tuple(sorted(largest.values(), key=lambda effect: -effect.flips))


_Nudge = tuple[Cell, str, str, float, float, Catalog]


def _nudges(catalog: Catalog, steps: Steps) -> Iterator[_Nudge]:
    """Every number a step up and down: which it is, before, after, and the catalog with it."""
    for (b, benchmark), sign in product(enumerate(catalog.benchmarks), (1.0, -1.0)):
        before = benchmark.importance
        after = before * (1.0 + sign * steps.importance)
        changed = _with_benchmark(catalog, b, replace(benchmark, importance=after))
        yield Cell.IMPORTANCE, benchmark.id, "", before, after, changed
        for k, (dimension, before) in enumerate(
            zip(catalog.dimensions, benchmark.weights, strict=True)
        ):
            after = float(np.clip(before + sign * steps.weight, 0.0, 1.0))
            weights = (*benchmark.weights[:k], after, *benchmark.weights[k + 1 :])
            changed = _with_benchmark(catalog, b, replace(benchmark, weights=weights))
            yield Cell.WEIGHT, benchmark.id, dimension, before, after, changed
        for m, model in enumerate(catalog.models):
            if benchmark.id in model.scores:
                before = model.scores[benchmark.id]
                after = float(np.clip(before + sign * steps.score, 0.0, 1.0))
                other = replace(model, scores={**model.scores, benchmark.id: after})
                models = (*catalog.models[:m], other, *catalog.models[m + 1 :])
                changed = replace(catalog, models=models)
                yield Cell.SCORE, benchmark.id, model.id, before, after, changed


def _with_benchmark(catalog: Catalog, b: int, benchmark: Benchmark) -> Catalog:
    benchmarks = (*catalog.benchmarks[:b], benchmark, *catalog.benchmarks[b + 1 :])
    return replace(catalog, benchmarks=benchmarks)


def dominated(capability: FloatArray, cost: FloatArray) -> tuple[int | None, ...]:
    """Per model the index of one that always goes before it, None where there is none.

    Model j always goes before i when it ranks before it (cheaper, or equally dear and earlier)
    and is at least as capable on every dimension: its shortfall is never larger.

    Args:
        capability: (m, K).
        cost: (m,).
    """
    m = len(cost)
    earlier = np.arange(m)[:, None] < np.arange(m)[None, :]
    before = (cost[:, None] < cost[None, :]) | ((cost[:, None] == cost[None, :]) & earlier)
    over: BoolArray = before & (capability[:, None, :] >= capability[None, :, :]).all(axis=2)
    return tuple(int(np.flatnonzero(over[:, i])[0]) if over[:, i].any() else None for i in range(m))


def reach(data: ReplayData, tau: float) -> tuple[Reach, ...]:
    """What every model of the pool gets and could get, cheapest first; no outcome is needed.

    Some tau sends a query to a model exactly when it falls less short than every model ranked
    before it.
    """
    ids, cost = data.pool.ids, data.pool.cost
    order = np.argsort(cost, kind="stable")
    lacks = data.shortfalls()
    closed = np.zeros(lacks.shape, dtype=bool) if data.closed is None else data.closed
    least = np.minimum.accumulate(lacks[:, order], axis=1)
    earlier = np.concatenate([np.full((len(lacks), 1), np.inf), least[:, :-1]], axis=1)
    possible = ((lacks[:, order] < earlier) & ~closed[:, order]).mean(axis=0)
    counts = np.bincount(choose(lacks, cost, tau), minlength=len(ids)) / len(lacks)
    over = dominated(data.pool.capabilities, cost)
    over = tuple(  # no model is in the way where a gate keeps it from the query
        None if by is None or (closed[:, by] & ~closed[:, i]).any() else by
        for i, by in enumerate(over)
    )
    return tuple(
        Reach(
            model=ids[i],
            share=float(counts[i]),
            at_some_tau=float(possible[rank]),
            dominated_by="" if (by := over[i]) is None else ids[by],
        )
        for rank, i in enumerate(order)
    )
