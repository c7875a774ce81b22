"""Live traffic as plain values: figures, mix over time, cost and feedback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pandas as pd

from hydra_core.base.spelling import usd
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.console.figures.shares import TimelineView
from hydra_core.console.numbers import percent
from hydra_core.live.costs import CostAgainst
from hydra_core.live.traffic import Rated, Traffic, share, timeline
from hydra_core.routing.decision import Cause
from hydra_core.routing.explain import CAUSES

_NAMED = "Asked for by name"


def head(traffic: Traffic, now: datetime) -> list[tuple[str, str, str, str]]:
    """(label, value, below it, help) of the row of figures."""
    rows = traffic.rows
    failed = np.asarray(rows["status"] == "failed", dtype=bool)
    fell = np.asarray((rows["served"] != "") & (rows["served"] != rows["chosen"]), dtype=bool)
    cost = rows["cost_usd"].astype(float)
    per = f"{usd(float(cost.mean()))} a request" if cost.notna().any() else "no tokens yet"
    decide = rows["decide_ms"].astype(float)
    slow = f"p95 {decide.quantile(0.95):.0f} ms" if decide.notna().any() else ""
    return [
        ("Decisions", f"{len(traffic):,}", f"newest {ago(rows['at'].iloc[-1], now)}",
         "Decisions in the chosen time. Below: when the newest was made."),
        ("Failed", *percent(share(traffic, failed)),
         "No model answered, or the answer broke off. Below: 95 % interval."),
        ("Fell back", *percent(share(traffic, fell & ~failed)),
         "Another model than the chosen one answered. Below: 95 % interval."),
        ("Cost", usd(float(cost.sum())), per,
         "Tokens as upstreams counted them, at the prices of the catalog in use then."),
        ("Deciding", f"{decide.median():.1f} ms" if slow else "–", slow,
         "Median time that the router itself took. Below: 95 of 100 decisions took less."),
    ]  # fmt: skip


def ago(at: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits."""
    seconds = max(0.0, (now - at).total_seconds())
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def reasons(traffic: Traffic) -> list[str]:
    """Return why each decision's model was chosen, in a few words (n,)."""
    known = {cause.value: words.split(":")[0] for cause, words in _SHORT.items()}
    causes = traffic.rows["cause"].map(known).fillna("Other")
    return [str(x) for x in causes.where(traffic.rows["rule"] != "named", _NAMED)]


_SHORT = {
    **CAUSES,
    Cause.HIGHEST_VALUE: "Highest value",
    Cause.FAIL_OPEN: "None within τ",
    Cause.KEPT_BY_SESSION: "Same model in a conversation",
    Cause.KEPT_BELOW_THRESHOLD: "Kept: simple message",
    Cause.KEPT_WITHIN_MARGIN: "Kept: prompt cache",
}


def timeline_view(traffic: Traffic, names: Sequence[str], order: Sequence[str]) -> TimelineView:
    """Counts over time; names of `order` first.

    Args:
        order: Models in cost order; empty for reasons.
    """
    found = timeline(traffic, names)
    place = {name: i for i, name in enumerate(order)}
    ranks = [place.get(name, len(place) + i) for i, name in enumerate(found.names)]
    columns = np.argsort(ranks, kind="stable")
    return TimelineView(
        found.starts, found.width_s, tuple(found.names[i] for i in columns),
        found.counts[:, columns],
    )  # fmt: skip


def model_frame(traffic: Traffic) -> pd.DataFrame:
    """One row a model: share, decisions, failures, cost, median latency."""
    rows = traffic.rows.assign(model=np.asarray(traffic.models, dtype=object))
    grouped = rows.groupby("model", sort=False)
    frame = pd.DataFrame(
        {
            "decisions": grouped.size(),
            "failed": grouped["status"].agg(lambda one: 100.0 * float((one == "failed").mean())),
            "cost_usd": grouped["cost_usd"].sum(min_count=1).astype(float),
            "latency_ms": grouped["latency_ms"].median().astype(float),
        }
    )
    frame.insert(0, "share", 100.0 * frame["decisions"] / len(rows))
    return frame.sort_values("decisions", ascending=False).reset_index()


def cost_text(found: CostAgainst, kind: str) -> tuple[str, str]:
    """(value, sentence) of the traffic against one model for everything.

    Args:
        kind: Such as "always-strong".
    """
    change = found.change.scaled(100.0)
    word = "less" if change.value < 0 else "more"
    return change.text("%"), (
        f"{usd(found.cost_usd)} instead of {usd(found.baseline_usd)} on {found.baseline} "
        f"({kind}): {abs(change.value):.1f} % {word}, on {found.counted:,} answers with tokens."
    )


def feedback_view(rated: Sequence[Rated]) -> IntervalsView:
    """Mean feedback of every model with its interval, in percent."""
    value, lo, hi = (
        100.0 * np.array([getattr(one.quality, end) for one in rated])
        for end in ("value", "lo", "hi")
    )
    return IntervalsView(
        tuple(f"{one.model} ({one.rated:,} of {one.served:,})" for one in rated),
        (Series("Mean feedback", value, lo, hi),),
        "Mean feedback of rated answers, %",
        unit=" %",
    )
