"""What pages say of a result: its tone, its terms, and the figures of an operating point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.intervals import COST
from hydra_core.base.spelling import counted, signed, usd
from hydra_core.console.numbers import percent
from hydra_core.evalsets.evalset import clusters_among
from hydra_core.replay.band import MIN_MOVED
from hydra_core.replay.evaluation import Evaluation
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.sweep import Sweep
from hydra_core.replay.verdict import Verdict, VerdictLabel

TAU: Final = (
    "**τ (tau)**: how far a model may fall short of what a message requires and still be chosen; "
    "a larger τ sends more messages to cheaper models."
)
VALUE: Final = (
    "**V**: what one more resolved query is worth to you, in dollars; a larger V sends more "
    "messages to stronger models."
)
RETENTION: Final = (
    "**Quality retention (QR)**: the router's quality as a share of what the best model for each "
    "query would reach, which is known only afterwards."
)
FIXED_MIX: Final = (
    "**Fixed mix**: the best fixed shares of all traffic for each model that cost as much as the "
    "router, whatever the messages say."
)

#: Tone of the box, and its Material symbol.
TONES: Final = {
    VerdictLabel.BETTER: ("success", "trending_up"),
    VerdictLabel.SAME: ("info", "balance"),
    VerdictLabel.WORSE: ("warning", "trending_down"),
}


def short(verdict: Verdict) -> str:
    """The result where there is room for a few words only."""
    if verdict.moved == 0:
        return "does not route"
    if verdict.label is VerdictLabel.SAME and verdict.unknown:
        return "not known"
    if verdict.moved < MIN_MOVED:
        return "too few queries"
    return {
        VerdictLabel.BETTER: "router better",
        VerdictLabel.SAME: "no measurable difference",
        VerdictLabel.WORSE: "fixed mix better",
    }[verdict.label]


def difference(verdict: Verdict) -> str:
    """Quality against the best fixed mix in points with its interval; – where nothing is routed."""
    if verdict.moved == 0:
        return "–"
    shown = verdict.judged_by.scaled(100.0)
    return f"{signed(shown.value)} points ({shown.bounds(signed)})"


class Measure(StrEnum):
    """What is read off an operating point; also the column of a `step_table`."""

    QR = "qr"
    QUALITY = "quality"
    COST = "cost_usd"
    PER_RESOLVED = "per_resolved_usd"
    CS = "cs"
    MISROUTE = "misroute"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure with its 95 % interval, both as text, and what it means.

    `tone` is green or red where what stands in the interval's place is good or bad.
    """

    measure: Measure
    label: str
    value: str
    interval: str
    help: str
    tone: str = ""


def tiles(evaluation: Evaluation) -> tuple[Tile, ...]:
    """The figures at the operating point, in the order they are read."""
    metrics, data = evaluation.router, evaluation.sweep.data
    least = " ≥" if data.unmeasured else ""
    cost, each = metrics.mean_cost_usd, metrics.per_resolved_usd
    found = (
        Tile(
            Measure.QR,
            f"Quality retention{least}",
            *percent(metrics.qr),
            "QR: how much of the best possible quality is kept. Quality of the router divided by "
            "that of the best choice in hindsight (the oracle).",
        ),
        Tile(
            Measure.QUALITY,
            f"{'Resolved' if data.binary else 'Mean quality'}{least}",
            *percent(metrics.quality),
            f"{metrics.resolved:,} of {counted(metrics.n, 'query')} resolved.",
        ),
        Tile(
            Measure.COST,
            "Cost per query",
            usd(cost.value),
            cost.bounds(usd, " – "),
            "Mean realised cost in USD, "
            f"from {evaluation.sweep.data.costs or 'the eval set as recorded'}.",
        ),
        Tile(
            Measure.PER_RESOLVED,
            f"Cost per resolved{' ≤' if data.unmeasured else ''}",
            "–" if np.isnan(each.value) else usd(each.value),
            each.bounds(usd, " – ") if each.known else each.reason,
            "What one resolved query costs in USD: mean cost divided by mean quality.",
        ),
        Tile(
            Measure.CS,
            "Cost savings",
            *percent(metrics.cs),
            f"CS: how much less this costs than sending every query to {metrics.baseline}.",
        ),
        Tile(
            Measure.MISROUTE,
            "Overpaid queries" + " ≥" * (metrics.misroute_most > metrics.misroute.value),
            *percent(metrics.misroute),
            "Share of all queries that a model cheaper than the chosen one resolved, whether the "
            "chosen one did or not (misroute in the paper). It counts money, not failures: always "
            "the cheapest model has 0 %.",
        ),
    )
    return tuple(replace(one, help=f"{one.help} Below: 95 % interval.") for one in found)


def mean_seconds(evaluation: Evaluation) -> str | None:
    """Mean time of an answer where the policy stands; None where the set has no times.

    Queries whose chosen model has no time in the set are left out, and counted.
    """
    evalset, data = evaluation.sweep.evalset, evaluation.sweep.data
    times = evalset.extras.get("latency_s")
    if times is None:
        return None
    columns = {name: i for i, name in enumerate(evalset.models)}
    chosen = np.array([columns.get(name, -1) for name in data.pool.ids])[evaluation.choice]
    found = np.where(chosen >= 0, times[data.rows, chosen], np.nan)
    known = np.isfinite(found)
    if not known.any():
        return None
    clusters = clusters_among(data.clusters, known)
    mean = mean_interval(found[known], clusters).clipped(*COST)
    ends = mean.bounds(lambda seconds: f"{seconds:.3g}", " – ")
    lost = int((~known).sum())
    some = f"; {counted(lost, 'query')} without a time left out" if lost else ""
    second_usd = evaluation.sweep.catalog.policy.second_usd
    priced = f" A second is priced at {usd(second_usd)}." if second_usd else ""
    return f"{mean.value:.3g} s an answer ({ends}){some}.{priced}"


def step_table(sweep: Sweep, baseline: str) -> pd.DataFrame:
    """The exact figures at each of `sweep.steps`, for a knob that is dragged.

    Args:
        baseline: Model that savings are measured against.

    Returns:
        A row a step: `knob`; every `Measure`, in percent but for the costs in USD; `lift`, quality
        above the best fixed mix at the same cost in percentage points; and `share_0`, ... with the
        traffic of each model in [0, 1], cheapest first.
    """
    knobs, curve = np.asarray(sweep.steps), sweep.curve
    rows = [curve.row(knob) for knob in sweep.steps]
    quality, cost = curve.quality[rows], curve.mean_cost_usd[rows]
    hull = [(one.mean_cost_usd, one.quality) for one in sweep.hull]
    constant = np.interp(cost, *np.transpose(hull))
    base = sweep.cost_of(baseline)
    figures = {
        Measure.QR.value: 100 * sweep.qr(quality),
        Measure.QUALITY.value: 100 * quality,
        Measure.COST.value: cost,
        Measure.PER_RESOLVED.value: np.divide(
            cost, quality, out=np.full(len(cost), np.nan), where=quality > 0
        ),
        Measure.CS.value: 100 * (1 - cost / base) if base else np.full(len(cost), np.nan),
        Measure.MISROUTE.value: 100 * curve.misroute[rows],
        "lift": 100 * (quality - constant),
    }
    traffic = sweep.step_traffic
    figures |= {f"share_{i}": traffic[:, i] for i in range(traffic.shape[1])}
    narrow = {name: values.astype(np.float32) for name, values in figures.items()}
    return pd.DataFrame({"knob": knobs} | narrow)  # the setting comes back: it keeps every digit
