"""Kinds of live requests, and about which of them nothing is known.

Scored decisions are put into a few clusters by their requirements. A cluster is known where enough
of its own decisions were rated, or enough queries of the eval set lie within it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from hydra_core.base.types import FloatArray
from hydra_core.live.traffic import Traffic

#: Rated decisions, or eval queries, that make a cluster known.
LEAST_KNOWN: Final = 20
_CLUSTERS = 8
_FITTED_ON = 20_000
#: Share of a cluster's decisions within its reach.
_WITHIN = 0.95


@dataclass(frozen=True, slots=True)
class Region:
    """One cluster.

    Attributes:
        centre: (K,) mean requirements.
        share: Of the scored decisions.
        in_evalset: Queries of the eval set as near to the centre as the cluster reaches.
        model: The model that most of them went to, and `model_share` how many.
        cost_usd: Mean cost of those with a known one, NaN where none has.
    """

    centre: tuple[float, ...]
    share: float
    decisions: int
    rated: int
    in_evalset: int
    model: str
    model_share: float
    cost_usd: float

    @property
    def known(self) -> bool:
        """Whether anything can be said about quality here."""
        return max(self.rated, self.in_evalset) >= LEAST_KNOWN


def regions(
    traffic: Traffic, reference: FloatArray | None, *, clusters: int = _CLUSTERS
) -> tuple[Region, ...]:
    """The clusters of scored traffic: unknown ones first, then by traffic.

    Args:
        reference: (m, K) scores of the eval set, None without one.
    """
    here = traffic.requirements()
    scale = np.where(here.std(axis=0) > 0, here.std(axis=0), 1.0)
    rng = np.random.default_rng(0)
    few = rng.permutation(len(here))[:_FITTED_ON]
    count = min(clusters, len(np.unique(here[few], axis=0)))
    with threadpool_limits(1):
        fitted = KMeans(count, n_init=4, random_state=0).fit(here[few] / scale)
        labels = fitted.predict(here / scale)
        near = None if reference is None else fitted.predict(reference / scale)
    found = []
    for one, centre in enumerate(fitted.cluster_centers_):
        mine = labels == one
        if not mine.any():
            continue
        reach = np.quantile(np.linalg.norm(here[mine] / scale - centre, axis=1), _WITHIN)
        inside = 0
        if reference is not None:
            apart = np.linalg.norm(reference[near == one] / scale - centre, axis=1)
            inside = int((apart <= reach).sum())
        at = np.maximum(centre * scale, 0.0)  # a mean of zeros may come out a hair below
        part = traffic.take(mine)
        models = part.models.value_counts()
        found.append(
            Region(
                tuple(at.tolist()),
                len(part) / len(here),
                len(part),
                int(part.rows["quality"].notna().sum()),
                inside,
                str(models.index[0]),
                float(models.iloc[0] / len(part)),
                float(part.rows["cost_usd"].astype(float).mean()),
            )
        )
    return tuple(sorted(found, key=lambda region: (region.known, -region.decisions)))
