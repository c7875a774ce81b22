"""From an eval set to what Can routing help? shows of it. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.base.types import IntArray
from hydra_core.console.eval_sets.figures import SpreadView, UpsetView
from hydra_core.console.eval_sets.view import percent_range
from hydra_core.console.figures.intervals import IntervalsView, Series
from hydra_core.evalsets.evalset import RESOLVED_AT, EvalSet
from hydra_core.lab.ablation import AblatedReading
from hydra_core.predictor.languages import language_name
from hydra_core.replay.routability import (
    PREDICTIVE_AUC,
    Difficulty,
    DuplicateGroup,
    Routability,
    solve_patterns,
)

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


def spread_view(evalset: EvalSet) -> SpreadView | None:
    """Quantiles of cost per query by model, cheapest first; None where no cost is known."""
    has = [i for i in range(len(evalset.models)) if np.isfinite(evalset.cost_usd[:, i]).any()]
    if not has:
        return None
    costs = evalset.cost_usd[:, has]
    quantiles = np.nanquantile(costs, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    every = evalset.mean_cost()
    mean = np.asarray([every[evalset.models[i]] for i in has])
    order = np.argsort(mean, kind="stable")
    models = tuple(evalset.models[has[i]] for i in order)
    p05, q1, median, q3, p95 = quantiles[:, order]
    return SpreadView(models, p05, q1, median, q3, p95, mean[order])


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


def duplicate_table(found: Sequence[DuplicateGroup], most: int = 200) -> pd.DataFrame:
    """Texts that occur more than once, the largest groups first."""
    return pd.DataFrame(
        {
            "queries": [len(one.query_ids) for one in found[:most]],
            "ids": [", ".join(one.query_ids[:6]) for one in found[:most]],
            "clustered": ["yes" if one.clustered else "no" for one in found[:most]],
            "differ": ["yes" if one.outcomes_differ else "no" for one in found[:most]],
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
