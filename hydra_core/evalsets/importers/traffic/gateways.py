"""Import of the logs of what requests went through: HyDRA, LiteLLM's proxy, Helicone.

HyDRA's decision log holds the messages that it was allowed to keep, and the feedback.

LiteLLM's spend logs are rows of LiteLLM_SpendLogs as JSON, JSONL, CSV, Parquet, or from PostgreSQL
itself, or the payloads that its callbacks write (`response_cost`). Messages are in them only with
`store_prompts_in_spend_logs`. They have no feedback: it comes from a file of its own with
request_id and quality. Failed requests, answers from a cache and calls that are no chat are
skipped.

Helicone's export is JSON or JSONL of its tool, with the bodies (`--include-body`). A row is a
request as Helicone's API answers it. Feedback and scores stand in the row: one of them is the
quality. A cost of 0 means that Helicone had no price. Reasoning is counted beside the answer. Where
something came from the provider's prompt cache or went into it, the export does not say whether
those tokens are a part of the input: input tokens are taken where the provider's own usage, in the
answer's body, says it.
"""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, ExtraError, Problem
from hydra_core.base.json_values import mapping
from hydra_core.base.spelling import counted_that
from hydra_core.base.types import FloatArray
from hydra_core.decision_log.reading import read_log
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.reading.bounded import MAX_ROWS, Budget, TableFile
from hydra_core.evalsets.importers.reading.json_document import value_at
from hydra_core.evalsets.importers.traffic.feedback import Feedback, Labels
from hydra_core.evalsets.importers.traffic.messages import NO_MESSAGE, NO_TEXT, Asked, asked_in
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
from hydra_core.evalsets.rules import PROPENSITY


