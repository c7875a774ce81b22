"""A catalog's own policy replayed on an eval set, and what another catalog would change there."""

from __future__ import annotations

from dataclasses import dataclass

from hydra_core.base.types import Catalog, IntArray
from hydra_core.replay.compare import Comparison, PolicyRun, compare, policy_run
from hydra_core.replay.metrics import PolicyMetrics, costliest, evaluate_choice
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.sweep import Sweep


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """One catalog with its own policy on one eval set.

    Attributes:
        choice: (n,) pool index each query goes to.
        metrics: With 95 % intervals; savings against its own costliest model.
    """

    catalog: Catalog
    data: ReplayData
    choice: IntArray
    run: PolicyRun
    metrics: PolicyMetrics


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """Two replayed catalogs and their paired differences (after minus before).

    Attributes:
        shares: Model id -> (traffic before, traffic after) as fractions of the common queries;
            models of either pool, cheapest first.
    """

    before: Replayed
    after: Replayed
    comparison: Comparison
    shares: dict[str, tuple[float, float]]


def replay_policy(catalog: Catalog, sweep: Sweep) -> Replayed:
    """Route every query of an eval set as this catalog would, at its own setting.

    Args:
        sweep: The set under the catalog's own rule and weights, for every setting.
    """
    data, choice = sweep.data, sweep.route(catalog.policy.knob)
    return Replayed(
        catalog=catalog,
        data=data,
        choice=choice,
        run=policy_run(catalog.name, data, choice),
        metrics=evaluate_choice(data, choice, baseline=costliest(data)),
    )


def what_if(before: Replayed, after: Replayed) -> WhatIf:
    """Compare two replayed catalogs, paired by query.

    Raises:
        ValueError: They have no query in common.
    """
    groups: list[object] | None = None
    if before.data.clusters is not None:
        groups = [None] * (int(max(before.data.rows.max(), after.data.rows.max())) + 1)
        for part in (after, before):
            if part.data.clusters is not None:
                for row, cluster in zip(part.data.rows, part.data.clusters, strict=True):
                    groups[row] = int(cluster)
    comparison = compare(before.run, after.run, groups)
    return WhatIf(before, after, comparison, _shares(before, after))


def _shares(before: Replayed, after: Replayed) -> dict[str, tuple[float, float]]:
    ranked = {
        model: cost
        for part in (before, after)
        for model, cost in zip(part.data.pool.ids, part.data.pool.cost.tolist(), strict=True)
    }
    return {
        model: (before.metrics.shares.get(model, 0.0), after.metrics.shares.get(model, 0.0))
        for model in sorted(ranked, key=ranked.__getitem__)
    }
