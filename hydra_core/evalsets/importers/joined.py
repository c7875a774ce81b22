"""Eval sets joined to one: every query of any of them, with the outcomes that any of them has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.evalset import EvalSet
from hydra_core.evalsets.importers.draft import Draft, report_on

_SHOWN: Final = 3


def join_sets(sets: Sequence[EvalSet]) -> Draft:
    """Join by query id. Where two sets have the same outcome, the first named counts.

    Raises:
        EvalSetError: One set only, or an id with another text in another set.
    """
    if len(sets) < 2:
        raise EvalSetError("join", [Problem("", "one set is nothing to join", "name two or more")])
    _check_texts(sets)
    queries = _queries(sets)
    models = tuple(dict.fromkeys(model for one in sets for model in one.models))
    shape = (len(queries), len(models))
    place = pd.Index(queries["query_id"])
    extras = list(dict.fromkeys(name for one in sets for name in one.extras))
    whole = {name: np.full(shape, np.nan) for name in ("quality", "cost_usd", *extras)}
    kept_before = 0
    for one in sets:
        at = np.ix_(place.get_indexer(one.query_ids), [models.index(m) for m in one.models])
        known = np.isfinite(whole["quality"][at])
        kept_before += int((known & np.isfinite(one.quality)).sum())
        for name, into in whole.items():
            own = {"quality": one.quality, "cost_usd": one.cost_usd}.get(name, one.extras.get(name))
            if own is not None:
                into[at] = np.where(known | ~np.isfinite(own), into[at], own)
    quality, cost_usd = whole.pop("quality"), whole.pop("cost_usd")
    warnings = []
    if kept_before:
        warnings.append(f"{kept_before} outcomes are in several sets; the first named counts")
    return Draft(
        queries=queries,
        models=models,
        quality=quality,
        cost_usd=cost_usd,
        report=report_on(models, quality, cost_usd, (), warnings, queries),
        extras=whole,
        cost_estimated=any(one.cost_estimated for one in sets),
        prices={k: v for one in reversed(sets) for k, v in one.prices.items()},
    )


def _check_texts(sets: Sequence[EvalSet]) -> None:
    """Refuse an id that stands for two texts."""
    frames = [
        pd.DataFrame({"id": one.query_ids, "text": one.texts.fillna("").astype(str).to_numpy()})
        for one in sets
        if one.texts is not None
    ]
    if not frames:
        return
    several = pd.concat(frames).drop_duplicates()
    twice = several.loc[several["id"].duplicated(), "id"].unique()
    if twice.size:
        shown = ", ".join(map(repr, twice[:_SHOWN])) + (", ..." if twice.size > _SHOWN else "")
        message = f"{twice.size} id(s) stand for different texts: {shown}"
        raise EvalSetError("join", [Problem("query_id", message, "give the queries ids apart")])


def _queries(sets: Sequence[EvalSet]) -> pd.DataFrame:
    """The query table: the first set's row of each query; columns that any of them has."""
    rows = pd.concat([one.queries for one in sets], ignore_index=True)
    rows = rows.drop_duplicates("query_id").reset_index(drop=True)
    if rows.get("text") is not None and rows["text"].isna().any():
        names = ", ".join(one.name for one in sets if one.texts is None)
        message = f"{names} has no texts and others have"
        raise EvalSetError("join", [Problem("queries: text", message, "join sets alike")])
    for name in ("conversation_id", "context", "group", "cluster"):
        if name in rows.columns:
            rows[name] = rows[name].where(rows[name].notna(), None)
    if "has_image" in rows.columns:
        rows["has_image"] = rows["has_image"].fillna(False).astype(bool)
    return rows
