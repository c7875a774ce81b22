"""An eval set, its scores and a catalog's pool lined up as arrays, replayed, and cut into folds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as replaced
from datetime import date
from functools import cached_property
from shlex import quote
from typing import Final, Self

import numpy as np

from hydra_core.base.arrays import read_only
from hydra_core.base.errors import MismatchError
from hydra_core.base.spelling import counted_that
from hydra_core.base.types import (
    BoolArray,
    Catalog,
    CostBasis,
    FloatArray,
    IntArray,
    Pool,
    Rule,
)
from hydra_core.catalog.profiles import pool as routable_pool
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet, clusters_among
from hydra_core.evalsets.folders import dependence_note, scored_by
from hydra_core.evalsets.scores import load_scores
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.frontier import CLOSED, StepCurve, frontier
from hydra_core.replay.gated import closed_models, gate_notes, stand_ins, used_alone
from hydra_core.replay.pricing import CostSource, Prices, estimated_costs, priced_costs
from hydra_core.routing.matcher import choose, returns_on_upgrading, shortfall, value_shortfall

#: What a replay says of a catalog with teams.
TEAMS: Final = "Every query is routed as of no team: their models, knobs and budgets do not count."


@dataclass(frozen=True)
class ReplayData:
    """Everything a replay needs, one row per query with complete outcomes.

    Attributes:
        languages: (n,) language codes.
        requirements: (n, K) predicted requirements.
        quality: (n, m) outcomes in [0, 1], pool order.
        cost_usd: (n, m) realised cost in USD, pool order.
        pool: The routable models, all of them where a catalog was aligned.
        rows: (n,) row numbers in the eval set.
        clusters: (n,) cluster numbers, or None when queries are independent.
        notes: What was left out and why, in plain words.
        costs: Which prices the costs stand on, in one phrase; empty for a pool without a catalog.
        prices: Whether costs are those of today's prices or as recorded.
        recorded: The models whose costs an edited price does not move.
        predicted: (n, m) predicted success and cost, None where there is no outcome model.
        dependence: What a verdict must say about undeclared dependence; '' if there is nothing.
        closed: (n, m) where a hard gate keeps the model from the query; None where none does.
        unmeasured: Models of the pool without outcomes here. They take their traffic; their quality
            is unknown and stands as 0, the least possible, and their cost is an estimate.
    """

    query_ids: tuple[str, ...]
    languages: tuple[str, ...]
    requirements: FloatArray
    quality: FloatArray
    cost_usd: FloatArray
    pool: Pool
    rows: IntArray
    clusters: IntArray | None = None
    notes: tuple[str, ...] = ()
    costs: str = ""
    prices: Prices = Prices.TODAY
    recorded: tuple[str, ...] = ()
    dependence: str = ""
    predicted: Predicted | None = None
    unmeasured: tuple[str, ...] = ()
    closed: BoolArray | None = None

    @cached_property
    def measured(self) -> BoolArray:
        """(m,) whether the set has outcomes of each model of the pool."""
        return ~np.isin(self.pool.ids, self.unmeasured)

    def unknown(self, choice: IntArray) -> BoolArray:
        """(n,) whether nobody knows what the model chosen for each query would achieve."""
        return ~self.measured[choice]

    @cached_property
    def with_outcomes(self) -> Self:
        """The same queries with the measured models alone, for what reads outcomes only."""
        if not self.unmeasured:
            return self
        kept = np.flatnonzero(self.measured)
        predicted = self.predicted
        return replaced(
            self,
            quality=self.quality[:, kept],
            cost_usd=self.cost_usd[:, kept],
            pool=replaced(
                self.pool,
                ids=tuple(self.pool.ids[i] for i in kept),
                capabilities=self.pool.capabilities[kept],
                cost=self.pool.cost[kept],
            ),
            predicted=predicted
            and Predicted(predicted.success[:, kept], predicted.cost_usd[:, kept]),
            unmeasured=(),
            closed=None if self.closed is None else self.closed[:, kept],
        )

    @property
    def independent(self) -> int:
        """Queries, or clusters where the set has them."""
        return len(self.query_ids) if self.clusters is None else int(np.unique(self.clusters).size)

    @cached_property
    def oracle(self) -> IntArray:
        """(n,) the cheapest model that resolves each query, in hindsight (Eq. 7).

        Highest quality first, then the pool's static cost order as in Algorithm 3 (so the oracle's
        misroute is 0), then catalog order. A query nobody resolves goes to the cheapest. Models
        without outcomes take no part, and a model that a gate keeps out none in that query.
        """
        able = np.broadcast_to(self.measured, self.quality.shape)
        if self.closed is not None:  # where only models without outcomes are left, one of these
            open_ = able & ~self.closed
            able = np.where(open_.any(axis=1, keepdims=True), open_, ~self.closed)
        possible = np.where(able, self.quality, -1.0)
        best = possible >= possible.max(axis=1, keepdims=True)
        return read_only(np.where(best, self.pool.cost[None, :], np.inf).argmin(axis=1))

    @property
    def servable(self) -> FloatArray:
        """(n, m) quality, 0 where a gate keeps the model from the query."""
        return self.quality if self.closed is None else np.where(self.closed, 0.0, self.quality)

    @cached_property
    def cheapest_resolving(self) -> FloatArray:
        """(n,) the lowest static cost of the models that may resolve each query, else infinite."""
        resolved = self.servable >= RESOLVED_AT
        return read_only(np.where(resolved, self.pool.cost, np.inf).min(axis=1))

    @cached_property
    def stand_in(self) -> IntArray | None:
        """(n, m) who serves where one model is used alone (`gated.stand_ins`), None: no gates."""
        if self.closed is None:
            return None
        return read_only(stand_ins(self.closed, self.measured, self.pool.cost))

    def served(self, choice: IntArray) -> IntArray:
        """(n,) or (n, p) models of each query -> the same, stand-ins where a gate keeps one out."""
        if self.stand_in is None:
            return choice
        columns = choice.reshape(len(choice), -1)
        return np.take_along_axis(self.stand_in, columns, axis=1).reshape(choice.shape)

    @cached_property
    def fixed(self) -> tuple[FloatArray, FloatArray]:
        """(n, m) quality and cost in USD of each query by one model alone or its stand-ins."""
        return used_alone(self.quality, self.cost_usd, self.stand_in)

    @cached_property
    def alone(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """(m,) mean quality, mean cost in USD and resolved queries of every model used alone."""
        quality, cost = self.fixed
        return quality.mean(axis=0), cost.mean(axis=0), (quality >= RESOLVED_AT).sum(axis=0)

    @cached_property
    def binary(self) -> bool:
        """Whether every outcome is a plain yes or no."""
        return bool(np.isin(self.quality, (0.0, 1.0)).all())

    def shortfalls(self, weights: FloatArray | None = None) -> FloatArray:
        """(n, m) weighted shortfalls; `weights` (K,) are compensated, default the pool's."""
        used = self.pool.weights if weights is None else weights
        found = shortfall(self.requirements, self.pool.capabilities, used)
        return found if self.closed is None else np.where(self.closed, CLOSED, found)

    @property
    def predictions(self) -> Predicted:
        """What the value rule decides by.

        Raises:
            ValueError: There are none.
        """
        if self.predicted is None:
            raise ValueError("the value rule needs the predictions of an outcome model")
        return self.predicted

    def terms(self, rule: Rule, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """What decides at every setting: (n, m) shortfalls, and the cost that orders the models.

        Under the value rule these are the returns on upgrading and (n, m) predicted costs, USD.

        Args:
            weights: As in `shortfalls`.
        """
        if rule is Rule.SHORTFALL:
            return self.shortfalls(weights), self.pool.cost
        success, cost_usd = self.predictions.success, self.predictions.cost_usd
        return returns_on_upgrading(success, cost_usd), cost_usd

    def take(self, rows: IntArray) -> Self:
        """The same data for some rows only (for halves and language slices)."""
        clusters = self.clusters
        return replaced(
            self,
            query_ids=tuple(self.query_ids[i] for i in rows),
            languages=tuple(self.languages[i] for i in rows),
            requirements=self.requirements[rows],
            quality=self.quality[rows],
            cost_usd=self.cost_usd[rows],
            rows=self.rows[rows],
            clusters=clusters_among(clusters, rows),
            predicted=self.predicted and self.predicted.take(rows),
            closed=None if self.closed is None else self.closed[rows],
        )


def _incomplete(evalset: EvalSet, models: list[str]) -> MismatchError:
    """Why no query can be compared: costs are missing, or outcomes are."""
    costless = [m for m, usd in evalset.mean_cost().items() if m in models and np.isnan(usd)]
    if costless:
        some = len(costless) < len(models)
        whose, leave = (f"of {', '.join(costless)} ", ", or leave them out") if some else ("", "")
        return MismatchError(
            f"Eval set '{evalset.name}' has outcomes {whose}without costs and without tokens from "
            f"which costs follow. Import it again with costs or tokens{leave}"
        )
    return MismatchError(
        f"Eval set '{evalset.name}' has no query with outcomes and costs of all of "
        f"{', '.join(models)}, so they cannot be compared on it. Have every model answer about "
        "250 of its messages (hydra-router collect), or disable models that lack outcomes"
    )


def align(
    evalset: EvalSet,
    requirements: FloatArray,
    pool: Pool,
    estimated: Mapping[str, float] | None = None,
    closed: BoolArray | None = None,
) -> ReplayData:
    """Line up an eval set with a pool; nothing is imputed, what is left out is noted.

    A query needs outcomes of the models that may serve it. Where a gate keeps out a model that has
    none, that cell holds the outcome of its stand-in.

    Args:
        requirements: (rows of the eval set, K) predicted requirements.
        estimated: Model id -> USD per query of models without outcomes, which then stay in the
            pool; without it they are left out.
        closed: (rows of the eval set, models of the pool) where a hard gate keeps a model out.

    Raises:
        MismatchError: No model of the pool has outcomes, no query has all of them, or no model may
            serve any.
    """
    columns = measured_columns(evalset)
    having = [model for model in pool.ids if model in columns]
    absent = tuple(model for model in pool.ids if model not in columns)
    if not having:
        raise _other_models(evalset, pool.ids)
    at = [columns[model] for model in having]
    known = np.isfinite(evalset.quality[:, at]) & np.isfinite(evalset.cost_usd[:, at])
    kept = [i for i, model in enumerate(pool.ids) if estimated is not None or model in columns]
    open_: BoolArray = np.ones(evalset.n, dtype=bool)
    if closed is not None:
        known |= closed[:, [i for i, model in enumerate(pool.ids) if model in columns]]
        closed = closed[:, kept]
        open_ = np.asarray(~closed.all(axis=1))
    complete, scored = known.all(axis=1), np.isfinite(requirements).all(axis=1)
    rows = np.flatnonzero(complete & scored & open_)
    if not complete.any():
        raise _incomplete(evalset, having)
    if not rows.size and (complete & scored).any():
        raise MismatchError(
            f"no model of {', '.join(having)} passes the hard gates of any query of eval set "
            f"'{evalset.name}': they need vision, tools, an ability, a tag or a window that none "
            "has, or name other models"
        )
    if not rows.size:
        raise MismatchError(
            f"Eval set '{evalset.name}' has no scored query with outcomes of all of "
            f"{', '.join(having)}. Score it"
        )
    ids = tuple(pool.ids[i] for i in kept)
    quality, cost_usd = np.zeros((rows.size, len(ids))), np.empty((rows.size, len(ids)))
    for i, model in enumerate(ids):
        if model in columns:
            quality[:, i] = evalset.quality[rows, columns[model]]
            cost_usd[:, i] = evalset.cost_usd[rows, columns[model]]
        elif estimated is not None:
            cost_usd[:, i] = estimated[model]
    closed = None if closed is None else closed[rows]
    gone = int((complete & scored & ~open_).sum())
    data = ReplayData(
        query_ids=tuple(evalset.queries["query_id"].iloc[rows].astype(str).tolist()),
        languages=tuple(evalset.queries["language"].iloc[rows].astype(str).tolist()),
        requirements=requirements[rows],
        quality=quality,
        cost_usd=cost_usd,
        pool=Pool(ids, pool.capabilities[kept], pool.cost[kept], pool.weights, level=pool.level),
        rows=rows,
        clusters=evalset.clusters_at(rows),
        dependence=dependence_note(evalset.dependence),
        notes=(
            *_notes(
                absent,
                int((~complete).sum()),
                int((complete & ~scored).sum()),
                estimated is not None,
            ),
            *gate_notes(closed, gone),
        ),
        unmeasured=() if estimated is None else absent,
        closed=closed if closed is not None and closed.any() else None,
    )
    if data.closed is None:
        return data
    fixed, fixed_usd = data.fixed
    return replaced(
        data,
        quality=np.where(np.isnan(quality), fixed, quality),
        cost_usd=np.where(np.isnan(cost_usd), fixed_usd, cost_usd),
    )


def _other_models(evalset: EvalSet, ids: Iterable[str]) -> MismatchError:
    return MismatchError(
        f"Eval set '{evalset.name}' has no outcomes for any model of this catalog: it has "
        f"{', '.join(evalset.models)}; the catalog has {', '.join(ids)}. Rename them in either, or "
        "choose another eval set"
    )


def measured_columns(evalset: EvalSet) -> dict[str, int]:
    """Model id -> column, of the models that have at least one outcome."""
    some = np.isfinite(evalset.quality).sum(axis=0).tolist()
    return {model: column for column, model in enumerate(evalset.models) if some[column]}


def catalog_scores(evalset: EvalSet, catalog: Catalog) -> FloatArray:
    """(n, K) requirements by the bundle the catalog is bound to; another bundle's are never used.

    Raises:
        MismatchError: The set is not scored by it, or has other models; it says what to do.
        EvalSetError: The scores are damaged.
    """
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    if scores is not None:
        return scores
    ids = [model.id for model in catalog.models]
    if not measured_columns(evalset).keys() & set(ids):
        raise _other_models(evalset, ids)  # scores or other bands would not help
    others = ", ".join(name[:12] for name in scored_by(evalset.path))
    ways = f"Score it on Eval sets or with hydra-router score {quote(str(evalset.path))}"
    if evalset.texts is None:
        ways = "It has no texts to score: import it again with them"
    if evalset.texts is not None or others:
        rebind = f"hydra-router rebind {quote(catalog.source)}"
        ways += f", choose another catalog, or move this one to another predictor: {rebind}"
    raise MismatchError(
        f"Eval set '{evalset.name}' is not scored by '{catalog.predictor}' "
        f"({catalog.predictor_fingerprint[:12]}), the predictor that catalog '{catalog.name}' is "
        f"bound to{f', but by {others}' if others else ''}. {ways}"
    )


def align_catalog(
    evalset: EvalSet,
    catalog: Catalog,
    requirements: FloatArray,
    weights: tuple[float, ...] | None = None,
    *,
    today: date,
    prices: Prices = Prices.TODAY,
) -> ReplayData:
    """Line up an eval set with a catalog's routable models, ordered as its cost basis says.

    Costs are those at the catalog's prices where the set allows it; the notes say what they are.

    Args:
        requirements: (rows of the eval set, K) scores by the catalog's own predictor bundle.
        weights: (K,) stored weights to use instead of the policy's.
        today: Decides about retiring models.
        prices: Costs at the catalog's prices of today, or as they were recorded.

    Raises:
        MismatchError: They do not fit together, or a realised cost is missing.
        RoutingError: No model is routable on that day.
        CatalogError: `weights` does not hold one number > 0 per dimension.
    """
    basis = catalog.policy.cost_basis
    costs = priced_costs(evalset, catalog, prices)
    priced = replaced(evalset, cost_usd=costs.usd)
    estimated = estimated_costs(evalset, catalog, costs.usd, measured_columns(evalset))
    realised = None
    if basis is CostBasis.REALISED:
        means = priced.mean_cost().items()
        realised = {**estimated, **{m: cost for m, cost in means if np.isfinite(cost)}}
    models = routable_pool(catalog, today=today, weights=weights, realised_cost=realised)
    closed = closed_models(evalset.queries, [catalog.model(name) for name in models.ids])
    data = align(priced, models.capped(requirements), models, estimated, closed)
    ids = tuple(model for model in data.pool.ids if model not in data.unmeasured)
    note = costs.note(ids)
    recorded = tuple(m for m in ids if costs.sources.get(m) is CostSource.RECORDED)
    teams = TEAMS if catalog.policy.teams else ""
    notes = (*data.notes, *filter(None, (note, teams)))
    summary = costs.summary(ids)
    return replaced(data, notes=notes, costs=summary, prices=prices, recorded=recorded)


def data_frontier(
    data: ReplayData, weights: FloatArray | None = None, rule: Rule = Rule.SHORTFALL
) -> StepCurve:
    """The exact frontier of a replayed set.

    Args:
        weights: (K,) compensated weights of the shortfall rule, default the pool's.
        rule: Whose knob; the value rule needs predictions.
    """
    return curve_of(data, rule, *data.terms(rule, weights))


def curve_of(data: ReplayData, rule: Rule, shortfalls: FloatArray, cost: FloatArray) -> StepCurve:
    """As `data_frontier`, by terms that are known."""
    by = cost if rule is Rule.VALUE else None
    return frontier(shortfalls, data.pool.cost, data.servable, data.cost_usd, ranked_by=by)


def replay(
    data: ReplayData,
    knob: float,
    weights: FloatArray | None = None,
    rule: Rule = Rule.SHORTFALL,
) -> IntArray:
    """(n,) index of the model each query is routed to at tau (or V), by the router's own rule."""
    if rule is Rule.SHORTFALL:
        return choose(data.shortfalls(weights), data.pool.cost, knob)
    success, cost_usd = data.predictions.success, data.predictions.cost_usd
    return choose(value_shortfall(success, cost_usd, knob), cost_usd, 0.0)


def _notes(
    absent: tuple[str, ...], incomplete: int, unscored: int, routed: bool
) -> tuple[str, ...]:
    notes = []
    if absent and routed:
        names, it = ", ".join(absent), "it" if len(absent) == 1 else "them"
        notes.append(
            f"No outcomes for {names}: what is routed to {it} counts as unresolved, so quality is "
            "at least the figure shown, and its cost is estimated from prices."
        )
    elif absent:
        notes.append(f"No outcomes for {', '.join(absent)}: left out of this replay.")
    if incomplete:
        some = counted_that(incomplete, "query", "lacks", "lack")
        notes.append(f"{some} an outcome or cost of some model: left out.")
    if unscored:
        some = counted_that(unscored, "query", "is", "are")
        notes.append(f"{some} not scored yet: left out.")
    return tuple(notes)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Rows to learn or choose on, and the rows to report on (none in both)."""

    train: IntArray
    test: IntArray


def folds(data: ReplayData, count: int, rng: np.random.Generator) -> tuple[Fold, ...]:
    """Cut the queries into `count` parts; each is the test part of one fold.

    Clusters (translations of one task, turns of one conversation) stay whole; within each language
    the clusters are dealt out evenly, a cluster counting for its first query's language.

    Raises:
        ValueError: Fewer clusters than parts, or fewer than two parts.
    """
    n = len(data.query_ids)
    units = np.arange(n) if data.clusters is None else data.clusters
    names, first, unit = np.unique(units, return_index=True, return_inverse=True)
    if not 2 <= count <= names.size:
        raise ValueError(f"{names.size} independent queries cannot be cut into {count} parts")
    languages = np.asarray(data.languages)[first]
    mixed = rng.permutation(names.size)
    dealt = mixed[np.argsort(languages[mixed], kind="stable")]
    part = np.empty(names.size, dtype=np.intp)
    part[dealt] = np.arange(names.size) % count
    of_row = part[unit]
    return tuple(
        Fold(np.flatnonzero(of_row != i), np.flatnonzero(of_row == i)) for i in range(count)
    )
