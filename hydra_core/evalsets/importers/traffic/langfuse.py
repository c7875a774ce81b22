"""Import of a Langfuse export: generations of `observations_v2`, feedback from `scores`.

A score belongs to a generation by its observation_id, else by its trace_id (then the whole trace
was judged, and its last generation carries the score). Latency is in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.rows import decoded, number, rows_of, text
from hydra_core.evalsets.importers.traffic.served import Served, Traffic, last_message
from hydra_core.routing.conversations.context import LastTurn


def read_langfuse(
    observations: Sequence[TableFile],
    scores: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    *,
    score: str = "",
    scale: float = 1.0,
) -> Draft:
    """Generations with a score; each becomes a query.

    Args:
        observations, scores: Files of the export.
        models: Model id -> provided_model_name.
        score: Name of the score to take; needed where there are several.
        scale: The score that means 1.

    Raises:
        EvalSetError: Several scores and none chosen, nothing left (with the reasons), damage.
    """
    budget = Budget()
    by_observation, by_trace = _scores(scores, score, budget)
    traffic = Traffic()
    last: dict[str, Served] = {}
    for place, row in rows_of(observations, budget):
        query_id, trace = text(row.get("id")), text(row.get("trace_id"))
        if text(row.get("type")).upper() != "GENERATION":
            traffic.skip("no generation (a span or an event)", query_id)
            continue
        served = _served(place, row, by_observation.get(query_id, math.nan))
        if math.isnan(served.quality) and trace in by_trace:
            before = last.get(trace)
            if before is not None:
                traffic.skip("not the last generation of its trace", before.query_id)
            last[trace] = Served(**{**_fields(served), "quality": by_trace[trace]})
        else:
            traffic.add(served)
    for served in last.values():
        traffic.add(served)
    return traffic.draft("Langfuse", models or {}, PriceCard(), scale=scale)


def _fields(served: Served) -> dict[str, Any]:
    return {name: getattr(served, name) for name in Served.__slots__}


def _served(place: tuple[str, int], row: Mapping[str, Any], quality: float) -> Served:
    asked = decoded(row.get("input"))
    last = LastTurn(asked) if isinstance(asked, str) else last_message(asked)
    usage, cost = decoded(row.get("usage_details")), decoded(row.get("cost_details"))
    usage = usage if isinstance(usage, Mapping) else {}
    cost_usd = number(row.get("total_cost"))
    if math.isnan(cost_usd) and isinstance(cost, Mapping):
        cost_usd = number(cost.get("total"))
    return Served(
        place,
        text(row.get("id")),
        last.text,
        text(row.get("provided_model_name")),
        quality,
        cost_usd,
        number(usage.get("input")),
        number(usage.get("output")),
        number(row.get("latency")),
        text(row.get("session_id")),
        last.turn,
        context=last.context,
    )


def _scores(
    files: Sequence[TableFile], wanted: str, budget: Budget
) -> tuple[dict[str, float], dict[str, float]]:
    """Observation id -> score and trace id -> score, of the one name that was chosen."""
    rows = [row for _, row in rows_of(files, budget)]
    names = sorted({text(row.get("name")) for row in rows})
    if not wanted and len(names) > 1:
        remedy = "choose one with --score NAME"
        message = f"holds several scores: {', '.join(names[:10])}"
        raise EvalSetError("scores", [Problem("", message, remedy)])
    if wanted and wanted not in names:
        remedy = f"there are: {', '.join(names[:10])}"
        raise EvalSetError("scores", [Problem("--score", f"{wanted!r} does not occur", remedy)])
    by_observation, by_trace = {}, {}
    for row in rows:
        if wanted and text(row.get("name")) != wanted:
            continue
        observation, value = text(row.get("observation_id")), number(row.get("value"))
        if observation:
            by_observation[observation] = value
        else:
            by_trace[text(row.get("trace_id"))] = value
    return by_observation, by_trace
