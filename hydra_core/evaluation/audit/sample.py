"""Which queries people should rate: spread over languages, dimensions and disagreement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hydra_core.types import FloatArray, IntArray

__all__ = ["draw_sample"]


def draw_sample(
    languages: Sequence[str],
    scores: FloatArray,
    labels: FloatArray | None,
    count: int,
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Places of `count` queries (all where there are fewer), in random order.

    Strata are language, the dimension that is needed most, and the third of the disagreement
    between predictor and label; they take turns, so that rare ones are there too.

    Args:
        languages: (n,) codes.
        scores: (n, K) of the predictor.
        labels: (n, K), or None: the spread of the scores stands in for the disagreement.
    """
    n = len(languages)
    gap = np.abs(scores - labels).max(axis=1) if labels is not None else np.ptp(scores, axis=1)
    ranks = np.argsort(np.argsort(gap, kind="stable"), kind="stable")
    third = np.minimum(3 * ranks // max(n, 1), 2)
    needed = scores.argmax(axis=1)
    strata: dict[tuple[str, int, int], list[int]] = {}
    for place in rng.permutation(n).tolist():
        stratum = (languages[place], int(needed[place]), int(third[place]))
        strata.setdefault(stratum, []).append(place)
    queues = [strata[key] for key in sorted(strata)]
    rng.shuffle(queues)
    turns = sorted(
        ((turn, at, place) for at, queue in enumerate(queues) for turn, place in enumerate(queue))
    )
    chosen = np.array([place for _, _, place in turns[:count]], dtype=np.intp)
    return rng.permutation(chosen)
