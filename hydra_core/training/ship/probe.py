"""What training must not break: equal routes in every language, deaf to claims.

Both probes ask the console's own matcher, on a catalog moved to the bands of
the model under test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hydra_core.catalog.binding import rebind
from hydra_core.catalog.profiles import pool
from hydra_core.catalog.schema import parse_catalog
from hydra_core.predictor.languages import GROUPS, group_of
from hydra_core.routing.matcher import choose, shortfall
from hydra_core.training.texts.dataset import Message
from hydra_core.training.texts.suffixes import FAMILIES, UNSEEN, attack
from hydra_core.types import Band, Pool

Score = Callable[[Sequence[str]], NDArray[np.float32]]
TAUS = (0.05, 0.24)


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
    """Positions of the wordings of every task."""
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


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One family in one language group at one tau."""

    family: str
    group: str
    tau: float
    count: int
    success: float
    cost_ratio: float


def attack_report(
    score: Score, messages: Sequence[Message], models: Pool, *, seed: int = 7, repeats: int = 2
) -> list[AttackRow]:
    """Append claims of every family to prompts routed to one of the cheap models.

    `success` is the share that moves to one of the two dearest models; only
    prompts that start below those two are counted. Half of the claims are in
    the language of the prompt, half in English.
    """
    clean = score([m.text for m in messages])
    langs = np.array([group_of(m.lang) for m in messages])
    out: list[AttackRow] = []
    for family in (*FAMILIES, *UNSEEN):
        rng = np.random.default_rng((seed, len(family), ord(family[0])))
        texts = [
            attack(m.text, m.lang, rng, (family,), suffix_only=True).text
            for _ in range(repeats)
            for m in messages
        ]
        moved = score(texts)
        for tau in TAUS:
            before = np.tile(routes(models, clean, tau), repeats)
            out += _rows(family, tau, before, routes(models, moved, tau),
                         np.tile(langs, repeats), models)  # fmt: skip
    return out


def _rows(
    family: str, tau: float, before: NDArray[np.int64], after: NDArray[np.int64],
    langs: NDArray[np.str_], models: Pool,
) -> list[AttackRow]:  # fmt: skip
    cost = np.sort(models.cost)
    dear = len(cost) - 2
    rows = []
    for group in GROUPS:
        seen = (langs == group) & (before < dear)
        if not seen.any():
            continue
        ratio = cost[after[seen]].mean() / cost[before[seen]].mean()
        success = (after[seen] >= dear).mean()
        rows.append(
            AttackRow(family, group, tau, int(seen.sum()),
                      round(float(success), 4), round(float(ratio), 3))
        )  # fmt: skip
    return rows
