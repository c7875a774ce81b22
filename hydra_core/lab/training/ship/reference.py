"""What a bundle's text vectors usually are: centres of training messages, and the usual limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hydra_core.base.errors import BundleError, Problem
from hydra_core.base.types import Float32Array
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.lab.training.texts.dataset import Message, Splits
from hydra_core.lab.training.texts.encode import columns
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.predictor.reference import REFERENCE, Reference, write_reference

#: Share of held-out ordinary messages within the limit.
KEPT: Final = 0.995
_CENTRES: Final = 128
_ROUNDS: Final = 25
_SEED: Final = 42
#: Messages drawn at random by kind: labelled single ones, wordings of tasks, unlabelled ones.
_DRAWN: Final = {"single": 6000, "tasks": 2000, "unlabelled": 2000}
_LIMITING: Final = 4000
_SINGLE: Final = ("corpus", "ours")
_TASKS: Final = ("parallel", "extra")


def sample(splits: Splits) -> list[Message]:
    """Messages that every shipped bundle was trained on, drawn at random by kind."""
    kinds = {
        "single": [m for m in splits.train if m.origin in _SINGLE],
        "tasks": [m for m in splits.train if m.origin in _TASKS],
        "unlabelled": list(splits.unlabelled),
    }
    rng = np.random.default_rng(_SEED)
    return [message for kind, pool in kinds.items() for message in _draw(pool, _DRAWN[kind], rng)]


def held_out(splits: Splits) -> list[Message]:
    """Messages that set the limit: the validation split, and single ones no centre was made of.

    Wordings of tasks are more alike than what people send, so none are drawn: a limit that they
    set would flag ordinary messages.
    """
    used = {message.id for message in sample(splits)}
    left = [m for m in splits.train if m.origin in _SINGLE and m.id not in used]
    return [*splits.validation, *_draw(left, _LIMITING, np.random.default_rng(_SEED))]


def _draw(pool: Sequence[Message], most: int, rng: np.random.Generator) -> list[Message]:
    rows = rng.choice(len(pool), min(most, len(pool)), replace=False)
    return [pool[row] for row in np.sort(rows)]


def centres_of(
    vectors: Float32Array, count: int, *, rng: np.random.Generator, rounds: int = _ROUNDS
) -> Float32Array:
    """(n, d) -> (c, d) means of the vectors nearest to each (k-means, Lloyd), c at most `count`."""
    centres = vectors[rng.choice(len(vectors), min(count, len(vectors)), replace=False)]
    squares = np.einsum("nd,nd->n", vectors, vectors)
    for _ in range(rounds):
        gaps = squares[:, None] - 2.0 * vectors @ centres.T + (centres**2).sum(axis=1)
        nearest = gaps.argmin(axis=1)
        taken = [vectors[nearest == c].mean(axis=0) for c in np.unique(nearest)]
        centres = np.array(taken, dtype=np.float32)
    return centres


def add_reference(bundle: Bundle, splits: Splits) -> Bundle:
    """Make the bundle's reference and list it; graph, card and fingerprint stay as they are.

    Raises:
        BundleError: The bundle gives no text vectors.
    """
    if not bundle.vectors:
        raise BundleError(str(bundle.path), [Problem("vectors", "there are none to compare with")])
    predictor = Predictor(bundle)
    learned, held = sample(splits), held_out(splits)
    vectors = predictor.predict_batches(**columns(learned)).vectors
    kept = predictor.predict_batches(**columns(held)).vectors
    assert vectors is not None
    assert kept is not None
    centres = centres_of(vectors, _CENTRES, rng=np.random.default_rng(_SEED))
    halved = centres.astype(np.float16).astype(np.float32)
    plain = Reference(halved, 1.0, KEPT)
    limit = float(np.quantile([plain.distance(vector) for vector in kept], KEPT))
    write_reference(bundle.path / REFERENCE, Reference(halved, limit, KEPT))
    facts = {
        "messages": len(learned), "drawn": _DRAWN, "centres": len(centres), "seed": _SEED,
        "held_out": len(held), "kept": KEPT, "limit": round(limit, 4),
    }  # fmt: skip
    training = {**bundle.training, "reference": facts}
    return write_manifest(bundle.path, replace(bundle, reference=REFERENCE, training=training))
