"""A bundle's scores brought onto the scale of human ratings: one monotone curve a dimension."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import isotonic_regression

from hydra_core.errors import BundleError, Problem
from hydra_core.predictor.bundle import Bundle, Curve, load_bundle
from hydra_core.predictor.bundle_writing import rewrite_manifest
from hydra_core.types import Band, FloatArray, IntArray

__all__ = ["Recalibration", "apply_curve", "fit_curve", "recalibrate", "write_recalibrated"]

_FOLDS: Final = 5
_KNOTS: Final = 9
#: A band may not shrink below this, or its dimension would weigh without bound (Eq. 4).
_LEAST_WIDTH: Final = 0.02


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Curves fitted on everything, and what they did to queries they were not fitted on.

    Attributes:
        curves: (K,) from the bundle's scores to ratings.
        before, after: (K,) mean absolute error; `after` is cross-fitted.
        bias_before, bias_after: (K,) mean of score - rating.
    """

    curves: tuple[Curve, ...]
    before: FloatArray
    after: FloatArray
    bias_before: FloatArray
    bias_after: FloatArray


def recalibrate(
    scores: FloatArray, human: FloatArray, *, groups: IntArray | None = None,
    rng: np.random.Generator,
) -> Recalibration:  # fmt: skip
    """Fit a monotone curve a dimension, and judge it by cross-fitting.

    Args:
        scores: (n, K) of the bundle.
        human: (n, K) mean ratings on [0, 1].
        groups: (n,) queries with one number stay in one fold (translations); None: all apart.

    Raises:
        BundleError: Fewer than twenty rated queries.
    """
    n, k = scores.shape
    if n < 4 * _FOLDS:
        problem = Problem("", f"{n} rated queries are too few", f"rate at least {4 * _FOLDS}")
        raise BundleError("recalibrate", [problem])
    names, group = np.unique(np.arange(n) if groups is None else groups, return_inverse=True)
    fold = (rng.permutation(len(names)) % _FOLDS)[group]
    mapped = np.empty_like(scores)
    for number in range(_FOLDS):
        out = fold == number
        for i in range(k):
            curve = fit_curve(scores[~out, i], human[~out, i])
            mapped[out, i] = apply_curve(curve, scores[out, i])
    curves = tuple(fit_curve(scores[:, i], human[:, i]) for i in range(k))
    return Recalibration(
        curves,
        np.abs(scores - human).mean(axis=0),
        np.abs(mapped - human).mean(axis=0),
        (scores - human).mean(axis=0),
        (mapped - human).mean(axis=0),
    )


def fit_curve(scores: FloatArray, human: FloatArray) -> Curve:
    """Monotone curve of at most nine knots: isotonic regression at quantiles of the scores."""
    order = np.argsort(scores, kind="stable")
    x, fitted = scores[order], isotonic_regression(human[order]).x
    # Knots are scores that occur, so that none stands in a gap with nothing around it.
    at = np.unique(np.quantile(x, np.linspace(0.0, 1.0, _KNOTS), method="nearest"))
    # The mean of the fit around each knot is smoother than its steps.
    edges = np.concatenate([[-np.inf], (at[1:] + at[:-1]) / 2.0, [np.inf]])
    means = [
        fitted[(x >= lo) & (x <= hi)].mean() for lo, hi in zip(edges[:-1], edges[1:], strict=True)
    ]
    y = np.clip(np.maximum.accumulate(means), 0.0, 1.0)
    if len(at) < 2:  # one score for all: a level
        return Curve((0.0, 1.0), (float(y[0]), float(y[0])))
    return Curve(tuple(at.tolist()), tuple(y.tolist()))


def apply_curve(curve: Curve, scores: FloatArray) -> FloatArray:
    """Scores through a curve; level beyond its ends."""
    return np.asarray(np.interp(scores, curve.x, curve.y), dtype=float)


def write_recalibrated(
    bundle: Bundle, curves: Sequence[Curve], scores: FloatArray, folder: Path, *, note: str
) -> Bundle:
    """Write a copy of a bundle whose scores go through the curves.

    Bands are the 5th and 95th percentile of the recalibrated scores.

    Args:
        scores: (n, K) the bundle's scores that the bands are taken from.

    Raises:
        BundleError: The folder is there, or a dimension is left without a band.
    """
    if folder.exists():
        raise BundleError(str(folder), [Problem("", "is there already", "choose another folder")])
    mapped = np.column_stack([apply_curve(c, scores[:, i]) for i, c in enumerate(curves)])
    low, high = np.quantile(mapped, [0.05, 0.95], axis=0)
    flat = [d for d, lo, hi in zip(bundle.dimensions, low, high, strict=True)
            if hi - lo < _LEAST_WIDTH]  # fmt: skip
    if flat:
        message = f"ratings do not follow the scores of {', '.join(flat)}: no band is left"
        raise BundleError(
            bundle.name, [Problem("", message, "rate more, or leave them as they are")]
        )
    old = bundle.calibration or (Curve((0.0, 1.0), (0.0, 1.0)),) * len(curves)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        for name in bundle.files:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bundle.path / name, scratch / name)
        rewrite_manifest(
            bundle,
            scratch,
            version=f"{bundle.version}+recalibrated",
            bands=[Band(float(lo), float(hi)) for lo, hi in zip(low, high, strict=True)],
            calibration=[_composed(a, b) for a, b in zip(old, curves, strict=True)],
            training={**bundle.training, "recalibrated": note},
        )
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return load_bundle(folder)


def _composed(first: Curve, then: Curve) -> Curve:
    """then(first(x)) exactly: knots of the first, and where it meets the knots of the second."""
    x, y = np.array(first.x), np.array(first.y)
    inside = [k for k in then.x if y[0] < k < y[-1]]
    rising = np.concatenate([[True], np.diff(y) > 0])
    met = np.interp(inside, y[rising], x[rising]) if inside else np.array([])
    at = np.unique(np.concatenate([x, met]))
    through = np.interp(np.interp(at, x, y), then.x, then.y)
    return Curve(tuple(at.tolist()), tuple(np.maximum.accumulate(through).tolist()))
