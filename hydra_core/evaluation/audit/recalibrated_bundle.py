"""A copy of a bundle whose scores go through recalibration curves."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from hydra_core.errors import BundleError, Problem
from hydra_core.evaluation.audit.recalibrate import Curves
from hydra_core.predictor.bundle import Bundle, Curve, load_bundle
from hydra_core.predictor.bundle_writing import rewrite_manifest
from hydra_core.predictor.languages import SCRIPTS
from hydra_core.types import Band, FloatArray

__all__ = ["write_recalibrated"]

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
        raise BundleError(str(folder), [Problem("", "is there already", "choose another folder")])
    mapped = curves.through(scores, scripts or [""] * len(scores))
    low, high = np.quantile(mapped, [0.05, 0.95], axis=0)
    flat = [d for d, lo, hi in zip(bundle.dimensions, low, high, strict=True)
            if hi - lo < _LEAST_WIDTH]  # fmt: skip
    if flat:
        message = f"ratings do not follow the scores of {', '.join(flat)}: no band is left"
        raise BundleError(
            bundle.name, [Problem("", message, "rate more, or leave them as they are")]
        )
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
            calibration=_composed_all(bundle.calibration, curves.common),
            calibration_by_script=_by_script(bundle, curves),
            training={**bundle.training, "recalibrated": note},
        )
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return load_bundle(folder)


def _by_script(bundle: Bundle, curves: Curves) -> dict[str, dict[str, Curve]]:
    """Writing system -> dimension -> curve, where the bundle or the new curves have one."""
    found: dict[str, dict[str, Curve]] = {}
    for script in SCRIPTS:
        before = bundle.calibration_by_script.get(script, {})
        pairs = zip(curves.by_script, curves.common, strict=True)
        then = [own.get(script, common) for own, common in pairs]
        whole = _composed_all(bundle.curves_of(script), then)
        own = {
            name: curve
            for name, curve, new in zip(bundle.dimensions, whole, curves.by_script, strict=True)
            if name in before or script in new
        }
        if own:
            found[script] = own
    return found


def _composed_all(old: Sequence[Curve] | None, then: Sequence[Curve]) -> list[Curve]:
    first = old or (Curve((0.0, 1.0), (0.0, 1.0)),) * len(then)
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
