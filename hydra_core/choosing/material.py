"""What is learned from and fitted to: messages or requirements, outcomes and costs, checked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.errors import OutcomeModelError, Problem
from hydra_core.base.types import BoolArray, Catalog, FloatArray, IntArray
from hydra_core.catalog.profiles import estimated_costs, rank_costs
from hydra_core.evalsets.evalset import EvalSet, clusters_among
from hydra_core.evalsets.scores import HalfArray
from hydra_core.evalsets.suspects import kept_together, vector_numbers
from hydra_core.outcome_model.heads import Messages
from hydra_core.outcome_model.model import LEAST_OUTCOMES
from hydra_core.replay.gated import closed_by, closed_models, stand_ins, used_alone
from hydra_core.replay.replay import ReplayData

#: A model with outcomes on this share of the queries that the best known model has is learned
#: together with the others; one with fewer is a newcomer.
TOGETHER = 0.5
_BY_ROW = (
    "quality",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "rows",
    "clusters",
    "others",
    "stand_in",
)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """One row a query with outcomes of all models that are learned together.

    A log alone has one outcome a query and no such rows: then `compared` is False, every row has
    outcomes of some models only, and no lift can be measured.

    Attributes:
        models: (m,) ids; the `together` first ones have an outcome on every row.
        together: b, how many of them.
        messages: What is known of each query.
        quality: (n, m) in [0, 1], NaN where a newcomer has no outcome.
        cost_usd: (n, m) USD, NaN where it is missing.
        input_tokens, output_tokens: (n, m), None where the set has none; NaN where one is missing.
        rows: (n,) rows in the eval set.
        clusters: (n,) cluster numbers, as `kept_together` says.
        others: (n, r) outcomes of the set's further models that have one on every row: learned
            along, since they too say what is hard, never predicted.
        logged: Further queries with outcomes of some of the models only, None without any.
        stand_in: (n, m) who serves where one model is used alone (`with_gates`), -1 where none may;
            None where no gate is known. Lifts obey the gates, what is learned does not.
        logged_only: Further models: their outcomes are on other queries than the others'. They
            join what was learned by these (`by_rate.with_newcomers`).
    """

    evalset: EvalSet
    models: tuple[str, ...]
    together: int
    messages: Messages
    quality: FloatArray
    cost_usd: FloatArray
    input_tokens: FloatArray | None
    output_tokens: FloatArray | None
    rows: IntArray
    clusters: IntArray
    others: FloatArray
    logged: Material | None = None
    logged_only: tuple[str, ...] = ()
    stand_in: IntArray | None = None

    @property
    def n(self) -> int:
        """Queries."""
        return len(self.rows)

    @property
    def counted(self) -> tuple[int, ...]:
        """(m,) queries with an outcome, the logged ones too."""
        counts = np.isfinite(self.quality).sum(axis=0)
        if self.logged is not None:
            counts = counts + np.isfinite(self.logged.quality).sum(axis=0)
        return tuple(int(count) for count in counts)

    @property
    def compared(self) -> bool:
        """Whether every row has outcomes of all models that are learned together."""
        return bool(np.isfinite(self.quality[:, : self.together]).all())

    @property
    def complete(self) -> IntArray:
        """Rows that a policy can be replayed on: all outcomes and costs known, one may serve."""
        known = (np.isfinite(self.quality) & np.isfinite(self.cost_usd)).all(axis=1)
        if self.stand_in is not None:
            known &= (self.stand_in >= 0).all(axis=1)
        return np.flatnonzero(known)

    @property
    def gates(self) -> IntArray | None:
        """`stand_in` of the `complete` rows."""
        return None if self.stand_in is None else self.stand_in[self.complete]

    def take(self, rows: IntArray) -> Material:
        """The same material for some rows only, without logged queries of the others' clusters."""
        left = np.setdiff1d(self.clusters, self.clusters[rows])
        logged = self.logged
        if logged is not None:
            logged = logged.take(np.flatnonzero(~np.isin(logged.clusters, left)))
        arrays = {name: getattr(self, name) for name in _BY_ROW}
        kept = {name: values[rows] for name, values in arrays.items() if values is not None}
        return replace(self, logged=logged, messages=self.messages.take(rows), **kept)


