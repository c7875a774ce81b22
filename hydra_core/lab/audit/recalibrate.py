"""A bundle's scores brought onto the scale of human ratings: one monotone curve a dimension, and
one more for messages of a writing system where the ratings carry it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import isotonic_regression

from hydra_core.base.errors import BundleError
from hydra_core.base.types import Band, BoolArray, FloatArray, IntArray
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.lab.bundle_writing import write_manifest
from hydra_core.predictor.bundle import Bundle, Curve, load_bundle
from hydra_core.predictor.languages import SCRIPTS, script_of
from hydra_core.predictor.score_bands import band_ends
from hydra_core.replay.significance import mean_interval

#: A band may not shrink below this, or its dimension would weigh without bound (Eq. 4).
_LEAST_WIDTH: Final = 0.02


def write_recalibrated(
    bundle: Bundle,
    curves: Curves,
    scores: FloatArray,
    folder: Path,
    *,
    note: str,
    scripts: Sequence[str] | None = None,
) -> Bundle:
    """Write a copy of a bundle whose scores go through the curves.

    Bands are the 5th and 95th percentile of the recalibrated scores.

    Args:
        scores: (n, K) the bundle's scores that the bands are taken from.
        scripts: (n,) their messages' writing systems; None: all go through the common curves.

    Raises:
        BundleError: The folder is there, or a dimension is left without a band.
    """
    if folder.exists():
        raise BundleError.of(str(folder), "is there already", "choose another folder")
    mapped = curves.through(scores, scripts or [""] * len(scores))
    low, high = band_ends(mapped)
    flat = [d for d, lo, hi in zip(bundle.dimensions, low, high, strict=True)
            if hi - lo < _LEAST_WIDTH]  # fmt: skip
    if flat:
        message = f"ratings do not follow the scores of {', '.join(flat)}: no score band is left"
        raise BundleError.of(bundle.name, message, "rate more, or leave them as they are")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new-"))
    try:
        for name in bundle.files:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(bundle.path / name, scratch / name)
        manifest = replace(
            bundle,
            version=f"{bundle.version}+recalibrated",
            bands=tuple(Band(float(lo), float(hi)) for lo, hi in zip(low, high, strict=True)),
            calibration=tuple(_composed_all(bundle.calibration, curves.common)),
            calibration_by_script=_by_script(bundle, curves),
            training={**bundle.training, "recalibrated": note},
        )
        write_manifest(scratch, manifest)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return load_bundle(folder)


def _by_script(bundle: Bundle, curves: Curves) -> dict[str, dict[str, Curve]]:
    """Writing system -> dimension -> curve, where the bundle or the new curves have one."""
    found: dict[str, dict[str, Curve]] = {}
    for script in SCRIPTS:
        before = bundle.calibration_by_script.get(script, {})
        pairs = list(zip(curves.by_script, curves.common, strict=True))
        whole = _composed_all(
            bundle.curves_of(script), [own.get(script, common) for own, common in pairs]
        )
        mine = {
            name: curve
            for name, curve, (new, _) in zip(bundle.dimensions, whole, pairs, strict=True)
            if name in before or script in new
        }
        if mine:
            found[script] = mine
    return found


def _composed_all(old: Sequence[Curve] | None, then: Sequence[Curve]) -> list[Curve]:
    first = old or (_AS_IT_IS,) * len(then)
    return [_composed(a, b) for a, b in zip(first, then, strict=True)]


def _composed(first: Curve, then: Curve) -> Curve:
    """then(first(x)) exactly: knots of the first, and where it meets the knots of the second."""
    x, y = np.array(first.x), np.array(first.y)
    inside = [k for k in then.x if y[0] < k < y[-1]]
    # Both ends of a level stretch stay: without one, the next stretch would begin elsewhere.
    met = np.interp(inside, y, x) if inside else np.array([])
    at = np.unique(np.concatenate([x, met]))
    through = np.interp(np.interp(at, x, y), then.x, then.y)
    return Curve(tuple(at.tolist()), tuple(np.maximum.accumulate(through).tolist()))


#: Fewest rated messages of a writing system for curves of its own; translations count once.
LEAST_IN_SCRIPT: Final = 40
#: Share of the error that a curve of its own must take off. The interval does not know of the noise
#: in the fits: alone it takes on too many by chance where most messages are of one writing system.
LEAST_GAIN: Final = 0.02
_FOLDS: Final = 5
#: Fewest rated queries for any curve.
LEAST_RATED: Final = 4 * _FOLDS
_KNOTS: Final = 9
_AS_IT_IS: Final = Curve((0.0, 1.0), (0.0, 1.0))
_Names = npt.NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Curves:
    """What scores go through.

    Attributes:
        common: (K,) one a dimension; scores that no curve brings nearer stay as they are.
        by_script: (K,) writing system -> the curve of its messages instead.
    """

    common: tuple[Curve, ...]
    by_script: tuple[Mapping[str, Curve], ...]

    def through(self, scores: FloatArray, scripts: Sequence[str]) -> FloatArray:
        """(n, K) scores of messages in (n,) writing systems -> (n, K) recalibrated."""
        of, mapped = np.asarray(scripts, dtype=str), np.empty_like(scores)
        for i, (common, own) in enumerate(zip(self.common, self.by_script, strict=True)):
            mapped[:, i] = apply_curve(common, scores[:, i])
            for script, curve in own.items():
                mapped[of == script, i] = apply_curve(curve, scores[of == script, i])
        return mapped


@dataclass(frozen=True, slots=True)
class ScriptPart:
    """The messages of one writing system; error and bias as in `Recalibration`.

    Attributes:
        n: Rated messages.
        enough: Whether they are enough for curves of their own.
        own: (K,) whether they got one.
    """

    script: str
    n: int
    enough: bool
    own: tuple[bool, ...]
    before: FloatArray
    after: FloatArray
    bias_before: FloatArray
    bias_after: FloatArray

    def curve(self, k: int) -> str:
        """Which curve they go through in dimension k, for a table."""
        return "own" if self.own[k] else "common" if self.enough else "common (too few)"


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Curves fitted on everything, and what they did to queries they were not fitted on.

    Attributes:
        curves: From the bundle's scores to ratings.
        before, after: (K,) mean absolute error; `after` is cross-fitted, and so is the choice of
            the writing systems that get curves of their own.
        bias_before, bias_after: (K,) mean of score - rating.
        parts: A row a writing system that is there; empty where none are given.
    """

    curves: Curves
    before: FloatArray
    after: FloatArray
    bias_before: FloatArray
    bias_after: FloatArray
    parts: tuple[ScriptPart, ...]


