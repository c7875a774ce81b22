"""Fit the heads of an outcome model: ridge in closed form, randomised trees, and their average.

What is learned is f0, the mean over the models, and every model's difference from it. Which
features and which learner are used, and the penalties, are chosen on inner folds of the training
queries; clusters stay whole in every cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.evaluation.learning.cost_heads import fit_costs
from hydra_core.evaluation.learning.material import Material
from hydra_core.evaluation.learning.newcomers import fit_newcomers
from hydra_core.evaluation.learning.ridge import PENALTIES, Path, ridge_path
from hydra_core.evaluation.learning.trees import grow
from hydra_core.outcome_model.features import BLOCKS, Features, Messages, small_columns, unit_rows
from hydra_core.outcome_model.heads import Linear
from hydra_core.outcome_model.model import OutcomeHeads, Part
from hydra_core.types import FloatArray, IntArray

__all__ = ["CANDIDATES", "Candidate", "Choice", "choose", "fit", "fit_features", "grouped_parts"]

_COMPONENTS: Final = 40
_TELLING: Final = 6
_INNER: Final = 3
_FEW_TREES: Final = 60
_TREES: Final = 200
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
        held_out: (n, 1 + b) predictions for the queries themselves, by the inner folds.
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
    result: IntArray = dealt[unit]
    return result


def fit_features(messages: Messages, blocks: Sequence[str], wanted: FloatArray) -> Features:
    """Directions of the vectors, and the columns' mean and spread.

    The directions are those along which the vectors vary most, then those along which they vary
    most with what is to be predicted (principal components; left singular vectors of the
    covariance).

    Args:
        wanted: (n, q) targets, and what is learned along.
    """
    width = messages.vectors.shape[1]
    centre, directions = np.zeros(width, np.float32), np.empty((width, 0), np.float32)
    if "vectors" in blocks:
        rows = unit_rows(messages.vectors)
        centre = rows.mean(axis=0)
        moved = rows - centre
        _, vectors = np.linalg.eigh(moved.T @ moved)
        kept = max(1, min(_COMPONENTS, width, len(rows) // 4))
        with_outcomes = moved.T @ (wanted - wanted.mean(axis=0)).astype(np.float32)
        telling = np.linalg.svd(with_outcomes, full_matrices=False)[0][:, : min(_TELLING, kept)]
        found = np.concatenate([vectors[:, ::-1][:, :kept], telling], axis=1)
        directions = np.ascontiguousarray(found, dtype=np.float32)
    columns = small_columns(messages, blocks).shape[1] + directions.shape[1]
    bare = Features(
        tuple(blocks),
        centre,
        directions,
        np.zeros(columns, np.float32),
        np.ones(columns, np.float32),
    )
    raw = bare.raw(messages)
    spread = raw.std(axis=0)
    scale = np.where(spread > 1e-6, spread, 1.0).astype(np.float32)
    return Features(tuple(blocks), centre, directions, raw.mean(axis=0), scale)


def targets(quality: FloatArray) -> FloatArray:
    """(n, b) outcomes -> (n, 1 + b): f0 and the differences from it."""
    shared = quality.mean(axis=1, keepdims=True)
    return np.concatenate([shared, quality - shared], axis=1)


def _along(material: Material, wanted: FloatArray) -> FloatArray:
    """(n, r) differences from f0 of the models that are learned along.

    Together they weigh at most as much as the targets.
    """
    found = material.others - wanted[:, :1]
    weight = min(wanted.shape[1] / max(found.shape[1], 1), 1.0) ** 0.5
    result: FloatArray = weight * found
    return result


def choose(material: Material, rng: np.random.Generator) -> Choice:
    """Pick candidate and penalties on inner folds of the material."""
    wanted = targets(material.quality[:, : material.together])
    along = _along(material, wanted)
    predicted = {c.name: np.zeros_like(wanted) for c in CANDIDATES}
    paths: dict[str, list[FloatArray]] = {}
    part = grouped_parts(material.clusters, _INNER, rng)
    for number in range(_INNER):
        train, test = np.flatnonzero(part != number), np.flatnonzero(part == number)
        seed = int(rng.integers(2**31))
        for name, path in _inner(material.messages, wanted, along, train, test, predicted, seed):
            errors = (path - wanted[None, test]) ** 2
            paths.setdefault(name, []).append(
                np.stack([errors[:, :, 0].sum(axis=1), errors[:, :, 1:].sum(axis=(1, 2))])
            )
            paths.setdefault(f"{name}\0rows", []).append(path)
    penalties = _take_best(part, predicted, paths)
    for candidate in CANDIDATES:
        if 0.0 < candidate.ridge < 1.0:
            linear_one, trees = _pure(candidate)
            mixed = predicted[linear_one] * candidate.ridge
            predicted[candidate.name] = mixed + predicted[trees] * (1 - candidate.ridge)
    errors_of = {
        name: float(((found - wanted)[:, 1:] ** 2).mean()) for name, found in predicted.items()
    }
    best = min(CANDIDATES, key=lambda c: errors_of[c.name])
    return Choice(
        best, errors_of, penalties[_pure(best)[0]], predicted[best.name].astype(np.float64)
    )


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


def _take_best(
    part: IntArray, predicted: dict[str, FloatArray], paths: dict[str, list[FloatArray]]
) -> dict[str, tuple[float, float]]:
    """Penalties of every ridge candidate; its predictions at them are filled in."""
    found = {}
    for name in [name for name in paths if not name.endswith("\0rows")]:
        shared, differing = np.sum(paths[name], axis=0).argmin(axis=1)
        for number, path in enumerate(paths[f"{name}\0rows"]):
            rows = part == number
            predicted[name][rows, :1] = path[shared][:, :1]
            predicted[name][rows, 1:] = path[differing][:, 1:]
        found[name] = (float(PENALTIES[shared]), float(PENALTIES[differing]))
    return found


def fit(material: Material, choice: Choice, *, seed: int, trees: int = _TREES) -> OutcomeHeads:
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
        parts.append(Part(candidate.ridge, _joined(first, others)))
    if candidate.ridge < 1:
        parts.append(Part(1 - candidate.ridge, grow(columns, wanted, along, trees, seed)))
    difference = material.quality - wanted[:, :1]
    return OutcomeHeads(
        models=material.models,
        features=features,
        parts=tuple(parts),
        newcomers=fit_newcomers(material, choice.held_out),
        costs=fit_costs(material, wide, choice.penalties[1]),
        mean_difference=np.nanmean(difference, axis=0),
    )


def _joined(first: Linear, others: Linear) -> Linear:
    """f0 by one penalty, the differences by another."""
    return Linear(
        np.concatenate([first.weights[:, :1], others.weights[:, 1:]], axis=1),
        np.concatenate([first.offset[:1], others.offset[1:]]),
    )
