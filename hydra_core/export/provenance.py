"""What is measured at publish and kept with the revision, and a release's provenance from it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.types import Catalog
from hydra_core.catalog.diff import Change, ChangeKind
from hydra_core.catalog.profiles import blended_price, capabilities
from hydra_core.evalsets.folders import EvalSetInfo
from hydra_core.export.release import Provenance
from hydra_core.replay.compare import Replayed
from hydra_core.store.records import Revision

_NAMES = {
    "qr": "quality retention",
    "quality": "mean quality",
    "mean_cost_usd": "mean cost in USD per query",
    "cs": "cost savings",
    "misroute": "overpaid queries",
}
_WORDS = {ChangeKind.ADDED: "Added", ChangeKind.REMOVED: "Removed", ChangeKind.CHANGED: "Changed"}


def measured(found: Replayed, info: EvalSetInfo) -> dict[str, Any]:
    """The metrics of a catalog on an eval set as plain JSON values."""
    values = {
        name: [float(one.value), float(one.lo), float(one.hi)]
        for name in _NAMES
        if all(map(math.isfinite, ((one := getattr(found.metrics, name)).lo, one.hi)))
    }
    return {
        "evalset": info.name,
        "evalset_digest": info.digest,
        "synthetic": info.synthetic,
        "queries": found.metrics.n,
        "tau": found.catalog.policy.tau,
        "baseline": found.metrics.baseline,
        "costs": found.data.costs,
        "values": values,
    }


def value(metrics: Mapping[str, Any], name: str) -> float | None:
    """One value that `measured` kept; None where it did not."""
    values = metrics.get("values")
    found = values.get(name) if isinstance(values, dict) else None
    return float(found[0]) if isinstance(found, list) and len(found) == 3 else None


def provenance(
    revision: Revision | None,
    metrics: Mapping[str, Any],
    *,
    author: str,
    note: str,
    now: datetime,
) -> Provenance:
    """Where a release comes from: a revision, or a draft that was not published."""
    values = metrics.get("values")
    intervals = {
        _NAMES[name]: Interval(*map(float, found))
        for name, found in (values.items() if isinstance(values, dict) else ())
        if name in _NAMES and isinstance(found, list) and len(found) == 3
    }
    return Provenance(
        revision=revision.number if revision else None,
        author=revision.author if revision else author,
        note=revision.note if revision else note,
        published_at=revision.created_at if revision else now,
        evalset=str(metrics.get("evalset", "")),
        evalset_digest=str(metrics.get("evalset_digest", "")),
        synthetic=bool(metrics.get("synthetic", False)),
        costs=str(metrics.get("costs", "")),
        metrics=intervals,
    )


def change_table(changes: tuple[Change, ...]) -> pd.DataFrame:
    """One row per change: what happened, what to, and the values side by side."""
    rows = [
        {
            "what": _WORDS[change.kind],
            "change": change.subject,
            "published": change.before or "",
            "draft": change.after or "",
        }
        for change in changes
    ]
    return pd.DataFrame(rows, columns=["what", "change", "published", "draft"])


def history_table(history: tuple[Revision, ...]) -> pd.DataFrame:
    """One row per revision, newest first, with what was measured at publish."""
    return pd.DataFrame(
        [
            {
                "revision": one.number,
                "when": one.created_at,
                "who": one.author,
                "note": f"(rolled back to {one.restores}) {one.note}" if one.restores else one.note,
                "qr": None if (qr := value(one.metrics, "qr")) is None else 100 * qr,
                "cost": value(one.metrics, "mean_cost_usd"),
                "evalset": str(one.metrics.get("evalset", "")),
            }
            for one in history
        ],
        columns=["revision", "when", "who", "note", "qr", "cost", "evalset"],
    )


def pool_export(catalog: Catalog) -> pd.DataFrame:
    """Every model with everything the table knows, for CSV and JSON."""
    values = capabilities(catalog)
    frame = pd.DataFrame(
        [
            {
                "id": model.id,
                "provider": model.provider,
                "status": model.status.value,
                "input_usd_per_mtok": model.input_usd_per_mtok,
                "output_usd_per_mtok": model.output_usd_per_mtok,
                "cached_input_usd_per_mtok": model.cached_input_usd_per_mtok,
                "blended_usd_per_mtok": blended_price(model, catalog.policy.price_ratio),
                "context_window": model.context_window,
                "vision": model.vision,
                "tools": model.tools,
                "price_date": model.price_date.isoformat(),
                "price_source": model.price_source,
                "retire_on": model.retire_on.isoformat() if model.retire_on else None,
            }
            for model in catalog.models
        ]
    )
    for k, dimension in enumerate(catalog.dimensions):
        frame[f"capability_{dimension}"] = values[:, k]
    for benchmark in catalog.benchmarks:
        frame[f"score_{benchmark.id}"] = [m.scores.get(benchmark.id) for m in catalog.models]
    return frame
