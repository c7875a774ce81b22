"""Success heads as a source of shortfalls, cross-fitted: by the fixed recipe where rows are few."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from hydra_core.base.types import FloatArray, IntArray, Progress
from hydra_core.choosing.heads import choose, fit, grouped_parts
from hydra_core.choosing.material import Material
from hydra_core.choosing.sources.few_outcomes import FEW, fit_few
from hydra_core.choosing.sources.lift import CrossFitted, Ranked
from hydra_core.choosing.sources.outcomes import Outcomes, outcomes_of
from hydra_core.outcome_model.model import OutcomeHeads
from hydra_core.outcome_model.raw import Predicted
from hydra_core.routing.matcher import cost_order, returns_on_upgrading


def _fit_heads(material: Material, *, few: bool, seed: int) -> OutcomeHeads:
    """Fit success heads: from few queries by the fixed recipe, else chosen by inner folds."""
    with threadpool_limits(1):
        if few:
            return fit_few(material, seed=seed)
        return fit(material, choose(material, np.random.default_rng(seed)), seed=seed)


def cross_fit_heads(
    material: Material,
    prices: FloatArray | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> CrossFitted:
    """Rank the models of every complete query by heads that have not seen it and its cluster.

    Args:
        prices: (m, 2) USD per million tokens read and written, in the order of the material's
            models; None predicts cost as the set has it.
        folds, seed, progress: As in `lift.cross_fit`.

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
        pool = heads.for_pool(material.models, np.zeros(m), prices)
        predicted = pool.predict(material.messages.take(rows))
        success[rows], cost[rows] = predicted.success, predicted.cost_usd
        if progress is not None:
            progress(number + 1, folds)
    return rank_predictions(material, Predicted(success, cost), part)


def rank_predictions(
    material: Material, predicted: Predicted, part: IntArray | None = None
) -> CrossFitted:
    """Rank the complete queries of a material by cross-fitted predictions.

    Args:
        predicted: (n, m) for every row of the material, such as `Learning.predicted`.
        part: (n,) the fold of each row, where it is known.
    """
    rows = material.complete
    known = None if part is None else part[rows]
    return rank_outcomes(outcomes_of(material), predicted.take(rows), known)


def rank_outcomes(
    outcomes: Outcomes, predicted: Predicted, part: IntArray | None = None
) -> CrossFitted:
    """Rank queries by cross-fitted predictions, (n, m) in the order of the outcomes' models."""
    returns = returns_on_upgrading(predicted.success, predicted.cost_usd)
    ranked = Ranked(outcomes, returns, cost_order(returns, predicted.cost_usd))
    own = np.zeros(outcomes.n, np.intp) if part is None else part
    return CrossFitted(ranked, own, predicted=predicted)
