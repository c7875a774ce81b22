"""The batch way: requests written to files for a provider's batch API, its results read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import EvalSetError, LabelError
from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.issues import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.lab.labeling.calls import Due, due, write_down
from hydra_core.lab.labeling.client import reply_of
from hydra_core.lab.labeling.config import LabelConfig
from hydra_core.lab.labeling.ledger import Ledger
from hydra_core.lab.labeling.messages import Message

#: What one file of OpenAI's batch API may hold.
_REQUESTS: Final = 50_000
_BYTES: Final = 190_000_000


def write_batches(
    folder: Path, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> dict[str, int]:
    """Write the calls that can be made now, by server; file name -> requests in it.

    Nothing is written down as asked: reading the results is what counts.
    """
    written = {}
    by_role: dict[str, list[Due]] = {role: [] for role in config.servers}
    for one in _all_due(config, messages, ledger):
        by_role[one.call.stage].append(one)
    for role, calls in by_role.items():
        lines = [_line(one) for one in calls]
        for number, part in enumerate(_parts(lines), 1):
            name = f"batch-{role}-{number}.jsonl"
            (folder / name).write_text("".join(part), encoding="utf-8")
            written[name] = len(part)
    return written


def _all_due(config: LabelConfig, messages: Sequence[Message], ledger: Ledger) -> Iterator[Due]:
    for message in messages:
        if message.id not in ledger.record.aside:
            yield from due(config, message, ledger.record)


def _line(one: Due) -> str:
    request = {
        "custom_id": str(one.call),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": one.body,
    }
    return json.dumps(request) + "\n"


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for line in lines:
        if part and (len(part) == _REQUESTS or size + len(line) > _BYTES):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part


def read_batch(
    path: Path, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> tuple[int, dict[str, int]]:
    """Read a result file: (answers taken, reasons of those not taken -> how many).

    Results that are in the ledger already are left alone, so a file may be read twice.

    Raises:
        LabelError: A line is no result of a batch.
    """
    waiting = {str(one.call): one for one in _all_due(config, messages, ledger)}
    taken, left = 0, dict[str, int]()
    for custom_id, response in _results(path):
        one = waiting.pop(custom_id, None)
        reason = "not waited for" if one is None else _take(one, response, ledger)
        taken += not reason
        if reason:
            left[reason] = left.get(reason, 0) + 1
    return taken, left


def _results(path: Path) -> list[tuple[str, dict[str, Any]]]:
    issues, found = Issues(), list[tuple[str, dict[str, Any]]]()
    try:
        for number, row in json_objects(path, Budget(), issues):
            response = row.get("response") or {}
            if isinstance(row.get("custom_id"), str) and isinstance(response, dict):
                found.append((row["custom_id"], response))
            else:
                issues.add("is not a batch result", number, "give the provider's output file")
        issues.raise_any(path.name)
    except EvalSetError as error:
        raise LabelError(error.source, error.problems) from error
    return found


def _take(one: Due, response: dict[str, Any], ledger: Ledger) -> str:
    """Write one result down; why it could not be used, empty where it could."""
    if response.get("status_code") != 200:
        return f"answered {response.get('status_code', 'nothing')}"
    return write_down(one, reply_of(response.get("body")), ledger)
