"""Answers in files instead of calls: a provider's batch API, and answers that are there already."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.lab.labeling.calls import Due, ItemT, Plan, write_down
from hydra_core.lab.labeling.client import reply_of
from hydra_core.lab.labeling.config import LabelConfig
from hydra_core.lab.labeling.ledger import Call, Ledger
from hydra_core.lab.labeling.messages import Message, all_issues, is_whole
from hydra_core.lab.labeling.prompts import ORDERS

#: What one file of OpenAI's batch API may hold.
_REQUESTS: Final = 50_000
_BYTES: Final = 190_000_000
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_Take = Callable[[Mapping[str, Any], int, Issues], list[tuple[Call, Any]]]


def write_batches(
    folder: Path, plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger
) -> dict[str, int]:
    """Write the calls that can be made now, by server; file name -> requests in it.

    The ledger changes only when the results are read.
    """
    written = {}
    by_role: dict[str, list[Due]] = {role: [] for role in plan.servers}
    for one in _all_due(plan, items, ledger):
        by_role[plan.role_of(one.call)].append(one)
    for role, calls in by_role.items():
        lines = [_line(one) for one in calls]
        for number, part in enumerate(_parts(lines), 1):
            name = f"batch-{_UNSAFE.sub('-', role)}-{number}.jsonl"
            (folder / name).write_text("".join(part), encoding="utf-8")
            written[name] = len(part)
    return written


def _all_due(plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger) -> Iterator[Due]:
    for item in items:
        if item.id not in ledger.record.aside:
            yield from plan.due(item, ledger.record)


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
    path: Path, plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger
) -> tuple[int, dict[str, int]]:
    """Read a result file: (answers taken, reasons of those not taken -> how many).

    Results that are in the ledger already are left alone, so a file may be read twice.

    Raises:
        LabelError: A line is no result of a batch.
    """
    waiting = {str(one.call): one for one in _all_due(plan, items, ledger)}
    taken, left = 0, dict[str, int]()
    for custom_id, response in _results(path):
        one = waiting.pop(custom_id, None)
        reason = "not waited for" if one is None else _take_result(one, response, ledger)
        taken += not reason
        if reason:
            left[reason] = left.get(reason, 0) + 1
    return taken, left


def _results(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    with all_issues(path.name) as issues:
        for number, row in json_objects(path, Budget(), issues):
            response = row.get("response") or {}
            if isinstance(row.get("custom_id"), str) and isinstance(response, dict):
                found.append((row["custom_id"], response))
            else:
                issues.add("is not a batch result", number, "give the provider's output file")
    return found


def _take_result(one: Due, response: dict[str, Any], ledger: Ledger) -> str:
    """Write one result down; why it could not be used, empty where it could."""
    if response.get("status_code") != 200:
        return f"answered {response.get('status_code', 'nothing')}"
    return write_down(one, reply_of(response.get("body")), ledger)


def take_answers(path: Path, messages: Sequence[Message], ledger: Ledger) -> int:
    """Rows ``{"id", "cheap", "strong"}``, either answer may be missing; how many were new.

    Raises:
        LabelError: With every kind of problem; nothing is taken then.
    """

    def take(row: Mapping[str, Any], number: int, issues: Issues) -> list[tuple[Call, Any]]:
        arms = [arm for arm in ("cheap", "strong") if arm in row]
        if not arms or not all(isinstance(row[a], str) and row[a].strip() for a in arms):
            issues.add("cheap and strong must be text", number)
            return []
        return [(Call(row["id"], arm), row[arm]) for arm in arms]

    return _taken(path, take, messages, ledger)


def take_verdicts(
    path: Path, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> int:
    """Rows ``{"id", "order", "cheap": {score names}, "strong": {...}}``; how many were new.

    `order` is cheap_first or strong_first: both are needed for a label.

    Raises:
        LabelError: With every kind of problem; nothing is taken then.
    """

    def take(row: Mapping[str, Any], number: int, issues: Issues) -> list[tuple[Call, Any]]:
        if row.get("order") not in ORDERS:
            issues.add(f"order must be {' or '.join(ORDERS)}", number)
        else:
            scores = {arm: _scores(row.get(arm), config.dimensions) for arm in ("cheap", "strong")}
            if None not in scores.values():
                content = {**scores, "winner": str(row.get("winner", "tie")), "quality_gap": ""}
                return [(Call(row["id"], "judge", str(row["order"])), content)]
            named = ", ".join(config.dimensions)
            issues.add(f"cheap and strong must each score {named} from 1 to 5", number)
        return []

    return _taken(path, take, messages, ledger)


def _scores(found: object, dimensions: Sequence[str]) -> list[float] | None:
    values = [found.get(name) for name in dimensions] if isinstance(found, dict) else [None]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    whole = len(numbers) == len(dimensions) and all(1.0 <= number <= 5.0 for number in numbers)
    return numbers if whole else None


def _taken(path: Path, take: _Take, messages: Sequence[Message], ledger: Ledger) -> int:
    known = {message.id for message in messages}
    rows: list[tuple[Call, Any]] = []
    with all_issues(path.name) as issues:
        for number, row in json_objects(path, Budget(), issues):
            if not is_whole(row, number, issues):
                continue
            if row.get("id") in known:
                rows += take(row, number, issues)
            else:
                issues.add(f"{row.get('id')!r} is not among the messages", number)
    fresh = [(call, content) for call, content in rows if call not in ledger.record.answered]
    for call, content in fresh:
        ledger.add("answered", call, cost_usd=0.0, tokens=[], content=content, origin=path.name)
    return len(fresh)