def gather(
    evalset: EvalSet,
    messages: Messages,
    models: Sequence[str],
    by_rate: Collection[str] = (),
    costs: FloatArray | None = None,
) -> Material:
    """The part of an eval set that the named models can be learned from.

    Args:
        messages: Of every query of the set.
        models: At least two, in the order in which they are to be shown.
        by_rate: Further models that join later; queries with outcomes of theirs are kept.
        costs: (n, m) USD to learn and judge by, columns as in the set: those at a catalog's prices
            (`priced_costs`); None for the recorded ones.

    Raises:
        OutcomeModelError: One model only, unknown models, too few or constant outcomes, no costs;
            every problem found is listed.
    """
    columns = _columns(evalset, models)
    if costs is not None:
        evalset = replace(evalset, cost_usd=costs)
    if not np.isfinite(evalset.cost_usd[:, columns]).any():
        message = "there are none of these models, and no tokens of all outcomes with their prices"
        remedy = "import the set with costs, or with tokens and name a catalog with the prices"
        raise OutcomeModelError(evalset.name, [Problem("costs", message, remedy)])
    quality = evalset.quality[:, columns]
    OutcomeModelError.raise_any(evalset.name, _outcome_problems(models, quality))
    known = np.isfinite(quality)
    counts = (known & (known.sum(axis=1, keepdims=True) > 1)).sum(axis=0)
    often = counts >= TOGETHER * counts.max()
    order = np.concatenate([np.flatnonzero(often), np.flatnonzero(~often)])
    together = int(often.sum())
    if together < 2:
        order = np.argsort(-counts, kind="stable")
        together = 2
    complete = known[:, order[:together]].all(axis=1)
    every = _by_vector(kept_together(evalset, messages.vectors), messages.vectors)
    if complete.sum() < LEAST_OUTCOMES:
        rows = np.flatnonzero(known.any(axis=1))
        return _material(evalset, messages, columns, rows, _numbered(every, rows), len(columns))
    rows = np.flatnonzero(complete)
    every = _numbered(every, rows)
    apart = known[rows].sum(axis=0) < LEAST_OUTCOMES
    at = [columns[i] for i in order if not apart[i]]
    made = _material(evalset, messages, at, rows, every, together)
    OutcomeModelError.raise_any(evalset.name, _outcome_problems(made.models, made.quality))
    named = [columns[i] for i in np.flatnonzero(apart)]
    later = [*named, *(evalset.models.index(one) for one in by_rate if one in evalset.models)]
    wanted = [*at[:together], *later]
    some = np.flatnonzero(np.isfinite(evalset.quality[:, wanted]).any(axis=1) & ~complete)
    logged = _material(evalset, messages, at, some, every, together) if some.size else None
    return replace(made, logged=logged, logged_only=tuple(evalset.models[i] for i in named))


def with_gates(material: Material, catalog: Catalog) -> Material:
    """Return the material with the gates of the set's queries, and stand-ins as in a replay."""
    evalset, specs = material.evalset, [catalog.model(name) for name in material.models]
    closed = closed_models(evalset.queries.iloc[material.rows], specs)
    if closed is None:
        return material
    known = {model: usd for model, usd in evalset.mean_cost().items() if np.isfinite(usd)}
    cost = rank_costs(catalog, specs, {**estimated_costs(catalog, known), **known})
    stand_in = stand_ins(closed, np.ones(len(specs), dtype=bool), cost)
    stand_in[closed.all(axis=1)] = -1
    return replace(material, stand_in=stand_in)


