"""QR, CS and misroute (Algorithm 3) of all queries and by language, and of single models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.intervals import COST, DIFFERENCE, FREE_BASELINE, SHARE, Interval
from hydra_core.base.types import BoolArray, ChoiceArray, FloatArray, IntArray
from hydra_core.evalsets.evalset import RESOLVED_AT
from hydra_core.predictor.languages import group_of
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.significance import (
    holm,
    mean_interval,
    per_resolved,
    rate_interval,
    ratio_interval,
    saving_interval,
    standard_error,
    student_p,
    student_quantile,
)

#: Below this many independent queries a language is flagged: its interval says little. If they are
#: all alike, there is none.
SMALL = 30
_ALIKE = "too few queries to say how they vary"
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class PolicyMetrics:
    """One policy on one eval set, with 95 % intervals.

    Attributes:
        resolved: Queries with quality >= RESOLVED_AT.
        quality: Mean quality in [0, 1] (resolution rate where outcomes are yes/no).
        per_resolved_usd: USD per resolved query (`significance.per_resolved`).
        qr: Quality retention, quality / oracle quality (Eq. 7).
        cs: Cost savings, 1 - cost / baseline cost.
        misroute: Fraction of all queries that a cheaper-ranked model resolved.
        misroute_most: The same where all such models without outcomes resolved all of them.
        baseline: The model that `cs` is measured against.
        shares: Model id -> fraction of traffic.
        unknown: Fraction of traffic that goes to models without outcomes. Quality and QR are then
            the least possible, and their intervals reach to the most possible.
    """

    n: int
    resolved: int
    quality: Interval
    mean_cost_usd: Interval
    per_resolved_usd: Interval
    qr: Interval
    cs: Interval
    misroute: Interval
    misroute_most: float
    baseline: str
    shares: dict[str, float]
    unknown: float = 0.0


@dataclass(frozen=True, slots=True)
class ConstantPolicy:
    """Always the same model: its mean quality and mean cost per query in USD."""

    model: str
    index: int
    resolved: int
    quality: float
    mean_cost_usd: float


def picked(values: FloatArray, choice: ChoiceArray) -> FloatArray:
    """The value of each query's chosen model: (n, m) and (n,) -> (n,), or (n, p) -> (n, p)."""
    rows = np.arange(values.shape[0])
    return values[rows if choice.ndim == 1 else rows[:, None], choice]


def oracle_quality(data: ReplayData) -> float:
    """Mean quality of the oracle, the denominator of QR."""
    return float(picked(data.quality, data.oracle).mean())


def costliest(data: ReplayData) -> str:
    """The default baseline: the measured model with the highest mean realised cost."""
    return data.pool.ids[int(np.where(data.measured, data.alone[1], -np.inf).argmax())]


def misrouted(data: ReplayData, choice: IntArray) -> BoolArray:
    """(n,) True where a model of lower static cost than the chosen one resolved the query."""
    return data.cheapest_resolving < data.pool.cost[choice]


def maybe_misrouted(data: ReplayData, choice: IntArray) -> BoolArray:
    """(n,) True also where a model of lower static cost without outcomes may have resolved it."""
    able = np.broadcast_to(~data.measured, data.quality.shape)
    if data.closed is not None:
        able = able & ~data.closed
    cheapest = np.where(able, data.pool.cost, np.inf).min(axis=1)
    found: BoolArray = misrouted(data, choice) | (cheapest < data.pool.cost[choice])
    return found


def evaluate_choice(
    data: ReplayData, choice: IntArray, *, baseline: str | None = None
) -> PolicyMetrics:
    """Every metric of one assignment of queries to models.

    Args:
        choice: (n,) index of the chosen model.
        baseline: Model that savings are measured against; default the costliest.

    Raises:
        ValueError: The baseline is not in the pool.
    """
    name = baseline or costliest(data)
    if name not in data.pool.ids:
        raise ValueError(
            f"baseline '{name}' is not among the replayed models: {', '.join(data.pool.ids)}"
        )
    n = len(choice)
    quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
    best = picked(data.quality, data.oracle)
    base_cost = data.fixed[1][:, data.pool.ids.index(name)]
    wrong, maybe = (
        rate_interval(found(data, choice).astype(np.float64), data.clusters)
        for found in (misrouted, maybe_misrouted)
    )
    counts = np.bincount(choice, minlength=len(data.pool.ids))
    unknown = data.unknown(choice)
    most = quality + unknown

    # at the least possible quality, down to where it would be at the most possible
    least, best_case = (per_resolved(cost, one, data.clusters) for one in (quality, most))

    def mean_quality(values: FloatArray) -> Interval:
        return (rate_interval if data.binary else mean_interval)(values, data.clusters)

    def varied(found: Interval) -> Interval:
        few = data.independent < SMALL and found.hi - found.lo <= _NOTHING
        return Interval.none(found.value, _ALIKE) if few else found

    return PolicyMetrics(
        n=n,
        resolved=int((quality >= RESOLVED_AT).sum()),
        quality=varied(mean_quality(quality).spanning(mean_quality(most)).clipped(*SHARE)),
        mean_cost_usd=mean_interval(cost, data.clusters).clipped(*COST),
        per_resolved_usd=least.spanning(best_case) if best_case.known and least.known else least,
        qr=varied(
            ratio_interval(quality, best, data.clusters)
            .spanning(ratio_interval(most, best, data.clusters))
            .clipped(*SHARE)
        ),
        cs=saving_interval(cost, base_cost, data.clusters),
        misroute=wrong.spanning(maybe),
        misroute_most=maybe.value,
        baseline=name,
        shares={m: float(c) / n for m, c in zip(data.pool.ids, counts, strict=True)},
        unknown=float(unknown.mean()),
    )


