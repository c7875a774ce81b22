"""The same task must be routed the same way in every language, and claims of difficulty to try.

The route is a function, requirements (n, K) -> indices (n,) into a pool, so that this stands below
routing. Source: the paper's appendix on adversarial suffixes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.lab.evaluate import evaluate

#: (n, K) requirements -> (n,) indices into the pool.
Route = Callable[[FloatArray], IntArray]
#: Family -> language code -> suffix.
Probes = Mapping[str, Mapping[str, str]]

_PROBES = Path(__file__).parent / "probes.yaml"


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
    """The eight families of suffixes that come with the console; never used for training."""
    return dict(YAML(typ="safe", pure=True).load(_PROBES.read_text("utf-8")))


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
