"""LLMRouter: routing data as JSONL, a row a query and model."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from hydra_core.evalsets.importers.harness.scored import Adapter, Reading, Scored, as_feedback
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.evalsets.importers.traffic.rows import number, text
from hydra_core.evalsets.importers.traffic.served import Served


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    for line, row in json_objects(file, reading.budget, reading.traffic.unread):
        asked = reading.asked(row, "query")
        task = text(row.get("task_name"))
        mark = sha256(asked.text.encode("utf-8", "replace")).hexdigest()[:16]
        served = Served(
            (file.name, line),
            f"{task}-{mark}" if task else mark,
            asked,
            text(row.get("model_name")),
            cost_usd=number(row.get("cost")),
            input_tokens=number(row.get("input_tokens", row.get("prompt_tokens"))),
            output_tokens=number(row.get("output_tokens", row.get("completion_tokens"))),
            latency_s=number(row.get("response_time")),
            group=task,
        )
        yield Scored(served, {"performance": as_feedback(row.get("performance"))})


LLMROUTER: Final = Adapter("LLMRouter", frozenset({"query", "model_name", "performance"}), _read)
