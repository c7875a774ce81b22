"""Whether live traffic still is what the catalog was set up on, and what its promise was made for.

Drift, per dimension: the population stability index (PSI) over tenths of the reference. Without it
PSI / (1/n + 1/m) is chi-square with bins - 1 degrees of freedom, with drift it is noncentral;
inverting that gives the interval. n and m count what dependent ones are worth. A burst is a window
whose PSI against all other traffic is above `STEADY` beyond chance, over all windows looked at.

Regions are a few clusters of scored decisions by their requirements. One is known where enough of
its own decisions were rated, or enough queries of the eval set lie within it.

Feedback bets against the promise, which is of the mean over requests: wealth starts at 1 and every
rated conversation multiplies it by 1 + stake times the sum of (floor - outcome) over its requests,
as a share of the largest conversation. While the promise holds, it reaches 1 / (1 - confidence)
with a probability of at most 1 - confidence, however long one looks from one start on (Ville). The
k-th start has 1 / (k (k + 1)) of that probability, so that it holds for all starts together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
import pandas as pd
from scipy import optimize, stats

from hydra_core.base.intervals import LEVEL, Interval
from hydra_core.base.types import Band, BoolArray, Catalog, FloatArray, IntArray
from hydra_core.catalog.chosen_and_promised import not_covered
from hydra_core.live.canary import CANARY
from hydra_core.live.traffic import Traffic, share
from hydra_core.replay.significance import standard_error
from hydra_core.routing.decision import EXPLORED

#: The customary reading of PSI: below the first it is steady, above the second it has changed.
STEADY: Final = 0.1
CHANGED: Final = 0.25
_LEAST = 0.5  # of a decision, in a bin where there is none
#: Lengths of windows in seconds, and their names.
WINDOWS: Final = {900: "15 minutes", 3600: "hour", 86_400: "day"}
#: Fewer decisions in a window, or outside it, say nothing.
_LEAST_INSIDE, _LEAST_OUTSIDE = 30, 100
_TENTHS: Final = np.linspace(0.0, 1.0, 11)[1:-1]


@dataclass(frozen=True, slots=True)
class Drift:
    """One dimension against the reference.

    Attributes:
        psi: With its 95 % interval.
        mean, reference: Mean requirement here and there.
    """

    dimension: str
    psi: Interval
    mean: float
    reference: float

    @property
    def verdict(self) -> str:
        """steady, shifted, changed, or open where the interval reaches over a boundary."""
        if self.psi.hi < STEADY:
            return "steady"
        if self.psi.lo > CHANGED:
            return "changed"
        return "shifted" if self.psi.lo > STEADY else "undecided"


@dataclass(frozen=True, slots=True)
class BandShares:
    """Shares of one dimension's requirements outside the band; 5 % each where it was set."""

    dimension: str
    band: Band
    below: Interval
    above: Interval


def drift(
    traffic: Traffic,
    reference: FloatArray,
    dimensions: Sequence[str],
    reference_clusters: IntArray | None = None,
) -> tuple[Drift, ...]:
    """Every dimension of scored traffic against a reference.

    Args:
        reference: (m, K) scores, such as those of the eval set that the catalog was tuned on.
        reference_clusters: (m,) numbers of their dependent groups, such as translations of a task.
    """
    here = traffic.requirements()
    return tuple(
        Drift(
            name,
            psi(here[:, k], reference[:, k], traffic.clusters, reference_clusters),
            float(here[:, k].mean()),
            float(reference[:, k].mean()),
        )
        for k, name in enumerate(dimensions)
    )


def band_shares(
    traffic: Traffic, bands: Sequence[Band], dimensions: Sequence[str]
) -> tuple[BandShares, ...]:
    """How much of scored traffic lies outside each band."""
    here = traffic.requirements()
    return tuple(
        BandShares(
            name,
            band,
            share(traffic, here[:, k] < band.lo),
            share(traffic, here[:, k] > band.hi),
        )
        for k, (name, band) in enumerate(zip(dimensions, bands, strict=True))
    )


