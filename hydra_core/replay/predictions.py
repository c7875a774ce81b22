"""What an outcome model predicts of an eval set's queries, as the value rule weighs it.

A query that it was learned on is never predicted by heads that have seen it: its cross-fitted
predictions are used, and only where that was asked for.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hydra_core.base.errors import MismatchError
from hydra_core.base.list_price import long_prices
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import BoolArray, Catalog, FloatArray, IntArray, Pool
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.format import require_same_bundle
from hydra_core.outcome_model.heads import Predicted, Raw
from hydra_core.outcome_model.model import OutcomeModel, PoolHeads, text_digests
from hydra_core.replay.frontier import CLOSED


def weighed(
    ids: Sequence[str], closed: BoolArray | None, catalog: Catalog, predicted: Predicted
) -> Predicted:
    """What the rule weighs: time at its price in the cost, and models that a gate keeps out.

    Times are those of the catalog, as a service has them when it starts.

    Args:
        ids: (m,) the models predicted.
        closed: (n, m) where a gate keeps a model from a query; None where none does.
    """
    success, cost_usd = predicted.success, predicted.cost_usd
    if catalog.policy.second_usd:
        seconds = [catalog.model(name).latency_s or 0.0 for name in ids]
        cost_usd = cost_usd + catalog.policy.second_usd * np.asarray(seconds)
    return gated(Predicted(success, cost_usd), closed)


def gated(predicted: Predicted, closed: BoolArray | None) -> Predicted:
    """Predictions by which no model is chosen that a gate keeps out; `closed` as in `weighed`."""
    if closed is None:
        return predicted
    success, cost_usd = predicted.success, predicted.cost_usd
    # worth nothing at any V: no gate opens for money
    return Predicted(np.where(closed, -CLOSED, success), np.where(closed, CLOSED, cost_usd))


def pool_heads(model: OutcomeModel, catalog: Catalog, pool: Pool) -> PoolHeads:
    """The heads of a catalog's pool, at its prices; MismatchError for another bundle or models."""
    require_same_bundle(catalog, model)
    if not set(pool.ids) & set(model.models):
        raise MismatchError(
            f"outcome model {model.path.name!r} knows {', '.join(model.models)}, and none of the "
            f"models of catalog {catalog.name!r}: {', '.join(pool.ids)}"
        )
    specs = [catalog.model(name) for name in pool.ids]
    prices = np.array([[s.input_usd_per_mtok, s.output_usd_per_mtok] for s in specs])
    long = long_prices([one.price for one in specs])
    return model.heads.for_pool(pool.ids, pool.capabilities.mean(axis=1), prices, long)


def input_sizes(evalset: EvalSet) -> FloatArray | None:
    """(n,) input tokens of each query as the router estimates them; None without texts.

    The counted input tokens of an outcome may be those of many requests, as of an agent's task.
    """
    if evalset.texts is None:
        return None
    return np.array([text_tokens(text) for text in evalset.texts.tolist()])


def predict_evalset(
    evalset: EvalSet, model: OutcomeModel, heads: PoolHeads, *, cross_fitted: bool
) -> Predicted:
    """Success and cost of every query of the set, (n, m) in the order of the pool.

    Args:
        heads: Of the pool, from the same model.
        cross_fitted: Use the cross-fitted predictions for queries that were learned on.

    Raises:
        MismatchError: The set shares queries with what was learned, and `cross_fitted` is off.
        EvalSetError: The set has no vectors of the model's bundle for queries that were not
            learned on.
    """
    rows = learned_rows(evalset, model)
    seen = rows >= 0
    if seen.any() and not cross_fitted:
        raise MismatchError(
            f"{int(seen.sum())} of the {evalset.n} queries of '{evalset.name}' were learned on: "
            "evaluate on others, or add --cross-fitted to use predictions by heads that had not "
            "seen them"
        )
    found = model.learned.raw.take(rows)
    if not seen.all():
        messages = messages_of(evalset, model.fingerprint, model.vectors)
        found = _with(found, model.heads.read(messages.take(np.flatnonzero(~seen))), ~seen)
    return heads.combine(found, input_sizes(evalset) if heads.long else None)


def learned_rows(evalset: EvalSet, model: OutcomeModel) -> IntArray:
    """(n,) the learned row of every query of the set, -1 for those that were not learned on."""
    texts = text_digests([] if evalset.texts is None else evalset.texts.tolist())
    return model.learned.rows_of(evalset.query_ids, texts)


def _with(said: Raw, fresh: Raw, rows: BoolArray) -> Raw:
    values = {}
    for name in Raw.__slots__:
        whole = np.array(getattr(said, name))
        whole[rows] = getattr(fresh, name)
        values[name] = whole
    return replace(said, **values)