def read_decision_log(
    folder: Path,
    models: Mapping[str, str] | None = None,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    arm: str | None = None,
) -> Draft:
    """Decisions that were answered and have an outcome; each becomes a query, with its gates.

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
    ids = {logged: model for model, logged in names.items()}
    traffic = Traffic(Given(models=names), zero_is_unknown=False)
    decisions = read_log(folder, since=since, until=until, arm=arm).decisions
    if decisions.empty and (since or until):
        remedy = "leave out or move --since and --until"
        raise EvalSetError.of("decision log", "has no decision of that time", remedy)
    for line, row in enumerate(decisions.to_dict("records"), 1):
        message = text(row["text"])
        stored = isinstance(row["text"], str)
        problem = NO_TEXT if stored else f"{NO_MESSAGE} (serve with --log-text)"
        problem = "" if message.strip() else problem
        seen, before = row.get("has_image") is True, text(row["context"])
        asked = Asked(message, int(row["turn"]), before, has_image=seen, problem=problem)
        traffic.add(
            Served(
                (folder.name, line),
                str(row["decision_id"]),
                asked,
                str(row["served"] or ""),
                Feedback(number(row["quality"])),
                cost_usd=number(row["cost_usd"]),
                input_tokens=number(row["input_tokens"]),
                output_tokens=number(row["output_tokens"]),
                latency_s=number(row["latency_ms"]) / 1e3,
                conversation_id=text(row["conversation_id"]),
                cached_input_tokens=number(row["cached_tokens"]),
                group=str(row.get("team") or ""),
                gates=gates_of(row, ids),
            )
        )
    draft = traffic.draft("decision log")
    chances = _propensities(decisions, draft, names)
    return replace(draft, extras={**draft.extras, PROPENSITY: chances})


def gates_of(row: Mapping[Any, Any], ids: Mapping[str, str]) -> dict[str, str]:
    """What hard gates looked at, as an eval set has it; '' where the log has none.

    Args:
        ids: Name in the log -> model id, where they differ.
    """
    lists = {name: row.get(name) for name in ("needs", "require", "allow", "deny")}
    if row.get("rule") == "named":  # the one model asked for by name is no limit of the request
        lists["allow"] = None
    words = {
        name: ", ".join(ids.get(str(word), str(word)) for word in cell)
        for name, cell in lists.items()
        if isinstance(cell, np.ndarray)
    }
    length = number(row.get("context_tokens"))
    return {
        **dict.fromkeys(lists, ""),
        **words,
        "needs_tools": "true" if row.get("needs_tools") is True else "",
        "context_tokens": f"{length:.0f}" if length > 0 else "",
    }


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


#: Columns of LiteLLM_SpendLogs that are read from PostgreSQL.
_COLUMNS = (
    *("request_id", "call_type", "session_id", "model", "messages", "proxy_server_request"),
    *("spend", "prompt_tokens", "completion_tokens", "total_tokens", "status", "cache_hit"),
    *("metadata", "startTime", "endTime"),
)
#: What feedback has to hold -> its other names, read where exactly one of them is there.
_FEEDBACK = {"request_id": ("id",), "quality": ("score", "rating")}
#: Where a usage says which input tokens came from a cache, and which went into it.
_CACHED = ("cache_read_input_tokens", "prompt_tokens_details.cached_tokens")
_STORED = ("cache_creation_input_tokens", "prompt_tokens_details.cache_creation_tokens")
_THOUGHT = ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
_COUNTS = (_CACHED, _STORED, _THOUGHT)
_NEEDED = ("request_id", "model", "startTime")
_TABLE = "LiteLLM_SpendLogs"
#: Calls that a model answers with text; LiteLLM logs embeddings, files and look-ups as well.
_ANSWERED = frozenset(
    {
        *("completion", "acompletion", "text_completion", "atext_completion"),
        *("responses", "aresponses", "anthropic_messages"),
        *("generate_content", "agenerate_content"),
        *("generate_content_stream", "agenerate_content_stream"),
        *("pass_through_endpoint", "llm_passthrough_route", "allm_passthrough_route"),
    }
)


def read_spend_logs(
    files: Sequence[TableFile], given: Given = NOTHING, stored: Iterable[Row] = ()
) -> Draft:
    """Answered requests with feedback; each becomes a query.

    Args:
        given: Beside the files: feedback, as tables or JSONL with request_id (or id) and quality
            (or score, or rating).
        stored: Rows before those of the files, from `spend_log_rows`.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic(given)
    votes = _votes(traffic)
    rows = rows_of(files, Budget(), traffic.unread)
    for place, row in itertools.chain(stored, rows):
        query_id = identifier(row.get("request_id", row.get("id")))
        if reason := _no_answer(row):
            traffic.skip(reason, query_id)
            continue
        asked = asked_in(row.get("messages"))
        if asked.problem == NO_MESSAGE:
            asked = asked_in(row.get("proxy_server_request"))
        read, metadata = number(row.get("prompt_tokens")), decoded(row.get("metadata"))
        cached, put, thought = (_stored_count(metadata, paths) for paths in _COUNTS)
        written, total = (number(row.get(f"{side}_tokens")) for side in ("completion", "total"))
        read, written = whole_tokens(
            read, written, cached=cached, stored=put, thought=thought, total=total
        )
        traffic.add(
            Served(
                place,
                query_id,
                asked,
                text(row.get("model")),
                votes.get(query_id, Feedback()),
                cost_usd=first_number(row, ("spend", "response_cost")),
                input_tokens=read,
                output_tokens=written,
                latency_s=seconds_between(row.get("startTime"), row.get("endTime")),
                conversation_id=text(row.get("session_id")),
                cached_input_tokens=cached,
            )
        )
    return traffic.draft("spend logs")


def _no_answer(row: Mapping[str, Any]) -> str:
    """Why a row holds no answer of a model, '' where it does."""
    stated = mapping(decoded(row.get("metadata"))).get("status")  # the one of older logs
    if text(row.get("status") or stated).lower() not in ("", "success"):
        return "the request failed"
    if str(row.get("cache_hit")).lower() == "true":
        return "answered from a cache"
    kind = text(row.get("call_type")).lower()
    return f"not a chat request ({kind[:40]})" if kind and kind not in _ANSWERED else ""


