"""Fit the heads of an outcome model: ridge in closed form, randomised trees, and their average.

What is learned is f0, the mean over the models, and every model's difference from it. Which
features and which learner are used, and the penalties, are chosen on inner folds of the training
queries; clusters stay whole in every cut.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hydra_core.base.types import BoolArray, Float32Array, FloatArray, IntArray
from hydra_core.choosing.material import Material, known_means
from hydra_core.choosing.sources.newcomers import fit_newcomers
from hydra_core.outcome_model.heads import (
    BLOCKS,
    Features,
    Forest,
    Linear,
    Messages,
    small_columns,
    unit_rows,
)
from hydra_core.outcome_model.model import Costs, OutcomeHeads, Part
from hydra_core.predictor.onnx_predictor import cores

#: Penalties tried, each times the number of queries (columns have unit spread).
PENALTIES: Final = np.geomspace(1e-3, 30.0, 19)
_AnyFloat = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """All ridge solutions of one regression.

    Attributes:
        values: (p,) eigenvalues of the centred columns' Gram matrix.
        vectors: (p, p) its eigenvectors.
        rotated: (p, q) what the targets say along them.
        centre: (p,) mean of the columns.
        mean: (q,) mean of the targets.
        n: Rows.
    """

    values: FloatArray
    vectors: FloatArray
    rotated: FloatArray
    centre: FloatArray
    mean: FloatArray
    n: int

    def predict_all(self, columns: _AnyFloat) -> FloatArray:
        """(n, p) -> (penalties, n, q)."""
        turned = (columns - self.centre) @ self.vectors
        scaled = self.rotated[None] / (self.values + self.n * PENALTIES[:, None])[:, :, None]
        return turned @ scaled + self.mean

    def heads(self, penalty: float) -> Linear:
        """The solution at one penalty."""
        weights = self.vectors @ (self.rotated / (self.values + self.n * penalty)[:, None])
        offset = self.mean - self.centre @ weights
        return Linear(weights.astype(np.float32), offset.astype(np.float32))


def ridge_path(columns: _AnyFloat, wanted: FloatArray) -> Path:
    """(n, p), (n, q) -> the solutions; the intercept is not penalised."""
    centre = columns.mean(axis=0, dtype=np.float64)
    mean = wanted.mean(axis=0)
    moved = columns - centre.astype(columns.dtype)
    gram = (moved.T @ moved).astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    rotated = vectors.T @ (moved.T @ (wanted - mean).astype(columns.dtype)).astype(np.float64)
    return Path(np.maximum(values, 0.0), vectors, rotated, centre, mean, len(columns))


#: Fewer known values than this, and a model leans on what is predicted for the others.
_OWN_HEAD = 200
_LEAST_TO_LEAN = 10
_LEAST_USD = 1e-9


def fit_costs(material: Material, columns: Float32Array, penalty: float) -> Costs:
    """Cost and, where the set has them, token heads of every model, on (n, p) columns."""
    read, written = (
        None if values is None else _head(columns, values, penalty, 1.0)
        for values in (material.input_tokens, material.output_tokens)
    )
    return Costs(_head(columns, material.cost_usd, penalty, _LEAST_USD), read, written)


def _head(columns: Float32Array, values: FloatArray, penalty: float, least: float) -> Linear:
    """(n, p), (n, m) -> log of the mean, one output a model; NaN values are left out."""
    n, m = values.shape
    weights, offset = np.zeros((columns.shape[1], m)), np.zeros(m)
    known = np.isfinite(values)
    own = known.sum(axis=0) >= min(_OWN_HEAD, n)
    logs = np.log(np.maximum(values, least))
    for j in np.flatnonzero(own).tolist():
        rows = known[:, j]
        head = ridge_path(columns[rows], logs[rows, j : j + 1]).heads(penalty)
        weights[:, j], offset[j] = head.weights[:, 0], head.offset[0]
    if own.any():
        _lean(columns, logs, weights, known, own)
    for j in range(m):  # a mean of logarithms is not the logarithm of the mean
        rows = known[:, j]
        if rows.any():
            said = np.exp(columns[rows] @ weights[:, j] + offset[j]).mean()
            offset[j] += np.log(max(float(values[rows, j].mean()), least) / said)
    some = known.any(axis=0)
    offset[~some] = offset[some].mean()  # one that says nothing costs as the others
    return Linear(weights.astype(np.float32), offset.astype(np.float32))


def _lean(
    columns: Float32Array, logs: FloatArray, weights: FloatArray, known: BoolArray, own: BoolArray
) -> None:
    """Fill in the weights of models without a head of their own, from the others' predictions."""
    others = weights[:, own]
    said = columns @ others
    for j in np.flatnonzero(~own).tolist():
        rows = known[:, j]
        share = np.full(others.shape[1], 1.0 / others.shape[1])
        if rows.sum() >= _LEAST_TO_LEAN:
            head = ridge_path(said[rows], logs[rows, j : j + 1]).heads(1.0 / rows.sum())
            share = head.weights[:, 0].astype(np.float64)
        weights[:, j] = others @ share


