"""What a catalog's routes would be worth, from logged traffic whose probabilities are known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from hydra_core.base.intervals import SHARE, Interval
from hydra_core.base.types import Catalog, FloatArray
from hydra_core.catalog.profiles import pool
from hydra_core.live.off_policy import (
    LoggedOutcomes,
    NoOverlapError,
    PolicyValue,
    cross_fitted_quality,
    policy_value,
)
from hydra_core.live.shadow import predicted, replayable, routes
from hydra_core.live.traffic import Traffic
from hydra_core.replay.significance import mean_interval


@dataclass(frozen=True, slots=True)
class LoggedValue:
    """A catalog's value beside that of what was served.

    Attributes:
        value: Mean quality the catalog would have had.
        live: Mean quality of the same decisions as they were served.
        explored: Share of them in which chance had a say.
        closed: Models that the catalog would serve where the log could not have, most often first.
    """

    value: PolicyValue
    live: Interval
    explored: float
    closed: tuple[str, ...] = ()

    @property
    def caution(self) -> str:
        """Why there are bounds instead of a value, and the way out; '' where there is a value."""
        if not self.closed:
            return ""
        return (
            f"In {100 * self.value.unsupported:.1f} % of the decisions this catalog would serve "
            f"{', '.join(self.closed)}, which the log could not have served there: exploration "
            "tries only models that the rule holds capable (--explore-floor). That part may be "
            "worth anything from 0 to 1. serve --explore-all 0.02 keeps every model possible"
        )


def logged_value(traffic: Traffic, catalog: Catalog, today: date) -> LoggedValue:
    """The value of a catalog's routes on rated decisions with true propensities.

    Raises:
        NoOverlapError: The log cannot say; the message says what is missing.
        HydraError: The catalog cannot be replayed from a log.
    """
    traffic = predicted(traffic, catalog, today)
    usable, _ = replayable(traffic, catalog)
    rows = traffic.rows
    known = rows["quality"].notna() & rows["propensities"].notna() & (rows["served"] != "")
    some = traffic.take(usable & np.asarray(known, dtype=bool))
    if not len(some):
        raise NoOverlapError(
            "no decision has both a known probability and feedback. Send outcomes (POST "
            "/v1/outcomes) and explore (serve --explore); until then only mix, agreement and cost "
            "are known"
        )
    wanted = routes(some, catalog, today)
    some, wanted = some.take(wanted >= 0), wanted[wanted >= 0]
    chances, ids = _chances(some, pool(catalog, today=today).ids)
    explored = float((chances.max(axis=1) < 1.0).mean())
    if not explored:
        raise NoOverlapError(
            "nothing was explored, so the log has no outcomes of models that were not chosen. "
            "Start serve with --explore 0.02; until then only mix, "
            "agreement and cost are known"
        )
    served = np.array([ids[name] for name in some.models])
    quality = some.rows["quality"].to_numpy(dtype=np.float64)
    logged = LoggedOutcomes(served, chances, quality, some.clusters)
    target = np.zeros_like(chances)
    names = pool(catalog, today=today).ids
    target[np.arange(len(some)), [ids[names[i]] for i in wanted]] = 1.0
    quality_by_model = cross_fitted_quality(some.requirements(), logged)
    value = policy_value(logged, target, quality_by_model)
    live = mean_interval(quality, some.clusters).clipped(*SHARE)
    missed = (target * (chances <= 0)).sum(axis=0)
    order = np.argsort(-missed, kind="stable")
    every = list(ids)
    return LoggedValue(value, live, explored, tuple(every[i] for i in order if missed[i]))


def _chances(some: Traffic, more: tuple[str, ...]) -> tuple[FloatArray, dict[str, int]]:
    """(n, m) propensities over all models of the log and the catalog, and their columns."""
    ids: dict[str, int] = {}
    for names in (*some.rows["candidates"], more):
        for name in names:
            ids.setdefault(str(name), len(ids))
    chances = np.zeros((len(some), len(ids)))
    for row, (names, values) in enumerate(
        zip(some.rows["candidates"], some.rows["propensities"], strict=True)
    ):
        chances[row, [ids[name] for name in names]] = values
    return chances, ids
