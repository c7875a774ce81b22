"""Live traffic as plain values: by itself, and against a catalog and an eval set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from shlex import quote

import numpy as np
import pandas as pd

from hydra_core.base.spelling import counted, short_number, usd
from hydra_core.base.types import BoolArray, Catalog, FloatArray
from hydra_core.console.figures.intervals import IntervalsView, one_series, ranged
from hydra_core.console.numbers import cost_change, is_multiple, percent
from hydra_core.live.drift import CHANGED, LEAST_KNOWN, STEADY, BandShares, Burst, Drift, Region
from hydra_core.live.off_policy import LoggedValue
from hydra_core.live.shadow import Shadow
from hydra_core.live.traffic import (
    Calibration,
    CostAgainst,
    Rated,
    Timeline,
    Traffic,
    cost_per_resolved,
    share,
    timeline,
    uncounted,
)
from hydra_core.routing.decision import CAUSES, EXPLORED, Cause

_NAMED = "Asked for by name"


def head(traffic: Traffic, now: datetime) -> list[tuple[str, str, str, str]]:
    """(label, value, below it, help) of the row of figures."""
    rows = traffic.rows
    asked = traffic.take(np.isfinite(traffic.failed))
    failed = asked.failed > 0
    served, chosen = (asked.rows[name].to_numpy() for name in ("served", "chosen"))
    fell = np.asarray((served != "") & (served != chosen), dtype=bool)
    cost = rows["cost_usd"].astype(float)
    counted = bool(cost.notna().any())
    per = f"{usd(float(cost.mean()))} a request" if counted else "no tokens yet"
    decide = rows["decide_ms"].astype(float)
    slow = f"p95 {decide.quantile(0.95):.0f} ms" if decide.notna().any() else ""
    return [
        ("Decisions", f"{len(traffic):,}", f"newest {ago(rows['at'].iloc[-1], now)}",
         "Decisions in the chosen time. Below: when the newest was made."),
        ("Failed", *_share(asked, failed),
         "No model answered, or the answer broke off; of the requests that were passed on. Below: "
         "95 % interval."),
        ("Fell back", *_share(asked, fell & ~failed),
         "Another model than the chosen one answered; of the requests that were passed on. Below: "
         "95 % interval."),
        ("Cost", usd(float(cost.sum())) if counted else "–", per,
         "Tokens as upstreams counted them, at the prices of the catalog in use then."),
        ("Decision time", f"{decide.median():.1f} ms" if slow else "–", slow,
         "Median time that the router itself took. Below: 95 of 100 decisions took less."),
    ]  # fmt: skip


def _share(asked: Traffic, which: BoolArray) -> tuple[str, str]:
    return percent(share(asked, which)) if len(asked) else ("–", "only decided")


def agents_text(traffic: Traffic) -> str:
    """What agents' harnesses added and where they stalled; '' where the log has none of it."""
    said = []
    rows = traffic.rows
    if "harness_tokens" in rows and (tokens := rows["harness_tokens"].fillna(0)).any():
        held = int((tokens > 0).sum())
        said.append(
            f"{int(tokens.sum()):,} tokens of harness text ignored in {counted(held, 'request')}."
        )
    if "stalled" in rows and (stalled := int((rows["stalled"].fillna(0) > 1).sum())):
        said.append(f"{counted(stalled, 'request')} followed failed or repeated tool calls.")
    return " ".join(said)


def notes(traffic: Traffic) -> list[str]:
    """What the row of figures leaves out: one sentence each."""
    found, lines = uncounted(traffic), []
    if found.unknown:
        known = np.isfinite(found.unknown_usd)
        about = f", about {usd(found.unknown_usd)} in all and" if known else ","
        lines.append(f"{_requests(found.unknown)} of unknown cost{about} not in the sum: the "
                     "upstream counted no tokens, or impossible ones.")  # fmt: skip
    if found.estimated:
        lines.append(
            f"{_requests(found.estimated)} ended early (broken off, rejected or cancelled): "
            f"{usd(found.estimated_usd)} of the sum is estimated."
        )
    rejected = traffic.rows.loc[traffic.rows["status"] == "rejected", "upstream_status"]
    if len(rejected):
        codes = rejected.dropna().astype(int).value_counts()
        listed = ", ".join(f"{code}: {count:,}" for code, count in codes.items())
        said = f" ({listed})" if listed else ""  # an older log has no codes
        lines.append(f"{_requests(len(rejected))} rejected by an upstream as wrong{said}.")
    if traffic.refused:
        lines.append(f"{_requests(traffic.refused)} refused: no eligible model, or too "
                     "little left of a team's budget.")  # fmt: skip
    if traffic.lost:
        lines.append(
            f"{counted(traffic.lost, 'record')} lost: a process was killed before writing."
        )
    return lines