def _stored_count(metadata: object, paths: Sequence[str]) -> float:
    """The largest of these counts that LiteLLM stored, NaN for none; unused names hold 0."""
    facts = mapping(metadata)
    usages = [decoded(facts.get(name)) for name in ("usage_object", "additional_usage_values")]
    counts = (number(value_at(mapping(usage), path)) for usage in usages for path in paths)
    return max((count for count in counts if not math.isnan(count)), default=math.nan)


def spend_log_rows(url: str) -> Iterator[Row]:
    """Rows of LiteLLM_SpendLogs in a PostgreSQL database, oldest first, at most 2,000,000.

    Raises:
        EvalSetError: The database cannot be read.
        ExtraError: psycopg is not installed.
    """
    try:
        import psycopg
        from psycopg import sql
        from psycopg.rows import dict_row
    except ImportError as error:
        raise ExtraError("reading PostgreSQL", "postgres") from error

    table, order = sql.Identifier(_TABLE), sql.Identifier("startTime")
    query = sql.SQL("select {} from {} order by {} limit {}")
    having = sql.SQL("select column_name from information_schema.columns where table_name = {}")
    try:
        with (
            psycopg.connect(url, connect_timeout=10, row_factory=dict_row) as connection,
            connection.cursor("spend_logs") as cursor,
        ):
            there = {one["column_name"] for one in connection.execute(having.format(_TABLE))}
            names = [sql.Identifier(name) for name in _COLUMNS if name in there or name in _NEEDED]
            cursor.execute(query.format(sql.SQL(", ").join(names), table, order, MAX_ROWS))
            for line, row in enumerate(cursor, 1):
                yield (_TABLE, line), row
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise EvalSetError.of("PostgreSQL", f"cannot be read: {reason}") from error


def _votes(traffic: Traffic) -> dict[str, Feedback]:
    """Request id -> feedback; of several for one request the last of the files."""
    votes: dict[str, Feedback] = {}
    differing = set()
    renamed: dict[str, str] = {}
    for place, row in rows_of(traffic.given.more, Budget(), traffic.unread):
        columns = {name: _column(row, name) for name in _FEEDBACK}
        missing = [name for name, column in columns.items() if not column]
        if missing:
            remedy = f"give the column with it this name; columns: {', '.join(list(row)[:20])}"
            problems = [Problem(f"column {name!r}", "is missing", remedy) for name in missing]
            raise EvalSetError(place[0], problems)
        renamed |= {name: column for name, column in columns.items() if name != column}
        query_id = identifier(row[columns["request_id"]])
        vote = traffic.labels.read(row[columns["quality"]])
        if votes.setdefault(query_id, vote) != vote:
            differing.add(query_id)
        votes[query_id] = vote
    traffic.warnings += [f"{column} was read as {name}" for name, column in renamed.items()]
    if differing:
        some = ", ".join(sorted(differing)[:3])
        have = counted_that(len(differing), "request", "has", "have")
        traffic.warnings.append(
            f"{have} feedback that differs ({some}); the last of the file counts"
        )
    return votes


def _column(row: Mapping[str, Any], name: str) -> str:
    """The column of feedback that holds this, '' where none or more than one may."""
    others = [other for other in _FEEDBACK[name] if other in row]
    return name if name in row else others[0] if len(others) == 1 else ""


#: The score that holds a person's thumb up or down.
_THUMB: Final = "helicone-score-feedback"
#: `cache_reference_id` of an answer that came from no cache.
_NO_REFERENCE: Final = "00000000-0000-0000-0000-000000000000"
#: Addresses that do not answer with text, although what they are asked may look like a message.
_NO_CHAT: Final = re.compile(r"/(embeddings|images|audio|moderations|rerank)(?![\w-])")
_ANTHROPIC_INPUT: Final = (
    "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
)  # fmt: skip
_MODEL_NAMES: Final = ("model_override", "request_model", "response_model", "model")


