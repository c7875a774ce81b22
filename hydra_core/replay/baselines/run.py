"""Replay the baselines, cross-fitted: nobody routes a query it has learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.replay.baselines.features import TextFeatures, hashed_texts
from hydra_core.replay.baselines.learners import KNOBS, Sample, by_name
from hydra_core.replay.folds import Fold, folds
from hydra_core.replay.matched_cost import matched_cost_mix
from hydra_core.replay.metrics import picked, single_models, upper_hull
from hydra_core.replay.replay import ReplayData

MODEL_COUPLED = "model-coupled: needs retraining when the pool changes"
RANDOM_MIX = "random mixture"
#: Names in the order they are shown.
BASELINES = (RANDOM_MIX, *by_name())


@dataclass(frozen=True, slots=True, eq=False)
class BaselineRun:
    """One baseline on one replayed set, at every setting of its knob.

    Attributes:
        note: What an operator must know to compare it fairly; empty if nothing.
        knobs: (k,) settings from cheapest to dearest.
        choices: (k, n) index of the chosen model.
        quality: (k,) mean quality.
        mean_cost_usd: (k,) USD per query.
    """

    name: str
    note: str
    knobs: FloatArray
    choices: IntArray
    quality: FloatArray
    mean_cost_usd: FloatArray

    def at_cost(self, mean_cost_usd: float, rng: np.random.Generator) -> IntArray:
        """(n,) choice at this mean cost: queries drawn between the two settings around it.

        Only the cost decides, never the outcome. Out of reach: the nearest setting as it is.
        """
        order = np.argsort(self.mean_cost_usd, kind="stable")
        cost = self.mean_cost_usd[order]
        above = int(np.searchsorted(cost, mean_cost_usd, side="left"))
        if above == 0 or above == cost.size:
            nearest: IntArray = self.choices[order[min(above, cost.size - 1)]]
            return nearest
        low, high = order[above - 1], order[above]
        share = (mean_cost_usd - cost[above - 1]) / (cost[above] - cost[above - 1])
        drawn = rng.random(self.choices.shape[1]) < share
        mixed: IntArray = np.where(drawn, self.choices[high], self.choices[low])
        return mixed


def run_baselines(
    data: ReplayData,
    texts: Sequence[str],
    *,
    names: Sequence[str] = BASELINES,
    parts: int = 2,
    cut: Sequence[Fold] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[BaselineRun, ...]:
    """Learn each baseline on all parts but one and route that one, for every part.

    Args:
        data: Replayed set.
        texts: (n,) message of each query of `data`.
        names: Which ones, of `BASELINES`.
        parts: Number of parts; clusters stay whole.
        cut: The parts themselves, where others were judged on them.
        seed: Draws the parts and every learner's start.
        progress: Called with (done, total) after each learner and part; what it raises stops.

    Raises:
        ValueError: Texts do not fit the data, or an unknown name.
    """
    if len(texts) != len(data.query_ids):
        raise ValueError(f"{len(texts)} texts for {len(data.query_ids)} queries")
    if unknown := [name for name in names if name not in BASELINES]:
        raise ValueError(
            f"no such baseline: {', '.join(unknown)}; there are {', '.join(BASELINES)}"
        )
    rng = np.random.default_rng(seed)
    cut = folds(data, parts, rng) if cut is None else cut
    learned = [name for name in names if name != RANDOM_MIX]
    choices = _learned(data, texts, learned, cut, seed, progress) if learned else {}
    if RANDOM_MIX in names:
        choices[RANDOM_MIX] = _random_mix(data, rng)
    return tuple(_run(data, name, choices[name]) for name in names)


def _learned(
    data: ReplayData,
    texts: Sequence[str],
    names: Sequence[str],
    cut: Sequence[Fold],
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> dict[str, IntArray]:
    hashed, learners = hashed_texts(texts), by_name()
    shape = (KNOBS.size, len(texts))
    found = {name: np.zeros(shape, dtype=np.int16) for name in names}
    for number, fold in enumerate(cut):
        features = TextFeatures(hashed[fold.train], seed=seed)
        train = Sample(
            features(hashed, fold.train, data.requirements),
            data.quality[fold.train],
            data.cost_usd[fold.train],
            data.pool.cost,
        )
        test = features(hashed, fold.test, data.requirements)
        for i, name in enumerate(names):
            found[name][:, fold.test] = learners[name](train, test, seed)
            if progress is not None:
                progress(number * len(names) + i + 1, len(cut) * len(names))
    return {name: values.astype(np.intp) for name, values in found.items()}


def _random_mix(data: ReplayData, rng: np.random.Generator) -> IntArray:
    """The best random mixture of constants at evenly rising costs, always with the same draw."""
    hull = upper_hull(single_models(data))
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    drawn = rng.random(len(data.query_ids))
    mixes = [matched_cost_mix(hull, cost) for cost in low + KNOBS * (high - low)]
    rows = [np.where(drawn < m.strong_share, m.strong.index, m.cheap.index) for m in mixes]
    return np.stack(rows)


def _run(data: ReplayData, name: str, choices: IntArray) -> BaselineRun:
    return BaselineRun(
        name=name,
        note="" if name == RANDOM_MIX else MODEL_COUPLED,
        knobs=KNOBS,
        choices=choices,
        quality=np.array([picked(data.quality, row).mean() for row in choices]),
        mean_cost_usd=np.array([picked(data.cost_usd, row).mean() for row in choices]),
    )
