"""The interval that every estimate is shown with, and its level."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Final, Self

from hydra_core.base.spelling import signed

#: Confidence level of every interval that is shown, two-sided.
LEVEL: Final = 0.95
#: Why one independent observation has no interval.
ONE_OBSERVATION: Final = "one independent query gives no interval"
#: Why a ratio to nothing has neither value nor interval.
FREE_BASELINE: Final = "a ratio to 0 has no value"

#: What is possible at all: of a share, of a difference of shares, of a cost, of a saving.
SHARE: Final = (0.0, 1.0)
DIFFERENCE: Final = (-1.0, 1.0)
COST: Final = (0.0, math.inf)
SAVING: Final = (-math.inf, 1.0)


def tails(level: float = LEVEL) -> tuple[float, float]:
    """The two quantiles that a percentile interval of this level runs between: .025 and .975."""
    return 0.5 - level / 2, 0.5 + level / 2


def normal_quantile(level: float = LEVEL) -> float:
    """Half width of a two-sided normal interval in standard errors: 1.96 at 95 %."""
    return NormalDist().inv_cdf(0.5 + level / 2)


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate with its lower and upper bound, all in the estimate's unit.

    Attributes:
        value: The estimate; NaN where there is none.
        lo, hi: lo <= value <= hi; both NaN where there is no interval.
        reason: Why there is no interval; empty where there is one.
    """

    value: float
    lo: float
    hi: float
    reason: str = field(default="", kw_only=True)

    @classmethod
    def none(cls, value: float, reason: str) -> Self:
        """An estimate without an interval, and why."""
        return cls(value, math.nan, math.nan, reason=reason)

    @classmethod
    def holding(cls, value: float, lo: float, hi: float) -> Self:
        """An interval that is widened to its own estimate where resampling missed it."""
        return cls(value, min(lo, value), max(hi, value))

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not self.reason

    @property
    def standard_error(self) -> float:
        """What a normal estimate with this interval has; NaN where there is no interval."""
        return (self.hi - self.lo) / 2 / normal_quantile()

    def scaled(self, factor: float, offset: float = 0.0) -> Self:
        """`offset + factor * x` for all three; bounds stay in order."""
        lo, hi = sorted((offset + factor * self.lo, offset + factor * self.hi))
        return replace(self, value=offset + factor * self.value, lo=lo, hi=hi)

    def widened(self, factor: float) -> Self:
        """The same estimate with both bounds this many times (>= 1) as far from it."""
        down, up = self.value - self.lo, self.hi - self.value
        return replace(self, lo=self.value - factor * down, hi=self.value + factor * up)

    def spanning(self, *others: Self) -> Self:
        """The same estimate with bounds that hold those of the others too."""
        every = (self, *others)
        return replace(self, lo=min(one.lo for one in every), hi=max(one.hi for one in every))

    def clipped(self, lo: float, hi: float) -> Self:
        """The same with bounds no wider than what is possible at all."""
        lo, hi = min(max(self.lo, lo), self.value), max(min(self.hi, hi), self.value)
        return replace(self, lo=lo, hi=hi)

    def columns(self, name: str) -> dict[str, float]:
        """The three as columns of a table: `name`, `name_lo` and `name_hi`."""
        return {name: self.value, f"{name}_lo": self.lo, f"{name}_hi": self.hi}

    def text(self, unit: str) -> str:
        """A difference with its interval: +0.6 pp [−0.8, +1.9], or why there is none."""
        ends = f"[{self.bounds(signed, ', ')}]" if self.known else f"({self.reason})"
        return f"{signed(self.value)} {unit} {ends}"

    def bounds(self, spelled: Callable[[float], str] | None = None, between: str = " to ") -> str:
        """The two bounds, 41.1 to 98.7, each as `spelled` writes it, or why there are none."""
        if not self.known:
            return self.reason
        write = spelled or "{:.1f}".format
        return f"{write(self.lo)}{between}{write(self.hi)}"
