"""A policy's totals for every setting of its knob, as an exact step curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from hydra_core.base.types import FloatArray, IntArray, Rule

_Array = TypeVar("_Array", FloatArray, IntArray)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Totals at one setting of the knob: means per query; misroute is a share of all queries."""

    knob: float
    quality: float
    mean_cost_usd: float
    misroute: float


@dataclass(frozen=True, slots=True)
class StepCurve:
    """The exact curve over a knob: tau under the shortfall rule, V under the value rule.

    Attributes:
        knob: (b,) ascending, knob[0] = 0; row i holds for tau in [knob[i], knob[i+1]), and for V in
            (knob[i], knob[i+1]].
        quality: (b,) mean quality in [0, 1].
        mean_cost_usd: (b,) mean cost per query in USD.
        misroute: (b,) fraction of queries a cheaper-ranked model resolved as well.
    """

    knob: FloatArray
    quality: FloatArray
    mean_cost_usd: FloatArray
    misroute: FloatArray
    rule: Rule = Rule.SHORTFALL

    @property
    def symbol(self) -> str:
        """What the knob is called."""
        return "V" if self.rule is Rule.VALUE else "tau"

    def at(self, knob: float) -> CurvePoint:
        """The totals at this setting."""
        return self._totals(self.row(knob), knob)

    def point(self, row: int) -> CurvePoint:
        """The totals of one row, at a setting where it holds: its tau, or a V in its middle."""
        low = float(self.knob[row])
        if self.rule is Rule.SHORTFALL:
            return self._totals(row, low)
        last = row + 1 >= self.knob.size
        high = 2.0 * low if last else float(self.knob[row + 1])
        middle = float(np.sqrt(low * high)) if low > 0 else high / 2
        return self._totals(row, middle or 1.0)

    def tidy(self, knob: float) -> float:
        """The shortest decimal at which every query of this set goes where it does at `knob`."""
        row = self.row(knob)
        low = float(self.knob[row])
        for digits in range(2, 15):
            scale = 10.0**digits
            first = float(np.ceil(low * scale - 1e-9))
            for candidate in (first / scale, (first + 1.0) / scale):
                if self.row(candidate) == row and (candidate > 0.0 or knob == 0.0):
                    return candidate
        return knob

    def row(self, knob: float) -> int:
        """The row that holds at this setting (>= 0); on a breakpoint the cheaper side."""
        by_tau = self.rule is Rule.SHORTFALL
        row = np.searchsorted(self.knob, knob, side="right" if by_tau else "left")
        return max(int(row) - 1, 0)

    def simplified(self, points: int) -> IntArray:
        """Rows to draw: at most about `points`, evenly along the curve, both ends and the best.

        Along the curve means by arc length in (cost, quality) scaled to their ranges, so that no
        visible stretch is skipped. For drawing only; every figure uses the full curve.
        """
        if self.knob.size <= points:
            return np.arange(self.knob.size)
        scaled = [
            np.diff(values) / (np.ptp(values) or 1.0)
            for values in (self.mean_cost_usd, self.quality)
        ]
        length = np.concatenate([[0.0], np.cumsum(np.abs(scaled[0]) + np.abs(scaled[1]))])
        wanted = np.linspace(0.0, length[-1], points)
        rows = np.searchsorted(length, wanted).clip(max=self.knob.size - 1)
        best = int(self.quality.argmax())
        return np.unique(np.concatenate([rows, [0, best, self.knob.size - 1]]))

    def _totals(self, row: int, knob: float) -> CurvePoint:
        return CurvePoint(
            knob,
            quality=float(self.quality[row]),
            mean_cost_usd=float(self.mean_cost_usd[row]),
            misroute=float(self.misroute[row]),
        )


def accumulate(
    start: FloatArray, knob: FloatArray, step: FloatArray, n: int, rule: Rule
) -> StepCurve:
    """Sort the breakpoints, sum the changes, keep the last row of each distinct setting.

    Args:
        start: (3,) total quality, cost and misroute before the first breakpoint.
        knob: (b,) breakpoints in any order.
        step: (b, 3) what each breakpoint adds to the totals.
        n: Queries, to turn totals into means.

    Returns:
        Settings from 0 and their means, all read-only.
    """
    order = np.argsort(knob)
    knob = np.concatenate([[0.0], np.maximum(knob[order], 0.0)])
    total = np.empty((knob.size, start.size))
    total[0] = start
    np.take(step, order, axis=0, out=total[1:])
    keep = np.append(knob[1:] != knob[:-1], True)
    quality, cost_usd, misroute = (
        read_only(np.cumsum(total[:, i])[keep] / n) for i in range(start.size)
    )
    return StepCurve(read_only(knob[keep]), quality, cost_usd, misroute, rule)


def read_only(values: _Array) -> _Array:
    """The array, which nobody may write to from now on: many readers share it."""
    values.setflags(write=False)
    return values
