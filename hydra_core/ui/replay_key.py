"""What a cached replay was made of; two replays with one key are the same."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from hydra_core.evaluation.evalset.evalset import EvalSetInfo
from hydra_core.evaluation.evalset.score_files import score_path
from hydra_core.types import Catalog

__all__ = ["ReplayKey", "replay_key"]


@dataclass(frozen=True, slots=True)
class ReplayKey:
    """What a replay was made of.

    Attributes:
        evalset: Digest of the eval set.
        catalog: Digest of the catalog.
        weights: (K,) stored weights in force.
        tau: None where it is replayed for every tau.
        scores_mtime_ns: When the predictor's scores were written, 0 if there are none.
        day: Decides about retiring models.
    """

    evalset: str
    catalog: str
    weights: tuple[float, ...]
    tau: float | None
    scores_mtime_ns: int
    day: date


def replay_key(
    info: EvalSetInfo, catalog: Catalog, weights: tuple[float, ...], tau: float | None = None
) -> ReplayKey:
    """The key of an eval set replayed under a catalog and weights today."""
    scores = score_path(info.path, catalog.predictor_fingerprint)
    stamp = scores.stat().st_mtime_ns if scores.is_file() else 0
    return ReplayKey(info.digest, catalog.digest, weights, tau, stamp, date.today())