def psi(
    here: FloatArray,
    reference: FloatArray,
    clusters: IntArray | None = None,
    reference_clusters: IntArray | None = None,
) -> Interval:
    """Population stability index over tenths of the reference, with its 95 % interval.

    Args:
        here: (n,) values of today.
        reference: (m,) values before.
        clusters: (n,) numbers of dependent groups of `here`.
        reference_clusters: (m,) of `reference`.
    """
    if reference.min() == reference.max():  # no tenths: nothing can be said
        return Interval.none(float("nan"), "the reference has one value only")
    edges = _edges(reference)
    bins = edges.size + 1
    places = np.searchsorted(edges, here, side="right")
    now = np.bincount(places, minlength=bins)
    old_places = np.searchsorted(edges, reference, side="right")
    before = np.bincount(old_places, minlength=bins)
    p, q = (np.maximum(counts, _LEAST) / counts.sum() for counts in (now, before))
    value = float(((p - q) * np.log(p / q)).sum())
    old_worth = _worth(old_places, bins, reference_clusters)
    noise = 1.0 / _worth(places, bins, clusters) + 1.0 / old_worth
    found, freedom = value / noise, bins - 1
    lo = _noncentrality(found, freedom, (1 + LEVEL) / 2)
    hi = _noncentrality(max(found, freedom), freedom, (1 - LEVEL) / 2)  # chance can be too good
    return Interval.holding(value, noise * lo, noise * hi)


def _edges(values: FloatArray) -> FloatArray:
    """Edges between tenths; a value that fills more than one, such as 0, has a bin of its own."""
    edges, times = np.unique(np.quantile(values, _TENTHS), return_counts=True)
    edges = np.unique([*edges, *np.nextafter(edges[times > 1], np.inf)])
    result: FloatArray = edges[(edges > values.min()) & (edges <= values.max())]
    return result


def _worth(places: IntArray, bins: int, clusters: IntArray | None) -> float:
    """How many independent values the (n,) binned ones are worth."""
    n = places.size
    if clusters is None or n < 2:
        return float(n)
    clusters = np.unique(clusters, return_inverse=True)[1]
    plain = clustered = 0.0
    for one in range(bins):
        inside = (places == one).astype(float)
        inside -= inside.mean()
        plain += standard_error(inside)[0] ** 2
        clustered += standard_error(inside, clusters)[0] ** 2
    if not np.isfinite(clustered):
        return 1.0
    return n * min(1.0, plain / clustered) if clustered > 0 else float(n)


def _noncentrality(statistic: float, freedom: int, probability: float) -> float:
    """The noncentrality at which `statistic` is this quantile; 0 where none is that small."""

    def beyond(value: float) -> float:
        return float(stats.ncx2.cdf(statistic, freedom, value)) - probability

    if stats.chi2.cdf(statistic, freedom) <= probability:
        return 0.0
    top = statistic + 10.0 * np.sqrt(statistic + freedom) + 50.0
    return float(optimize.brentq(beyond, 1e-12, top))


@dataclass(frozen=True, slots=True)
class Burst:
    """One window that differs from the rest of the traffic.

    Attributes:
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
    return bursts(at, traffic.requirements(), dimensions, traffic.clusters)


def bursts(
    at: FloatArray, values: FloatArray, dimensions: Sequence[str], clusters: IntArray
) -> tuple[Burst, ...]:
    """The same of plain values.

    Args:
        at: (n,) seconds since 1970.
        values: (n, K) requirements.
        dimensions: (K,) names.
        clusters: (n,) numbers of dependent groups, such as conversations.
    """
    found: list[Burst] = []
    for width, name in WINDOWS.items():
        kinds, window = np.unique((at // width).astype(np.int64), return_inverse=True)
        counts = np.bincount(window)
        looked = np.flatnonzero((counts >= _LEAST_INSIDE) & (at.size - counts >= _LEAST_OUTSIDE))
        if not looked.size:
            continue
        psi, chance = _compared(values, window, kinds.size, clusters)
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


def compared(
    values: FloatArray, inside: BoolArray, clusters: IntArray
) -> tuple[FloatArray, FloatArray]:
    """PSI of some decisions against the others, and its chance if the true one is `STEADY`.

    Args:
        values: (n, K) requirements.
        inside: (n,) which are compared with the others.
        clusters: (n,) numbers of dependent groups, such as conversations.

    Returns:
        (K,) each.
    """
    psi, chance = _compared(values, inside.astype(np.intp), 2, clusters)
    return psi[1], chance[1]


def _compared(
    values: FloatArray, window: IntArray, windows: int, clusters: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(n, K), (n,) numbers of windows -> (windows, K) PSI and chance of each window."""
    psi, chance = np.zeros((windows, values.shape[1])), np.ones((windows, values.shape[1]))
    noise = sum(1.0 / np.maximum(one, 1) for one in _independent(window, windows, clusters))
    for k, column in enumerate(values.T):
        edges = _edges(column)
        bins = edges.size + 1
        places = np.searchsorted(edges, column, side="right")
        counts = np.bincount(window * bins + places, minlength=windows * bins)
        counts = counts.reshape(windows, bins)
        p, q = (_shares(one) for one in (counts, counts.sum(axis=0) - counts))
        psi[:, k] = ((p - q) * np.log(p / q)).sum(axis=1)
        chance[:, k] = stats.ncx2.sf(psi[:, k] / noise, max(edges.size, 1), STEADY / noise)
    return psi, chance


