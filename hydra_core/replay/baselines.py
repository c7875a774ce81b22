"""Other routers on the same queries as HyDRA: learned and cross-fitted, and a checked cascade.

The learned ones follow the published descriptions, not the published code or weights: RouteLLM's
matrix factorisation and BERT threshold (arXiv 2406.18665), Avengers-Pro's clusters (arXiv
2508.12631), kNN routing and a per-model text regression. TF-IDF of hashed character n-grams,
reduced by a truncated SVD, stands in for embeddings in every language. No service checks answers
here: the cascade's figures are exact expectations over the checker's errors, not draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from hydra_core.base.types import FloatArray, IntArray, Progress
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet, joined, same_key
from hydra_core.replay.compare import PolicyRun, policy_run
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import Fold, ReplayData, folds

MODEL_COUPLED = "model-coupled: needs retraining when the pool changes"
RANDOM_MIX = "random mixture"
#: Settings from cheapest to dearest that every learned router is replayed at.
KNOBS = np.linspace(0.0, 1.0, 81)
_NEIGHBOURS = 40
_PER_CLUSTER = 25
_MAX_CLUSTERS = 60
_NEAREST_CLUSTERS = 3
_RANK = 16
_STEPS = 300
_RATE = 0.05
_RIDGE = 1e-3
_CHARS = 1_500
_BUCKETS = 1 << 15
_COMPONENTS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What is known of queries before they are answered.

    Attributes:
        text: (n, d) unit-length text features.
        requirements: (n, K) scores of the predictor bundle.
    """

    text: FloatArray
    requirements: FloatArray


def hashed_texts(texts: Sequence[str]) -> Any:  # noqa: ANN401 (a scipy sparse matrix)
    """(n, buckets) counts of character 2- to 4-grams; nothing is fitted.

    The head and the tail of a long text are read, 750 characters each.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    half = _CHARS // 2
    cut = [text if len(text) <= _CHARS else f"{text[:half]} {text[-half:]}" for text in texts]
    vectorizer = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(2, 4),
        n_features=_BUCKETS,
        alternate_sign=False,
        norm=None,
    )
    return vectorizer.transform(cut)


class TextFeatures:
    """TF-IDF and SVD fitted on the training part's hashed texts."""

    def __init__(self, train: Any, *, seed: int) -> None:  # noqa: ANN401
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        self._met = np.union1d(train.indices, 0)  # the other buckets are all zero, and many
        self._tfidf = TfidfTransformer(sublinear_tf=True)
        weighted = self._tfidf.fit_transform(train[:, self._met])
        rank = max(1, min(_COMPONENTS, min(weighted.shape) - 1))
        with np.errstate(divide="ignore", invalid="ignore"):  # texts that are all alike
            self._svd = TruncatedSVD(rank, n_iter=3, random_state=seed).fit(weighted)

    def __call__(self, hashed: Any, rows: IntArray, requirements: FloatArray) -> Inputs:  # noqa: ANN401
        values = self._svd.transform(self._tfidf.transform(hashed[rows][:, self._met]))
        length = np.linalg.norm(values, axis=1, keepdims=True)
        return Inputs(np.asarray(values / np.maximum(length, 1e-12)), requirements[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The training part: what was known, what came of it, and the pool's static cost order."""

    inputs: Inputs
    quality: FloatArray
    cost_usd: FloatArray
    cost: FloatArray


#: Learns on a sample, routes other queries: (knobs, n) model indices.
Learner: TypeAlias = Callable[[Sample, Inputs, int], IntArray]


def factorise(text: FloatArray, quality: FloatArray, other: FloatArray, *, seed: int) -> FloatArray:
    """Predicted quality of other queries: sigmoid((x W) V_m + b_m), by Adam on cross entropy.

    Args:
        text: (n, d) features of the training queries.
        quality: (n, m) outcomes in [0, 1].
        other: (k, d) features of the queries to predict.

    Returns:
        (k, m) in (0, 1).
    """
    rng = np.random.default_rng(seed)
    n, m = quality.shape
    share = np.clip(quality.mean(axis=0), 0.5 / n, 1 - 0.5 / n)
    weights = [
        rng.normal(0, 0.3, (text.shape[1], _RANK)),
        rng.normal(0, 0.3, (_RANK, m)),
        np.log(share / (1 - share)),
    ]
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    for step in range(1, _STEPS + 1):
        for i, slope in enumerate(_slopes(text, quality, weights)):
            first[i] = 0.9 * first[i] + 0.1 * slope
            second[i] = 0.999 * second[i] + 0.001 * slope**2
            scaled = np.sqrt(second[i] / (1 - 0.999**step)) + 1e-8
            weights[i] = weights[i] - _RATE * first[i] / (1 - 0.9**step) / scaled
    return _predict(other, weights)


def _predict(text: FloatArray, weights: list[FloatArray]) -> FloatArray:
    logits = text @ weights[0] @ weights[1] + weights[2]
    return 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))


