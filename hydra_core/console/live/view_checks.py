"""Live traffic against something: a second catalog, the eval set, the bands, a canary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.console.figures.traffic import TrafficView
from hydra_core.live.canary import LEAST_UNITS, CanaryReport
from hydra_core.live.drift import CHANGED, STEADY, BandShares, Drift
from hydra_core.live.flight.effects import Effect
from hydra_core.live.logged_value import LoggedValue
from hydra_core.live.regions import LEAST_KNOWN, Region
from hydra_core.live.shadow import Shadow


def shadow_view(found: Shadow, name: str, order: Sequence[str]) -> TrafficView:
    """Traffic by model, live and under the second catalog; `order` first."""
    live, here = found.mixes
    models = tuple(dict.fromkeys(m for m in (*order, *live, *here) if m in live or m in here))
    before, after = (np.array([100.0 * mix.get(m, 0.0) for m in models]) for mix in (live, here))
    return TrafficView(models, before, after, "live", name)


def differences(found: Shadow) -> pd.DataFrame:
    """Where the two part: from which model to which, how often."""
    pairs = Counter(zip(found.traffic.rows["chosen"], found.models, strict=True))
    rows = [
        {"live": a, "shadow": b, "decisions": n, "share": 100.0 * n / len(found.models)}
        for (a, b), n in pairs.most_common()
        if a != b
    ]
    return pd.DataFrame(rows, columns=["live", "shadow", "decisions", "share"])


def value_view(found: LoggedValue, name: str) -> IntervalsView:
    """Estimated quality of a catalog beside what was served, in percent."""
    value = found.value
    rows = {"live, as served": found.live, f"{name}, IPS": value.ips, f"{name}, SNIPS": value.snips}
    if value.dr is not None:
        rows[f"{name}, doubly robust"] = value.dr
    middle, lo, hi = (
        100.0 * np.array([getattr(one, end) for one in rows.values()])
        for end in ("value", "lo", "hi")
    )
    return IntervalsView(
        tuple(rows), (Series("Quality", middle, lo, hi),), "Mean quality, %", unit=" %"
    )


def drift_view(found: Sequence[Drift]) -> IntervalsView:
    """PSI of every dimension with its interval, over the customary boundaries."""
    value, lo, hi = (
        np.array([getattr(one.psi, end) for one in found]) for end in ("value", "lo", "hi")
    )
    return IntervalsView(
        tuple(_word(one.dimension) for one in found),
        (Series("PSI", value, lo, hi),),
        "Population stability index",
        format=".2f",
        lines=((STEADY, "shifted"), (CHANGED, "changed")),
    )


def drift_text(found: Sequence[Drift]) -> tuple[str, str]:
    """(tone, sentence) on all dimensions."""
    named = {
        word: [_word(one.dimension) for one in found if one.verdict == word]
        for word in ("changed", "shifted", "open", "steady")
    }
    if named["changed"] or named["shifted"]:
        moved = ", ".join([*named["changed"], *named["shifted"]])
        return "warning", (
            f"Traffic no longer looks like the eval set: {moved}. What was tuned there may not "
            "hold here; import this log and tune again."
        )
    if named["open"]:
        return "info", f"Too few decisions to tell for {', '.join(named['open'])}."
    return "success", "Traffic asks for what the eval set asked for, on every dimension."


def drift_frame(found: Sequence[Drift], bands: Sequence[BandShares]) -> pd.DataFrame:
    """One row a dimension: means, verdict, shares outside the band in percent."""
    by_dimension = {one.dimension: one for one in found}
    rows = []
    for one in bands:
        against = by_dimension.get(one.dimension)
        rows.append(
            {
                "dimension": _word(one.dimension),
                "verdict": against.verdict if against else "–",
                "mean": against.mean if against else None,
                "reference": against.reference if against else None,
                "band": f"{one.band.lo:.2f} – {one.band.hi:.2f}",
                "below": f"{100 * one.below.value:.1f} %",
                "above": f"{100 * one.above.value:.1f} %",
            }
        )
    return pd.DataFrame(rows)


def region_text(found: Sequence[Region]) -> tuple[str, str]:
    """(tone, sentence) on the clusters nothing is known about."""
    dark = [one for one in found if not one.known]
    if not dark:
        return "success", "Every kind of request has ratings or eval queries like it."
    part = 100.0 * sum(one.share for one in dark)
    return "warning", (
        f"About {part:.1f} % of the traffic nothing is known: {len(dark)} of {len(found)} clusters "
        f"have fewer than {LEAST_KNOWN} ratings and fewer than {LEAST_KNOWN} eval queries like "
        "them. Send outcomes for these, or label some."
    )


def region_frame(found: Sequence[Region], dimensions: Sequence[str]) -> pd.DataFrame:
    """One row a cluster: unknown ones first."""
    return pd.DataFrame(
        [
            {
                "known": "yes" if one.known else "no",
                "share": 100.0 * one.share,
                **{_word(name): v for name, v in zip(dimensions, one.centre, strict=True)},
                "rated": one.rated,
                "in_evalset": one.in_evalset,
                "model": f"{one.model} {100 * one.model_share:.0f} %",
            }
            for one in found
        ]
    )


def canary_text(found: CanaryReport) -> tuple[str, str]:
    """(tone, sentence) on a canary that still runs."""
    if found.worse:
        return "error", f"The canary is worse: {found.worse}. It is stopped at the next look."
    units = found.failed.units
    if found.failed.effect is None and found.quality.effect is None:
        return "info", (
            f"Too early: {units[1]:,} conversations on the canary, {units[0]:,} on the main "
            f"revision; each arm needs {LEAST_UNITS}."
        )
    return "success", "Not shown to be worse than the main revision."


def canary_frame(found: CanaryReport) -> pd.DataFrame:
    """One row a metric: conversations and percent in both arms, and the difference."""
    rows = []
    for name, one in (("Failed requests", found.failed), ("Mean feedback", found.quality)):
        told = f"needs {LEAST_UNITS} in each arm" if one.effect is None else _effect(one.effect)
        rows.append(
            {
                "metric": name,
                "main_units": one.units[0],
                "canary_units": one.units[1],
                "main": 100.0 * one.means[0],
                "canary": 100.0 * one.means[1],
                "difference": told,
            }
        )
    return pd.DataFrame(rows)


def _effect(effect: Effect) -> str:
    return Interval(*(100.0 * float(x) for x in (effect.difference, effect.lo, effect.hi))).text(
        "pp"
    )


def _word(dimension: str) -> str:
    return dimension.replace("_", " ")
