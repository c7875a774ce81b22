"""The score band of a dimension: where the middle nine tenths of a predictor's scores lie."""

from typing import Final

import numpy as np

from hydra_core.base.types import Band, FloatArray

_PERCENTILES: Final = (5.0, 95.0)
#: The least width that a band can have.
_LEAST_WIDTH: Final = 0.01


def band_ends(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(K,) 5th and (K,) 95th percentile of (n, K) scores; rows with a NaN are left out."""
    scored = scores[np.isfinite(scores).all(axis=1)]
    low, high = np.percentile(scored, _PERCENTILES, axis=0)
    return low, high


def score_bands(scores: FloatArray) -> tuple[Band, ...]:
    """Return the score band of each dimension, to four digits.

    A dimension on which all queries ask for the same gets the least width that a band can have.
    """
    bands = []
    for lo, hi in zip(*(ends.tolist() for ends in band_ends(scores)), strict=True):
        lo = min(round(lo, 4), 1 - _LEAST_WIDTH)
        bands.append(Band(lo, max(round(hi, 4), round(lo + _LEAST_WIDTH, 4))))
    return tuple(bands)
