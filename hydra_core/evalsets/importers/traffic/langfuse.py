"""Import of Langfuse's export: generations of `observations_v2`, and feedback from `scores`.

A score belongs to a generation by its observation_id, else to the span around it or by its trace_id
(then the whole was judged, and its last generation carries the score). The value of a categorical
or text score is a placeholder or the label: what that is worth is for the operator to say.
Latency is in seconds; exports that wrote milliseconds are known by the times beside it, which are
the latency where none is written. A cost of 0 means that Langfuse had no price.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.base.json_values import mapping, objects
from hydra_core.base.spelling import counted_that
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import (
    Row,
    decoded,
    first_number,
    identifier,
    number,
    rows_of,
    seconds_between,
    text,
)
from hydra_core.evalsets.importers.traffic.served import Served, Traffic, whole_tokens

_WORDS: Final = ("CATEGORICAL", "TEXT")
#: What somebody would have answered, which says nothing of the answer's worth.
_CORRECTION: Final = "CORRECTION"
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INPUT: Final = ("input", "input_tokens", "prompt_tokens")
_OUTPUT: Final = ("output", "output_tokens", "completion_tokens")
_CACHED: Final = (
    *("input_cached_tokens", "cache_read_input_tokens", "input_cache_read", "cached_tokens"),
    "input_cached",
)
_NO_GENERATION: Final = "no generation (a span or an event)"
_NO_TYPE: Final = "no type, which each observation has; give these, not the traces"
#: What the names of a side's counts begin with, and which of them is the side's own.
_INPUT_SIDE: Final = (("input_", "cache_"), _INPUT)
_OUTPUT_SIDE: Final = (("output_",), _OUTPUT)


def read_langfuse(observations: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Generations with a score, of the files of scores beside them; each becomes a query.

    Raises:
        EvalSetError: Several scores and none chosen, labels without a quality, nothing left (with
            the reasons), damage.
    """
    budget, traffic = Budget(), Traffic(given)
    found = list(rows_of(observations, budget, traffic.unread))
    by_observation, by_trace = _langfuse_scores(found, budget, traffic)
    last: dict[str, tuple[str, Served]] = {}
    between: dict[str, float] = {}
    rows: list[Served] = []
    cached: list[tuple[float, Served]] = []
    newest = _newest(_unfolded(found), traffic)
    parents = {
        identifier(facts.get("id")): identifier(facts.get("parent_observation_id"))
        for _, facts in newest
    }
    judged: set[str] = set()
    for place, facts in newest:
        query_id, trace = identifier(facts.get("id")), identifier(facts.get("trace_id"))
        if text(facts.get("type")).upper() != "GENERATION":
            traffic.skip(_NO_GENERATION if "type" in facts else _NO_TYPE, query_id)
            continue
        span = _nearest_judged(query_id, parents, by_observation)
        judged.add(span)
        if text(facts.get("level")).upper() == "ERROR":
            traffic.skip("the request failed", query_id)
            continue
        usage = decoded(facts.get("usage_details"))
        counts = usage if isinstance(usage, Mapping) else _usage_columns(facts)
        if text(counts.get("unit") or facts.get("unit")).upper() not in ("", "TOKENS"):
            counts = {}  # characters, images, ...
        served = _served_generation(place, facts, counts, by_observation.get(query_id, Feedback()))
        cached += [(first_number(counts, _INPUT), served)] if served.cached_input_tokens > 0 else []
        between[query_id] = seconds_between(facts.get("start_time"), facts.get("end_time"))
        whole, feedback = "span", by_observation.get(span)
        if feedback is None:
            whole, span, feedback = "trace", trace, by_trace.get(trace)
        if span == query_id or feedback is None:
            rows.append(served)
            continue
        own = (text(facts.get("start_time")), replace(served, feedback=feedback))
        earlier, later = sorted((last.get(span, own), own), key=lambda one: one[0])
        if span in last:
            traffic.skip(f"not the last generation of its {whole}", earlier[1].query_id)
        last[span] = later
    rows += [served for _, served in last.values()]
    for name in (name for name in by_observation if name not in judged):
        traffic.skip("score of an observation without a generation in these files", name)
    _note_counted_twice(cached, traffic)
    divisor = _milliseconds([(row.latency_s, between[row.query_id]) for row in rows], traffic)
    for row in rows:
        written, seconds = row.latency_s / divisor, between[row.query_id]
        traffic.add(replace(row, latency_s=seconds if math.isnan(written) else written))
    return traffic.draft("Langfuse")


def _unfolded(rows: Iterable[Row]) -> Iterable[Row]:
    """The observations of rows, of which one may be a trace with all of its own."""
    for place, row in rows:
        inner = objects(decoded(row.get("observations")))
        trace = {"traceId": row.get("id"), "sessionId": row.get("sessionId")}
        yield from ((place, {**trace, **one}) for one in inner) if inner else [(place, row)]


def _nearest_judged(name: str, parents: Mapping[str, str], judged: Mapping[str, Feedback]) -> str:
    """The observation itself or the nearest around it that has a score, '' where none has."""
    seen = {""}
    while name not in judged and name not in seen:
        seen.add(name)
        name = parents.get(name, "")
    return name


