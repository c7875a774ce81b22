"""Extremely randomised trees, grown by scikit-learn and kept as plain arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hydra_core.base.types import Float32Array, FloatArray, IntArray
from hydra_core.outcome_model.heads import Forest

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
    from sklearn.ensemble import ExtraTreesRegressor

    n = len(columns)
    leaf = min(max(n // _ROWS_PER_LEAF, _LEAVES[0]), _LEAVES[1])
    drawn = n > _MOST_ROWS
    model = ExtraTreesRegressor(
        trees,
        min_samples_leaf=leaf,
        max_features=_SPLIT_SHARE,
        max_depth=_DEPTH,
        bootstrap=drawn,
        max_samples=_MOST_ROWS if drawn else None,
        random_state=seed,
        n_jobs=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    )
    outputs = wanted.shape[1]
    model.fit(columns, np.concatenate([wanted, along], axis=1))
    return _flat([estimator.tree_ for estimator in model.estimators_], outputs)


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
