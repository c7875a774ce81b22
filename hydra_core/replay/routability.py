"""Can routing help on a set, and what does the set hold before anything is tuned on it?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hydra_core.base.intervals import SHARE, Interval, normal_quantile
from hydra_core.base.spelling import counted
from hydra_core.base.types import BoolArray, FloatArray, IntArray, Progress
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet, clusters_among
from hydra_core.evalsets.suspects import normalised
from hydra_core.replay.baselines import Inputs, TextFeatures, chance, hashed_texts
from hydra_core.replay.metrics import ConstantPolicy, picked, single_models
from hydra_core.replay.replay import Fold, ReplayData, folds
from hydra_core.replay.significance import influence_interval, mean_interval


@dataclass(frozen=True, slots=True)
class SolvePattern:
    """Queries that exactly these models resolve (of those with all outcomes)."""

    models: tuple[str, ...]
    queries: int


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Queries with one and the same text up to case, spaces and punctuation.

    Attributes:
        clustered: They are declared to be one cluster, so intervals count them once.
    """

    query_ids: tuple[str, ...]
    clustered: bool
    outcomes_differ: bool


@dataclass(frozen=True, slots=True)
class Overlap:
    """Texts that another set holds as well: what is tuned on one is not new to the other."""

    other: str
    queries: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingData:
    """Gaps: per model the queries without (quality, cost), and the queries that are complete."""

    queries: int
    complete: int
    by_model: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        if self.complete == self.queries:
            every = f"all {self.queries:,} queries" if self.queries > 1 else "the only query"
            return f"every model has an outcome and a cost on {every}"
        gaps = ", ".join(
            f"{m}: {counted(q, 'outcome')}, {counted(c, 'cost')}"
            for m, (q, c) in self.by_model.items()
        )
        return f"{self.complete:,} of {self.queries:,} queries are complete; missing for {gaps}"


@dataclass(frozen=True, slots=True)
class Difficulty:
    """One language or group.

    Attributes:
        quality: Mean over its queries of the models' mean quality, with a 95 % interval.
        oracle: Mean of the best model's quality.
        decidable: Fraction of queries on which the models differ.
    """

    name: str
    n: int
    quality: Interval
    oracle: float
    decidable: float


def solve_patterns(models: Sequence[str], quality: FloatArray) -> tuple[SolvePattern, ...]:
    """Which models resolve what, the most frequent first (for an upset plot).

    Args:
        models: (m,) ids.
        quality: (n, m); rows with a NaN are left out.
    """
    known = quality[np.isfinite(quality).all(axis=1)]
    last_first, counts = np.unique((known >= RESOLVED_AT)[:, ::-1], axis=0, return_counts=True)
    solved = last_first[:, ::-1]
    order = np.argsort(-counts, kind="stable")
    return tuple(
        SolvePattern(
            tuple(model for model, does in zip(models, solved[i], strict=True) if does),
            int(counts[i]),
        )
        for i in order
    )


def duplicates(evalset: EvalSet) -> tuple[DuplicateGroup, ...]:
    """Texts that occur more than once, the largest groups first.

    A duplicate counts a query twice, and leaks between the part that is tuned on and the part
    that is reported on unless both lie in one cluster.

    Raises:
        EvalSetError: The set has no texts.
    """
    texts = evalset.require_texts("the search for duplicates").map(normalised)
    repeated = texts[texts.duplicated(keep=False)]
    owner = evalset.clusters
    ids = evalset.queries["query_id"]
    found = []
    for _, rows in repeated.groupby(repeated, sort=False).groups.items():
        at = np.asarray(rows, dtype=np.intp)
        known = evalset.quality[at]  # NaN where not known: no difference
        group = DuplicateGroup(
            query_ids=tuple(ids.iloc[at]),
            clustered=owner is not None and len(set(owner[at])) == 1,
            outcomes_differ=bool((np.fmax.reduce(known) > np.fmin.reduce(known)).any()),
        )
        found.append(group)
    return tuple(sorted(found, key=lambda group: (-len(group.query_ids), group.query_ids)))


def overlaps(evalset: EvalSet, others: Mapping[str, Sequence[str]]) -> tuple[Overlap, ...]:
    """Queries whose text also lies in another set (its name -> its texts); none are left out.

    Raises:
        EvalSetError: The set has no texts.
    """
    texts = evalset.require_texts("the search for overlaps").map(normalised)
    found = []
    for name, theirs in others.items():
        shared = evalset.queries["query_id"][texts.isin({normalised(text) for text in theirs})]
        if len(shared):
            found.append(Overlap(name, len(shared), tuple(shared.iloc[:3])))
    return tuple(found)


def missing_data(evalset: EvalSet) -> MissingData:
    """Where outcomes or costs are missing; nothing is ever filled in."""
    complete = np.isfinite(evalset.quality).all(axis=1) & np.isfinite(evalset.cost_usd).all(axis=1)
    quality, cost = evalset.missing_quality, evalset.missing_cost
    gaps = {m: (quality[m], cost[m]) for m in evalset.models if quality[m] or cost[m]}
    return MissingData(evalset.n, int(complete.sum()), gaps)


