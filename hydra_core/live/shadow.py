"""A second catalog on the same traffic, with no effect: what it would have routed differently.

Replayed from the logged requirements, or predictions where it routes by value: no message is sent.
Gates are those of the request; only decisions that the rule took afresh count.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import MismatchError, Problem, ProblemsError
from hydra_core.base.intervals import Interval
from hydra_core.base.types import (
    BoolArray,
    Catalog,
    FloatArray,
    IntArray,
    ModelSpec,
    Policy,
    Pool,
    Rule,
    Team,
)
from hydra_core.catalog.profiles import pool
from hydra_core.live.traffic import CostAgainst, Traffic, against, share
from hydra_core.outcome_model.heads import Messages, Predicted
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.predictor.signals import surface_counts
from hydra_core.routing.gates import gate_of
from hydra_core.routing.matcher import choose, shortfall, value_shortfall
from hydra_core.routing.query import Query
from hydra_core.routing.valuation import Valuer, valuer_of

#: (n,) messages, their turns and contexts -> their scores and vectors.
Predict = Callable[[list[str], list[int], list[str]], Prediction]
_SUCCESS: Final = "replayed_success"
_COST: Final = "replayed_cost_usd"


def predicted(
    traffic: Traffic, catalog: Catalog, today: date, predict: Predict | None = None
) -> Traffic:
    """The traffic with the catalog's predictions where they can be known.

    Args:
        traffic: Returned as it is where the catalog does not route by value, or it was done before.
        predict: Scores logged messages again; None where that is not wanted.

    Raises:
        HydraError: The catalog's outcome model is missing or belongs to another predictor.
    """
    if catalog.policy.rule is not Rule.VALUE or _SUCCESS in traffic.rows:
        return traffic
    valuer = valuer_of(catalog, pool(catalog, today=today))
    assert valuer is not None
    rows = traffic.rows.copy()
    same = (rows["valued_by"] == valuer.digest) & rows["predicted_success"].notna()
    rows[_SUCCESS] = rows["predicted_success"].where(same, None)
    rows[_COST] = rows["predicted_cost_usd"].where(same, None)
    made = replace(traffic, rows=rows)
    places = _missing(made, catalog.predictor_fingerprint)
    if valuer.outcome_model is None:
        _from_requirements(made, valuer, places)
    elif predict is not None:
        _from_texts(made, valuer, places, predict)
    return made


def has_predictions(traffic: Traffic) -> BoolArray:
    """(n,) whether the catalog's predictions are known; `predicted` made the traffic."""
    return np.asarray(traffic.rows[_SUCCESS].notna(), dtype=bool)


def predictions(traffic: Traffic) -> tuple[FloatArray, FloatArray]:
    """(n, m) success and cost in USD, pool order; every decision must have them."""
    success, cost_usd = (np.stack(list(traffic.rows[name])) for name in (_SUCCESS, _COST))
    return success.astype(np.float64), cost_usd.astype(np.float64)


def _from_requirements(traffic: Traffic, valuer: Valuer, places: IntArray) -> None:
    if places.size:
        said = valuer.of_requirements(traffic.requirements()[places], _sizes(traffic, places))
        assert said is not None
        _fill(traffic, places, said)


def _sizes(traffic: Traffic, places: IntArray) -> FloatArray:
    """(n,) input tokens as the upstream counted them, 0 where it did not."""
    counted = traffic.rows["input_tokens"].iloc[places]
    return counted.fillna(0).to_numpy(dtype=np.float64)


def _missing(traffic: Traffic, fingerprint: str) -> IntArray:
    """Places of decisions that were scored by the catalog's predictor and lack predictions."""
    wanted = traffic.routed & traffic.scored & ~has_predictions(traffic)
    wanted &= np.asarray(traffic.rows["predictor"] == fingerprint, dtype=bool)
    return np.flatnonzero(wanted)


def _fill(traffic: Traffic, places: IntArray, said: Predicted) -> None:
    for name, values in ((_SUCCESS, said.success), (_COST, said.cost_usd)):
        column = traffic.rows[name].to_numpy(dtype=object).copy()
        for place, value in zip(places, values, strict=True):
            column[place] = value
        traffic.rows[name] = column