def read_helicone(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Answered requests with feedback or a score; each becomes a query.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    traffic = Traffic(given)
    rows = []
    for place, row in rows_of(files, Budget(), traffic.unread):
        query_id = identifier(row.get("request_id"))
        if reason := _helicone_no_answer(row):
            traffic.skip(reason, query_id)
        else:
            rows.append(
                (
                    _helicone_served(place, query_id, row),
                    dict(_helicone_scores(row, traffic.labels)),
                )
            )
    traffic.add_scored(rows, "Helicone")
    return traffic.draft("Helicone")


def _helicone_no_answer(row: Mapping[str, Any]) -> str:
    status = number(row.get("response_status"))
    if not math.isnan(status) and not 200 <= status < 300:
        return "the request failed"
    if text(row.get("cache_reference_id")) not in ("", _NO_REFERENCE):
        return "answered from a cache"
    path = _NO_CHAT.search(text(row.get("request_path")))
    answer = mapping(decoded(row.get("response_body")))
    listed = isinstance(answer.get("data"), list) and "choices" not in answer
    if path or listed:
        return f"not a chat request ({path[1] if path else 'a list of data'})"
    return ""


def _helicone_served(place: tuple[str, int], query_id: str, row: Mapping[str, Any]) -> Served:
    own = (decoded(row.get(name)) for name in ("request_properties", "properties"))
    facts = next((one for one in own if isinstance(one, Mapping)), {})
    cache = (number(row.get(f"prompt_cache_{way}_tokens")) for way in ("read", "write"))
    alone = all(math.isnan(count) or count == 0.0 for count in cache)
    read, written = (number(row.get(f"{way}_tokens")) for way in ("prompt", "completion"))
    cached = math.nan
    if not alone:
        read, cached = _stated_input(mapping(decoded(row.get("response_body"))))
    thought = number(row.get("reasoning_tokens"))
    return Served(
        place,
        query_id,
        asked_in(row.get("request_body")),
        next(filter(None, (text(row.get(name)) for name in _MODEL_NAMES)), ""),
        cost_usd=number(row.get("cost")),
        input_tokens=read if read > 0 else math.nan,
        output_tokens=written if math.isnan(thought) else written + thought,
        latency_s=number(row.get("delay_ms")) / 1000.0,
        conversation_id=text(facts.get("Helicone-Session-Id")),
        cached_input_tokens=cached,
    )


def _stated_input(answer: Mapping[str, Any]) -> tuple[float, float]:
    """(input tokens, cached ones included; cached ones) of an answer, NaN where it lacks one."""
    usage = mapping(decoded(answer.get("usage")))
    openai = [f"{name}_tokens" for name in ("prompt", "input") if f"{name}_tokens_details" in usage]
    if openai:  # cached tokens are a part of the input
        read, details = number(usage.get(openai[0])), mapping(usage[f"{openai[0]}_details"])
        cached = number(details.get("cached_tokens"))
    else:  # Anthropic: what was read from the cache, and put there, stands beside the input
        parts = [number(usage.get(name)) for name in _ANTHROPIC_INPUT]
        read, cached = sum(parts), parts[1]
    return (read, cached) if cached <= read else (math.nan, math.nan)


def _helicone_scores(row: Mapping[str, Any], labels: Labels) -> Iterator[tuple[str, Feedback]]:
    """Name -> score; older exports hold the thumb in a field of its own."""
    found = dict(mapping(decoded(row.get("scores"))))
    if row.get("feedback_rating") not in (None, ""):
        found.setdefault(_THUMB, row["feedback_rating"])
    for name, value in found.items():
        said = labels.read(value.get("value") if isinstance(value, Mapping) else value)
        if not said.absent:
            yield str(name), said
