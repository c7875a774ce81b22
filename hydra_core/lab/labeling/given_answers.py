"""Answers and verdicts that an operator already has, taken in instead of calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra_core.base.errors import EvalSetError, LabelError
from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.issues import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.lab.labeling.config import LabelConfig
from hydra_core.lab.labeling.ledger import Call, Ledger
from hydra_core.lab.labeling.messages import Message
from hydra_core.lab.labeling.prompts import ORDERS

_Take = Callable[[Mapping[str, Any], int, Issues], list[tuple[Call, Any]]]


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
    issues, rows = Issues(), list[tuple[Call, Any]]()
    try:
        for number, row in json_objects(path, Budget(), issues):
            if row.get("id") in known:
                rows += take(row, number, issues)
            else:
                issues.add(f"{row.get('id')!r} is not among the messages", number)
        issues.raise_any(path.name)
    except EvalSetError as error:
        raise LabelError(error.source, error.problems) from error
    fresh = [(call, content) for call, content in rows if call not in ledger.record.answered]
    for call, content in fresh:
        ledger.add("answered", call, cost_usd=0.0, tokens=[], content=content, origin=path.name)
    return len(fresh)