def _from_texts(traffic: Traffic, valuer: Valuer, places: IntArray, predict: Predict) -> None:
    """Fill in what the log does not hold but for the message itself."""
    rows = traffic.rows
    places = places[rows["text"].notna().to_numpy(dtype=bool)[places]]
    if not places.size:
        return
    texts = rows["text"].iloc[places].tolist()
    contexts = rows["context"].iloc[places].fillna("").tolist()
    found = predict(texts, rows["turn"].iloc[places].astype(int).tolist(), contexts)
    assert found.vectors is not None  # the outcome model's bundle has them
    vectors = found.vectors.astype(np.float16)
    messages = Messages(found.requirements, vectors, surface_counts(texts))
    _fill(traffic, places, valuer.predict(messages, _sizes(traffic, places)))


_UNPREDICTED: Final = "served by another rule, outcome model, pool or prices, and without its text"
_REMEDY: Final = (
    "the value rule reads the messages: log them (serve --log-text) and ask the verb shadow, or "
    "replay the catalog on an eval set (import log, then evaluate)"
)


@dataclass(frozen=True, slots=True, eq=False)
class Shadow:
    """A catalog's routes on logged traffic.

    Attributes:
        models: (n,) the catalog's route for each.
        agreement: Share of them with the model that was chosen live.
        cost: The catalog's bill against the live one, both at its prices; None without tokens.
        billed: The catalog's bill against what was billed, at the prices of then; None likewise.
        left_out: Why decisions could not be replayed -> how many.
    """

    traffic: Traffic
    models: tuple[str, ...]
    agreement: Interval
    cost: CostAgainst | None
    billed: CostAgainst | None
    left_out: dict[str, int]

    @property
    def mixes(self) -> tuple[dict[str, float], dict[str, float]]:
        """Share of the replayed decisions by model, live and under this catalog."""
        live, here = Counter(self.traffic.rows["chosen"]), Counter(self.models)
        n = len(self.models)
        return {k: v / n for k, v in live.items()}, {k: v / n for k, v in here.items()}


def shadow(traffic: Traffic, catalog: Catalog, today: date) -> Shadow:
    """Replay logged decisions under another catalog; HydraError where that cannot be."""
    traffic = predicted(traffic, catalog, today)
    usable, left_out = replayable(traffic, catalog)
    some = traffic.take(usable)
    found = routes(some, catalog, today)
    served = found >= 0
    if not served.all():
        left_out["no model of the catalog can serve it"] = int((~served).sum())
        some, found = some.take(served), found[served]
    if not len(some):
        raise MismatchError(f"no model of {catalog.name} can serve any of this traffic")
    ids = pool(catalog, today=today).ids
    models = tuple(ids[i] for i in found)
    same = np.asarray(some.rows["chosen"] == np.array(models), dtype=bool)
    cost = against(some, catalog, models, list(some.models), "live")
    billed = against(some, catalog, models, None, "billed")
    return Shadow(some, models, share(some, same), cost, billed, left_out)


def replayable(traffic: Traffic, catalog: Catalog) -> tuple[BoolArray, dict[str, int]]:
    """(n,) decisions that a catalog can be replayed on, and why the others cannot.

    Args:
        traffic: With the catalog's predictions where it routes by value.

    Raises:
        ProblemsError: None can; the message says why.
    """
    routed, scored = traffic.routed, traffic.scored
    bundle = np.asarray(traffic.rows["predictor"] == catalog.predictor_fingerprint, dtype=bool)
    left_out = {
        "kept by a conversation or asked for by name": int((~routed).sum()),
        "not scored": int((routed & ~scored).sum()),
        "scored by another predictor": int((routed & scored & ~bundle).sum()),
    }
    usable = routed & scored & bundle
    by_value = catalog.policy.rule is Rule.VALUE
    if by_value:
        known = has_predictions(traffic)
        left_out[_UNPREDICTED] = int((usable & ~known).sum())
        usable &= known
    counted = {reason: count for reason, count in left_out.items() if count}
    if not usable.any():
        remedies = {_UNPREDICTED: _REMEDY}
        problems = [
            Problem(f"{count:,} decisions", reason, remedies.get(reason, ""))
            for reason, count in counted.items()
        ]
        none = Problem("log", "holds no such decisions", "wait for traffic, or choose other times")
        raise ProblemsError(f"{catalog.name} on this log", problems or [none])
    return usable, counted