def _newest(rows: Iterable[Row], traffic: Traffic) -> Sequence[Row]:
    """The rows under the names of the export; of several versions of one the newest."""
    newest: dict[str, Row] = {}
    for place, found in rows:
        facts = _snake(found)
        key = identifier(facts.get("id")) or str(place)
        before = newest.get(key, (place, {}))[1]
        if before:
            traffic.skip("an older version of the same observation", key)
        if text(facts.get("updated_at")) >= text(before.get("updated_at")):
            newest[key] = (place, facts)
    return list(newest.values())


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


def _served_generation(
    place: tuple[str, int],
    row: Mapping[str, Any],
    counts: Mapping[str, Any],
    feedback: Feedback,
) -> Served:
    cost = mapping(decoded(row.get("cost_details")))
    read, written, cached = _tokens(counts)
    parts = sum(number(one) for name, one in cost.items() if name != "total") if cost else math.nan
    costs = {"total_cost": row.get("total_cost"), "total": cost.get("total"), "parts": parts}
    return Served(
        place,
        identifier(row.get("id")),
        asked_in(row.get("input")),
        text(row.get("provided_model_name")),
        feedback,
        cost_usd=first_number(costs, costs),
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
            ("input", ("input_usage", "input_tokens", "prompt_tokens")),
            ("output", ("output_usage", "output_tokens", "completion_tokens")),
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
    counts = {name: count for name, count in counts.items() if not math.isnan(count)}
    nested = {n: number(one[n]) for one in inside for n in _CACHED if n in one}
    cached = first_number({**counts, **nested}, _CACHED)
    parts, thought = (_beside(counts, *side) for side in (_INPUT_SIDE, _OUTPUT_SIDE))
    warm = first_number(parts, _CACHED)
    read, written = whole_tokens(
        first_number(counts, _INPUT),
        first_number(counts, _OUTPUT),
        cached=warm,
        stored=sum(parts.values()) - (0.0 if math.isnan(warm) else warm),
        thought=sum(thought.values()),
        total=first_number(counts, ("total", "total_tokens")),
        apart="prompt_tokens" not in counts and bool(parts or thought),
    )
    return read, written, cached


def _beside(
    counts: Mapping[str, float], beginnings: tuple[str, ...], whole: Sequence[str]
) -> dict[str, float]:
    named = counts.items()
    return {name: n for name, n in named if name.startswith(beginnings) and name not in whole}


def _note_counted_twice(cached: Sequence[tuple[float, Served]], traffic: Traffic) -> None:
    """Warn where `input` may hold cached tokens too, as some integrations write it.

    Args:
        cached: Generations with cached input, and what `input` says of each.
    """
    if not cached or not all(
        one.cached_input_tokens <= stated < one.input_tokens for stated, one in cached
    ):
        return
    stated, one = cached[0]
    traffic.warnings.append(
        f"cached tokens were added to `input`, as Langfuse counts them ({one.input_tokens:,.0f} "
        f"instead of {stated:,.0f} in {one.query_id}); check that the integration does not count "
        "them in `input` already: no generation has more cached tokens than `input`"
    )


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


def _langfuse_scores(
    observations: Sequence[Row], budget: Budget, traffic: Traffic
) -> tuple[dict[str, Feedback], dict[str, Feedback]]:
    """Observation id -> score and trace id -> score, of the one name that was chosen."""
    wanted, files = traffic.given.score, traffic.given.more
    inner = [one for _, row in observations for one in objects(decoded(row.get("scores")))]
    if not files and not inner:
        remedy = "give the files of scores, too: --scores FILE"
        raise EvalSetError.of("Langfuse", "has no scores beside the observations", remedy)
    rows = [_snake(row) for row in inner]
    rows += [_snake(row) for _, row in rows_of(files, budget, traffic.unread)]
    rows = [row for row in rows if text(row.get("data_type")).upper() != _CORRECTION]
    rows.sort(key=_written)
    traffic.choose_score(sorted({text(row.get("name")) for row in rows}), "scores")
    by_observation: dict[str, Feedback] = {}
    by_trace: dict[str, Feedback] = {}
    differing = 0
    for row in rows:
        if wanted and text(row.get("name")) != wanted:
            continue
        observation, trace = _judged(row)
        feedback, side = _score_of(row), by_observation if observation else by_trace
        key = observation or trace
        if key:
            differing += side.get(key, feedback) != feedback
            side[key] = feedback
        else:
            traffic.skip(
                "score of no generation or trace, such as a session's", text(row.get("id"))
            )
    if differing:
        differ = counted_that(differing, "score", "differs", "differ")
        traffic.warnings.append(f"{differ} from an earlier one of the same; the newest counts")
    return by_observation, by_trace


def _written(row: Mapping[str, Any]) -> str:
    times = (text(row.get(name)) for name in ("updated_at", "timestamp", "created_at"))
    return next(filter(None, times), "")


def _judged(row: Mapping[str, Any]) -> tuple[str, str]:
    """(observation, trace) that a score judges; version 3 of the API keeps them in an object."""
    subject = mapping(decoded(row.get("subject")))
    names = {f"{text(subject.get('kind')).lower()}_id": subject.get("id"), **row}
    return identifier(names.get("observation_id")), identifier(names.get("trace_id"))


def _score_of(row: Mapping[str, Any]) -> Feedback:
    """A score as feedback; the value of one given in words is a placeholder, or words itself."""
    label = text(row.get("string_value")).strip()
    kind = text(row.get("data_type")).upper()
    value = row.get("value")
    if not label and math.isnan(number(value)):
        label = text(value).strip()
    if kind in _WORDS or (not kind and label and label.lower() not in ("true", "false")):
        return Feedback(label=label)
    return Feedback(number(value))
