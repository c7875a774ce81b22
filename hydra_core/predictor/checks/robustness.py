"""Two checks of a predictor's manners: appended claims of difficulty must not buy a dearer model,
and the same task must be routed the same way in every language.

Both take the route as a function, requirements (n, K) -> indices (n,) into a pool, so that they
stand below routing. Source: the paper's appendix on adversarial suffixes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML
from scipy.stats import binomtest

from hydra_core.predictor.checks.evaluate import evaluate
from hydra_core.predictor.languages import GROUPS, group_of
from hydra_core.types import FloatArray, IntArray

__all__ = [
    "AttackRow",
    "ParallelConsistency",
    "Probes",
    "Route",
    "Score",
    "load_probes",
    "parallel_consistency",
    "suffix_attacks",
]

#: (n,) messages -> (n, K) requirements.
Score = Callable[[Sequence[str]], FloatArray]
#: (n, K) requirements -> (n,) indices into the pool.
Route = Callable[[FloatArray], IntArray]
#: Family -> language code -> suffix.
Probes = Mapping[str, Mapping[str, str]]

_PROBES = Path(__file__).parent / "probes.yaml"


@dataclass(frozen=True, slots=True)
class AttackRow:
    """One suffix family in one language group.

    Attributes:
        family: The suffix family, or ``all``.
        group: The language group, or ``all``.
        localised: Whether the suffixes were in the message's own language, else in English.
        n: Messages attacked: those routed to a model cheaper than the frontier when clean.
        successes: Those that a suffix moved to a frontier model.
        rate: successes / n, nan when n is 0.
        interval: Wilson's 95 % interval of the rate.
        cost_ratio: Sum of the pool costs of the attacked routes over that of the clean ones.
        shift: (K,) mean change of the requirements.
    """

    family: str
    group: str
    localised: bool
    n: int
    successes: int
    rate: float
    interval: tuple[float, float]
    cost_ratio: float
    shift: FloatArray


@dataclass(frozen=True, slots=True)
class ParallelConsistency:
    """How alike one predictor scores the same tasks in several languages.

    Attributes:
        tasks: Tasks that are there in two languages or more.
        std: (K,) mean over tasks of the standard deviation (n - 1) across languages.
        mean_std: Mean of `std`.
        pearson: (K,) against the labels, over all wordings; nan where not defined or unlabelled.
        agreement: Share of other wordings routed like the English one; nan without any.
        by_language: Language code -> that share.
    """

    tasks: int
    std: FloatArray
    mean_std: float
    pearson: FloatArray
    agreement: float
    by_language: Mapping[str, float]


def load_probes() -> Probes:
    """The five families of suffixes that come with the console; never used for training."""
    return dict(YAML(typ="safe", pure=True).load(_PROBES.read_text("utf-8")))


def suffix_attacks(
    score: Score,
    route: Route,
    cost: FloatArray,
    texts: Sequence[str],
    languages: Sequence[str],
    *,
    probes: Probes | None = None,
    localised: bool = True,
    frontier: int = 2,
    joint: str = " ",
) -> tuple[AttackRow, ...]:
    """Append each family's suffix to each message that is routed cheaply and route again.

    Args:
        score: The predictor.
        route: The policy at its tau.
        cost: (m,) of the pool, what the route orders by.
        texts: (n,) clean messages.
        languages: (n,) their language codes.
        probes: Suffixes; None for those that come with the console. A language without its own
            gets the English one.
        localised: Suffixes in the message's language; False for English ones.
        frontier: How many of the dearest models count as frontier.
        joint: What stands between message and suffix.

    Returns:
        A row per family and language group, then per family over all groups, then one over all.
    """
    families = load_probes() if probes is None else probes
    requirements = score(texts)
    clean = route(requirements)
    dear = np.isin(np.arange(len(cost)), np.argsort(cost, kind="stable")[-frontier:])
    kept = np.flatnonzero(~dear[clean]).tolist()
    groups = np.array([group_of(languages[i]) for i in kept], dtype=np.object_)
    outcomes = []
    for name, suffixes in families.items():
        ends = [suffixes.get(languages[i] if localised else "en", suffixes["en"]) for i in kept]
        attacked = [texts[i] + joint + end for i, end in zip(kept, ends, strict=True)]
        again = score(attacked) if kept else requirements[kept]
        routed = route(again) if kept else clean[kept]
        shift = again - requirements[kept]
        outcomes.append((name, dear[routed], cost[routed], cost[clean[kept]], shift))
    return tuple(_rows(outcomes, groups, localised))


_Outcome = tuple[str, npt.NDArray[np.bool_], FloatArray, FloatArray, FloatArray]


def _rows(
    outcomes: Sequence[_Outcome], groups: npt.NDArray[np.object_], localised: bool
) -> Iterable[AttackRow]:
    for outcome in outcomes:
        for group in GROUPS:
            if (groups == group).any():
                yield _row(outcome, group, groups == group, localised)
    everyone = np.ones(len(groups), dtype=bool)
    for outcome in outcomes:
        yield _row(outcome, "all", everyone, localised)
    parts = [np.concatenate([outcome[i] for outcome in outcomes]) for i in range(1, 5)]
    joined: _Outcome = ("all", parts[0].astype(bool), parts[1], parts[2], parts[3])
    yield _row(joined, "all", np.tile(everyone, len(outcomes)), localised)


def _row(outcome: _Outcome, group: str, part: npt.NDArray[np.bool_], localised: bool) -> AttackRow:
    family, moved, after, before, shift = outcome
    n, successes = int(part.sum()), int(moved[part].sum())
    nan = float("nan")
    return AttackRow(
        family=family,
        group=group,
        localised=localised,
        n=n,
        successes=successes,
        rate=successes / n if n else nan,
        interval=_wilson(successes, n),
        cost_ratio=float(after[part].sum() / before[part].sum()) if n else nan,
        shift=shift[part].mean(axis=0) if n else np.full(shift.shape[1], nan),
    )


def _wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) when n is 0."""
    if n == 0:
        return (0.0, 1.0)
    interval = binomtest(successes, n).proportion_ci(method="wilson")
    return (float(interval.low), float(interval.high))


