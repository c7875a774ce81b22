"""What training must not break: equal routes in every language.

The probe asks the console's own matcher, on a catalog moved to the bands of
the model under test. Claims of difficulty: `lab/robustness/probe.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hydra_core.base.types import Band, Pool
from hydra_core.catalog.binding import rebind
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import parse_catalog
from hydra_core.lab.robustness.probe import TAUS
from hydra_core.lab.training.texts.dataset import Message
from hydra_core.routing.matcher import choose, shortfall


def pool_on(catalog: Path, bands: Sequence[tuple[float, float]]) -> Pool:
    """The pool of a catalog, its capabilities moved to a model's bands."""
    text = rebind(catalog.read_text("utf-8"), "probe", "0" * 64, [Band(*b) for b in bands])
    return pool(parse_catalog(text), today=date(2026, 1, 1))


def routes(models: Pool, scores: NDArray[np.float32], tau: float) -> NDArray[np.int64]:
    """(n, K) -> (n,) position of the chosen model in the order of cost, 0 = cheapest."""
    gaps = shortfall(scores.astype(np.float64), models.capabilities, models.weights)
    rank = np.argsort(np.argsort(models.cost, kind="stable"), kind="stable")
    return np.asarray(rank[choose(gaps, models.cost, tau)], np.int64)


@dataclass(frozen=True, slots=True)
class ParallelReport:
    """Agreement over wordings of a task in all languages."""

    spread: float
    pearson: float
    same_route: dict[float, float]


def _tasks(messages: Sequence[Message]) -> list[list[int]]:
    rows: dict[str, list[int]] = defaultdict(list)
    for i, message in enumerate(messages):
        if message.task:
            rows[message.task].append(i)
    return list(rows.values())


def spread(messages: Sequence[Message], scores: NDArray[np.float32]) -> float:
    """Mean over tasks of the standard deviation of a score across languages."""
    tasks = _tasks(messages)
    return float(np.mean([scores[ids].std(0) for ids in tasks])) if tasks else 0.0


def parallel_report(
    messages: Sequence[Message], scores: NDArray[np.float32], models: Pool
) -> ParallelReport:
    """(n,) messages with `task`, (n, K) -> spread, Pearson, routes as in English."""
    truth = np.array([m.labels for m in messages])
    tasks = _tasks(messages)
    pearson = np.mean(
        [np.corrcoef(scores[:, k], truth[:, k])[0, 1] for k in range(scores.shape[1])]
    )
    same: dict[float, float] = {}
    for tau in TAUS:
        chosen = routes(models, scores, tau)
        agree: list[bool] = []
        for ids in tasks:
            english = next(i for i in ids if messages[i].lang == "en")
            agree += [bool(chosen[i] == chosen[english]) for i in ids if i != english]
        same[tau] = round(float(np.mean(agree)), 4)
    return ParallelReport(round(spread(messages, scores), 4), round(float(pearson), 4), same)
