"""From what was answered to an eval set: every cell graded once, or missing with a reason."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError
from hydra_core.base.list_price import ListPrice
from hydra_core.base.types import FloatArray
from hydra_core.evalsets.evalset import EvalSet, save_evalset
from hydra_core.evalsets.folders import require_free
from hydra_core.evalsets.importers.draft import language_of
from hydra_core.evalsets.rules import check_queries
from hydra_core.lab.collect.graders import Kind, UngradedError, agreement, grade
from hydra_core.lab.collect.people import Grades, People, id_of, people_of, to_grade
from hydra_core.lab.collect.plan import Asked, Cell, CollectPlan, answer_call
from hydra_core.lab.labeling.ledger import Record

_EXTRAS = ("latency_s", "input_tokens", "output_tokens", "cached_input_tokens")
#: Of a message's own fields: those that the set keeps.
_CARRIED = ("group", "cluster", "conversation_id", "needs", "require", "allow", "deny")


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """What a collection came to; matrices are (n, m), NaN where nothing is known.

    Attributes:
        missing: Model -> reason -> how many of its cells have no grade.
        longest: Model -> how many of its graded answers have all tokens that one may have.
        agreement: Share of the answers that a judge graded twice whose grades agree; None without.
        people: How far people are; None where they grade nothing.
    """

    messages: tuple[Asked, ...]
    models: tuple[str, ...]
    quality: FloatArray
    cost_usd: FloatArray
    extras: Mapping[str, FloatArray]
    missing: Mapping[str, Counter[str]]
    longest: Mapping[str, int]
    agreement: float | None
    people: People | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "messages": len(self.messages),
            "models": {
                model: {
                    "graded": int((~np.isnan(self.quality[:, i])).sum()),
                    "quality": _mean(self.quality[:, i]),
                    "mean_cost_usd": _mean(self.cost_usd[:, i]),
                    "missing": dict(self.missing[model]),
                    "as_long_as_allowed": self.longest[model],
                }
                for i, model in enumerate(self.models)
            },
            "judge_agreement": self.agreement,
            "people": None if self.people is None else self.people.to_dict(),
        }


def collected(
    plan: CollectPlan, messages: Sequence[Asked], record: Record, by_people: Grades
) -> Collected:
    """Grade every answer that is there.

    Only messages that some model answered with a grade are kept.

    Args:
        by_people: What people graded so far.
    """
    models = tuple(plan.models)
    shape = (len(messages), len(models))
    quality, cost = np.full(shape, np.nan), np.full(shape, np.nan)
    extras = {name: np.full(shape, np.nan) for name in _EXTRAS}
    missing: dict[str, Counter[str]] = {model: Counter() for model in models}
    twice: list[tuple[float, float]] = []
    for i, message in enumerate(messages):
        for j, model in enumerate(models):
            cell = Cell(message, model)
            try:
                quality[i, j] = _quality(plan, cell, record, by_people, twice)
            except UngradedError as error:
                missing[model][str(error)] += 1
            cost[i, j] = _used(plan, cell, record, {n: m[i : i + 1, j] for n, m in extras.items()})
    kept = ~np.isnan(quality).all(axis=1)
    most = np.array([server.max_tokens for server in plan.models.values()])
    full = ((extras["output_tokens"] >= most) & ~np.isnan(quality)).sum(axis=0)
    longest = dict(zip(models, map(int, full), strict=True))
    return Collected(
        tuple(one for one, keep in zip(messages, kept, strict=True) if keep), models,
        quality[kept], cost[kept], {n: m[kept] for n, m in extras.items() if np.isfinite(m).any()},
        missing, longest, agreement(twice), people_of(to_grade(plan, messages, record), by_people),
    )  # fmt: skip


def _quality(
    plan: CollectPlan, cell: Cell, record: Record, by_people: Grades,
    twice: list[tuple[float, float]],
) -> float:  # fmt: skip
    first, *grades = plan.planned(cell)
    if first not in record.answered:
        raise UngradedError(record.aside.get(cell.id, "was not asked"))
    grader = plan.settings.graders[cell.message.grader]
    if grader.kind is Kind.PEOPLE:
        ids = [id_of(cell.message, str(record.answered[first]), time) for time in range(2)]
        given = [score for one in ids for score in by_people.get(one, {}).values()]
        if not given:
            raise UngradedError("people have not graded it yet")
        return sum(given) / len(given)
    if grader.kind is not Kind.JUDGE:
        return grade(grader, str(record.answered[first]), cell.message.own)
    scores = [float(record.answered[call]) for call in grades if call in record.answered]
    if not scores:
        raise UngradedError(record.aside.get(cell.id, "was not graded"))
    if len(scores) == 2:
        twice.append((scores[0], scores[1]))
    return sum(scores) / len(scores)


def _used(plan: CollectPlan, cell: Cell, record: Record, extras: Mapping[str, FloatArray]) -> float:
    """Put in what the answer took; its cost in USD, NaN where the server stated no tokens.

    The cost is at the prices that the set will state: they may have changed since it was paid.
    """
    used = record.used.get(answer_call(cell))
    if used is None:
        return math.nan
    extras["latency_s"][0] = used.seconds
    if used.tokens is None:
        return math.nan
    extras["input_tokens"][0], extras["output_tokens"][0] = used.tokens
    extras["cached_input_tokens"][0] = used.cached
    return plan.models[cell.model].cost_usd(*used.tokens, used.cached)


def require_writable(messages: Sequence[Asked], out: Path, *, force: bool = False) -> None:
    """Refuse, before any answer is paid for, what no eval set could be written of.

    Raises:
        EvalSetError: A message breaks a rule of eval sets, or `out` is taken.
    """
    EvalSetError.raise_any(out.name, check_queries(_queries(messages)))
    require_free(out, force=force)


def write_set(
    found: Collected, out: Path, name: str, prices: Mapping[str, ListPrice], *, force: bool = False
) -> EvalSet:
    """Write the eval set; EvalSetError where nothing was graded, or `out` is taken."""
    return save_evalset(
        out, name=name, queries=_queries(found.messages), models=found.models,
        quality=found.quality, cost_usd=found.cost_usd, extras=found.extras, prices=prices,
        origin="collected: every model answered every message", force=force,
    )  # fmt: skip


def _queries(messages: Sequence[Asked]) -> pd.DataFrame:
    queries = pd.DataFrame(
        {
            "query_id": [one.id for one in messages],
            "text": [one.text for one in messages],
            "language": [one.language or language_of(one.text) for one in messages],
        }
    )
    if any(one.has_image for one in messages):
        queries["has_image"] = [one.has_image for one in messages]
    if any(one.turn > 1 for one in messages):
        queries["turn"] = [float(one.turn) for one in messages]
    if any(one.context for one in messages):
        queries["context"] = [one.context for one in messages]
    tools = [str(one.own.get("needs_tools")).lower() == "true" for one in messages]
    if any(tools):
        queries["needs_tools"] = tools
    for column in _CARRIED:
        stated = [one.own.get(column) for one in messages]
        if any(one not in (None, "") for one in stated):
            queries[column] = ["" if one is None else str(one) for one in stated]
    return queries


def _mean(column: FloatArray) -> float | None:
    known = column[~np.isnan(column)]
    return float(known.mean()) if known.size else None
