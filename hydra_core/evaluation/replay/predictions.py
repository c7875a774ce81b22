"""What an outcome model predicts for the queries of an eval set, without looking at the answers.

A query that the model was learned on is never predicted by heads that have seen it: its
cross-fitted predictions are used, and only where that was asked for.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hydra_core.errors import MismatchError
from hydra_core.evaluation.evalset.evalset import EvalSet
from hydra_core.evaluation.evalset.score_files import messages_of
from hydra_core.outcome_model.find import require_same_bundle
from hydra_core.outcome_model.learned import text_digests
from hydra_core.outcome_model.model import OutcomeModel, PoolHeads
from hydra_core.outcome_model.raw import Predicted, Raw
from hydra_core.types import BoolArray, Catalog, Pool

__all__ = ["pool_heads", "predict_evalset"]


def pool_heads(model: OutcomeModel, catalog: Catalog, pool: Pool) -> PoolHeads:
    """The heads of a catalog's pool, at its prices.

    Raises:
        MismatchError: The catalog is bound to another bundle, or no model of the pool is known.
    """
    require_same_bundle(catalog, model)
    if not set(pool.ids) & set(model.models):
        raise MismatchError(
            f"outcome model {model.path.name!r} knows {', '.join(model.models)}, and none of the "
            f"models of catalog {catalog.name!r}: {', '.join(pool.ids)}"
        )
    specs = [catalog.model(name) for name in pool.ids]
    prices = np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])
    return model.heads.for_pool(pool.ids, pool.capabilities.mean(axis=1), prices)


def predict_evalset(
    evalset: EvalSet, model: OutcomeModel, heads: PoolHeads, *, cross_fitted: bool
) -> Predicted:
    """Success and cost of every query of the set, (n, m) in the order of the pool.

    Args:
        heads: Of the pool, from the same model.
        cross_fitted: Use the cross-fitted predictions for queries that were learned on.

    Raises:
        MismatchError: The set shares queries with what was learned, and `cross_fitted` is off.
        EvalSetError: The set has no vectors of the model's bundle.
    """
    messages = messages_of(evalset, model.fingerprint, model.vectors)
    texts = text_digests([] if evalset.texts is None else evalset.texts.tolist())
    rows = model.learned.rows_of(evalset.query_ids, texts)
    seen = rows >= 0
    if seen.any() and not cross_fitted:
        raise MismatchError(
            f"{int(seen.sum())} of the {evalset.n} queries of '{evalset.name}' were learned on: "
            "evaluate on others, or add --cross-fitted to use predictions by heads that had not "
            "seen them"
        )
    found = model.heads.read(messages)
    if seen.any():
        found = _with(found, model.learned.raw.take(rows[seen]), seen)
    return heads.combine(found)


def _with(fresh: Raw, known: Raw, rows: BoolArray) -> Raw:
    values = {}
    for name in Raw.__slots__:
        whole = np.array(getattr(fresh, name))
        whole[rows] = getattr(known, name)
        values[name] = whole
    return replace(fresh, **values)
