"""Parts of an eval set to choose on and to report on: clusters whole, languages in proportion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import IntArray
from hydra_core.replay.replay import ReplayData


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