def _requests(count: int) -> str:
    return counted(count, "request")


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
    known[EXPLORED] = "Tried at random"
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


def timeline_view(traffic: Traffic, names: Sequence[str], order: Sequence[str]) -> Timeline:
    """Counts over time; names of `order`, models in cost order, first."""
    found = timeline(traffic, names)
    place = {name: i for i, name in enumerate(order)}
    ranks = [place.get(name, len(place) + i) for i, name in enumerate(found.names)]
    columns = np.argsort(ranks, kind="stable")
    ranked = tuple(found.names[i] for i in columns)
    return replace(found, names=ranked, counts=found.counts[:, columns])


def model_frame(traffic: Traffic) -> pd.DataFrame:
    """One row a model: share, decisions, failures, cost, median latency."""
    models = np.asarray(traffic.models, dtype=object)
    rows = traffic.rows.assign(model=models, failed=100.0 * traffic.failed)
    grouped = rows.groupby("model", sort=False)
    frame = pd.DataFrame(
        {
            "decisions": grouped.size(),
            "failed": grouped["failed"].mean(),
            "cost_usd": grouped["cost_usd"].sum(min_count=1).astype(float),
            "latency_ms": grouped["latency_ms"].median().astype(float),
        }
    )
    frame.insert(0, "share", 100.0 * frame["decisions"] / len(rows))
    return frame.sort_values("decisions", ascending=False).reset_index()


def team_names(traffic: Traffic) -> list[str]:
    """The teams of a log, '' among them where a request had none."""
    if "team" not in traffic.rows:
        return []
    return sorted({str(name) for name in traffic.rows["team"].fillna("")})


def team_frame(traffic: Traffic, catalog: Catalog) -> pd.DataFrame:
    """One row a team: callers, decisions, failures, cost and the budget in words."""
    rows = []
    for name in filter(None, team_names(traffic)):
        mine = traffic.take(np.asarray(traffic.rows["team"] == name, dtype=bool))
        each, team = cost_per_resolved(mine), catalog.policy.teams.get(name)
        budget = None if team is None else team.budget
        row = {
            "team": name,
            "callers": int(mine.rows["caller"].nunique()),
            "decisions": len(mine),
            "failed": 100.0 * float(pd.Series(mine.failed).mean()),
            "cost_usd": float(mine.rows["cost_usd"].astype(float).sum(min_count=1)),
            "per_resolved_usd": None if each is None else each[0].value,
            "budget": None
            if budget is None
            else f"${short_number(budget.usd, 10)} a {budget.per.value}",
        }
        rows.append(row)
    return pd.DataFrame(rows).sort_values("cost_usd", ascending=False) if rows else pd.DataFrame()


def cost_text(found: CostAgainst, kind: str) -> tuple[str, str]:
    """(value, sentence) of the traffic against one model for everything, as "always-strong"."""
    change = found.change.scaled(100.0)
    told = cost_change(change.value)
    answers = f"{found.counted:,} answer{'s' * (found.counted != 1)} with tokens"
    return told.capitalize() if is_multiple(change.value) else change.text("%"), (
        f"{usd(found.cost_usd)} instead of {usd(found.baseline_usd)} on {found.baseline} "
        f"({kind}): {told}, on {answers}."
    )


def feedback_view(rated: Sequence[Rated]) -> IntervalsView:
    """Mean feedback of every model with its interval, in percent."""
    rows = [ranged(f"{one.model} ({one.rated:,} of {one.served:,})", one.quality) for one in rated]
    return one_series("Mean feedback", rows, "Mean feedback of rated answers, %", " %")


def calibration_text(found: Sequence[Calibration]) -> tuple[str, str]:
    """(tone, sentence) on predicted against achieved success."""
    off = [one for one in found if one.difference.lo > 0 or one.difference.hi < 0]
    if not off:
        return "success", "Predicted and achieved success agree within their intervals."
    said = "; ".join(
        f"{one.model} achieves {100 * one.achieved:.0f} %, predicted {100 * one.predicted:.0f} %"
        for one in off
    )
    return "warning", (
        f"Predictions are off: {said}. Have every model answer 250 of these messages "
        "(hydra-router collect --from-log), and learn again."
    )


