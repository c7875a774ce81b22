"""Import of LiteLLM's spend logs: rows of LiteLLM_SpendLogs as JSON, JSONL, CSV, Parquet, or from
PostgreSQL itself.

Messages are in them only with `store_prompts_in_spend_logs`. They have no feedback: it comes from a
file of its own with request_id and quality. Failed requests and answers from a cache are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydra_core.base.errors import EvalSetError, ExtraError, Problem
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import MAX_ROWS, Budget, TableFile
from hydra_core.evalsets.importers.traffic.rows import (
    Row,
    decoded,
    number,
    rows_of,
    seconds_between,
    text,
)
from hydra_core.evalsets.importers.traffic.served import Served, Traffic, last_message
from hydra_core.routing.conversations.context import LastTurn

_COLUMNS = (
    *("request_id", "session_id", "model", "messages", "proxy_server_request", "spend"),
    *("prompt_tokens", "completion_tokens", "status", "cache_hit", "startTime", "endTime"),
)


def read_spend_logs(
    rows: Iterable[Row],
    feedback: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    *,
    scale: float = 1.0,
) -> Draft:
    """Answered requests with feedback; each becomes a query.

    Args:
        rows: From `rows_of` (files) or `spend_log_rows` (PostgreSQL).
        feedback: Tables or JSONL with request_id and quality.
        models: Model id -> name in the log.
        scale: The quality that means 1.

    Raises:
        EvalSetError: Nothing is left, with the reasons, or a file is damaged.
    """
    told = _feedback(feedback)
    traffic = Traffic()
    for place, row in rows:
        query_id = text(row.get("request_id"))
        if text(row.get("status")).lower() not in ("", "success"):
            traffic.skip("the request failed", query_id)
        elif text(row.get("cache_hit")).lower() == "true":
            traffic.skip("answered from a cache", query_id)
        else:
            last = _message(row)
            traffic.add(
                Served(
                    place,
                    query_id,
                    last.text,
                    text(row.get("model")),
                    told.get(query_id, float("nan")),
                    number(row.get("spend")),
                    number(row.get("prompt_tokens")),
                    number(row.get("completion_tokens")),
                    seconds_between(row.get("startTime"), row.get("endTime")),
                    text(row.get("session_id")),
                    last.turn,
                    context=last.context,
                )
            )
    return traffic.draft("spend logs", models or {}, PriceCard(), scale=scale)


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

    names = sql.SQL(", ").join(map(sql.Identifier, _COLUMNS))
    table = sql.Identifier("LiteLLM_SpendLogs")
    order = sql.Identifier("startTime")
    query = sql.SQL("select {} from {} order by {} limit {}")
    try:
        with (
            psycopg.connect(url, connect_timeout=10, row_factory=dict_row) as connection,
            connection.cursor("spend_logs") as cursor,
        ):
            cursor.execute(query.format(names, table, order, MAX_ROWS))
            for line, row in enumerate(cursor, 1):
                yield ("LiteLLM_SpendLogs", line), row
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise EvalSetError("PostgreSQL", [Problem("", f"cannot be read: {reason}")]) from error


def _message(row: Mapping[str, Any]) -> LastTurn:
    """The last user turn of `messages`, else of the stored request."""
    found = last_message(decoded(row.get("messages")))
    if found.text:
        return found
    request = decoded(row.get("proxy_server_request"))
    return last_message(request) if isinstance(request, Mapping) else LastTurn("")


def _feedback(files: Sequence[TableFile]) -> dict[str, float]:
    told = {}
    for place, row in rows_of(files, Budget()):
        if "request_id" not in row or "quality" not in row:
            message = "must have request_id and quality"
            raise EvalSetError(place[0], [Problem(f"line {place[1]}", message)])
        told[text(row["request_id"])] = number(row["quality"])
    return told