def _independent(window: IntArray, windows: int, clusters: IntArray) -> tuple[FloatArray, ...]:
    """(windows,) what decisions inside and outside are worth, if clusters are alike (Kish)."""
    codes, each = np.unique(clusters, return_inverse=True)
    whole = np.bincount(each).astype(np.float64)
    pairs, counts = np.unique(window * codes.size + each, return_counts=True)
    places, same = pairs // codes.size, whole[pairs % codes.size]
    inside, squares, shared = (
        np.bincount(places, weights=one, minlength=windows)
        for one in (counts, counts**2, 2.0 * same * counts)
    )
    outside = len(clusters) - inside
    others = np.maximum(np.square(whole).sum() - shared + squares, 1.0)
    return inside**2 / np.maximum(squares, 1.0), outside**2 / others


def _shares(counts: IntArray) -> FloatArray:
    """(windows, bins) shares; half a decision where there is none."""
    some = np.maximum(counts, _LEAST)
    result: FloatArray = some / some.sum(axis=1, keepdims=True)
    return result


_STAKES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)
#: Columns of the log that are read.
COLUMNS: Final = (
    *("arm", "catalog_digest", "conversation_id", "status", "cause", "rule", "quality"),
)


@dataclass(frozen=True, slots=True)
class PromiseStatus:
    """Whether a promise still covers the traffic.

    Attributes:
        ended: Why it is no longer covered; '' while it is.
        floor: Mean quality that it allows.
        rated: Rated requests that this catalog's rule routed, of `conversations`.
        mean: Their mean outcome; NaN where there is none.
    """

    claim: str
    ended: str
    floor: float
    rated: int
    conversations: int
    mean: float

    @property
    def reached(self) -> str:
        """What the feedback says, beside what the promise allows."""
        units = self.conversations
        of = f" of {units:,} conversation{'s' * (units != 1)}" if units < self.rated else ""
        rated = (
            f"{self.rated:,} rated requests{of} reach" if self.rated > 1 else "1 request reaches"
        )
        return f"{rated} {100 * self.mean:.1f} %, the promise allows {100 * self.floor:.1f} %."

    @property
    def sentence(self) -> str:
        if self.ended:
            return f"{self.claim[:1].upper()}{self.claim[1:]}: no longer covered. {self.ended}"
        rated = self.reached if self.rated else "No feedback yet that could contradict it."
        return f"{self.claim[:1].upper()}{self.claim[1:]}. {rated}"


def promise_status(
    catalog: Catalog, traffic: Traffic, changed: Sequence[str] = (), start: int = 1
) -> PromiseStatus | None:
    """Say whether the catalog's promise still covers its traffic; None where it promises nothing.

    Args:
        traffic: Of the log; only decisions that its rule made count.
        changed: Dimensions whose requirements have changed (`Drift.verdict`).
        start: The how manieth moment it is from which feedback is looked at, from 1 on.
    """
    made = catalog.policy.promise
    if made is None:
        return None
    outcomes, clusters = _rated(catalog, traffic)
    mean = float(outcomes.mean()) if outcomes.size else float("nan")
    units = np.unique(clusters).size
    found = PromiseStatus(made.claim, "", made.floor, outcomes.size, units, mean)
    ended = ""
    if problem := not_covered(catalog):
        ended = f"{problem[:1].upper()}{problem[1:]}."
    elif changed:
        names = ", ".join(name.replace("_", " ") for name in changed)
        ended = f"Requirements have changed ({names}): promise again on an eval set of this log."
    elif evidence(outcomes, made.floor, clusters) >= start * (start + 1) / (1.0 - made.confidence):
        ended = f"Feedback contradicts it: {found.reached}"
    return replace(found, ended=ended)