_COMPONENTS: Final = 40
_ROWS_PER_COMPONENT: Final = 4
_TELLING: Final = 6
_INNER: Final = 3
_FEW_TREES: Final = 60
TREES: Final = 200
_WITHOUT_VECTORS: Final = ("requirements", "length", "words")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to learn: which features, and the share of ridge beside trees."""

    name: str
    blocks: tuple[str, ...]
    ridge: float


#: From simple to rich: of equals the first is taken.
CANDIDATES: Final = (
    Candidate("ridge on length", ("length",), 1.0),
    Candidate("ridge on requirements and length", ("requirements", "length"), 1.0),
    Candidate("ridge on requirements, length, words and vectors", BLOCKS, 1.0),
    Candidate("trees on requirements, length and words", _WITHOUT_VECTORS, 0.0),
    Candidate("trees on requirements, length, words and vectors", BLOCKS, 0.0),
    Candidate("ridge and trees on requirements, length, words and vectors", BLOCKS, 0.3),
)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What the inner folds chose.

    Attributes:
        errors: Mean squared error of the predicted differences, by candidate.
        penalties: Of ridge for f0 and for the differences.
        held_out: (n, b) predicted success on the queries themselves, by the inner folds.
    """

    candidate: Candidate
    errors: dict[str, float]
    penalties: tuple[float, float]
    held_out: FloatArray