def difficulty(evalset: EvalSet, column: str = "language") -> tuple[Difficulty, ...]:
    """How hard the queries of each language or group are, the largest first.

    Args:
        column: `language` or `group`; a set without it gives nothing.
    """
    if column not in evalset.queries.columns:
        return ()
    known = np.isfinite(evalset.quality).all(axis=1)
    names = evalset.queries[column].fillna("").astype(str).to_numpy()
    counts = Counter(names[known].tolist())
    found = []
    for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        rows = np.flatnonzero(known & (names == name))
        quality, clusters = evalset.quality[rows], evalset.clusters_at(rows)
        found.append(
            Difficulty(
                name=name or "(none)",
                n=n,
                quality=mean_interval(quality.mean(axis=1), clusters).clipped(*SHARE),
                oracle=float(quality.max(axis=1).mean()),
                decidable=float(np.mean(quality.max(axis=1) > quality.min(axis=1))),
            )
        )
    return tuple(found)


#: Median AUC over the models from which success is called predicted.
PREDICTIVE_AUC = 0.60
#: Queries that AUCs are computed on; more are drawn at random, which changes little.
_MOST = 6_000
_PARTS = 5
_FEWEST = 10


@dataclass(frozen=True, slots=True)
class ModelAuc:
    """How well success of one model is predicted on queries not learned from (0.5 = not at all).

    Attributes:
        text: From the text's character n-grams.
        scores: From the predictor's requirement scores.
    """

    model: str
    text: Interval
    scores: Interval


@dataclass(frozen=True, slots=True)
class PerfectRouter:
    """What the best choice in hindsight gains over the best single model; fractions.

    Attributes:
        best: The best single model; `quality` is its mean.
        gain: That minus `quality`, 95 % interval.
        saving: Of the best single model's cost; NaN where that is free.
        decidable: Queries on which the models differ.
    """

    n: int
    best: str
    quality: float
    oracle: float
    gain: Interval
    saving: float
    decidable: float

    @property
    def text(self) -> str:
        """Both bounds in one sentence."""
        return (
            f"A perfect router would gain {100 * self.gain.value:.1f} pp over always {self.best}; "
            f"the models differ on {100 * self.decidable:.0f} % of the queries."
        )


def perfect_router(data: ReplayData) -> PerfectRouter:
    """The limits of any router on a replayed set, among the models that have outcomes."""
    data = data.with_outcomes
    best = _best_single(data)
    reached = picked(data.quality, data.oracle)
    spent, base = float(picked(data.cost_usd, data.oracle).mean()), best.mean_cost_usd
    gain = mean_interval(reached - data.fixed[0][:, best.index], data.clusters)
    return PerfectRouter(
        n=len(data.rows),
        best=best.model,
        quality=best.quality,
        oracle=float(reached.mean()),
        gain=gain.clipped(*SHARE),
        saving=1 - spent / base if base > 0 else float("nan"),
        decidable=_decidable(data),
    )


def _decidable(data: ReplayData) -> float:
    open_ = True if data.closed is None else ~data.closed
    most = data.quality.max(axis=1, where=open_, initial=-np.inf)
    least = data.quality.min(axis=1, where=open_, initial=np.inf)
    return float((most > least).mean())


def _best_single(data: ReplayData) -> ConstantPolicy:
    return max(single_models(data), key=lambda one: (one.quality, -one.mean_cost_usd))


@dataclass(frozen=True, slots=True)
class Routability:
    """What a router could win on a replayed set.

    Attributes:
        aucs: Per model; empty where fewer than 10 queries succeed or fail.
        advantage: For the queries on which the best and the cheapest model differ: how well it
            is predicted which of them wins.
        sampled: Queries the AUCs were computed on.
        predicted: Median AUC over the models from the better of the two readings; NaN if unknown.
    """

    n: int
    aucs: tuple[ModelAuc, ...]
    advantage: ModelAuc | None
    sampled: int
    predicted: float
    source: str
    predictive: bool
    text: str


