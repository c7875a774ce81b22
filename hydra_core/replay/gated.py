"""The hard gates that the queries of an eval set make, as the router makes them of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from hydra_core.base.arrays import read_only
from hydra_core.base.spelling import counted
from hydra_core.base.tokens import text_tokens
from hydra_core.base.types import BoolArray, FloatArray, IntArray, ModelSpec
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.routing.gates import gate_of
from hydra_core.routing.query import Query

#: Columns of a set that hard gates read, but for the length of its texts.
GATED: Final = [
    *("has_image", "needs_tools", "needs", "require", "allow", "deny"),
    "context_tokens",
]


def ungated(evalset: EvalSet) -> EvalSet:
    """The set without these columns."""
    return replace(evalset, queries=evalset.queries.drop(columns=GATED, errors="ignore"))


def closed_models(queries: pd.DataFrame, specs: Sequence[ModelSpec]) -> BoolArray | None:
    """(n, m) where a hard gate that the columns know keeps a model out; None where none does."""
    closed = _too_long(queries, np.array([spec.context_window for spec in specs]))
    given = [name for name in GATED[:-1] if name in queries.columns]
    if given:
        facts = queries[given].astype(object).where(queries[given].notna(), None)
        keys = [tuple(row) for row in facts.itertuples(index=False)]
        by_key = {key: _closed(dict(zip(given, key, strict=True)), specs) for key in set(keys)}
        closed |= np.array([by_key[key] for key in keys], dtype=bool)
    return closed if closed.any() else None


def _closed(facts: Mapping[str, Any], specs: Sequence[ModelSpec]) -> list[bool]:
    """Which models a query's columns keep out, by the router's own gates."""
    needs, require, allow, deny = (
        frozenset(word.strip() for word in (facts.get(name) or "").split(",") if word.strip())
        for name in ("needs", "require", "allow", "deny")
    )
    query = Query(
        "",
        has_image=bool(facts.get("has_image")),
        needs_tools=bool(facts.get("needs_tools")),
        needs=needs,
        require=require,
        allow=allow or None,
        deny=deny,
    )
    return [gate_of(spec, query) is not None for spec in specs]


def stand_ins(closed: BoolArray, measured: BoolArray, cost: FloatArray) -> IntArray:
    """(n, m) who serves each query where one model is used alone: mostly that model itself.

    Where a gate keeps it out it is the next dearer model that may serve the query, else the dearest
    that may. Models without outcomes stand in where no other can.

    Args:
        closed: (n, m) where a gate keeps a model out; one model of each query is open.
        measured: (m,) models with outcomes.
        cost: (m,) what orders the models.
    """
    order = np.argsort(cost, kind="stable")
    able = ~closed[:, order]
    known = able & measured[order]
    able = np.where(known.any(axis=1, keepdims=True), known, able)
    n, m = closed.shape
    result = np.broadcast_to(np.arange(m), (n, m)).copy()
    later = m - 1 - able[:, ::-1].argmax(axis=1)  # the dearest
    for rank in range(m - 1, -1, -1):
        rows = closed[:, order[rank]]
        result[rows, order[rank]] = order[later[rows]]
        later = np.where(able[:, rank], rank, later)
    return result


def closed_by(stand_in: IntArray | None) -> BoolArray | None:
    """(n, m) where a gate keeps a model out: where another one, or none (-1), serves for it."""
    return None if stand_in is None else stand_in != np.arange(stand_in.shape[1])


def used_alone(
    quality: FloatArray, cost_usd: FloatArray, stand_in: IntArray | None
) -> tuple[FloatArray, FloatArray]:
    """(n, m) quality and cost in USD of each query where one model is used alone."""
    if stand_in is None:
        return quality, cost_usd
    quality, cost_usd = (
        read_only(np.take_along_axis(values, stand_in, axis=1)) for values in (quality, cost_usd)
    )
    return quality, cost_usd


def _too_long(queries: pd.DataFrame, windows: IntArray) -> BoolArray:
    """(n, m) where a query is longer than the window: as logged, else by the length of its text."""
    needed = np.zeros(len(queries))
    if "context_tokens" in queries.columns:
        needed = queries["context_tokens"].fillna(0).to_numpy(dtype=np.float64)
    texts = queries.get("text")
    if texts is not None:  # no text has more tokens than signs
        long = (texts.str.len().fillna(0).to_numpy() > windows.min()) & (needed == 0)
        for row in np.flatnonzero(long):
            needed[row] = round(text_tokens(texts.iloc[row]))
    return windows[None, :] < needed[:, None]


def gate_notes(closed: BoolArray | None, gone: int) -> tuple[str, ...]:
    """What a replay says of its gates.

    Args:
        closed: (n, m) where a gate keeps a model out, of the queries that are replayed.
        gone: Queries that no model may serve.
    """
    notes = []
    if closed is not None and (some := int(closed.any(axis=1).sum())):
        notes.append(
            f"A hard gate (such as image, tools or window) keeps a model out of "
            f"{counted(some, 'query')}. Where it is used alone or in a fixed mix, the next dearer "
            "model that may serve stands in for it."
        )
    if gone:
        notes.append(f"Left out: {counted(gone, 'query')} that no model may serve.")
    return tuple(notes)
