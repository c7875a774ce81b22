"""From an eval set to the figures and tables of the part Sets. No streamlit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray
from hydra_core.console.eval_sets.figures import OutcomesView
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet
from hydra_core.evalsets.importers.draft import ImportReport
from hydra_core.evalsets.importers.swebench import Run
from hydra_core.evalsets.suspects import Suspects
from hydra_core.replay.significance import mean_interval

_SHOWN_QUERIES = 200
_SHOWN_CHARS = 240
_SHOWN_GROUPS = 5


#: Why an interval of a mean is missing.
NO_INTERVAL = "No interval: all queries belong to one group, so there is nothing to compare."


def percent_range(interval: Interval) -> tuple[float, float]:
    """The ends of a share's interval in percent, from 0 to 100; NaN where it has no ends."""
    if not np.isfinite(interval.hi):
        return np.nan, np.nan
    inside = interval.clipped(0.0, 1.0)
    return 100 * inside.lo, 100 * inside.hi


def model_table(evalset: EvalSet) -> pd.DataFrame:
    """One row per model, cheapest first: quality, resolved, cost, and what is missing."""
    rows = []
    mean_cost = evalset.mean_cost()
    for i, model in enumerate(evalset.models):
        quality, cost = evalset.quality[:, i], evalset.cost_usd[:, i]
        with_outcome = np.flatnonzero(~np.isnan(quality))
        known = quality[with_outcome]
        groups = evalset.clusters_at(with_outcome)
        interval = mean_interval(known, groups) if known.size else None
        low, high = percent_range(interval) if interval else (np.nan, np.nan)
        rows.append(
            {
                "model": model,
                "quality": 100 * interval.value if interval else np.nan,
                "low": low,
                "high": high,
                "resolved": int((known >= RESOLVED_AT).sum()),
                "cost": mean_cost[model],
                "missing_quality": int(np.isnan(quality).sum()),
                "missing_cost": int(np.isnan(cost).sum()),
            }
        )
    return pd.DataFrame(rows).sort_values("cost", ignore_index=True)


def outcomes_view(evalset: EvalSet, table: pd.DataFrame) -> OutcomesView | None:
    """The plot of a `model_table`; None when no model has both quality and cost."""
    known = table.dropna(subset=["quality", "cost"])
    if known.empty:
        return None
    binary = bool(np.isin(evalset.quality[~np.isnan(evalset.quality)], (0.0, 1.0)).all())
    quality = known["quality"].to_numpy(np.float64)
    return OutcomesView(
        models=tuple(known["model"]),
        cost_usd=known["cost"].to_numpy(np.float64),
        quality=quality,
        low=known["low"].fillna(known["quality"]).to_numpy(np.float64),
        high=known["high"].fillna(known["quality"]).to_numpy(np.float64),
        title="Resolved queries" if binary else "Mean quality",
    )


def with_requirements(
    evalset: EvalSet, dimensions: Sequence[str], scores: FloatArray | None
) -> pd.DataFrame:
    """The queries as they are kept, with (n, K) requirements in [0, 1] where they are scored."""
    if scores is None:
        return evalset.queries
    return evalset.queries.assign(**dict(zip(dimensions, scores.T, strict=True)))


def query_table(
    evalset: EvalSet, dimensions: Sequence[str] = (), scores: FloatArray | None = None
) -> pd.DataFrame:
    """The first queries with their text, if any, cut short, and (n, K) requirements in [0, 1]."""
    head = evalset.queries.head(_SHOWN_QUERIES)
    frame = pd.DataFrame(
        {
            "query": head["query_id"],
            "language": head["language"],
            "resolved by": [
                f"{count} of {len(evalset.models)}"
                for count in np.sum(evalset.quality[: len(head)] >= RESOLVED_AT, axis=1)
            ],
        }
    )
    if scores is not None:
        for name, column in zip(dimensions, scores[: len(head)].T, strict=True):
            frame[name.replace("_", " ")] = column
    if evalset.texts is not None:
        text = head["text"].astype(str).str.replace(r"\s+", " ", regex=True)
        frame["text"] = text.str.slice(0, _SHOWN_CHARS)
    return frame


def suspect_table(evalset: EvalSet, found: Suspects) -> pd.DataFrame:
    """The largest groups of queries that look dependent, with the beginning of two of each."""
    texts = evalset.texts
    rows = []
    for group in found.groups[:_SHOWN_GROUPS]:
        queries = evalset.queries.iloc[group]
        examples = [] if texts is None else [text[:_SHOWN_CHARS] for text in texts.iloc[group[:2]]]
        rows.append(
            {
                "Queries": len(group),
                "Ids": ", ".join(queries["query_id"].iloc[:3]) + ", ..." * (len(group) > 3),
                "Languages": queries["language"].nunique(),
                "For example": "\n".join(examples),
            }
        )
    return pd.DataFrame(rows)


def dropped_table(report: ImportReport) -> pd.DataFrame:
    """What an import left out and why."""
    return pd.DataFrame(
        {
            "why": [entry.reason for entry in report.dropped],
            "count": [entry.count for entry in report.dropped],
            "examples": [", ".join(entry.examples) for entry in report.dropped],
        }
    )


def run_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Leaderboard runs with a suggested model id, to be edited."""
    return pd.DataFrame(
        {
            "model": [_model_id(run.name) for run in runs],
            "run": [run.folder for run in runs],
            "resolved": [f"{run.headline:.1f} %" for run in runs],
        }
    )


def _model_id(name: str) -> str:
    """A model id from a leaderboard's title: its last words, lower case, joined by hyphens."""
    plain = re.sub(r"\(.*?\)|\[.*?\]", " ", name.split("+")[-1]).strip().lower()
    return re.sub(r"[^a-z0-9.]+", "-", plain).strip("-") or "model"