def routability(
    data: ReplayData,
    texts: Sequence[str],
    *,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Routability:
    """Bound what routing can win, with cross-validated AUCs.

    Args:
        texts: (n,) message of each query of `data`.
        progress: Called with (done, total) at the start and after each part's features and each
            model; what it raises stops.
    """
    data = data.with_outcomes
    aucs, advantage, sampled = _aucs(data, texts, _best_single(data).index, seed, progress)
    middle, source = _better(aucs)
    predictive = middle >= PREDICTIVE_AUC
    return Routability(
        n=len(texts),
        aucs=aucs,
        advantage=advantage,
        sampled=sampled,
        predicted=middle,
        source=source,
        predictive=predictive,
        text=_sentence(perfect_router(data).text, middle, source),
    )


def _better(aucs: Sequence[ModelAuc]) -> tuple[float, str]:
    if not aucs:
        return float("nan"), ""
    text = float(np.median([auc.text.value for auc in aucs]))
    scores = float(np.median([auc.scores.value for auc in aucs]))
    return max((text, "the text"), (scores, "the requirement scores"))


def _aucs(
    data: ReplayData,
    texts: Sequence[str],
    best: int,
    seed: int,
    progress: Progress,
) -> tuple[tuple[ModelAuc, ...], ModelAuc | None, int]:
    rng = np.random.default_rng(seed)
    n = len(texts)
    rows = np.sort(rng.choice(n, _MOST, replace=False)) if n > _MOST else np.arange(n)
    part = data.take(rows)
    if part.independent < 2 * _PARTS:
        return (), None, len(rows)
    cut = folds(part, _PARTS, rng)
    targets = _targets(part, best)

    steps = len(cut) + len(targets)
    progress(0, steps)
    hashed = hashed_texts([texts[i] for i in rows])
    inputs = []
    for fold in cut:
        features = TextFeatures(hashed[fold.train], seed=seed)
        train, test = (
            features(hashed, side, part.requirements) for side in (fold.train, fold.test)
        )
        inputs.append((train, test))
        progress(len(inputs), steps)
    found = []
    for target in targets:
        found.append(_auc(*target, cut, inputs, part.clusters))
        progress(len(inputs) + len(found), steps)
    *models, advantage = found
    return tuple(auc for auc in models if auc is not None), advantage, len(rows)


def _targets(data: ReplayData, best: int) -> list[tuple[str, BoolArray, BoolArray]]:
    """What is predicted, and among which queries: each model's success, then which of two wins."""
    everything = np.ones(len(data.rows), dtype=np.bool_)
    models = [
        (model, data.quality[:, j] >= RESOLVED_AT, everything)
        for j, model in enumerate(data.pool.ids)
    ]
    cheap = int(data.pool.cost.argmin())
    ours, theirs = data.quality[:, best], data.quality[:, cheap]
    name = f"{data.pool.ids[best]} over {data.pool.ids[cheap]}"
    return [*models, (name, ours > theirs, ours != theirs)]


def _auc(
    name: str,
    target: BoolArray,
    among: BoolArray,
    cut: Sequence[Fold],
    inputs: Sequence[tuple[Inputs, Inputs]],
    clusters: IntArray | None,
) -> ModelAuc | None:
    """Cross-validated AUC of one target among some queries; None where there are too few."""
    if min((target & among).sum(), (~target & among).sum()) < _FEWEST:
        return None
    scores = np.zeros((2, target.size))
    for fold, (train, test) in zip(cut, inputs, strict=True):
        use, ask = among[fold.train], among[fold.test]
        for i, kind in enumerate(("text", "requirements")):
            known, asked = getattr(train, kind)[use], getattr(test, kind)[ask]
            predicted = chance(known, target[fold.train][use], asked)
            scores[i, fold.test[ask]] = _ranks(predicted)
    unit = clusters_among(clusters, among)
    text, requirements = (auc_interval(row[among], target[among], unit) for row in scores)
    return ModelAuc(name, text, requirements)


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks scaled to (0, 1), so that parts with other base rates can be pooled."""
    return pd.Series(values).rank().to_numpy() / (values.size + 1)


def auc_interval(
    scores: FloatArray, target: BoolArray, clusters: IntArray | None = None
) -> Interval:
    """Area under the ROC curve with a 95 % interval.

    By Hanley and McNeil (1982); of dependent queries by the sum of each cluster's influence
    (Obuchowski 1997).

    Args:
        scores: (n,) higher means more likely.
        target: (n,) with at least one True and one False.
        clusters: (n,) numbers from 0.
    """
    ranks = pd.Series(scores).rank().to_numpy()
    yes, no = int(target.sum()), int((~target).sum())
    area = float((ranks[target].sum() - yes * (yes + 1) / 2) / (yes * no))
    if clusters is not None:
        outranked = ranks - pd.Series(scores).groupby(target).rank().to_numpy()
        won = np.where(target, outranked / no, 1.0 - outranked / yes)
        influence = (won - area) * target.size / np.where(target, yes, no)
        return influence_interval(area, influence, clusters).clipped(*SHARE)
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    variance = area * (1 - area) + (yes - 1) * (q1 - area**2) + (no - 1) * (q2 - area**2)
    half = normal_quantile() * float(np.sqrt(max(variance, 0.0) / (yes * no)))
    return Interval(area, area - half, area + half).clipped(*SHARE)


def _sentence(bound: str, middle: float, source: str) -> str:
    if np.isnan(middle):
        return f"{bound} There are too few outcomes to say whether success can be predicted."
    basis = f"at best from {source}, median AUC {middle:.2f}, 0.50 is chance"
    if middle >= PREDICTIVE_AUC:
        return f"{bound} Success can be predicted ({basis}): routing can help."
    return (
        f"{bound} Success can hardly be predicted ({basis}): expect little from any router that "
        "reads the query alone."
    )
