"""What a catalog that routes by value would have predicted for logged decisions.

A log holds no text vectors. Predictions are those it was served with, where outcome model, models,
profiles and prices were the same (only V may differ); else they are made again from the messages,
where the operator let them into the log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final

import numpy as np

from hydra_core.catalog.profiles import pool
from hydra_core.evaluation.live.traffic import Traffic
from hydra_core.outcome_model.features import Messages
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.predictor.surface import surface_counts
from hydra_core.routing.valuation import Valuer, valuer_of
from hydra_core.types import BoolArray, Catalog, FloatArray, Rule

__all__ = ["Predict", "has_predictions", "predicted", "predictions"]

#: (n,) messages, their turns and contexts -> their scores and vectors.
Predict = Callable[[list[str], list[int], list[str]], Prediction]
_SUCCESS: Final = "replayed_success"
_COST: Final = "replayed_cost_usd"


def predicted(
    traffic: Traffic, catalog: Catalog, today: date, predict: Predict | None = None
) -> Traffic:
    """The traffic with the catalog's predictions where they can be known.

    Args:
        traffic: Returned as it is where the catalog does not route by value, or it was done before.
        predict: Scores logged messages again; None where that is not wanted.

    Raises:
        HydraError: The catalog's outcome model is missing or belongs to another predictor.
    """
    if catalog.policy.rule is not Rule.VALUE or _SUCCESS in traffic.rows:
        return traffic
    valuer = valuer_of(catalog, pool(catalog, today=today))
    assert valuer is not None
    rows = traffic.rows.copy()
    same = (rows["valued_by"] == valuer.digest) & rows["predicted_success"].notna()
    rows[_SUCCESS] = rows["predicted_success"].where(same, None)
    rows[_COST] = rows["predicted_cost_usd"].where(same, None)
    made = Traffic(rows, traffic.clusters, traffic.orphans, traffic.lost)
    if predict is not None:
        _from_texts(made, valuer, catalog.predictor_fingerprint, predict)
    return made


def has_predictions(traffic: Traffic) -> BoolArray:
    """(n,) whether the catalog's predictions are known; `predicted` made the traffic."""
    return np.asarray(traffic.rows[_SUCCESS].notna(), dtype=bool)


def predictions(traffic: Traffic) -> tuple[FloatArray, FloatArray]:
    """(n, m) success and cost in USD, pool order; every decision must have them."""
    success, cost_usd = (np.stack(list(traffic.rows[name])) for name in (_SUCCESS, _COST))
    return success.astype(np.float64), cost_usd.astype(np.float64)


def _from_texts(traffic: Traffic, valuer: Valuer, fingerprint: str, predict: Predict) -> None:
    """Fill in what the log does not hold but for the message itself."""
    rows = traffic.rows
    wanted = traffic.routed & traffic.scored & ~has_predictions(traffic)
    wanted &= np.asarray(rows["text"].notna() & (rows["predictor"] == fingerprint), dtype=bool)
    places = np.flatnonzero(wanted)
    if not places.size:
        return
    texts = rows["text"].iloc[places].tolist()
    contexts = rows["context"].iloc[places].fillna("").tolist()
    found = predict(texts, rows["turn"].iloc[places].astype(int).tolist(), contexts)
    assert found.vectors is not None  # the outcome model's bundle has them
    vectors = found.vectors.astype(np.float16)
    said = valuer.heads.predict(Messages(found.requirements, vectors, surface_counts(texts)))
    for name, values in ((_SUCCESS, said.success), (_COST, said.cost_usd)):
        column = rows[name].to_numpy(dtype=object).copy()
        for place, value in zip(places, values, strict=True):
            column[place] = value
        rows[name] = column
