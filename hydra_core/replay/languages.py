"""One policy by language and by language group: QR, CS, who is sent to the strong model.

Small samples swing: spreads are given with an interval, never as a bare maximum minus minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.intervals import COST, DIFFERENCE, FREE_BASELINE, SHARE, Interval
from hydra_core.base.types import BoolArray, FloatArray, IntArray
from hydra_core.predictor.languages import group_of
from hydra_core.replay.metrics import costliest, picked
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    holm,
    influence_interval,
    mean_interval,
    normal_p,
    rate_interval,
    ratio_interval,
    saving_interval,
)

#: Below this many queries a language is flagged: its interval says little.
SMALL = 30
_REFERENCE = "english"


@dataclass(frozen=True, slots=True)
class Slice:
    """One language or group under one policy, with 95 % intervals.

    Attributes:
        qr: Quality / oracle quality on its queries.
        cs: 1 - cost / baseline cost on its queries.
        strong: Fraction of its queries sent to the baseline (strong) model.
        difference: Its QR minus the QR of all other queries.
        p_value: That the difference is 0, Holm-corrected over the slices.
        small: Fewer than 30 independent queries.
    """

    name: str
    n: int
    qr: Interval
    cs: Interval
    strong: Interval
    mean_cost_usd: Interval
    difference: Interval
    p_value: float
    small: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """How one group fares against another: QR, CS and strong share, group minus reference."""

    group: str
    reference: str
    qr: Interval
    cs: Interval
    strong: Interval


def by_language(
    data: ReplayData, choice: IntArray, *, baseline: str | None = None
) -> tuple[Slice, ...]:
    """Every language, the largest first.

    Args:
        choice: (n,) index of the chosen model.
        baseline: The strong model; default the costliest.
    """
    return _slices(data, choice, list(data.languages), baseline)


def by_group(
    data: ReplayData, choice: IntArray, *, baseline: str | None = None
) -> tuple[Slice, ...]:
    """English, European, CJK and other languages (the paper's groups), the largest first."""
    return _slices(data, choice, [group_of(code) for code in data.languages], baseline)


def _slices(
    data: ReplayData, choice: IntArray, names: Sequence[str], baseline: str | None
) -> tuple[Slice, ...]:
    of_row = np.asarray(names)
    values, counts = np.unique(of_row, return_counts=True)
    order = np.lexsort((values, -counts))
    made = [_slice(data, choice, str(values[i]), of_row == values[i], baseline) for i in order]
    adjusted = holm([found.p_value for found in made])
    return tuple(replace(found, p_value=p) for found, p in zip(made, adjusted, strict=True))


def _slice(
    data: ReplayData, choice: IntArray, name: str, inside: BoolArray, baseline: str | None
) -> Slice:
    """One slice, its p value not yet corrected."""
    rows = np.flatnonzero(inside)
    part = data.take(rows)
    strong = data.pool.ids.index(baseline or costliest(data))
    quality, cost = picked(part.quality, choice[rows]), picked(part.cost_usd, choice[rows])
    best = picked(part.quality, part.oracle)
    sent = (choice[rows] == strong).astype(np.float64)
    units = part.independent
    clustered = units < len(rows)
    every, oracle = picked(data.quality, choice), picked(data.quality, data.oracle)
    difference = _contrast(data, every, oracle, inside, ~inside).clipped(*DIFFERENCE)
    error = difference.standard_error
    return Slice(
        name=name,
        n=len(rows),
        qr=ratio_interval(quality, best, part.clusters).clipped(*SHARE),
        cs=saving_interval(cost, part.cost_usd[:, strong], part.clusters),
        strong=rate_interval(sent, part.clusters if clustered else None),
        mean_cost_usd=mean_interval(cost, part.clusters).clipped(*COST),
        difference=difference,
        p_value=normal_p(difference.value / error) if error > 0 else 1.0,
        small=units < SMALL,
    )


def _contrast(
    data: ReplayData, above: FloatArray, below: FloatArray, inside: BoolArray, outside: BoolArray
) -> Interval:
    """Ratio of the sums of one part minus that of another, over clusters that may lie in both."""
    n, value, influence = len(above), 0.0, np.zeros(len(above))
    for part, sign in ((inside, 1.0), (outside, -1.0)):
        base = float(below[part].mean()) if part.any() else 0.0
        if base == 0.0:
            return Interval.none(float("nan"), FREE_BASELINE)
        ratio = float(above[part].mean()) / base
        value += sign * ratio
        weight = n / part.sum()
        influence += sign * weight * np.where(part, (above - ratio * below) / base, 0.0)
    return influence_interval(value, influence, data.clusters)


def spread(
    data: ReplayData, choice: IntArray, *, baseline: str | None = None
) -> tuple[Spread, ...]:
    """Every language group against English, paired over clusters (translations) it shares.

    Nothing is returned if the set has no English.
    """
    groups = np.asarray([group_of(code) for code in data.languages])
    against = groups == _REFERENCE
    if not against.any():
        return ()
    strong = data.pool.ids.index(baseline or costliest(data))
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    best, sent = picked(data.quality, data.oracle), (choice == strong).astype(np.float64)
    pairs = ((quality, best), (cost, data.cost_usd[:, strong]), (sent, np.ones(len(sent))))
    found = []
    for name in sorted(set(groups.tolist()) - {_REFERENCE}):
        qr, cs, share = (_contrast(data, a, b, groups == name, against) for a, b in pairs)
        qr, share = qr.clipped(*DIFFERENCE), share.clipped(*DIFFERENCE)
        found.append(Spread(name, _REFERENCE, qr, cs.scaled(-1.0), share))
    return tuple(found)
