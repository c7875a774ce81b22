"""The sources of shortfalls judged on a material alone, without a catalog or a replay."""

import numpy as np
from threadpoolctl import threadpool_limits

from hydra_core.choosing.heads import choose, fit, grouped_parts
from hydra_core.choosing.lift import CrossFitted
from hydra_core.choosing.material import Material, Outcomes, groups_at
from hydra_core.choosing.sources.few_outcomes import FEW, fit_few
from hydra_core.choosing.sources.grader_check import findings_of
from hydra_core.choosing.sources.ladder import Ladder, ladder_of, rank_outcomes
from hydra_core.outcome_model.heads import Predicted
from hydra_core.outcome_model.model import OutcomeHeads


def outcomes_of(material: Material) -> Outcomes:
    """Return the rows of a material on which every model has an outcome and a cost.

    Raises:
        ValueError: No row is complete.
    """
    rows = material.complete
    if not rows.size:
        raise ValueError("no query has an outcome and a cost of every model")
    tokens = (material.input_tokens, material.output_tokens)
    read, written = (
        None if values is None or not np.isfinite(values[rows]).all() else values[rows]
        for values in tokens
    )
    return Outcomes(
        material.models,
        np.asarray(material.messages.requirements[rows], dtype=np.float64),
        material.quality[rows],
        material.cost_usd[rows],
        np.unique(material.clusters[rows], return_inverse=True)[1],
        read,
        written,
    )


def _fit_heads(material: Material, *, few: bool, seed: int) -> OutcomeHeads:
    """Fit success heads: from few queries by the fixed recipe, else chosen by inner folds."""
    with threadpool_limits(1):
        if few:
            return fit_few(material, seed=seed)
        return fit(material, choose(material, np.random.default_rng(seed)), seed=seed)


def cross_fit_heads(material: Material, *, folds: int = 5, seed: int = 0) -> CrossFitted:
    """Rank the models of every complete query by heads that have not seen it and its cluster.

    Args:
        folds, seed: As in `lift.cross_fit`.

    Raises:
        ValueError: Fewer clusters than folds, or no complete query.
    """
    if np.unique(material.clusters).size < folds:
        raise ValueError(f"{material.n} queries cannot be cut into {folds} parts")
    part = grouped_parts(material.clusters, folds, np.random.default_rng(seed))
    n, m = material.n, len(material.models)
    success, cost = np.empty((n, m)), np.empty((n, m))
    for number in range(folds):
        rows = np.flatnonzero(part == number)
        train = material.take(np.flatnonzero(part != number))
        heads = _fit_heads(train, few=n < FEW, seed=seed + number)
        pool = heads.for_pool(material.models, np.zeros(m), None)
        predicted = pool.predict(material.messages.take(rows))
        success[rows], cost[rows] = predicted.success, predicted.cost_usd
    rows = material.complete
    return rank_outcomes(outcomes_of(material), Predicted(success, cost).take(rows), part[rows])


def ladder(
    material: Material,
    *,
    heads: bool = True,
    groups_are_traffic: bool = False,
    folds: int = 5,
    seed: int = 0,
) -> Ladder:
    """Judge the four sources on one set.

    Args:
        material: What to learn from.
        heads: Whether to judge heads, which takes most of the time.
        groups_are_traffic: The operator says that the set's groups are real kinds of traffic.
        folds, seed: Of the cross-fits.

    Raises:
        ValueError: No complete query, or fewer clusters than folds.
    """

    def found() -> CrossFitted:
        return cross_fit_heads(material, folds=folds, seed=seed)

    return ladder_of(
        outcomes_of(material),
        None,
        groups_at(material.evalset, material.rows[material.complete]),
        findings_of(material.evalset, material.models),
        found if heads else None,
        groups_are_traffic=groups_are_traffic,
        folds=folds,
        seed=seed,
        progress=None,
    )