def _slopes(
    text: FloatArray, quality: FloatArray, weights: list[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    error = (_predict(text, weights) - quality) / len(text)
    hidden = text @ weights[0]
    return (
        text.T @ (error @ weights[1].T) + _RIDGE * weights[0],
        hidden.T @ error + _RIDGE * weights[1],
        error.sum(axis=0),
    )


def binary_scores(train: Sample, test: Inputs, seed: int) -> IntArray:
    """Strong or weak by one score from the requirements: will the weak model fail? (binary-v1)"""
    weak, strong = _pair(train)
    target = train.quality[:, weak] < 0.5
    scores = chance(train.inputs.requirements, target, test.requirements)
    return _threshold(scores, weak, strong)


def binary_text(train: Sample, test: Inputs, seed: int) -> IntArray:
    """Strong or weak by one score from the text: will the strong model win? (RouteLLM-BERT style)

    Ties go to the weak model, as it is cheaper.
    """
    weak, strong = _pair(train)
    target = train.quality[:, strong] > train.quality[:, weak]
    return _threshold(chance(train.inputs.text, target, test.text), weak, strong)


def factorisation(train: Sample, test: Inputs, seed: int) -> IntArray:
    """Text and model meet in a low-rank product (RouteLLM-MF style)."""
    predicted = factorise(train.inputs.text, train.quality, test.text, seed=seed)
    return _trade_off(predicted, train.cost_usd.mean(axis=0))


def regression(train: Sample, test: Inputs, seed: int) -> IntArray:
    """One logistic regression per model on the text features."""
    columns = [
        chance(train.inputs.text, train.quality[:, j] >= RESOLVED_AT, test.text)
        for j in range(train.quality.shape[1])
    ]
    return _trade_off(np.column_stack(columns), train.cost_usd.mean(axis=0))


def neighbours(train: Sample, test: Inputs, seed: int) -> IntArray:
    """What each model achieved on the 40 nearest training texts (kNN)."""
    from sklearn.neighbors import NearestNeighbors

    count = min(_NEIGHBOURS, len(train.quality))
    index = NearestNeighbors(n_neighbors=count).fit(train.inputs.text)
    near = index.kneighbors(test.text, return_distance=False)
    predicted = np.stack([train.quality[:, j][near].mean(axis=1) for j in range(train.cost.size)])
    return _trade_off(predicted.T, train.cost_usd.mean(axis=0))


def clusters(train: Sample, test: Inputs, seed: int) -> IntArray:
    """Per-cluster performance and cost, weighed by alpha (Avengers-Pro style)."""
    from sklearn.cluster import KMeans

    count = max(1, min(_MAX_CLUSTERS, len(train.quality) // _PER_CLUSTER))
    found = KMeans(count, n_init=1, random_state=seed).fit(train.inputs.text)
    member = np.zeros((count, len(train.quality)))
    member[found.labels_, np.arange(len(train.quality))] = 1.0
    size = np.maximum(member.sum(axis=1, keepdims=True), 1.0)
    quality = _unit_rows(member @ train.quality / size)
    cheapness = 1.0 - _unit_rows(member @ train.cost_usd / size)
    distance = found.transform(test.text)
    near = np.argsort(distance, axis=1)[:, :_NEAREST_CLUSTERS]
    by_quality, by_cost = quality[near].mean(axis=1), cheapness[near].mean(axis=1)
    return np.stack([(a * by_quality + (1 - a) * by_cost).argmax(axis=1) for a in KNOBS])


def _pair(train: Sample) -> tuple[int, int]:
    quality = train.quality.mean(axis=0)
    best = np.flatnonzero(quality >= quality.max())
    return int(train.cost.argmin()), int(best[train.cost[best].argmin()])


def chance(train: FloatArray, target: Any, test: FloatArray) -> FloatArray:  # noqa: ANN401
    """(n,) probability of the target; its rate where it is always or never so."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    target = np.asarray(target, dtype=bool)
    if target.all() or not target.any():
        return np.full(len(test), float(target.mean()))
    scale = StandardScaler().fit(train)
    model = LogisticRegression(C=0.1, max_iter=300).fit(scale.transform(train), target)
    return np.asarray(model.predict_proba(scale.transform(test))[:, 1], dtype=np.float64)


def _threshold(scores: FloatArray, weak: int, strong: int) -> IntArray:
    """Knob: the share of queries with the highest scores that go to the strong model."""
    rank = np.empty(scores.size)
    rank[np.argsort(scores, kind="stable")] = (np.arange(scores.size) + 0.5) / scores.size
    return np.where(rank[None, :] > 1.0 - KNOBS[:, None], strong, weak)


def _trade_off(predicted: FloatArray, mean_cost_usd: FloatArray) -> IntArray:
    """Knob: predicted quality weighed against cost, from cost alone (0) to quality alone (1)."""
    cost = mean_cost_usd / max(float(mean_cost_usd.max()), 1e-300)
    price = np.concatenate([[1e9], np.geomspace(30.0, 1e-4, KNOBS.size - 2), [0.0]])
    return np.stack([(predicted - p * cost[None, :]).argmax(axis=1) for p in price])


def _unit_rows(values: FloatArray) -> FloatArray:
    low = values.min(axis=1, keepdims=True)
    spread = values.max(axis=1, keepdims=True) - low
    return np.where(spread > 0, (values - low) / np.where(spread > 0, spread, 1.0), 0.5)


#: Every learned router by the name it is shown under.
LEARNERS: dict[str, Learner] = {
    "binary-v1 style": binary_scores,
    "RouteLLM-BERT style": binary_text,
    "RouteLLM-MF style": factorisation,
    "Avengers-Pro style": clusters,
    "kNN": neighbours,
    "text regression": regression,
}
#: Names in the order they are shown.
BASELINES = (RANDOM_MIX, *LEARNERS)


@dataclass(frozen=True, slots=True, eq=False)
class BaselineRun:
    """One baseline on one replayed set, at every setting of its knob.

    Attributes:
        choices: (k, n) index of the chosen model at each of `KNOBS`.
        quality: (k,) mean quality.
    """

    name: str
    choices: IntArray
    quality: FloatArray
    mean_cost_usd: FloatArray

    def at_cost(self, mean_cost_usd: float, rng: np.random.Generator) -> IntArray:
        """(n,) choice at this mean cost: queries drawn between the two settings around it.

        Only the cost decides, never the outcome. Out of reach: the nearest setting as it is.
        """
        order = np.argsort(self.mean_cost_usd, kind="stable")
        cost = self.mean_cost_usd[order]
        above = int(np.searchsorted(cost, mean_cost_usd, side="left"))
        if above == 0 or above == cost.size:
            nearest: IntArray = self.choices[order[min(above, cost.size - 1)]]
            return nearest
        low, high = order[above - 1], order[above]
        share = (mean_cost_usd - cost[above - 1]) / (cost[above] - cost[above - 1])
        drawn = rng.random(self.choices.shape[1]) < share
        mixed: IntArray = np.where(drawn, self.choices[high], self.choices[low])
        return mixed


def run_baselines(
    data: ReplayData,
    texts: Sequence[str],
    *,
    names: Sequence[str] = BASELINES,
    cut: Sequence[Fold] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[BaselineRun, ...]:
    """Learn each baseline on all parts but one and route that one, for every part.

    Args:
        texts: (n,) message of each query of `data`.
        cut: The parts, where others were judged on them; default two, clusters and repeats of a
            text whole.
        seed: Draws the parts and every learner's start.
        progress: Called with (done, total) after each learner and part; what it raises stops.

    Raises:
        ValueError: Texts do not fit the data, or an unknown name.
    """
    if len(texts) != len(data.query_ids):
        raise ValueError(f"{len(texts)} texts for {len(data.query_ids)} queries")
    if unknown := [name for name in names if name not in BASELINES]:
        raise ValueError(
            f"no such baseline: {', '.join(unknown)}; there are {', '.join(BASELINES)}"
        )
    rng = np.random.default_rng(seed)
    cut = folds(_with_repeats(data, texts), 2, rng) if cut is None else cut
    learned = [name for name in names if name != RANDOM_MIX]
    choices = _learned(data, texts, learned, cut, seed, progress) if learned else {}
    if RANDOM_MIX in names:
        choices[RANDOM_MIX] = _random_mix(data, rng)
    return tuple(_run(data, name, choices[name]) for name in names)


def _with_repeats(data: ReplayData, texts: Sequence[str]) -> ReplayData:
    """The data with repeats of a text in one cluster: who has learned one knows the other."""
    links = [same_key(pd.Series(texts))]
    if data.clusters is not None:
        links.append(same_key(pd.Series(data.clusters)))
    whole = replace(data, clusters=joined(links, len(texts)))
    return whole if whole.independent > 1 else data


def _learned(
    data: ReplayData,
    texts: Sequence[str],
    names: Sequence[str],
    cut: Sequence[Fold],
    seed: int,
    progress: Progress | None,
) -> dict[str, IntArray]:
    hashed, (quality, cost_usd) = hashed_texts(texts), data.fixed
    found = {name: np.zeros((KNOBS.size, len(texts)), dtype=np.intp) for name in names}
    for number, fold in enumerate(cut):
        features = TextFeatures(hashed[fold.train], seed=seed)
        train = Sample(
            features(hashed, fold.train, data.requirements),
            quality[fold.train],
            cost_usd[fold.train],
            data.pool.cost,
        )
        test = features(hashed, fold.test, data.requirements)
        for i, name in enumerate(names):
            found[name][:, fold.test] = LEARNERS[name](train, test, seed)
            if progress is not None:
                progress(number * len(names) + i + 1, len(cut) * len(names))
    return found


def _random_mix(data: ReplayData, rng: np.random.Generator) -> IntArray:
    """The best random mixture of constants at evenly rising costs, always with the same draw."""
    hull = upper_hull(single_models(data))
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    drawn = rng.random(len(data.query_ids))
    mixes = [matched_cost_mix(hull, cost) for cost in low + KNOBS * (high - low)]
    rows = [np.where(drawn < m.strong_share, m.strong.index, m.cheap.index) for m in mixes]
    return np.stack(rows)


def _run(data: ReplayData, name: str, choices: IntArray) -> BaselineRun:
    choices = data.served(choices.T).T
    return BaselineRun(
        name=name,
        choices=choices,
        quality=np.array([picked(data.quality, row).mean() for row in choices]),
        mean_cost_usd=np.array([picked(data.cost_usd, row).mean() for row in choices]),
    )


@dataclass(frozen=True, slots=True)
class Checker:
    """What looks at the cheap model's answer.

    Attributes:
        passes_wrong: Share of wrong answers that it lets pass, in [0, 1].
        rejects_right: Share of right answers that it rejects, in [0, 1].
        check_s: Time of one check, seconds.
    """

    passes_wrong: float = 0.1
    rejects_right: float = 0.1
    check_usd: float = 0.0
    check_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Cascade:
    """A cascade played on a set.

    Attributes:
        run: Expected quality and cost of each query; its model is the one that more probably
            answers.
        again: (n,) probability that the strong model is asked as well.
        extra_s: Mean seconds above asking the cheap model alone; None where the set has no times
            of the strong model and one is needed.
    """

    run: PolicyRun
    cheap: str
    strong: str
    again: FloatArray
    extra_s: float | None


def cascade(data: ReplayData, evalset: EvalSet, checker: Checker) -> Cascade:
    """The cheapest measured model first, then the best single one where the checker rejects.

    Graded quality counts as the probability of a right answer.
    """
    quality, cost, _ = data.alone
    measured = np.flatnonzero(data.measured)
    cheap = int(measured[cost[measured].argmin()])
    strong = int(measured[quality[measured].argmax()])
    first, second = (data.served(np.full(len(data.rows), one)) for one in (cheap, strong))
    fixed, fixed_usd = data.fixed
    right = fixed[:, cheap]
    accepted = right * (1.0 - checker.rejects_right) + (1.0 - right) * checker.passes_wrong
    again = np.where(first == second, 0.0, 1.0 - accepted)  # nobody else may be asked
    kept = np.where(first == second, right, right * (1.0 - checker.rejects_right))
    name = f"cascade ({data.pool.ids[cheap]}, check, {data.pool.ids[strong]})"
    plain = policy_run(name, data, np.where(again > 0.5, second, first))
    run = replace(
        plain,
        quality=kept + again * fixed[:, strong],
        cost_usd=fixed_usd[:, cheap] + checker.check_usd + again * fixed_usd[:, strong],
        unknown=None,
    )
    extra_s = _extra_s(data, evalset, data.pool.ids[strong], again, checker.check_s)
    return Cascade(run, data.pool.ids[cheap], data.pool.ids[strong], again, extra_s)


def _extra_s(
    data: ReplayData, evalset: EvalSet, strong: str, again: FloatArray, check_s: float
) -> float | None:
    times = evalset.extras.get("latency_s")
    if not again.any():
        return check_s
    if times is None or strong not in evalset.models:
        return None
    seconds = times[data.rows, evalset.models.index(strong)]
    known = np.isfinite(seconds)
    if not known.any():
        return None
    return check_s + float((again[known] * seconds[known]).mean())
