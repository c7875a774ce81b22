"""Windows of traffic that ask for something else than the rest: a burst of another kind.

A burst of some hundred requests is lost in the figures of a day. So each 15 minutes, hour and day
is compared with all other traffic, dimension by dimension (PSI over tenths of all). A window is
named only if its PSI is above `STEADY` beyond chance, counting all windows and dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
from scipy import stats

from hydra_core.base.intervals import LEVEL
from hydra_core.base.types import BoolArray, FloatArray, IntArray
from hydra_core.live.drift import STEADY
from hydra_core.live.traffic import Traffic

#: Lengths of windows in seconds, and their names.
WINDOWS: Final = {900: "15 minutes", 3600: "hour", 86_400: "day"}
#: Fewer decisions in a window, or outside it, say nothing.
_LEAST, _LEAST_OTHERS = 30, 100
_TENTHS: Final = np.linspace(0.0, 1.0, 11)[1:-1]
_HALF: Final = 0.5  # of a decision, in a bin where there is none


@dataclass(frozen=True, slots=True)
class Burst:
    """One window that differs from the rest of the traffic.

    Attributes:
        start, end: Of the window.
        window: Its length in words.
        dimension: The one that differs most, with its PSI and mean requirements.
    """

    start: datetime
    end: datetime
    window: str
    decisions: int
    dimension: str
    psi: float
    mean: float
    others: float


def bursts_of(traffic: Traffic, dimensions: Sequence[str]) -> tuple[Burst, ...]:
    """The bursts of scored traffic, the newest first.

    A window that holds a shorter one that differs is left out.
    """
    at = np.array([moment.timestamp() for moment in traffic.rows["at"]])
    return bursts(at, traffic.requirements(), dimensions)


def bursts(at: FloatArray, values: FloatArray, dimensions: Sequence[str]) -> tuple[Burst, ...]:
    """The same of plain values.

    Args:
        at: (n,) seconds since 1970.
        values: (n, K) requirements.
        dimensions: (K,) names.
    """
    found: list[Burst] = []
    for width, name in WINDOWS.items():
        kinds, window = np.unique((at // width).astype(np.int64), return_inverse=True)
        counts = np.bincount(window)
        looked = np.flatnonzero((counts >= _LEAST) & (at.size - counts >= _LEAST_OTHERS))
        if not looked.size:
            continue
        psi, chance = _compared(values, window, kinds.size)
        best = psi.argmax(axis=1)
        for one in looked.tolist():
            k, inside = int(best[one]), window == one
            start, end = int(kinds[one]) * width, (int(kinds[one]) + 1) * width
            shorter = any(start <= b.start.timestamp() < end for b in found)
            if shorter or chance[one, k] * looked.size * len(dimensions) >= 1 - LEVEL:
                continue
            found.append(
                Burst(
                    datetime.fromtimestamp(start, UTC),
                    datetime.fromtimestamp(end, UTC),
                    name,
                    int(counts[one]),
                    dimensions[k],
                    float(psi[one, k]),
                    float(values[inside, k].mean()),
                    float(values[~inside, k].mean()),
                )
            )
    return tuple(sorted(found, key=lambda burst: burst.start, reverse=True))


def compared(values: FloatArray, inside: BoolArray) -> tuple[FloatArray, FloatArray]:
    """PSI of some decisions against the others, and its chance if the true one is `STEADY`.

    Args:
        values: (n, K) requirements.
        inside: (n,) which are compared with the others.

    Returns:
        (K,) each.
    """
    psi, chance = _compared(values, inside.astype(np.intp), 2)
    return psi[1], chance[1]


def _compared(values: FloatArray, window: IntArray, windows: int) -> tuple[FloatArray, FloatArray]:
    """(n, K), (n,) numbers of windows -> (windows, K) PSI and chance of each window."""
    psi, chance = np.zeros((windows, values.shape[1])), np.ones((windows, values.shape[1]))
    size = np.bincount(window, minlength=windows)
    noise = 1.0 / np.maximum(size, 1) + 1.0 / np.maximum(len(values) - size, 1)
    for k, column in enumerate(values.T):
        edges = np.unique(np.quantile(column, _TENTHS))
        bins = edges.size + 1
        places = np.searchsorted(edges, column, side="right")
        counts = np.bincount(window * bins + places, minlength=windows * bins)
        counts = counts.reshape(windows, bins)
        p, q = (_shares(one) for one in (counts, counts.sum(axis=0) - counts))
        psi[:, k] = ((p - q) * np.log(p / q)).sum(axis=1)
        chance[:, k] = stats.ncx2.sf(psi[:, k] / noise, edges.size, STEADY / noise)
    return psi, chance


def _shares(counts: IntArray) -> FloatArray:
    """(windows, bins) shares; half a decision where there is none."""
    some = np.maximum(counts, _HALF)
    result: FloatArray = some / some.sum(axis=1, keepdims=True)
    return result
