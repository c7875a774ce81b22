"""promptfoo: results as JSON or JSONL, one row a test and provider."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
)
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import objects, read_json
from hydra_core.evalsets.importers.reading.paths import value_at
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served

_ERROR: Final = 2


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    rows = list(_rows(file, reading))
    prompts = _prompts(row for _, row in rows)
    for line, row in rows:
        query_id = _query_id(row, prompts)
        response = row.get("response")
        answer = response if isinstance(response, Mapping) else {}
        if row.get("failureReason") == _ERROR or (row.get("error") and not answer.get("output")):
            reading.traffic.skip("the provider gave an error", query_id)
        else:
            where = reading.text_path
            stored = value_at(row, where) if where else value_at(row, "prompt.raw")
            yield Scored(_served(file, line, row, query_id, answer, stored), _scores(row), "score")


def _rows(file: TableFile, reading: Reading) -> Iterator[tuple[int, Mapping[str, Any]]]:
    kind = Path(file.name.lower().removesuffix(".gz").removesuffix(".zip")).suffix
    if kind in (".jsonl", ".ndjson"):
        for line, row in json_objects(file, reading.budget, reading.traffic.unread):
            reading.budget.take_rows(1, file.name)
            yield line, row
        return
    document = read_json(file, reading.budget)
    inner = document.get("results") if isinstance(document, Mapping) else document
    listed = objects(inner.get("results") if isinstance(inner, Mapping) else inner)
    reading.budget.take_rows(len(listed), file.name)
    yield from enumerate(listed, 1)


def _prompts(rows: Iterator[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """(test, provider) -> the prompts that it was tried with, in order."""
    tried: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        raw = text(value_at(row, "prompt.raw"))
        listed = tried.setdefault((identifier(row.get("testIdx")), _model(row)), [])
        if raw not in listed:
            listed.append(raw)
    return tried


def _query_id(row: Mapping[str, Any], prompts: Mapping[tuple[str, str], list[str]]) -> str:
    """The test, and which of several prompts where one provider was tried with several."""
    test = identifier(row.get("testIdx"))
    tried = prompts[(test, _model(row))]
    if len(tried) < 2:
        return f"test-{test}"
    return f"test-{test}-prompt-{tried.index(text(value_at(row, 'prompt.raw')))}"


def _model(row: Mapping[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, Mapping):
        return text(provider.get("label")) or text(provider.get("id"))
    return text(provider)


def _served(
    file: TableFile,
    line: int,
    row: Mapping[str, Any],
    query_id: str,
    answer: Mapping[str, Any],
    stored: object,
) -> Served:
    """One answer; one out of promptfoo's cache has neither cost nor latency of its own."""
    stated = answer.get("tokenUsage", row.get("tokenUsage"))
    usage = stated if isinstance(stated, Mapping) else {}
    cached = answer.get("cached") is True
    return Served(
        (file.name, line),
        query_id,
        asked_in(stored),
        _model(row),
        cost_usd=math.nan if cached else number(row.get("cost", answer.get("cost"))),
        input_tokens=number(usage.get("prompt")),
        output_tokens=number(usage.get("completion")),
        latency_s=math.nan if cached else number(row.get("latencyMs")) / 1e3,
    )


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    named = row.get("namedScores")
    scores = (
        {str(n): as_feedback(v) for n, v in named.items()} if isinstance(named, Mapping) else {}
    )
    stated = row.get("score")
    return {"score": as_feedback(row.get("success") if stated is None else stated), **scores}


PROMPTFOO: Final = Adapter("promptfoo", frozenset({"provider", "testCase", "promptId"}), _read)
