"""Import of HyDRA's own decision log: the messages it was allowed to keep, and the feedback."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.base.types import FloatArray
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import NO_MESSAGE, Asked
from hydra_core.evalsets.importers.traffic.served import Served, Traffic
from hydra_core.evalsets.rules import PROPENSITY


def read_decision_log(
    folder: Path,
    models: Mapping[str, str] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    arm: str | None = None,
) -> Draft:
    """Decisions that were answered and have an outcome; each becomes a query.

    Args:
        folder: As given to `serve --log`; text is in it only with `--log-text`.
        models: Model id -> name in the log; by default every model under its own name.
        since: Leave out decisions before it.
        until: Leave out decisions from it on.
        arm: Only decisions of this arm of a canary.

    Raises:
        LogError: The folder is not there or damaged.
        EvalSetError: Nothing is left, with the reasons.
    """
    traffic = Traffic(zero_is_unknown=False)
    decisions = read_log(folder, since=since, until=until, arm=arm).decisions
    for line, row in enumerate(decisions.to_dict("records"), 1):
        text = row["text"] if isinstance(row["text"], str) else ""
        context = row["context"] if isinstance(row["context"], str) else ""
        conversation = row["conversation_id"]
        problem = "" if text.strip() else f"{NO_MESSAGE} (serve with --log-text)"
        asked = Asked(text, int(row["turn"]), context, problem=problem)
        traffic.add(
            Served(
                (folder.name, line),
                str(row["decision_id"]),
                asked,
                str(row["served"] or ""),
                Feedback(_number(row["quality"])),
                _number(row["cost_usd"]),
                _number(row["input_tokens"]),
                _number(row["output_tokens"]),
                _number(row["latency_ms"]) / 1e3,
                conversation if isinstance(conversation, str) else "",
                _number(row["cached_tokens"]),
                str(row.get("team") or ""),
            )
        )
    draft = traffic.draft("decision log", models or {}, PriceCard())
    chances = _propensities(decisions, draft, models or {})
    return replace(draft, extras={**draft.extras, PROPENSITY: chances})


def _propensities(decisions: pd.DataFrame, draft: Draft, models: Mapping[str, str]) -> FloatArray:
    """(n, m) how likely each model was to serve each query; NaN where the log does not know."""
    columns = {models.get(name, name): j for j, name in enumerate(draft.models)}
    rows = {name: i for i, name in enumerate(draft.queries["query_id"])}
    found = np.full(draft.quality.shape, np.nan)
    known = decisions[decisions["propensities"].notna() & decisions["decision_id"].isin(rows)]
    for name, candidates, chances in zip(
        known["decision_id"], known["candidates"], known["propensities"], strict=True
    ):
        found[rows[name]] = 0.0
        for model, chance in zip(candidates, chances, strict=True):
            if model in columns:
                found[rows[name], columns[model]] = chance
    return found


def _number(value: object) -> float:
    return math.nan if pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]
