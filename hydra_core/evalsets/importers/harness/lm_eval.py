"""lm-evaluation-harness: `samples_*.jsonl`, a row a document and filter, a file a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
    key_of,
)
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import value_at
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, text
from hydra_core.evalsets.importers.traffic.served import Served

#: Where the tasks keep a document's own question, before the prompt that was made of it.
_QUESTIONS: Final = ("question", "query", "problem", "prompt", "instruction", "input", "text")
_PROMPT: Final = "arguments.gen_args_0.arg_0"
_NO_METRICS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task_name"),
    }
)


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    model = reading.file_models[key_of(file)]
    for line, row in json_objects(file, reading.budget, reading.traffic.unread):
        group = text(row.get("task_name"))
        yield Scored(
            Served(
                (file.name, line),
                _query_id(row),
                asked_in(_message(row, reading.traffic.given.text_path)),
                model,
                group=group,
            ),
            _scores(row),
        )


def _query_id(row: Mapping[str, Any]) -> str:
    """The number of the document, with its hash: numbers begin anew in every task."""
    number, mark = identifier(row.get("doc_id")), text(row.get("doc_hash"))
    return f"{number}-{mark[:12]}" if number and mark else number


def _message(row: Mapping[str, Any], path: str) -> object:
    if path:
        return value_at(row, path)
    doc = row.get("doc")
    facts = doc if isinstance(doc, Mapping) else {}
    own = next((facts[name] for name in _QUESTIONS if isinstance(facts.get(name), str)), None)
    if own is not None:
        return own
    prompt = value_at(row, _PROMPT)
    arguments = row.get("arguments")
    if prompt is None and isinstance(arguments, list):  # older versions: a list of lists
        prompt = value_at(row, "arguments.0.0")
    return prompt


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """Metric and filter -> value, named as the harness names them: `exact_match,strict-match`."""
    listed = row.get("metrics")
    plain = (int, float, bool)
    names = [str(name) for name in listed] if isinstance(listed, list) else [
        name for name, value in row.items() if name not in _NO_METRICS and isinstance(value, plain)
    ]  # fmt: skip
    chosen = text(row.get("filter"))
    suffix = f",{chosen}" if chosen and chosen != "none" else ""
    return {f"{name}{suffix}": as_feedback(row[name]) for name in names if name in row}


LM_EVAL: Final = Adapter(
    "lm-evaluation-harness", frozenset({"doc_id", "filtered_resps"}), _read, models_in_names=True
)