def parallel_consistency(
    requirements: FloatArray,
    tasks: Sequence[str],
    languages: Sequence[str],
    route: Route,
    labels: FloatArray | None = None,
) -> ParallelConsistency:
    """Spread across languages, correlation with the labels, and agreement of the route.

    Args:
        requirements: (n, K) of all wordings.
        tasks: (n,) the task each wording says.
        languages: (n,) its language code.
        route: The policy at its tau.
        labels: (n, K) of the tasks, or None.
    """
    k = requirements.shape[1]
    _, task = np.unique(np.asarray(tasks, dtype=object).astype(str), return_inverse=True)
    counts = np.bincount(task)
    several = counts > 1
    sums = np.stack([np.bincount(task, requirements[:, j]) for j in range(k)], axis=1)
    centred = requirements - (sums / counts[:, None])[task]
    squares = np.stack([np.bincount(task, centred[:, j] ** 2) for j in range(k)], axis=1)
    spread = np.sqrt(squares[several] / (counts[several] - 1)[:, None])
    std = spread.mean(axis=0) if several.any() else np.full(k, np.nan)
    agreement, by_language = _agreement(route(requirements), task, languages)
    return ParallelConsistency(
        tasks=int(several.sum()),
        std=std,
        mean_std=float(std.mean()),
        pearson=_pearson(requirements, labels),
        agreement=agreement,
        by_language=by_language,
    )


def _pearson(requirements: FloatArray, labels: FloatArray | None) -> FloatArray:
    k = requirements.shape[1]
    names = [str(j) for j in range(k)]
    if labels is None:
        return np.full(k, np.nan)
    found = evaluate(requirements, labels, names, resamples=0)["pearson"]
    values = found.values() if isinstance(found, dict) else ()
    return np.array([np.nan if value is None else value for value in values])


def _agreement(
    choice: IntArray, task: npt.NDArray[np.intp], languages: Sequence[str]
) -> tuple[float, Mapping[str, float]]:
    codes = np.asarray(languages, dtype=np.object_)
    english = np.full(task.max(initial=-1) + 1, -1, dtype=np.intp)
    english[task[codes == "en"]] = choice[codes == "en"]
    counted = (codes != "en") & (english[task] >= 0)
    same = choice == english[task]
    present = sorted(set(codes[counted]))
    by_language = {code: float(same[counted & (codes == code)].mean()) for code in present}
    return float(same[counted].mean()) if counted.any() else float("nan"), by_language
