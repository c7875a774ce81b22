"""Routed traffic out of a decision log: how it went over time, and what it cost.

Costs are held against one model for everything: same tokens, one price list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import compress
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import BoolArray, Catalog, FloatArray, IntArray
from hydra_core.catalog.profiles import pool
from hydra_core.decision_log.reading import DecisionLog
from hydra_core.replay.significance import (
    clustered_wilson,
    mean_interval,
    per_resolved,
    ratio_interval,
)
from hydra_core.routing.decision import Cause


@dataclass(frozen=True, slots=True)
class Rated:
    """Feedback on one model's answers.

    Attributes:
        rated: Answers with feedback, of `served`.
        quality: Mean quality of the rated ones in [0, 1]; not of all: who rates is not random.
    """

    model: str
    served: int
    rated: int
    quality: Interval


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predicted against achieved success of one model, on rated answers with a prediction.

    Attributes:
        predicted, achieved: Means over the same answers.
        difference: Achieved minus predicted, with its interval.
    """

    model: str
    rated: int
    predicted: float
    achieved: float
    difference: Interval


def calibration(traffic: Traffic) -> tuple[Calibration, ...]:
    """Every model with rated answers that were predicted (value rule), most rated first."""
    rows = traffic.rows
    known = rows["quality"].notna() & rows["predicted_success"].notna()
    some = traffic.take(np.asarray(known, dtype=bool))
    models = np.asarray(some.models, dtype=object)
    said = np.array(
        [
            dict(zip(names, values, strict=True)).get(model, np.nan)
            for names, values, model in zip(
                some.rows["candidates"], some.rows["predicted_success"], models, strict=True
            )
        ]
    )
    quality = some.rows["quality"].to_numpy(dtype=np.float64)
    found = []
    for name in dict.fromkeys(models.tolist()):
        mine = (models == name) & np.isfinite(said)
        if mine.any():
            more = mean_interval(quality[mine] - said[mine], some.take(mine).clusters)
            means = float(said[mine].mean()), float(quality[mine].mean())
            found.append(Calibration(str(name), int(mine.sum()), *means, more))
    return tuple(sorted(found, key=lambda one: -one.rated))


def feedback(traffic: Traffic) -> tuple[Rated, ...]:
    """Every model that has feedback, most rated first."""
    models = np.asarray(traffic.models, dtype=object)
    rated = np.asarray(traffic.rows["quality"].notna(), dtype=bool)
    found = []
    for name in dict.fromkeys(models[rated].tolist()):
        mine = models == name
        some = traffic.take(mine & rated)
        quality = mean_interval(some.rows["quality"].to_numpy(dtype=np.float64), some.clusters)
        found.append(Rated(name, int(mine.sum()), len(some), quality.clipped(0.0, 1.0)))
    return tuple(sorted(found, key=lambda one: -one.rated))


def cost_per_resolved(traffic: Traffic) -> tuple[Interval, int] | None:
    """USD per resolved request of those with feedback and a known cost, and how many those are.

    None where there are none. Who rates is not random, so this is not the figure of all traffic.
    """
    known = np.asarray(
        traffic.rows["quality"].notna() & traffic.rows["cost_usd"].notna(), dtype=bool
    )
    if not known.any():
        return None
    some = traffic.take(known)
    cost, quality = (some.rows[n].to_numpy(dtype=np.float64) for n in ("cost_usd", "quality"))
    return per_resolved(cost, quality, some.clusters), len(some)


