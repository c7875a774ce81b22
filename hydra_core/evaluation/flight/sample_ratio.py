"""Whether the arms hold the shares of units they were promised (sample-ratio mismatch)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

__all__ = ["Alarm", "SampleRatio", "sample_ratio"]


class Alarm(StrEnum):
    """None, a warning below .01, a stop below .001."""

    NONE = "none"
    YELLOW = "yellow"
    RED = "red"


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """Units found and promised in each arm, and the chi-square test of it."""

    found: tuple[int, ...]
    promised: tuple[float, ...]
    p_value: float

    @property
    def alarm(self) -> Alarm:
        """How bad it is."""
        if self.p_value < 0.001:
            return Alarm.RED
        return Alarm.YELLOW if self.p_value < 0.01 else Alarm.NONE


def sample_ratio(found: Sequence[int], shares: Sequence[float]) -> SampleRatio:
    """Chi-square test of the units in each arm against the shares, which sum to 1."""
    counts = np.asarray(found, dtype=float)
    promised = counts.sum() * np.asarray(shares, dtype=float)
    statistic = float(((counts - promised) ** 2 / promised).sum())
    p_value = float(stats.chi2.sf(statistic, df=len(counts) - 1))
    return SampleRatio(tuple(map(int, found)), tuple(promised.tolist()), p_value)
