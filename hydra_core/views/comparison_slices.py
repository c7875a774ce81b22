"""Differences of two policies, or to English, by language or group. No streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.replay.evaluation import Evaluation
from hydra_core.evaluation.replay.languages import SMALL
from hydra_core.evaluation.significance import (
    Interval,
    holm,
    mcnemar,
    mean_interval,
    ratio_interval,
)
from hydra_core.predictor.languages import group_of, language_name
from hydra_core.types import IntArray
from hydra_core.views.comparison import Paired

__all__ = ["group_table", "grouping", "slice_names", "slices"]


def group_table(evaluation: Evaluation) -> pd.DataFrame:
    """One row per language group: n, QR and savings in percent, and QR and savings minus English.

    Every figure with its 95 % bounds as `_lo` and `_hi`; NaN differences for English itself.
    """
    apart = {one.group: one for one in evaluation.spreads}
    unknown = Interval(np.nan, np.nan, np.nan)
    rows = []
    for one in evaluation.groups:
        to = apart.get(one.name)
        figures = {
            "qr": one.qr,
            "cs": one.cs,
            "qr_english": to.qr if to else unknown,
            "cs_english": to.cs if to else unknown,
        }
        row: dict[str, object] = {"group": one.name, "n": one.n, "small": one.small}
        for name, interval in figures.items():
            ends = (interval.value, interval.lo, interval.hi)
            keys = (name, f"{name}_lo", f"{name}_hi")
            row |= dict(zip(keys, (100 * end for end in ends), strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def slices(both: Paired, evalset: EvalSet, by: str) -> pd.DataFrame:
    """Deltas of B against A by language or group, the largest first.

    Args:
        by: `language`, `language group`, or a column of the set's queries such as `group`.

    Returns:
        One row per value: name, n, quality and savings with bounds in percent points and percent,
        flipped in percent, p (McNemar, Holm-corrected over the rows), small.
    """
    rows = both.found.rows
    names = slice_names(evalset, by)[rows]
    moved = both.a.models[both.at_a] != both.b.models[both.at_b]
    values, which, counts = np.unique(names, return_inverse=True, return_counts=True)
    made = [
        _slice(both, str(values[i]), np.flatnonzero(which == i), moved)
        for i in np.lexsort((values, -counts))
    ]
    adjusted = holm([float(str(row["p"])) for row in made])
    return pd.DataFrame(made).assign(p=list(adjusted))


def slice_names(evalset: EvalSet, by: str) -> np.typing.NDArray[np.str_]:
    """(rows of the eval set,) the slice each query belongs to."""
    if by == "language group":
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: group_of(code) for code in codes.unique()}).to_numpy(str)
    if by == "language":
        codes = evalset.queries["language"].astype(str)
        return codes.map({code: language_name(code) for code in codes.unique()}).to_numpy(str)
    return evalset.queries[by].fillna("(none)").astype(str).to_numpy(str)


def _slice(
    both: Paired, name: str, inside: IntArray, moved: np.typing.NDArray[np.bool_]
) -> dict[str, object]:
    clusters = None if both.clusters is None else both.clusters[inside]
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
    units = len(inside) if clusters is None else int(np.unique(clusters).size)
    a, b = both.at_a[inside], both.at_b[inside]
    quality = mean_interval(both.found.delta_quality[inside], clusters).scaled(100.0)
    saved = ratio_interval(both.b.cost_usd[b], both.a.cost_usd[a], clusters).scaled(-100.0, 100.0)
    test = mcnemar(both.b.quality[b] >= 0.5, both.a.quality[a] >= 0.5)
    return {
        "name": name,
        "n": len(inside),
        "quality": quality.value,
        "quality_lo": quality.lo,
        "quality_hi": quality.hi,
        "savings": saved.value,
        "savings_lo": saved.lo,
        "savings_hi": saved.hi,
        "flipped": 100 * float(moved[inside].mean()),
        "p": test.p_value,
        "small": units < SMALL,
    }


def grouping(evalset: EvalSet) -> Sequence[str]:
    """What deltas can be shown by."""
    known = [name for name in ("group",) if name in evalset.queries.columns]
    return ("language", "language group", *known)