#: Widths of a bar in seconds: 10 s to a week.
_WIDTHS: Final = (10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400)
_MOST_BARS: Final = 48
_KEEPS: Final = tuple(cause.value for cause in Cause if cause.keeps)


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Decisions of a log, oldest first.

    Attributes:
        clusters: (n,) number of each decision's conversation; a single request has its own.
        orphans: Outcomes of decisions that are not here.
        lost: Records that are known to be lost.
        refused: Requests that no model may serve; they are not among the rows.
    """

    rows: pd.DataFrame
    clusters: IntArray
    orphans: int
    lost: int
    refused: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def models(self) -> pd.Series[str]:
        """The model of every decision: who served it, else who was chosen."""
        served = self.rows["served"]
        return served.where(served.notna() & (served != ""), self.rows["chosen"])

    @property
    def routed(self) -> BoolArray:
        """(n,) whether the rule chose afresh: not asked for by name, nor kept by a conversation."""
        free = ~self.rows["cause"].isin(_KEEPS) & (self.rows["rule"] != "named")
        return np.asarray(free, dtype=bool)

    @property
    def failed(self) -> FloatArray:
        """(n,) 1 where no answer came or it broke off, 0 where one did, NaN where not asked."""
        status = self.rows["status"]
        return np.where(status == "decided", np.nan, status == "failed")

    @property
    def scored(self) -> BoolArray:
        """(n,) whether the requirements are known."""
        return np.asarray(self.rows["requirements"].notna(), dtype=bool)

    def take(self, chosen: BoolArray) -> Traffic:
        rows = self.rows.loc[chosen].reset_index(drop=True)
        return Traffic(rows, _clusters(rows), self.orphans, self.lost, self.refused)

    def requirements(self) -> FloatArray:
        """(n, K) requirements; every decision must be scored."""
        return np.stack(list(self.rows["requirements"])).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Decisions by name in bars of equal width.

    Attributes:
        starts: (t,) beginning of each bar, UTC.
        names: (m,) most frequent first.
        counts: (t, m).
    """

    starts: tuple[datetime, ...]
    width_s: int
    names: tuple[str, ...]
    counts: IntArray