def evidence(outcomes: FloatArray, floor: float, clusters: IntArray) -> float:
    """Return the largest wealth of bets that the mean outcome lies below the floor.

    Args:
        outcomes: (n,) in [0, 1], oldest first.
        floor: What was promised, in [0, 1].
        clusters: (n,) number of each one's conversation, which bets once.
    """
    if not outcomes.size:
        return 1.0
    units, _ = pd.factorize(pd.Series(clusters))
    gained = np.bincount(units, weights=np.clip(floor, 0.0, 1.0) - outcomes)
    gains = gained / np.bincount(units).max()
    wealth = sum(np.exp(np.cumsum(np.log1p(stake * gains))) for stake in _STAKES)
    return float(np.max(wealth)) / len(_STAKES)


def _rated(catalog: Catalog, traffic: Traffic) -> tuple[FloatArray, IntArray]:
    """(n,) outcome of every rated request that this catalog's rule routed, and its conversation."""
    rows = traffic.rows
    own = (rows["catalog_digest"] == catalog.digest) & (rows["arm"] != CANARY)
    known = rows["quality"].notna() & (rows["cause"] != EXPLORED)
    chosen = np.asarray(own & known, dtype=bool) & traffic.routed
    outcomes = rows["quality"].to_numpy(dtype=np.float64)[chosen]
    return np.clip(outcomes, 0.0, 1.0), traffic.clusters[chosen]


#: Rated decisions, or eval queries, that make a cluster known.
LEAST_KNOWN: Final = 20
_CLUSTERS = 8
_FITTED_ON = 20_000
#: Share of a cluster's decisions within its reach.
_WITHIN = 0.95


@dataclass(frozen=True, slots=True)
class Region:
    """One cluster.

    Attributes:
        centre: (K,) mean requirements.
        share: Of the scored decisions.
        in_evalset: Queries of the eval set as near to the centre as the cluster reaches.
        model: The model that most of them went to, and `model_share` how many.
        cost_usd: Mean cost of those with a known one, NaN where none has.
    """

    centre: tuple[float, ...]
    share: float
    decisions: int
    rated: int
    in_evalset: int
    model: str
    model_share: float
    cost_usd: float

    @property
    def known(self) -> bool:
        """Whether anything can be said about quality here."""
        return max(self.rated, self.in_evalset) >= LEAST_KNOWN


def regions(
    traffic: Traffic, reference: FloatArray | None, *, clusters: int = _CLUSTERS
) -> tuple[Region, ...]:
    """The clusters of scored traffic: unknown ones first, then by traffic.

    Args:
        reference: (m, K) scores of the eval set, None without one.
    """
    from sklearn.cluster import KMeans  # which the start of a service need not wait for
    from threadpoolctl import threadpool_limits

    here = traffic.requirements()
    scale = np.where(here.std(axis=0) > 0, here.std(axis=0), 1.0)
    rng = np.random.default_rng(0)
    few = rng.permutation(len(here))[:_FITTED_ON]
    count = min(clusters, len(np.unique(here[few], axis=0)))
    with threadpool_limits(1):
        fitted = KMeans(count, n_init=4, random_state=0).fit(here[few] / scale)
        labels = fitted.predict(here / scale)
        near = None if reference is None else fitted.predict(reference / scale)
    found = []
    for one, centre in enumerate(fitted.cluster_centers_):
        mine = labels == one
        if not mine.any():
            continue
        reach = np.quantile(np.linalg.norm(here[mine] / scale - centre, axis=1), _WITHIN)
        inside = 0
        if reference is not None:
            apart = np.linalg.norm(reference[near == one] / scale - centre, axis=1)
            inside = int((apart <= reach).sum())
        at = np.maximum(centre * scale, 0.0)  # a mean of zeros may come out a hair below
        part = traffic.take(mine)
        models = part.models.value_counts()
        found.append(
            Region(
                tuple(at.tolist()),
                len(part) / len(here),
                len(part),
                int(part.rows["quality"].notna().sum()),
                inside,
                str(models.index[0]),
                float(models.iloc[0] / len(part)),
                float(part.rows["cost_usd"].astype(float).mean()),
            )
        )
    return tuple(sorted(found, key=lambda region: (region.known, -region.decisions)))
