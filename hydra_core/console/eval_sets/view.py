"""From an eval set to what Sets and Can routing help? show of it. No streamlit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray, IntArray
from hydra_core.console.eval_sets.figures import UpsetView
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet
from hydra_core.evalsets.importers.draft import ImportReport
from hydra_core.evalsets.importers.swebench import Run
from hydra_core.evalsets.suspects import Suspects
from hydra_core.lab.ablation import AblatedReading
from hydra_core.predictor.languages import language_name
from hydra_core.replay.routability import (
    PREDICTIVE_AUC,
    Difficulty,
    DuplicateGroup,
    Routability,
    solve_patterns,
)
from hydra_core.replay.significance import mean_interval

_SHOWN_QUERIES = 200
_SHOWN_CHARS = 240
_SHOWN_GROUPS = 5
_SHOWN_DUPLICATES = 200


#: Why an interval of a mean is missing.
NO_INTERVAL = "No interval: all queries belong to one group, so there is nothing to compare."


def percent_range(interval: Interval) -> tuple[float, float]:
    """The ends of a share's interval in percent, from 0 to 100; NaN where it has no ends."""
    if not np.isfinite(interval.hi):
        return np.nan, np.nan
    inside = interval.clipped(0.0, 1.0)
    return 100 * inside.lo, 100 * inside.hi


def interval_text(interval: Interval, *, signed: bool = False) -> str:
    """A value with its interval in brackets, where there are some."""
    if not np.isfinite(interval.value):
        return "–"

    def spelled(value: float) -> str:
        shown = f"{value:{'+' if signed else ''}.2f}"
        return shown.replace("-", "−") if float(shown) else "0.00"

    value = spelled(interval.value)
    if np.isfinite(interval.lo):
        value += f" [{spelled(interval.lo)}, {spelled(interval.hi)}]"
    return value


def saving_text(saving: float) -> str:
    """What a perfect router saves of the best single model's cost; NaN where that is free."""
    if np.isnan(saving):
        return "no cost to save"
    share = f"{100 * abs(saving):.0f} %"
    return f"saves up to {share}" if saving >= 0 else f"costs {share} more"


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


def outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """The models of a `model_table` with quality and cost; a missing bound is the quality."""
    known = table.dropna(subset=["quality", "cost"])
    return known.assign(**{end: known[end].fillna(known["quality"]) for end in ("low", "high")})


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
    quality = evalset.quality[: len(head)]
    resolved, known = (quality >= RESOLVED_AT).sum(axis=1), np.isfinite(quality).sum(axis=1)
    frame = pd.DataFrame(
        {
            "query": head["query_id"],
            "language": head["language"],
            "resolved by": [f"{a} of {b}" for a, b in zip(resolved, known, strict=True)],
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


_PATTERNS = 22


def upset_view(evalset: EvalSet, rows: IntArray | None = None) -> tuple[UpsetView, int, int] | None:
    """The most frequent patterns of some or all rows, how many there are, and queries left out.

    None where no query has all outcomes.
    """
    quality = evalset.quality if rows is None else evalset.quality[rows]
    patterns = solve_patterns(evalset.models, quality)
    total = sum(one.queries for one in patterns)
    if not total:
        return None
    known = quality[np.isfinite(quality).all(axis=1)]
    solved = 100 * (known >= RESOLVED_AT).mean(axis=0)
    order = np.argsort(-solved, kind="stable")
    models = tuple(evalset.models[i] for i in order)
    shown = patterns[:_PATTERNS]
    view = UpsetView(
        models=models,
        solved=solved[order],
        members=np.array([[model in set(one.models) for model in models] for one in shown]),
        queries=np.array([one.queries for one in shown]),
        total=total,
    )
    return view, len(patterns), total - int(view.queries.sum())


def spread_table(evalset: EvalSet) -> pd.DataFrame:
    """Quantiles and mean of cost per query in USD by model, cheapest first; of those with costs."""
    costs = pd.DataFrame(evalset.cost_usd, columns=evalset.models).dropna(axis="columns", how="all")
    quantiles = {"p05": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "p95": 0.95}
    frame = pd.DataFrame({name: costs.quantile(at) for name, at in quantiles.items()})
    means = evalset.mean_cost()
    frame["mean"] = [means[model] for model in frame.index]
    return frame.sort_values("mean", kind="stable")


def difficulty_table(found: Sequence[Difficulty], *, languages: bool) -> pd.DataFrame:
    """One row per language or group in percent, the largest first."""
    ends = [percent_range(one.quality) for one in found]
    return pd.DataFrame(
        {
            "name": [language_name(one.name) if languages else one.name for one in found],
            "n": [one.n for one in found],
            "quality": [100 * one.quality.value for one in found],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "oracle": [100 * one.oracle for one in found],
            "decidable": [100 * one.decidable for one in found],
        }
    )


def difficulty_view(frame: pd.DataFrame) -> IntervalsView:
    """The figure of a `difficulty_table`."""
    values = {name: frame[name].to_numpy(np.float64) for name in frame.columns if name != "name"}
    return IntervalsView(
        names=tuple(frame["name"]),
        series=(
            Series("mean of the models, 95 % interval", values["quality"], values["low"],
                   values["high"]),
            Series("perfect router", values["oracle"], tone="oracle"),
        ),
        title="Quality",
        unit=" %",
    )  # fmt: skip


def auc_view(found: Routability) -> IntervalsView:
    """How well each model's success is predicted, from the text and from the scores."""
    rows = [*found.aucs, *([found.advantage] if found.advantage else [])]
    return IntervalsView(
        names=tuple(one.model for one in rows),
        series=(
            Series.of("from the text", [one.text for one in rows]),
            Series.of("from the requirement scores", [one.scores for one in rows], "ghost"),
        ),
        title="AUC on queries not learned from, 95 % interval",
        format=".2f",
        lines=((0.5, "chance"), (PREDICTIVE_AUC, "predictive")),
    )


def duplicate_table(found: Sequence[DuplicateGroup]) -> pd.DataFrame:
    """Texts that occur more than once, the largest groups first."""
    shown = found[:_SHOWN_DUPLICATES]
    return pd.DataFrame(
        {
            "queries": [len(one.query_ids) for one in shown],
            "ids": [", ".join(one.query_ids[:6]) for one in shown],
            "clustered": ["yes" if one.clustered else "no" for one in shown],
            "differ": ["yes" if one.outcomes_differ else "no" for one in shown],
        }
    )


def ablation_view(found: Sequence[AblatedReading]) -> IntervalsView:
    """Quality retention of every other way of reading minus that of the first, in points."""
    others = found[1:]
    delta = [one.against_first.qr for one in others]
    return IntervalsView(
        tuple(one.name for one in others),
        (Series.of("against the first", delta, scale=100.0),),
        "Quality retention against the predictor as it is, pp",
        unit=" pp",
        format="+.1f",
        lines=((0.0, "no change"),),
    )


def ablation_table(found: Sequence[AblatedReading]) -> pd.DataFrame:
    """One row a way of reading."""
    return pd.DataFrame(
        {
            "reading": [one.name for one in found],
            "pearson": [one.pearson for one in found],
            "mae": [one.mae for one in found],
            "qr": [100 * one.metrics.qr.value for one in found],
            "cost": [one.metrics.mean_cost_usd.value for one in found],
        }
    )