def traffic_of(log: DecisionLog) -> Traffic:
    """The decisions of a log; a request that no model may serve was not decided."""
    rows, refused = log.decisions, 0
    if "status" in rows:
        decided = rows["status"] != "refused"
        rows, refused = rows[decided], int((~decided).sum())
    rows = rows.reset_index(drop=True)
    return Traffic(rows, _clusters(rows), log.orphans, log.lost, refused)


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Answers whose tokens the upstream did not count, or counted as cannot be true.

    Attributes:
        unknown: Answers without a cost.
        unknown_usd: About what they cost; in no sum. NaN where the log does not say.
        estimated: Streams that broke off, or were rejected or cancelled in their middle.
        estimated_usd: Their estimated cost, which sums include.
    """

    unknown: int
    unknown_usd: float
    estimated: int
    estimated_usd: float


def uncounted(traffic: Traffic) -> Uncounted:
    """How many answers have no counted tokens, and about what they cost."""
    usage = traffic.rows["usage"]
    unknown, estimated = usage == "unknown", usage == "estimated"
    about = traffic.rows["about_usd"].astype(float)
    return Uncounted(
        int(unknown.sum()), float(about[unknown].sum(min_count=int(unknown.any()))),
        int(estimated.sum()), float(about[estimated].sum()),
    )  # fmt: skip


def share(traffic: Traffic, which: BoolArray) -> Interval:
    """Share of the decisions with its interval (Wilson's, on what dependent ones are worth)."""
    return clustered_wilson(which.astype(float), traffic.clusters)


def timeline(traffic: Traffic, names: Sequence[str]) -> Timeline:
    """How often each of (n,) names, such as each decision's model, occurred over time."""
    seconds = traffic.rows["at"].dt.as_unit("s").astype("int64").to_numpy()
    length = int(seconds.max() - seconds.min()) + 1
    width = next((one for one in _WIDTHS if length / one <= _MOST_BARS), _WIDTHS[-1])
    bars = seconds // width
    first, last = int(bars.min()), int(bars.max())
    codes, found = pd.factorize(pd.Series(list(names)))
    counts = np.zeros((last - first + 1, len(found)), dtype=np.int64)
    np.add.at(counts, (bars - first, codes), 1)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    starts = pd.to_datetime(np.arange(first, last + 1) * width, unit="s", utc=True)
    return Timeline(
        tuple(starts.to_pydatetime()), width, tuple(str(found[i]) for i in order), counts[:, order]
    )


def _clusters(rows: pd.DataFrame) -> IntArray:
    own = pd.Series(rows["decision_id"].astype(str))
    key = rows["conversation_id"].where(rows["conversation_id"].notna(), "\0" + own)
    return np.asarray(pd.factorize(key)[0], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class CostAgainst:
    """A policy's bill beside that of a baseline on the same tokens.

    Attributes:
        change: cost / baseline - 1: below 0 the policy costs less.
        counted: Requests with known tokens.
    """

    baseline: str
    cost_usd: float
    baseline_usd: float
    change: Interval
    counted: int


def ends(catalog: Catalog, today: date) -> tuple[str, str]:
    """The cheapest and the costliest routable model, as the catalog orders them by cost."""
    routable = pool(catalog, today=today)
    return routable.ids[int(routable.cost.argmin())], routable.ids[int(routable.cost.argmax())]


def tokens_usd(
    read: FloatArray, written: FloatArray, cached: FloatArray, prices: Sequence[ListPrice]
) -> FloatArray:
    """(n,) cost of requests' tokens, USD, each at its own price.

    What was read from the served model's prompt cache is billed at the cached price on any model.
    """
    cost = np.empty(len(prices))
    rows: dict[ListPrice, list[int]] = {}
    for row, price in enumerate(prices):
        rows.setdefault(price, []).append(row)
    for price, at in rows.items():
        cost[at] = price.usd(read[at], written[at], cached[at])
    return cost


def _bill(traffic: Traffic, catalog: Catalog, models: Sequence[str]) -> FloatArray:
    """(n,) cost of each decision's tokens on the model given for it, USD."""
    names = ("input_tokens", "output_tokens", "cached_tokens")
    read, written, cached = (traffic.rows[n].fillna(0).to_numpy(dtype=np.float64) for n in names)
    return tokens_usd(read, written, cached, [catalog.model(name).price for name in models])


def against(
    traffic: Traffic,
    catalog: Catalog,
    ours: Sequence[str],
    others: Sequence[str] | None,
    baseline: str,
) -> CostAgainst | None:
    """One policy against another on the same tokens, both by the catalog's prices.

    Args:
        ours: (n,) the model of each decision, such as `traffic.models`.
        others: (n,) the model that the baseline uses for it; None for what was billed, at the
            prices of then.

    Returns:
        None where no decision has known tokens and two models with a price, or a bill, and where
        the baseline costs nothing.
    """
    known = {model.id for model in catalog.models}
    columns = ["input_tokens", "output_tokens", *(["cost_usd"] if others is None else [])]
    both = [{a, b} <= known for a, b in zip(ours, ours if others is None else others, strict=True)]
    usable = np.asarray(traffic.rows[columns].notna().all(axis=1), dtype=bool) & np.array(both)
    if not usable.any():
        return None
    some = traffic.take(usable)
    mine = _bill(some, catalog, list(compress(ours, usable)))
    theirs = (
        some.rows["cost_usd"].to_numpy(np.float64)
        if others is None
        else _bill(some, catalog, list(compress(others, usable)))
    )
    if not theirs.any():
        return None
    change = ratio_interval(mine, theirs, some.clusters).scaled(1.0, -1.0)
    return CostAgainst(baseline, float(mine.sum()), float(theirs.sum()), change, len(some))


def cost_of_trying_all(traffic: Traffic, catalog: Catalog, today: date) -> float | None:
    """USD more, had every decision been drawn among all models; None where no tokens are known."""
    ids = pool(catalog, today=today).ids
    counted = traffic.rows[["input_tokens", "output_tokens"]].notna().all(axis=1)
    known = np.asarray(counted, dtype=bool) & np.asarray(traffic.models.isin(ids), dtype=bool)
    if not known.any():
        return None
    some = traffic.take(known)
    served = _bill(some, catalog, list(some.models))
    each = [_bill(some, catalog, [name] * len(some)) for name in ids]
    return float((np.mean(each, axis=0) - served).sum())
