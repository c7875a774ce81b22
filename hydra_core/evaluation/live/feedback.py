"""What users or checks said about served answers, model by model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hydra_core.evaluation.live.traffic import Traffic
from hydra_core.evaluation.significance import Interval, mean_interval

__all__ = ["Rated", "feedback"]


@dataclass(frozen=True, slots=True)
class Rated:
    """Feedback on one model's answers.

    Attributes:
        rated: Answers with feedback, of `served`.
        quality: Mean quality of the rated ones in [0, 1]; not of all: who rates is not random.
    """

    model: str
    served: int
    rated: int
    quality: Interval


def feedback(traffic: Traffic) -> tuple[Rated, ...]:
    """Every model that has feedback, most rated first."""
    models = np.asarray(traffic.models, dtype=object)
    told = np.asarray(traffic.rows["quality"].notna(), dtype=bool)
    found = []
    for name in dict.fromkeys(models[told].tolist()):
        mine = models == name
        some = traffic.take(mine & told)
        quality = mean_interval(some.rows["quality"].to_numpy(dtype=np.float64), some.clusters)
        found.append(Rated(name, int(mine.sum()), len(some), quality.clipped(0.0, 1.0)))
    return tuple(sorted(found, key=lambda one: -one.rated))