def known_means(values: FloatArray) -> FloatArray:
    """(n, m) -> (m,) means of the columns over what is known, NaN where nothing is."""
    known = np.isfinite(values)
    total, count = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    means: FloatArray = np.full(count.shape, np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means


def _numbered(clusters: IntArray, rows: IntArray) -> IntArray:
    """The same clusters, those of some rows first and without gaps."""
    first = np.unique(clusters[rows])
    order = np.concatenate([first, np.setdiff1d(clusters, first)])
    number = np.empty(int(clusters.max()) + 1, dtype=np.intp)
    number[order] = np.arange(order.size)
    return number[clusters]


def _material(
    evalset: EvalSet,
    messages: Messages,
    columns: list[int],
    rows: IntArray,
    clusters: IntArray,
    together: int,
) -> Material:
    """Some rows of the set, the models in the order of `columns`."""
    at = np.ix_(rows, np.asarray(columns, dtype=np.intp))
    extras, names = evalset.extras, ("input_tokens", "output_tokens")
    tokens = [extras[name][at] for name in names if name in extras]
    complete = len(tokens) == 2 and all(np.isfinite(one).any(axis=0).all() for one in tokens)
    read, written = tokens if complete else (None, None)
    return Material(
        evalset=evalset,
        models=tuple(evalset.models[i] for i in columns),
        together=together,
        messages=messages.take(rows),
        quality=evalset.quality[at],
        cost_usd=evalset.cost_usd[at],
        input_tokens=read,
        output_tokens=written,
        rows=rows,
        clusters=clusters[rows],
        others=_others(evalset.quality[rows], columns),
    )


def _others(quality: FloatArray, columns: Sequence[int]) -> FloatArray:
    """(n, all) -> (n, r): complete outcomes, not always the same, of models not asked for."""
    left = np.setdiff1d(np.arange(quality.shape[1]), columns)
    found = quality[:, left]
    complete = found[:, np.isfinite(found).all(axis=0)]
    return complete[:, np.ptp(complete, axis=0) > 0]


def _by_vector(together: IntArray, vectors: HalfArray) -> IntArray:
    """The same clusters, numbered by their first vector: folds ignore the order of the rows."""
    first = np.full(int(together.max()) + 1, len(vectors))
    np.minimum.at(first, together, vector_numbers(vectors))
    number = np.empty(first.size, dtype=np.intp)
    number[np.argsort(first, kind="stable")] = np.arange(first.size)
    return number[together]


def _columns(evalset: EvalSet, models: Sequence[str]) -> list[int]:
    problems = [
        Problem("models", f"{name!r} has no outcomes here", f"it has {', '.join(evalset.models)}")
        for name in models
        if name not in evalset.models
    ]
    if len(set(models)) < len(models):
        problems.append(Problem("models", "names a model twice", "name each once"))
    if len(models) < 2:
        remedy = "choose at least two: routing is a choice between models"
        problems.append(Problem("models", f"are {len(models)}", remedy))
    OutcomeModelError.raise_any(evalset.name, problems)
    return [evalset.models.index(name) for name in models]


def _outcome_problems(models: Sequence[str], quality: FloatArray) -> list[Problem]:
    """What is wrong with each model's outcomes."""
    wrong: dict[str, tuple[str, str]] = {}
    for name, values in zip(models, quality.T, strict=True):
        known = values[np.isfinite(values)]
        if known.size < LEAST_OUTCOMES:
            remedy = f"at least {LEAST_OUTCOMES} are needed: collect more, or leave the model out"
            wrong[name] = f"has {known.size} outcomes", remedy
        elif known.min() == known.max():
            message = f"has the same outcome ({known[0]:g}) on all of its {known.size} queries"
            wrong[name] = message, "there is nothing to learn about it: leave it out"
    kept = [name for name in models if name not in wrong]
    how = ""
    if len(kept) > 1:
        how = f": disable it in the catalog, or use hydra-router learn --models {','.join(kept)}"
    return [Problem(f"model {n!r}", what, remedy + how) for n, (what, remedy) in wrong.items()]


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """One row a query with outcomes and costs of all models.

    Attributes:
        models: (m,) ids.
        requirements: (n, K) predicted requirements in [0, 1].
        quality, cost_usd: (n, m) in [0, 1] and in USD, none missing.
        clusters: (n,) cluster numbers; queries of one cluster are dependent.
        input_tokens, output_tokens: (n, m) read and written, None where the set has none.
        stand_in: (n, m) who serves where one model is used alone, as in the replay; None where no
            gate keeps a model out. Sources are fitted to all outcomes and judged by the gates.

    Raises:
        ValueError: The shapes do not fit, or a value is not finite.
    """

    models: tuple[str, ...]
    requirements: FloatArray
    quality: FloatArray
    cost_usd: FloatArray
    clusters: IntArray
    input_tokens: FloatArray | None = None
    output_tokens: FloatArray | None = None
    stand_in: IntArray | None = None

    def __post_init__(self) -> None:
        n, m = len(self.requirements), len(self.models)
        if self.quality.shape != (n, m) or self.cost_usd.shape != (n, m) or not n:
            raise ValueError(
                f"quality {self.quality.shape} and cost_usd {self.cost_usd.shape} must be "
                f"({n} queries, {m} models), at least one query"
            )
        if self.clusters.shape != (n,):
            raise ValueError(f"clusters must be ({n},), got {self.clusters.shape}")
        for name in ("requirements", "quality", "cost_usd"):
            if not np.isfinite(getattr(self, name)).all():
                raise ValueError(f"{name} must be finite numbers, got NaN or infinity")

    @property
    def n(self) -> int:
        """Queries."""
        return len(self.requirements)

    def take(self, rows: IntArray) -> Outcomes:
        tokens = (self.input_tokens, self.output_tokens)
        read, written = (None if values is None else values[rows] for values in tokens)
        return Outcomes(
            self.models,
            self.requirements[rows],
            self.quality[rows],
            self.cost_usd[rows],
            np.unique(self.clusters[rows], return_inverse=True)[1],
            read,
            written,
            None if self.stand_in is None else self.stand_in[rows],
        )

    @property
    def closed(self) -> BoolArray | None:
        """(n, m) where a hard gate keeps the model from the query; None where none does."""
        return closed_by(self.stand_in)

    @property
    def alone(self) -> tuple[FloatArray, FloatArray]:
        """(n, m) quality and cost in USD where one model is used alone, with its stand-ins."""
        return used_alone(self.quality, self.cost_usd, self.stand_in)

    def levelled(self, others: Outcomes) -> Outcomes:
        """Return these queries with each model's mean quality and cost as on others.

        Quality is shifted, so it may leave [0, 1] a little; cost is scaled.
        """
        shift = others.quality.mean(axis=0) - self.quality.mean(axis=0)
        own, theirs = self.cost_usd.mean(axis=0), others.cost_usd.mean(axis=0)
        factor = np.divide(theirs, own, out=np.ones_like(own), where=own > 0)
        return replace(self, quality=self.quality + shift, cost_usd=self.cost_usd * factor)


def groups_at(evalset: EvalSet, rows: IntArray) -> list[str] | None:
    """Return the (n,) groups of some rows of a set, None where it has none."""
    queries = evalset.queries
    if "group" not in queries.columns:
        return None
    return [str(name) for name in queries["group"].iloc[rows].fillna("")]


def with_all_outcomes(data: ReplayData, evalset: EvalSet) -> ReplayData:
    """Keep the queries that a measured model may serve, and with outcomes of them all.

    What is fitted needs outcomes also of models that a gate keeps out.
    """
    closed, known = data.with_outcomes.closed, own_outcomes(data, evalset)
    if closed is not None:
        known[closed.all(axis=1)] = False
    return data if known.all() else data.take(np.flatnonzero(known))


def own_outcomes(data: ReplayData, evalset: EvalSet) -> BoolArray:
    """Return (n,) whether every measured model has an outcome of its own, not a stand-in's."""
    names = data.with_outcomes.pool.ids
    columns = np.array([evalset.models.index(name) for name in names], dtype=np.intp)
    return np.asarray(np.isfinite(evalset.quality[np.ix_(data.rows, columns)]).all(axis=1))


def outcomes_of_replay(data: ReplayData, evalset: EvalSet) -> Outcomes:
    """Return the outcomes of a replayed set, at the costs it was replayed with.

    Models without outcomes are left out.
    """
    data = data.with_outcomes
    columns = np.array([evalset.models.index(name) for name in data.pool.ids], dtype=np.intp)
    tokens = []
    for name in ("input_tokens", "output_tokens"):
        values = evalset.extras.get(name)
        part = None if values is None else values[np.ix_(data.rows, columns)]
        tokens.append(part if part is not None and np.isfinite(part).all() else None)
    return Outcomes(
        data.pool.ids,
        data.requirements[:, :-1] if data.pool.level else data.requirements,
        data.quality,
        data.cost_usd,
        clusters_of(data, evalset),
        tokens[0],
        tokens[1],
        data.stand_in,
    )


def clusters_of(data: ReplayData, evalset: EvalSet) -> IntArray:
    """Return the (n,) clusters that are learned from and judged as a whole (`kept_together`)."""
    found = clusters_among(kept_together(evalset), data.rows)
    assert found is not None
    return found
