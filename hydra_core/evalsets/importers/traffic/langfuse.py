"""Import of a Langfuse export: generations of `observations_v2`, feedback from `scores`.

A score belongs to a generation by its observation_id, else by its trace_id (then the whole trace
was judged, and its last generation carries the score). The value of a categorical or text score is
a placeholder: what its label is worth is for the operator to say. Latency is in seconds; exports
that wrote milliseconds are known by the times beside it, which are the latency where none is
written. A cost of 0 means that Langfuse had no price.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import (
    decoded,
    first_number,
    identifier,
    number,
    rows_of,
    seconds_between,
    text,
)
from hydra_core.evalsets.importers.traffic.served import Served, Traffic

_WORDS: Final = ("CATEGORICAL", "TEXT")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INPUT: Final = ("input", "input_tokens", "prompt_tokens")
_OUTPUT: Final = ("output", "output_tokens", "completion_tokens")
_CACHED: Final = (
    *("input_cached_tokens", "cache_read_input_tokens", "input_cache_read", "cached_tokens"),
    "input_cached",
)


def read_langfuse(observations: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Generations with a score, of the files of scores beside them; each becomes a query.

    Raises:
        EvalSetError: Several scores and none chosen, labels without a quality, nothing left (with
            the reasons), damage.
    """
    budget, traffic = Budget(), Traffic(given)
    by_observation, by_trace = _scores(budget, traffic)
    last: dict[str, Served] = {}
    between: dict[tuple[str, int], float] = {}
    rows: list[Served] = []
    for place, found in rows_of(observations, budget, traffic.unread):
        facts = _snake(found)
        query_id, trace = identifier(facts.get("id")), identifier(facts.get("trace_id"))
        if text(facts.get("type")).upper() != "GENERATION":
            traffic.skip("no generation (a span or an event)", query_id)
            continue
        if text(facts.get("level")).upper() == "ERROR":
            traffic.skip("the request failed", query_id)
            continue
        served = _served(place, facts, by_observation.get(query_id, Feedback()))
        between[place] = seconds_between(facts.get("start_time"), facts.get("end_time"))
        if served.feedback.absent and trace in by_trace:
            before = last.get(trace)
            if before is not None:
                traffic.skip("not the last generation of its trace", before.query_id)
            last[trace] = replace(served, feedback=by_trace[trace])
        else:
            rows.append(served)
    rows += last.values()
    divisor = _milliseconds([(row.latency_s, between[row.place]) for row in rows], traffic)
    for row in rows:
        written = row.latency_s / divisor
        traffic.add(replace(row, latency_s=between[row.place] if math.isnan(written) else written))
    return traffic.draft("Langfuse")


def _snake(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the names of the export, from those of Langfuse's API as well."""
    facts = {_CAPITAL.sub("_", name).lower(): value for name, value in row.items()}
    for name, other in (
        ("provided_model_name", "model"),
        ("total_cost", "calculated_total_cost"),
        ("usage_details", "usage"),
    ):
        if facts.get(name) in (None, ""):
            facts[name] = facts.get(other)
    return facts


def _served(place: tuple[str, int], row: Mapping[str, Any], feedback: Feedback) -> Served:
    usage, cost = decoded(row.get("usage_details")), decoded(row.get("cost_details"))
    counts = usage if isinstance(usage, Mapping) else _usage_columns(row)
    read, written, cached = _tokens(counts)
    cost_usd = number(row.get("total_cost"))
    if math.isnan(cost_usd) and isinstance(cost, Mapping):
        cost_usd = number(cost.get("total"))
    return Served(
        place,
        identifier(row.get("id")),
        asked_in(row.get("input")),
        text(row.get("provided_model_name")),
        feedback,
        cost_usd=cost_usd,
        input_tokens=read,
        output_tokens=written,
        latency_s=number(row.get("latency")),
        conversation_id=text(row.get("session_id")),
        cached_input_tokens=cached,
    )


def _usage_columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of a table that Langfuse's own pages export, which has a column for each count."""
    return {
        name: row[column]
        for name, columns in (
            ("input", ("input_usage", "prompt_tokens")),
            ("output", ("output_usage", "completion_tokens")),
            ("total", ("total_usage", "total_tokens")),
        )
        for column in columns
        if row.get(column) not in (None, "")
    }


def _tokens(usage: Mapping[str, Any]) -> tuple[float, float, float]:
    """(input, output, cached) tokens.

    Langfuse counts each kind on its own: cached input stands beside `input`, unless the total says
    that it is a part of it.
    """
    inside = [value for value in usage.values() if isinstance(value, Mapping)]
    counts = {name: number(value) for name, value in usage.items()}
    counts |= {n: number(one[n]) for one in inside for n in _CACHED if n in one}
    counts = {name: count for name, count in counts.items() if not math.isnan(count)}
    read, written, cached = (first_number(counts, names) for names in (_INPUT, _OUTPUT, _CACHED))
    total = counts.get("total", counts.get("total_tokens", math.nan))
    parts_of_it = total == read + written
    if not parts_of_it and "prompt_tokens" not in counts:
        read += sum(_beside(counts, ("input_", "cache_"), _INPUT))
        written += sum(_beside(counts, ("output_",), _OUTPUT))
    return read, written, cached


def _beside(
    counts: Mapping[str, float], beginnings: tuple[str, ...], total: Sequence[str]
) -> list[float]:
    return [n for name, n in counts.items() if name.startswith(beginnings) and name not in total]


def _milliseconds(latencies: Sequence[tuple[float, float]], traffic: Traffic) -> float:
    """1000 where the latencies are milliseconds, judged by the times beside them; else 1."""
    ratios = [latency / between for latency, between in latencies if latency > 0 and between > 0]
    if not ratios or not 900 < median(ratios) < 1100:
        return 1.0
    traffic.warnings.append(
        "latency is written in milliseconds (it is 1000 times end_time minus start_time); it was "
        "read as such"
    )
    return 1000.0


def _scores(budget: Budget, traffic: Traffic) -> tuple[dict[str, Feedback], dict[str, Feedback]]:
    """Observation id -> score and trace id -> score, of the one name that was chosen."""
    wanted, files = traffic.given.score, traffic.given.more
    rows = [_snake(row) for _, row in rows_of(files, budget, traffic.unread)]
    traffic.choose_score(sorted({text(row.get("name")) for row in rows}), "scores")
    by_observation: dict[str, Feedback] = {}
    by_trace: dict[str, Feedback] = {}
    differing = 0
    for row in rows:
        if wanted and text(row.get("name")) != wanted:
            continue
        observation, trace = identifier(row.get("observation_id")), identifier(row.get("trace_id"))
        feedback, side = _feedback(row), by_observation if observation else by_trace
        key = observation or trace
        if key:
            differing += side.get(key, feedback) != feedback
            side[key] = feedback
    if differing:
        traffic.warnings.append(f"{differing} scores differ from an earlier one of the same; the "
                                "last of the file counts")  # fmt: skip
    return by_observation, by_trace


def _feedback(row: Mapping[str, Any]) -> Feedback:
    """A score as feedback; the value of one given in words is a placeholder."""
    label = text(row.get("string_value")).strip()
    kind = text(row.get("data_type")).upper()
    if kind in _WORDS or (not kind and label and label.lower() not in ("true", "false")):
        return Feedback(label=label or "(no label)")
    return Feedback(number(row.get("value")))
