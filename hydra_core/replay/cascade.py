"""A checked cascade, simulated: a cheap model answers, a checker looks, a strong model repairs.

No service does this here; it is a reference that routers are compared with. Figures are exact
expectations over the checker's errors, not draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hydra_core.base.types import FloatArray
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.replay.compare import PolicyRun, policy_run
from hydra_core.replay.replay import ReplayData


@dataclass(frozen=True, slots=True)
class Checker:
    """What looks at the cheap model's answer.

    Attributes:
        passes_wrong: Share of wrong answers that it lets pass, in [0, 1].
        rejects_right: Share of right answers that it rejects, in [0, 1].
        check_s: Time of one check, seconds.
    """

    passes_wrong: float = 0.1
    rejects_right: float = 0.1
    check_usd: float = 0.0
    check_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Cascade:
    """A cascade played on a set.

    Attributes:
        run: Expected quality and cost of each query; its model is the one that more probably
            answers.
        again: (n,) probability that the strong model is asked as well.
        extra_s: Mean seconds above asking the cheap model alone; None where the set has no times
            of the strong model and one is needed.
    """

    run: PolicyRun
    cheap: str
    strong: str
    again: FloatArray
    extra_s: float | None


def cascade(data: ReplayData, evalset: EvalSet, checker: Checker) -> Cascade:
    """The cheapest measured model first, then the best single one where the checker rejects.

    Graded quality counts as the probability of a right answer.
    """
    quality, cost, _ = data.alone
    measured = np.flatnonzero(data.measured)
    cheap = int(measured[cost[measured].argmin()])
    strong = int(measured[quality[measured].argmax()])
    right = data.quality[:, cheap]
    accepted = right * (1.0 - checker.rejects_right) + (1.0 - right) * checker.passes_wrong
    again = 1.0 - accepted
    kept = right * (1.0 - checker.rejects_right)
    name = f"cascade ({data.pool.ids[cheap]}, check, {data.pool.ids[strong]})"
    plain = policy_run(name, data, np.where(again > 0.5, strong, cheap))
    run = replace(
        plain,
        quality=kept + again * data.quality[:, strong],
        cost_usd=data.cost_usd[:, cheap] + checker.check_usd + again * data.cost_usd[:, strong],
        unknown=None,
    )
    extra_s = _extra_s(data, evalset, data.pool.ids[strong], again, checker.check_s)
    return Cascade(run, data.pool.ids[cheap], data.pool.ids[strong], again, extra_s)


def _extra_s(
    data: ReplayData, evalset: EvalSet, strong: str, again: FloatArray, check_s: float
) -> float | None:
    times = evalset.extras.get("latency_s")
    if not again.any():
        return check_s
    if times is None or strong not in evalset.models:
        return None
    seconds = times[data.rows, evalset.models.index(strong)]
    known = np.isfinite(seconds)
    if not known.any():
        return None
    return check_s + float((again[known] * seconds[known]).mean())