def routes(traffic: Traffic, catalog: Catalog, today: date) -> IntArray:
    """(n,) index of the catalog's route in its pool, -1 where no model can serve the request.

    A team's own models and knob hold; what it has used of a budget is not known, and counts as 0.
    """
    routable = pool(catalog, today=today)
    specs = [catalog.model(name) for name in routable.ids]
    choice = _choice(traffic, catalog, routable)
    open_ = _open(traffic, specs)
    found = np.full(len(traffic), -1, dtype=np.intp)
    for rows, team, knob in _parts(traffic, catalog.policy):
        mine = open_[rows]
        if team is not None and team.models is not None:
            mine &= np.array([name in team.models for name in routable.ids])
        for pattern in np.unique(mine, axis=0):
            some, able = rows[(mine == pattern).all(axis=1)], np.flatnonzero(pattern)
            if able.size:
                found[some] = able[choice(some, able, knob)]
    return found


def _parts(traffic: Traffic, policy: Policy) -> Iterator[tuple[IntArray, Team | None, float]]:
    """Decisions of one team and as often raised by a stall, the team, and their tau or V in USD.

    The logged requirements have been raised already; V has not.
    """
    nothing, n = pd.Series([None] * len(traffic)), len(traffic)
    names = traffic.rows.get("team", nothing).fillna("").to_numpy(dtype=object)
    steps = np.zeros(n, dtype=np.intp)
    if policy.stall is not None and policy.rule is Rule.VALUE:
        steps = traffic.rows.get("stalled", nothing).fillna(0).map(policy.stall.steps).to_numpy(int)
    for name, raised in sorted(set(zip(names, steps.tolist(), strict=True))):
        team = policy.teams.get(name)
        knob = policy.knob if team is None else team.knob(policy)
        if policy.stall is not None and raised:
            knob = policy.stall.worth(knob, raised)
        yield np.flatnonzero((names == name) & (steps == raised)), team, knob


def _choice(
    traffic: Traffic, catalog: Catalog, routable: Pool
) -> Callable[[IntArray, IntArray, float], IntArray]:
    """The catalog's rule: decisions, the models open to them, tau or V -> places among these."""
    policy = catalog.policy
    if policy.rule is Rule.VALUE:
        success, cost_usd = predictions(traffic)
        if policy.second_usd:
            seconds = [catalog.model(name).latency_s or 0.0 for name in routable.ids]
            cost_usd = cost_usd + policy.second_usd * np.asarray(seconds)

        def by_value(rows: IntArray, able: IntArray, value_usd: float) -> IntArray:
            part = np.ix_(rows, able)
            behind = value_shortfall(success[part], cost_usd[part], value_usd)
            return choose(behind, cost_usd[part], 0.0)

        return by_value
    need = routable.capped(traffic.requirements())
    lacking = shortfall(need, routable.capabilities, routable.weights)

    def by_shortfall(rows: IntArray, able: IntArray, tau: float) -> IntArray:
        return choose(lacking[np.ix_(rows, able)], routable.cost[able], tau)

    return by_shortfall


def _open(traffic: Traffic, specs: list[ModelSpec]) -> BoolArray:
    """(n, m) whether a model passes the hard gates of each request."""
    rows = traffic.rows
    flags = (rows[name].fillna(False).astype(bool) for name in ("has_image", "needs_tools"))
    nothing = pd.Series([None] * len(rows))
    lists = (rows.get(name, nothing) for name in ("allow", "deny", "needs", "require"))
    facts = [_fact(*one) for one in zip(*flags, *lists, strict=True)]
    by_fact = {one: [gate_of(spec, one) is None for spec in specs] for one in set(facts)}
    passes = np.array([by_fact[one] for one in facts], dtype=bool).reshape(len(rows), len(specs))
    needed = rows["context_tokens"].fillna(0).to_numpy(dtype=np.float64)
    windows = np.array([spec.context_window for spec in specs])
    return passes & (windows[None, :] >= needed[:, None])


def _fact(has_image: bool, needs_tools: bool, allow: object, *others: object) -> Query:
    """What the gates look at, but for the length."""
    listed = _words(allow) if isinstance(allow, np.ndarray) else None
    deny, needs, require = map(_words, others)
    facts = Query("", has_image=has_image, needs_tools=needs_tools, allow=listed, deny=deny)
    return replace(facts, needs=needs, require=require)


def _words(cell: object) -> frozenset[str]:
    return frozenset(map(str, cell)) if isinstance(cell, np.ndarray) else frozenset()