def burst_text(found: Sequence[Burst]) -> tuple[str, str]:
    """(tone, sentence) on windows that differ from the rest."""
    first, more = found[0], len(found) - 1
    others = f" {more} more below." if more else ""
    return "warning", (
        f"{first.decisions:,} requests from {first.start:%Y-%m-%d %H:%M} UTC ({first.window}) ask "
        f"for something else: {word(first.dimension)} {first.mean:.2f}, otherwise "
        f"{first.others:.2f}.{others} Collect 250 of these, learn again."
    )


def burst_command(found: Sequence[Burst], log: Path) -> str:
    """The command that collects messages of the newest burst."""
    first = found[0]
    window = f"--since {first.start:%Y-%m-%dT%H:%M} --until {first.end:%Y-%m-%dT%H:%M}"
    return (
        f"hydra-router collect --from-log {quote(str(log))} {window} --sample 250 \\\n"
        "    --catalog mine --upstreams upstreams.yaml --grade grade.yaml --out burst"
    )


def shadow_shares(
    found: Shadow, order: Sequence[str]
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Models, `order` first, with their traffic in percent, live and under the second catalog."""
    live, here = found.mixes
    models = tuple(dict.fromkeys(m for m in (*order, *live, *here) if m in live or m in here))
    before, after = (np.array([100.0 * mix.get(m, 0.0) for m in models]) for mix in (live, here))
    return models, before, after


def differences(found: Shadow) -> list[tuple[str, str, int, float]]:
    """Where the two part: (live, shadow, decisions, share in percent), the most frequent first."""
    pairs = Counter(zip(found.traffic.rows["chosen"], found.models, strict=True))
    return [(a, b, n, 100.0 * n / len(found.models)) for (a, b), n in pairs.most_common() if a != b]


def value_view(found: LoggedValue, name: str) -> IntervalsView:
    """Estimated quality of a catalog beside what was served, in percent."""
    rows = [ranged("live, as served", found.live)]
    rows += [ranged(f"{name}, {how}", one) for how, one in found.value.estimates.items()]
    return one_series("Quality", rows, "Mean quality, %", " %")


def drift_view(found: Sequence[Drift]) -> IntervalsView:
    """PSI of every dimension with its interval, over the customary boundaries."""
    rows = [ranged(word(one.dimension), one.psi, 1.0) for one in found]
    lines = ((STEADY, "shifted"), (CHANGED, "changed"))
    return one_series("PSI", rows, "Population stability index", format=".2f", lines=lines)


def drift_text(found: Sequence[Drift]) -> tuple[str, str]:
    """(tone, sentence) on all dimensions."""
    changed, shifted, unknown = (
        [word(one.dimension) for one in found if one.verdict == verdict]
        for verdict in ("changed", "shifted", "undecided")
    )
    if changed or shifted:
        return "warning", (
            f"Traffic no longer looks like the eval set ({', '.join([*changed, *shifted])}). Have "
            "every model answer 250 of these messages (hydra-router collect --from-log), and learn "
            "or tune again."
        )
    if unknown:
        return "info", f"Too few decisions to judge {', '.join(unknown)}."
    return "success", "Traffic has the same requirements as the eval set, on every dimension."


def drift_rows(found: Sequence[Drift], bands: Sequence[BandShares]) -> list[tuple[object, ...]]:
    """One row a dimension: verdict, means, the score band and the shares outside it."""
    by_dimension = {one.dimension: one for one in found}
    rows: list[tuple[object, ...]] = []
    for one in bands:
        set_ = by_dimension.get(one.dimension)
        against = (set_.verdict, set_.mean, set_.reference) if set_ else ("–", None, None)
        ends = (f"{100 * share.value:.1f} %" for share in (one.below, one.above))
        band = f"{one.band.lo:.2f} – {one.band.hi:.2f}"
        rows.append((word(one.dimension), *against, band, *ends))
    return rows


def region_text(found: Sequence[Region]) -> tuple[str, str]:
    """(tone, sentence) on the clusters nothing is known about."""
    dark = [one for one in found if not one.known]
    if not dark:
        return "success", "Every group of requests has ratings or similar queries in the eval set."
    part = 100.0 * sum(one.share for one in dark)
    return "warning", (
        f"No evidence covers {part:.1f} % of traffic: {len(dark)} of {len(found)} groups have "
        f"fewer than {LEAST_KNOWN} ratings and fewer than {LEAST_KNOWN} similar queries in the "
        "eval set. Collect outcomes for them."
    )


def word(dimension: str) -> str:
    """A dimension in running text."""
    return dimension.replace("_", " ")
