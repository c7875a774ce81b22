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
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import NO_MESSAGE, Asked
from hydra_core.evalsets.importers.traffic.rows import text
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
    names = models or {}
    traffic = Traffic(Given(models=names), zero_is_unknown=False)
    decisions = read_log(folder, since=since, until=until, arm=arm).decisions
    for line, row in enumerate(decisions.to_dict("records"), 1):
        message = text(row["text"])
        problem = "" if message.strip() else f"{NO_MESSAGE} (serve with --log-text)"
        asked = Asked(message, int(row["turn"]), text(row["context"]), problem=problem)
        traffic.add(
            Served(
                (folder.name, line),
                str(row["decision_id"]),
                asked,
                str(row["served"] or ""),
                Feedback(_number(row["quality"])),
                cost_usd=_number(row["cost_usd"]),
                input_tokens=_number(row["input_tokens"]),
                output_tokens=_number(row["output_tokens"]),
                latency_s=_number(row["latency_ms"]) / 1e3,
                conversation_id=text(row["conversation_id"]),
                cached_input_tokens=_number(row["cached_tokens"]),
                group=str(row.get("team") or ""),
            )
        )
    draft = traffic.draft("decision log")
    chances = _propensities(decisions, draft, names)
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
