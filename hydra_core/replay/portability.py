"""What a catalog event does to a running policy, without retraining anything.

Capabilities, weights and the cost order follow by Algorithm 1, and the router is replayed at the
same tau on the same queries. After a price change the realised costs of that model are scaled by
the ratio of its blended prices, which the report says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

import numpy as np

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.base.types import Catalog, FloatArray, ModelStatus, Selection
from hydra_core.catalog.profiles import blended_price
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import Comparison, compare, policy_run
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice
from hydra_core.replay.pricing import CostSource, priced_costs
from hydra_core.replay.replay import ReplayData, align_catalog, replay
from hydra_core.replay.verdict import Verdict, verdict


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
            return f"{self.model} at {self.input_usd_per_mtok:g}/{self.output_usd_per_mtok:g}"
        return f"{self.kind.value} {self.model}"


@dataclass(frozen=True, slots=True, eq=False)
class EventReport:
    """The same policy before and after one event, at the same tau.

    Attributes:
        before, after: Each on its own pool's queries.
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
    """An event from `remove:ID`, `add:ID` or `reprice:ID=INPUT,OUTPUT`.

    Raises:
        CatalogError: It is none of these.
    """
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


def default_events(data: ReplayData) -> tuple[Event, ...]:
    """Each model of the replay removed, and each added to the catalog without it."""
    kinds = (EventKind.REMOVE, EventKind.ADD) if len(data.pool.ids) > 1 else ()
    return tuple(Event(kind, model) for kind in kinds for model in data.pool.ids)


def portability(
    catalog: Catalog,
    evalset: EvalSet,
    requirements: FloatArray,
    events: Sequence[Event],
    *,
    today: date,
    tau: float | None = None,
) -> tuple[EventReport, ...]:
    """Replay every event on its own; nothing is learned or tuned anew.

    Args:
        catalog: The catalog as it is; an added model must be in it (it is taken out for "before").
        requirements: (rows of the eval set, K) predicted requirements.
        tau: Default the catalog's.

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
    if problems:
        raise CatalogError(catalog.source or catalog.name, problems)
    used = catalog.policy.tau if tau is None else tau
    return tuple(_report(catalog, evalset, requirements, event, today, used) for event in events)


def _report(
    catalog: Catalog,
    evalset: EvalSet,
    requirements: FloatArray,
    event: Event,
    today: date,
    tau: float,
) -> EventReport:
    first, second = event_catalogs(catalog, event)
    notes = []
    before = _replayed(first, evalset, requirements, today)
    factor = 1.0
    if event.kind is EventKind.REPRICE:
        ratio = catalog.policy.price_ratio
        old, new = (blended_price(one.model(event.model), ratio) for one in (first, second))
        factor = new / old
        if priced_costs(evalset, second).sources.get(event.model) is not CostSource.RECORDED:
            factor = 1.0  # its costs follow the new price by themselves
        else:
            scaled = f"realised costs of {event.model} are scaled by {factor:.3g}"
            notes.append(f"{scaled} (an estimate)")
    after = _replayed(second, evalset, requirements, today, {event.model: factor})
    choices = replay(before, tau), replay(after, tau)
    runs = policy_run("before", before, choices[0]), policy_run("after", after, choices[1])
    found = compare(*runs, evalset.clusters)
    return EventReport(
        event=event,
        before=evaluate_choice(before, choices[0]),
        after=evaluate_choice(after, choices[1]),
        comparison=found,
        verdict=verdict(after, choices[1], Selection.FIXED),
        notes=(*notes, *after.notes),
    )


def event_catalogs(catalog: Catalog, event: Event) -> tuple[Catalog, Catalog]:
    """The catalog before and after an event; an added model is taken out for "before".

    Raises:
        KeyError: The catalog has no such model.
    """
    old = catalog.model(event.model)
    if event.kind is EventKind.REPRICE:
        new = replace(
            old,
            input_usd_per_mtok=event.input_usd_per_mtok or old.input_usd_per_mtok,
            output_usd_per_mtok=event.output_usd_per_mtok or old.output_usd_per_mtok,
        )
        models = tuple(new if spec.id == event.model else spec for spec in catalog.models)
        repriced = replace(catalog, models=models, digest=f"{catalog.digest}:{event}")
        return catalog, repriced
    off = tuple(  # its evidence no longer sets any range
        replace(spec, status=ModelStatus.DISABLED) if spec.id == event.model else spec
        for spec in catalog.models
    )
    without = replace(catalog, models=off, digest=f"{catalog.digest}:-{event.model}")
    return (without, catalog) if event.kind is EventKind.ADD else (catalog, without)


def _replayed(
    catalog: Catalog,
    evalset: EvalSet,
    requirements: FloatArray,
    today: date,
    scaled: dict[str, float] | None = None,
) -> ReplayData:
    factors = np.array([(scaled or {}).get(model, 1.0) for model in evalset.models])
    priced = replace(evalset, cost_usd=evalset.cost_usd * factors)
    return align_catalog(priced, catalog, requirements, today=today)
