"""What other ways to route gain on the same queries, at the same costs and on the same folds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray, IntArray, Progress, Rule
from hydra_core.choosing.heads import grouped_parts
from hydra_core.choosing.lift import POINTS, differences_to_hull, hull_of
from hydra_core.choosing.material import Material
from hydra_core.replay.baselines import BASELINES, RANDOM_MIX, run_baselines
from hydra_core.replay.matched_cost import matched_cost_mix
from hydra_core.replay.metrics import ConstantPolicy
from hydra_core.replay.replay import Fold
from hydra_core.replay.significance import mean_interval
from hydra_core.replay.sweep import Sweep

_SHORT, _LONG = 15, 400
_LOOKED_AT: Final = 8_000
#: Weight, how many hits count in full, and what is looked for.
_SIGNS: Final = (
    (0.30, 2, r"```|\bdef \w+\(|\bclass \w+|\bimport \w+|function\s*\(|\bSELECT\b|#include|"
              r"=>|\{\s*$"),
    (0.25, 2, r"\b(step by step|reason|prove|proof|derive|analy[sz]e|explain why|think|deduce|"
              r"justify|trade-?offs?|compare)\b"),
    (0.25, 4, r"\b(algorithm|architecture|database|distributed|concurren\w+|encrypt\w*|latency|"
              r"kubernetes|api|complexity|optimi[sz]\w+|theorem|integral|matrix|protocol|"
              r"equation|probability|regression|compiler)\b"),
    (-0.05, 1, r"\b(what is|who is|when (is|was)|define|hello|hi|thanks|translate)\b"),
    (0.03, 1, r"\b(first|then|next|finally)\b.*\b(then|next|finally)\b|^\s*\d+[.)]\s"),
    (0.02, 4, r"\?"),
)  # fmt: skip
_FOUND: Final = tuple(
    (weight, full, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for weight, full, pattern in _SIGNS
)
_LENGTH: Final = 0.10


def _complexity(text: str) -> float:
    """A score, higher for what looks harder; only the order of messages by it matters."""
    text = text[:_LOOKED_AT]
    words = len(text.split())
    score = _LENGTH * min(max((words - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)
    for weight, full, pattern in _FOUND:
        hits = sum(1 for _ in zip(range(full), pattern.finditer(text), strict=False))
        score += weight * hits / full
    return score


_NAMES: Final = {Rule.SHORTFALL: "Shortfall rule", Rule.VALUE: "Value rule"}


@dataclass(frozen=True, slots=True)
class Rival:
    """One way to route, and what it gains over the hull of constants at the same cost.

    Attributes:
        learns: Whether it learned from these outcomes (on other folds than it routes).
        lift: Mean over 25, 50 and 75 % of the cost range.
    """

    name: str
    learns: bool
    lift: Interval


def rivals(
    sweeps: Sequence[Sweep],
    material: Material,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Rival, ...]:
    """Both rules, free scores as one threshold, and every baseline of the project.

    What needs the texts is left out for a set without.

    Args:
        sweeps: The set under each rule; the same queries and models in all of them.
        material: What the outcome model was learned from; gives clusters and folds.
        folds, seed, progress: As in `learn`, so that everyone is judged on the same parts.
    """
    data = sweeps[0].data
    clusters, cut = _parts(material, data.rows, folds, seed)
    hull = hull_of(data.quality, data.cost_usd)
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    costs = [low + percent / 100 * (high - low) for percent in POINTS]

    def rival(name: str, choices: Sequence[IntArray], *, learns: bool = False) -> Rival:
        choice = np.stack(choices, axis=1)
        added = differences_to_hull(data.quality, data.cost_usd, choice, hull).mean(axis=1)
        return Rival(name, learns, mean_interval(added, clusters))

    found = [
        rival(_NAMES[one.rule], _along(one, costs), learns=one.rule is Rule.VALUE) for one in sweeps
    ]
    mean = data.requirements.mean(axis=1)
    found.append(rival("Mean requirement", _threshold(mean, hull, costs)))
    if material.evalset.texts is None:
        return tuple(found)
    texts = material.evalset.texts.iloc[data.rows].astype(str).tolist()
    scores = np.array([_complexity(text) for text in texts])
    found.append(rival("Complexity score", _threshold(scores, hull, costs)))
    names = [name for name in BASELINES if name != RANDOM_MIX]
    for run in run_baselines(data, texts, names=names, cut=cut, seed=seed, progress=progress):
        rng = np.random.default_rng(seed)
        found.append(rival(run.name, [run.at_cost(cost, rng) for cost in costs], learns=True))
    return tuple(found)


def _parts(
    material: Material, rows: IntArray, folds: int, seed: int
) -> tuple[IntArray, tuple[Fold, ...]]:
    """Clusters and folds of the material, for the rows of a replay."""
    part = grouped_parts(material.clusters, folds, np.random.default_rng(seed))
    at = np.searchsorted(material.rows, rows)
    of_row = part[at]
    cut = [Fold(np.flatnonzero(of_row != i), np.flatnonzero(of_row == i)) for i in range(folds)]
    return material.clusters[at], tuple(cut)


def _along(sweep: Sweep, costs: Sequence[float]) -> list[IntArray]:
    """The choices at the settings whose mean cost is nearest to each cost."""
    curve = sweep.curve
    nearest = [int(np.abs(curve.mean_cost_usd - cost).argmin()) for cost in costs]
    return [sweep.route(curve.point(row).knob) for row in nearest]


def _threshold(
    score: FloatArray, hull: tuple[ConstantPolicy, ...], costs: Sequence[float]
) -> list[IntArray]:
    """One threshold along the hull: what scores highest goes to the dearer of its two models."""
    order = np.argsort(-score, kind="stable")
    choices = []
    for cost in costs:
        mix = matched_cost_mix(hull, cost)
        choice = np.full(score.size, mix.cheap.index)
        choice[order[: round(mix.strong_share * score.size)]] = mix.strong.index
        choices.append(choice)
    return choices
