"""A labelling run's figures as tables and views of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.figures.heat import HeatView
from hydra_core.figures.intervals import IntervalsView, Series
from hydra_core.labeling.messages import Message
from hydra_core.views.labels.run_status import DOUBTFUL, FIRM

__all__ = [
    "agreement_view",
    "aside_frame",
    "judge_frame",
    "labels_frame",
    "levels_view",
    "position_view",
    "reasons_frame",
]

_KINDS = (("stability", "With itself, asked twice", "accent"),
          ("judges", "With the second judge", "ghost"))  # fmt: skip


def agreement_view(found: Mapping[str, Any]) -> IntervalsView:
    """Alpha by dimension: the judge with itself, and with the second judge."""
    names = tuple(found["dimensions"])
    series = [
        Series(title, *_bounds([found[key][name]["alpha"] for name in names]), tone)
        for key, title, tone in _KINDS
        if found[key]
    ]
    return IntervalsView(
        tuple(map(_titled, names)), tuple(series), "Krippendorff's alpha, 95 % interval",
        format=".2f", lines=((DOUBTFUL, "doubtful below"), (FIRM, "firm")),
    )  # fmt: skip


def position_view(found: Mapping[str, Any]) -> IntervalsView:
    """What it is worth to an answer to stand first, by dimension, in points of the 1 to 5 scale."""
    bias = found["position"]["first_minus_second"]
    return IntervalsView(
        tuple(map(_titled, bias)), (Series("First minus second", *_bounds(list(bias.values()))),),
        "First minus second, points of 5, 95 % interval", format="+.2f", lines=((0.0, "no lean"),),
    )  # fmt: skip


def levels_view(found: Mapping[str, Any]) -> HeatView:
    """Share of labels nearest to each level, a row a dimension."""
    rows = found["dimensions"]
    counts = np.array([list(one["near"].values()) for one in rows.values()], dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    levels = tuple(next(iter(rows.values()))["near"])
    return HeatView(
        tuple(map(_titled, rows)), levels, shares,
        tuple(tuple(f"{100 * value:.0f} %" for value in row) for row in shares),
        tuple(
            tuple(f"{_titled(name)} near {level}: {int(n):,} messages"
                  for level, n in zip(levels, row, strict=True))
            for name, row in zip(rows, counts, strict=True)
        ),
        (0.0, 1.0), x_title="Nearest label: 0 the cheap model does as well, 0.8 it fails",
    )  # fmt: skip


def labels_frame(found: Mapping[str, Any]) -> pd.DataFrame:
    """Mean, standard deviation, share of zeros, and counts by level, a row a dimension."""
    return pd.DataFrame(
        [
            {"dimension": _titled(name), "mean": one["mean"], "sd": one["sd"],
             "zero": 100 * one["zero"], **{f"near {v}": n for v, n in one["near"].items()}}
            for name, one in found["dimensions"].items()
        ]
    )  # fmt: skip


def judge_frame(found: Mapping[str, Any]) -> pd.DataFrame:
    """Every figure on the judge, a row a dimension; empty cells where nothing was measured."""
    rows = []
    for name in found["dimensions"]:
        row: dict[str, object] = {"dimension": _titled(name)}
        for key, _, _ in _KINDS:
            one = found[key].get(name)
            row |= {f"{key}_alpha": None, f"{key}_gap": None}
            if one is not None:
                row[f"{key}_alpha"] = _finite(one["alpha"]["value"])
                row[f"{key}_gap"] = one["mean_absolute_difference"]
        bias = found["position"].get("first_minus_second", {}).get(name)
        row["first_minus_second"] = None if bias is None else _finite(bias["value"])
        rows.append(row)
    return pd.DataFrame(rows)


def reasons_frame(aside: Sequence[tuple[Message, str]]) -> pd.DataFrame:
    """How many messages were set aside for each reason, most first."""
    counts = pd.Series([why for _, why in aside]).value_counts()
    return pd.DataFrame({"reason": counts.index, "messages": counts.to_numpy()})


def aside_frame(aside: Sequence[tuple[Message, str]]) -> pd.DataFrame:
    """Every message that was set aside."""
    return pd.DataFrame(
        [{"id": m.id, "language": m.lang, "tier": f"T{m.tier}", "reason": why} for m, why in aside]
    )


def _bounds(found: Sequence[Mapping[str, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value, low, high = (np.array([one[part] for one in found]) for part in ("value", "lo", "hi"))
    return value, low, high


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _titled(name: str) -> str:
    return name.replace("_", " ").capitalize()