def scripts_of(evalset: EvalSet) -> list[str] | None:
    """(n,) the writing system of each message; None for a set that came without texts."""
    if evalset.texts is None:
        return None
    return [script_of(text) for text in evalset.texts.fillna("").astype(str)]


def recalibrate(
    scores: FloatArray,
    human: FloatArray,
    *,
    groups: IntArray | None = None,
    scripts: Sequence[str] | None = None,
    rng: np.random.Generator,
) -> Recalibration:
    """Fit monotone curves, and judge them by cross-fitting.

    Args:
        scores: (n, K) of the bundle.
        human: (n, K) mean ratings on [0, 1].
        groups: (n,) queries with one number stay in one fold (translations); None: all apart.
        scripts: (n,) writing system of each message (`script_of`); None: one curve for all. One
            gets a curve of its own in a dimension where `LEAST_IN_SCRIPT` messages are rated and
            their cross-fitted error is lower than with the common curve by `LEAST_GAIN`, with the
            whole 95 % interval of the paired difference.

    Raises:
        BundleError: Fewer than twenty rated queries, or all of them one task's.
    """
    n, k = scores.shape
    cluster = np.unique(np.arange(n) if groups is None else groups, return_inverse=True)[1]
    count = int(cluster.max(initial=-1)) + 1
    if n < LEAST_RATED or count < 2:
        message = f"{n} rated queries" + (" of one task" if n >= LEAST_RATED else "")
        remedy = f"rate at least {LEAST_RATED}, of several tasks"
        raise BundleError.of("recalibrate", f"{message} are too few", remedy)
    fold = (rng.permutation(count) % _FOLDS)[cluster]
    of = np.asarray(scripts if scripts else [""] * n, dtype=str)
    rated = {one: np.unique(cluster[of == one]).size for one in SCRIPTS}
    able = [one for one in SCRIPTS if (of != one).any() and rated[one] >= LEAST_IN_SCRIPT]
    mapped = np.empty_like(scores)
    for number in range(_FOLDS):
        out = fold == number
        rest = _fit(scores[~out], human[~out], of[~out], cluster[~out], fold[~out], able)
        mapped[out] = rest.through(scores[out], of[out])
    curves = _fit(scores, human, of, cluster, fold, able)
    parts = [
        ScriptPart(
            one,
            int((of == one).sum()),
            one in able,
            tuple(one in own for own in curves.by_script),
            *_compared(scores[of == one], mapped[of == one], human[of == one]),
        )
        for one in SCRIPTS
        if (of == one).any()
    ]
    return Recalibration(curves, *_compared(scores, mapped, human), tuple(parts))