def grouped_parts(clusters: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """(n,) number of the part that each query belongs to; clusters stay whole."""
    names, unit = np.unique(clusters, return_inverse=True)
    dealt = np.empty(names.size, dtype=np.intp)
    dealt[rng.permutation(names.size)] = np.arange(names.size) % count
    return dealt[unit]


def fit_features(
    messages: Messages,
    blocks: Sequence[str],
    wanted: FloatArray | None = None,
    *,
    components: int = _COMPONENTS,
    rows_per_component: int = _ROWS_PER_COMPONENT,
) -> Features:
    """Directions of the vectors, and the columns' mean and spread.

    The directions are those along which the vectors vary most, then those along which they vary
    most with what is to be predicted (principal components; left singular vectors of the
    covariance).

    Args:
        wanted: (n, q) targets, and what is learned along; None takes principal components alone.
        components: How many of these at most.
    """
    width = messages.vectors.shape[1]
    centre, directions = np.zeros(width, np.float32), np.empty((width, 0), np.float32)
    if "vectors" in blocks:
        rows = unit_rows(messages.vectors)
        centre = rows.mean(axis=0)
        moved = rows - centre
        _, vectors = np.linalg.eigh(moved.T @ moved)
        kept = max(1, min(components, width, len(rows) // rows_per_component))
        found = vectors[:, ::-1][:, :kept]
        if wanted is not None:
            with_outcomes = moved.T @ (wanted - wanted.mean(axis=0)).astype(np.float32)
            telling = np.linalg.svd(with_outcomes, full_matrices=False)[0]
            found = np.concatenate([found, telling[:, : min(_TELLING, kept)]], axis=1)
        directions = np.ascontiguousarray(found, dtype=np.float32)
    columns = small_columns(messages, blocks).shape[1] + directions.shape[1]
    none, one = np.zeros(columns, np.float32), np.ones(columns, np.float32)
    raw = Features(tuple(blocks), centre, directions, none, one).raw(messages)
    spread = raw.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
    return Features(tuple(blocks), centre, directions, raw.mean(axis=0), scale)


def targets(quality: FloatArray) -> FloatArray:
    """(n, b) outcomes -> (n, 1 + b): f0 and the differences from it."""
    shared = quality.mean(axis=1, keepdims=True)
    return np.concatenate([shared, quality - shared], axis=1)


def _along(material: Material, wanted: FloatArray) -> FloatArray:
    """(n, r) differences from f0 of models learned along; they weigh no more than the targets."""
    found = material.others - wanted[:, :1]
    weight = min(wanted.shape[1] / max(found.shape[1], 1), 1.0) ** 0.5
    result: FloatArray = weight * found
    return result


def choose(material: Material, rng: np.random.Generator) -> Choice:
    """Pick candidate and penalties on inner folds of the material."""
    wanted = targets(material.quality[:, : material.together])
    along = _along(material, wanted)
    predicted = {c.name: np.zeros_like(wanted) for c in CANDIDATES}
    paths: dict[str, list[tuple[IntArray, FloatArray]]] = {}
    part = grouped_parts(material.clusters, _INNER, rng)
    for number in range(_INNER):
        train, test = np.flatnonzero(part != number), np.flatnonzero(part == number)
        seed = int(rng.integers(2**31))
        for name, path in _inner(material.messages, wanted, along, train, test, predicted, seed):
            paths.setdefault(name, []).append((test, path))
    penalties = {name: _best(parts, wanted, predicted[name]) for name, parts in paths.items()}
    for candidate in CANDIDATES:
        if 0.0 < candidate.ridge < 1.0:
            linear_one, trees = _pure(candidate)
            mixed = predicted[linear_one] * candidate.ridge
            predicted[candidate.name] = mixed + predicted[trees] * (1 - candidate.ridge)
    errors_of = {
        name: float(((found - wanted)[:, 1:] ** 2).mean()) for name, found in predicted.items()
    }
    best = min(CANDIDATES, key=lambda c: errors_of[c.name])
    found = predicted[best.name]
    return Choice(best, errors_of, penalties[_pure(best)[0]], found[:, :1] + found[:, 1:])


def _pure(candidate: Candidate) -> tuple[str, str]:
    """Names of the all-ridge and the all-trees candidate that read what this one reads."""
    same = [c for c in CANDIDATES if c.blocks == candidate.blocks]
    ridge = next((c.name for c in same if c.ridge == 1.0), CANDIDATES[2].name)
    return ridge, next((c.name for c in same if c.ridge == 0.0), CANDIDATES[4].name)


def _inner(
    messages: Messages,
    wanted: FloatArray,
    along: FloatArray,
    train: IntArray,
    test: IntArray,
    predicted: dict[str, FloatArray],
    seed: int,
) -> Iterator[tuple[str, FloatArray]]:
    """Fill in the trees' predictions of one inner fold; yield ridge's for every penalty."""
    for candidate in CANDIDATES:
        if candidate.ridge not in (0.0, 1.0):
            continue
        said = np.concatenate([wanted, along], axis=1)[train]
        features = fit_features(messages.take(train), candidate.blocks, said)
        known, other = (features.columns(messages.take(rows)) for rows in (train, test))
        if candidate.ridge == 0.0:
            forest = grow(known, wanted[train], along[train], _FEW_TREES, seed)
            predicted[candidate.name][test] = forest(other)
        else:
            path = ridge_path(features.with_products(known), wanted[train])
            yield candidate.name, path.predict_all(features.with_products(other))


def _best(
    parts: Sequence[tuple[IntArray, FloatArray]], wanted: FloatArray, predicted: FloatArray
) -> tuple[float, float]:
    """The penalties of f0 and of the differences that err least; fills in what they predict.

    Args:
        parts: (t,) rows of an inner fold, and ridge's (penalties, t, 1 + b) predictions for them.
    """
    errors = np.zeros((2, PENALTIES.size))
    for rows, path in parts:
        squares = (path - wanted[None, rows]) ** 2
        errors += np.stack([squares[:, :, 0].sum(axis=1), squares[:, :, 1:].sum(axis=(1, 2))])
    shared, differing = errors.argmin(axis=1)
    for rows, path in parts:
        predicted[rows, :1], predicted[rows, 1:] = path[shared][:, :1], path[differing][:, 1:]
    return float(PENALTIES[shared]), float(PENALTIES[differing])


def fit(material: Material, choice: Choice, *, seed: int, trees: int = TREES) -> OutcomeHeads:
    """Fit everything on all rows of the material, as chosen."""
    candidate = choice.candidate
    wanted = targets(material.quality[:, : material.together])
    along = _along(material, wanted)
    said = np.concatenate([wanted, along], axis=1)
    features = fit_features(material.messages, candidate.blocks, said)
    columns = features.columns(material.messages)
    wide = features.with_products(columns)
    parts = []
    path: Path = ridge_path(wide, wanted)
    if candidate.ridge > 0:
        first, others = (path.heads(penalty) for penalty in choice.penalties)
        parts.append(Part(candidate.ridge, joined(first, others)))
    if candidate.ridge < 1:
        parts.append(Part(1 - candidate.ridge, grow(columns, wanted, along, trees, seed)))
    difference = material.quality - wanted[:, :1]
    return OutcomeHeads(
        models=material.models,
        features=features,
        parts=tuple(parts),
        newcomers=fit_newcomers(material, choice.held_out),
        costs=fit_costs(material, wide, choice.penalties[1]),
        mean_difference=known_means(difference),
    )


def joined(first: Linear, others: Linear) -> Linear:
    """f0 by one penalty, the differences by another."""
    return Linear(
        np.concatenate([first.weights[:, :1], others.weights[:, 1:]], axis=1),
        np.concatenate([first.offset[:1], others.offset[1:]]),
    )


#: Extremely randomised trees, grown by scikit-learn and kept as plain arrays.
_DEPTH: Final = 14
_SPLIT_SHARE: Final = 0.3
_LEAVES: Final = (8, 25)
_ROWS_PER_LEAF: Final = 100
#: More queries than this are drawn anew for every tree.
_MOST_ROWS: Final = 10_000


def grow(
    columns: Float32Array, wanted: FloatArray, along: FloatArray, trees: int, seed: int
) -> Forest:
    """(n, p), (n, q) -> a forest whose mean predicts the targets.

    Args:
        along: (n, r) further targets that help to find where to split and are not predicted.
    """
    from sklearn.tree import ExtraTreeRegressor

    n = len(columns)
    drawn = n > _MOST_ROWS
    leaf = min(max(n // _ROWS_PER_LEAF, _LEAVES[0]), _LEAVES[1])
    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=trees)
    inputs = np.ascontiguousarray(columns, dtype=np.float32)
    outputs = np.ascontiguousarray(np.concatenate([wanted, along], axis=1), dtype=np.float64)

    def grown(number: int) -> Any:  # noqa: ANN401 - scikit-learn has no types
        weights = None
        if drawn:
            rows = np.random.RandomState(number).randint(0, n, _MOST_ROWS)
            weights = np.bincount(rows, minlength=n).astype(np.float64)
        model = ExtraTreeRegressor(
            min_samples_leaf=leaf,
            max_features=_SPLIT_SHARE,
            max_depth=_DEPTH,
            random_state=number,
        )
        return model.fit(inputs, outputs, sample_weight=weights, check_input=False).tree_

    # Not ExtraTreesRegressor: its threads race for the process's warning filters and lose them.
    with ThreadPoolExecutor(cores()) as pool:
        return _flat(list(pool.map(grown, seeds.tolist())), wanted.shape[1])


def _flat(trees: Sequence[Any], outputs: int) -> Forest:
    """All trees in one set of arrays, the two children of a node side by side."""
    columns, thresholds, lefts, values, roots = [], [], [], [], []
    start, depth = 0, 0
    for tree in trees:
        order = _breadth_first(tree.children_left, tree.children_right)
        place = np.empty(order.size, dtype=np.intp)
        place[order] = np.arange(order.size)
        left = tree.children_left[order]
        leaf = left < 0
        lefts.append(start + np.where(leaf, np.arange(order.size), place[left]))
        columns.append(np.where(leaf, 0, tree.feature[order]))
        thresholds.append(np.where(leaf, np.inf, tree.threshold[order]).astype(np.float32))
        values.append(
            np.where(leaf[:, None], tree.value[order, :outputs, 0], 0.0).astype(np.float32)
        )
        roots.append(start)
        start, depth = start + order.size, max(depth, int(tree.max_depth))
    return Forest(
        np.concatenate(columns).astype(np.intp),
        np.concatenate(thresholds),
        np.concatenate(lefts).astype(np.intp),
        np.concatenate(values),
        np.asarray(roots, dtype=np.intp),
        depth,
    )


def _breadth_first(left: IntArray, right: IntArray) -> IntArray:
    """(nodes,) node numbers so that the children of every node follow one another."""
    levels = [np.zeros(1, dtype=np.intp)]
    while True:
        inner = levels[-1][left[levels[-1]] >= 0]
        if not inner.size:
            return np.concatenate(levels)
        levels.append(np.stack([left[inner], right[inner]], axis=1).reshape(-1))