def single_models(data: ReplayData) -> tuple[ConstantPolicy, ...]:
    """Every model used alone that has outcomes, pool order."""
    figures = zip(data.pool.ids, *data.alone, strict=True)
    return tuple(
        ConstantPolicy(model, i, int(resolved), float(quality), float(cost))
        for i, (model, quality, cost, resolved) in enumerate(figures)
        if data.measured[i]
    )


def upper_hull(singles: Sequence[ConstantPolicy]) -> tuple[ConstantPolicy, ...]:
    """The constants no mixture of others beats, from cheapest to best.

    Between two neighbours lies what a random mixture of the two reaches at that cost.
    """
    hull: list[ConstantPolicy] = []
    for point in sorted(singles, key=lambda p: (p.mean_cost_usd, -p.quality)):
        if hull and point.quality <= hull[-1].quality:
            continue
        while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(hull)


def _turns_up(a: ConstantPolicy, b: ConstantPolicy, c: ConstantPolicy) -> bool:
    """Whether b lies on or below the line from a to c."""
    left = (b.quality - a.quality) * (c.mean_cost_usd - a.mean_cost_usd)
    right = (c.quality - a.quality) * (b.mean_cost_usd - a.mean_cost_usd)
    return left <= right


_REFERENCE = "english"


@dataclass(frozen=True, slots=True)
class Slice:
    """One language or group under one policy, with 95 % intervals.

    Attributes:
        qr: Quality / oracle quality on its queries.
        cs: 1 - cost / baseline cost on its queries.
        strong: Fraction of its queries sent to the baseline (strong) model.
        difference: Its QR minus the QR of all other queries; without an interval where too few
            queries show how they vary.
        p_value: That the difference is 0, Holm-corrected over the slices; NaN where it has no
            interval, or hangs on models without outcomes.
        small: Fewer than 30 independent queries.
        unknown: Fraction of its queries that go to models without outcomes; as in
            `PolicyMetrics`.
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
    unknown: float = 0.0


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
    part, strong = data.take(rows), baseline or costliest(data)
    metrics = evaluate_choice(part, choice[rows], baseline=strong)
    sent = (choice[rows] == data.pool.ids.index(strong)).astype(np.float64)
    units = part.independent
    difference, p_value = _qr_apart(data, choice, inside, ~inside)
    return Slice(
        name=name,
        n=len(rows),
        qr=metrics.qr,
        cs=metrics.cs,
        strong=rate_interval(sent, part.clusters if units < len(rows) else None),
        mean_cost_usd=metrics.mean_cost_usd,
        difference=difference,
        p_value=p_value,
        small=units < SMALL,
        unknown=metrics.unknown,
    )


def _qr_apart(
    data: ReplayData, choice: IntArray, inside: BoolArray, outside: BoolArray
) -> tuple[Interval, float]:
    """QR of one part minus that of another, and the p value that they are the same."""
    quality, best = picked(data.quality, choice), picked(data.quality, data.oracle)
    found, p_value = _contrast(data, quality, best, inside, outside)
    unknown = data.unknown(choice)
    if found.known and (unknown & (inside | outside)).any():
        ends = (
            _contrast(data, quality + (unknown & part), best, inside, outside)[0]
            for part in (inside, outside)
        )
        found, p_value = found.spanning(*ends), float("nan")
    return found.clipped(*DIFFERENCE), p_value


def _contrast(
    data: ReplayData, above: FloatArray, below: FloatArray, inside: BoolArray, outside: BoolArray
) -> tuple[Interval, float]:
    """Ratio of the sums of one part minus that of another, and the p value that they are the same.

    Over clusters that may lie in both parts. A small part whose queries are all alike, or one
    query, does not show how much its ratio varies: there is no interval then, and p is NaN.
    """
    n, value, influence, fewest, alike = len(above), 0.0, np.zeros(len(above)), len(above), False
    for part, sign in ((inside, 1.0), (outside, -1.0)):
        base = float(below[part].mean()) if part.any() else 0.0
        if base == 0.0:
            return Interval.none(float("nan"), FREE_BASELINE), float("nan")
        ratio = float(above[part].mean()) / base
        value += sign * ratio
        mine = np.where(part, (above - ratio * below) / base, 0.0)
        units = int(part.sum() if data.clusters is None else np.unique(data.clusters[part]).size)
        alike |= units < 2 or (units < SMALL and not (np.abs(mine) > _NOTHING).any())
        influence += sign * n / part.sum() * mine
        fewest = min(fewest, units)
    if alike:
        return Interval.none(value, _ALIKE), float("nan")
    error, _ = standard_error(influence, data.clusters)
    half = student_quantile(fewest) * error
    p_value = student_p(value / error, fewest - 1) if error > 0 else float(value == 0.0)
    return Interval(value, value - half, value + half), p_value


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
    sent = (choice == strong).astype(np.float64)
    pairs = ((picked(data.cost_usd, choice), data.fixed[1][:, strong]), (sent, np.ones(len(sent))))
    found = []
    for name in sorted(set(groups.tolist()) - {_REFERENCE}):
        qr, _ = _qr_apart(data, choice, groups == name, against)
        cs, share = (_contrast(data, a, b, groups == name, against)[0] for a, b in pairs)
        share = share.clipped(*DIFFERENCE)
        found.append(Spread(name, _REFERENCE, qr, cs.scaled(-1.0), share))
    return tuple(found)