def _compared(
    scores: FloatArray, mapped: FloatArray, human: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(K,) error before and after, bias before and after."""
    before, after = scores - human, mapped - human
    errors = np.abs(before).mean(axis=0), np.abs(after).mean(axis=0)
    return *errors, before.mean(axis=0), after.mean(axis=0)


def _fit(
    scores: FloatArray, human: FloatArray, of: _Names, cluster: IntArray, fold: IntArray,
    able: Sequence[str],
) -> Curves:  # fmt: skip
    """Curves of (n, K) scores; the folds serve the choice of writing systems alone."""
    common, by_script = [], []
    for x, y in zip(scores.T, human.T, strict=True):
        own = _own_scripts(x, y, of, cluster, fold, able)
        rest = _shared(of, cluster, own)
        as_it_is = _through_common(x, y, fold, rest) is x
        common.append(_AS_IT_IS if as_it_is else fit_curve(x[rest], y[rest]))
        by_script.append({one: fit_curve(x[of == one], y[of == one]) for one in own})
    return Curves(tuple(common), tuple(by_script))


def _own_scripts(
    x: FloatArray, y: FloatArray, of: _Names, cluster: IntArray, fold: IntArray,
    able: Sequence[str],
) -> list[str]:  # fmt: skip
    """Writing systems that are clearly better off with a curve of their own, one by one.

    The one that gains most goes first: left in the common curve, it would make all others look as
    if they needed one.
    """
    alone = {one: np.abs(_crossfit(x, y, fold, of == one) - y) for one in able}
    own: list[str] = []
    while left := [one for one in able if one not in own]:
        rest = _shared(of, cluster, own)
        common = np.abs(_through_common(x, y, fold, rest) - y)
        more = (1.0 - LEAST_GAIN) * common
        gain = {
            one: mean_interval((more - alone[one])[of == one], cluster[of == one]).lo
            for one in left
        }
        best = max(left, key=lambda one: gain[one])
        if not gain[best] > 0.0:
            break
        own.append(best)
    return own


def _shared(of: _Names, cluster: IntArray, own: Sequence[str]) -> BoolArray:
    """(n,) messages of the common curve: those without one of their own, or all where too few."""
    rest = ~np.isin(of, own)
    return rest if len(np.unique(cluster[rest])) >= LEAST_RATED else np.ones(len(of), dtype=bool)


def _through_common(x: FloatArray, y: FloatArray, fold: IntArray, rest: BoolArray) -> FloatArray:
    """(n,) scores through the common curve, cross-fitted; `x` itself where that is no nearer."""
    said = _crossfit(x, y, fold, rest)
    nearer = np.abs(said - y)[rest].mean() < np.abs(x - y)[rest].mean()
    return said if nearer else x


def _crossfit(x: FloatArray, y: FloatArray, fold: IntArray, fitted_on: BoolArray) -> FloatArray:
    """(n,) each score through the curve of the `fitted_on` messages in the other folds."""
    said = np.empty_like(x)
    for number in np.unique(fold):
        out = fold == number
        seen = fitted_on & ~out
        said[out] = apply_curve(fit_curve(x[seen], y[seen]), x[out])
    return said


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
