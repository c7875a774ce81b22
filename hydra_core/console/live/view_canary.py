"""A canary as plain values: who can be one, how it does, what stops it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import usd
from hydra_core.base.types import Catalog
from hydra_core.console.cache import CatalogEntry
from hydra_core.live.canary import LEAST_UNITS, CanaryReport, Compared

RULES = (
    f"From {LEAST_UNITS} conversations in each arm on, it is stopped when more first attempts "
    "fail, more requests are rejected or feedback is lower, or when a request costs or takes more "
    "than the limit. The intervals are valid at any time and share the 5 %."
)


def source_of(entry: CatalogEntry) -> str:
    """What a service follows: the newest published revision, else the file."""
    return f"store:{entry.key}" if entry.revision else str(entry.path.resolve())


def candidates(entries: Sequence[CatalogEntry], main: Catalog | None) -> dict[str, CatalogEntry]:
    """Catalogs that a service could run beside the one in use, the operator's and the most similar
    first."""
    ids = set() if main is None else {model.id for model in main.models}

    def apart(entry: CatalogEntry) -> tuple[bool, int]:
        models = set() if entry.catalog is None else {model.id for model in entry.catalog.models}
        return not entry.own, len(models ^ ids)

    fits = [
        entry
        for entry in entries
        if entry.catalog is not None
        and (main is None or entry.catalog.digest != main.digest)
        and (main is None or entry.catalog.predictor_fingerprint == main.predictor_fingerprint)
    ]
    return {entry.key: entry for entry in sorted(fits, key=apart)}


def follow_text(catalog: Catalog, main: Catalog | None) -> str:
    """What begins, and what the services need for it."""
    begun = "The services that write this log begin it within a second, without a restart."
    if main is None:
        return begun
    added = sorted({model.id for model in catalog.models} - {model.id for model in main.models})
    if not added:
        return begun
    return f"{begun} Their upstreams file must name {', '.join(added)}, which only it has."


def canary_text(found: CanaryReport) -> tuple[str, str]:
    """(tone, sentence) on a canary that still runs."""
    if found.worse:
        return "error", f"The canary is worse: {found.worse}. It stops at the next check."
    units = found.failed.units
    if found.failed.effect is None and found.quality.effect is None:
        return "info", (
            f"Too early: {units[1]:,} conversations on the canary and {units[0]:,} on the main "
            f"revision. Each needs {LEAST_UNITS}."
        )
    return "success", "No measurable loss against the main revision."


def canary_frame(found: CanaryReport) -> pd.DataFrame:
    """One row a metric: conversations and means of both arms, and the difference."""
    rows = []
    for name, one, unit in (
        ("First attempts that failed", found.failed, "%"),
        ("Rejected requests", found.rejected, "%"),
        ("Mean feedback", found.quality, "%"),
        ("Time of a request", found.latency_ms, "ms"),
        ("Cost of a request", found.cost_usd, "$"),
    ):
        main, canary = (_mean(value, unit) for value in one.means)
        rows.append(
            {
                "metric": name,
                "main_units": one.units[0],
                "canary_units": one.units[1],
                "main": main,
                "canary": canary,
                "difference": _difference(one, unit),
            }
        )
    return pd.DataFrame(rows)


def _mean(value: float, unit: str) -> str:
    if value != value:
        return "–"
    return {"%": f"{100 * value:.1f} %", "ms": f"{value:,.0f} ms", "$": usd(value)}[unit]


def _difference(one: Compared, unit: str) -> str:
    """Of the means as they are, with the interval of the test."""
    if one.effect is None:
        return f"needs {LEAST_UNITS} in each arm"
    main, canary = one.means
    if unit == "%":
        ends = (100.0 * x for x in (canary - main, float(one.effect.lo), float(one.effect.hi)))
        return Interval(*ends).text("pp")
    change = canary / main - 1.0 if main else 0.0
    ends = (
        100.0 * x for x in (change, float(one.effect.relative_lo), float(one.effect.relative_hi))
    )
    return Interval(*ends).text("%")
