"""Import of RouterArena's cached results: one JSONL file per model.

A line holds global_index, question, llm_selected, token_usage and evaluation_result with score and
inference_cost (USD); upstream writes evaluation_result as an object or as the text of a Python
dict, and both are read (literals only, nothing is executed). Scores are used as they are: most are
0 or 1, METEOR scores lie between, and one below 0 (METEOR has such) counts as 0. A missing or zero
cost is estimated from the price card and the recorded tokens.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.issues import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.evalsets.importers.records import Records, chosen_models, number_or_nan

_LITERAL_CHARS = 200_000
_TOKENS = "recorded tokens"


def read_routerarena(
    files: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    prices: PriceCard | None = None,
) -> Draft:
    """Read cached results into an eval set in memory.

    Args:
        files: <model>.jsonl files; at most 200 MiB together.
        models: Model id -> llm_selected; by default every model under its own name.
        prices: For results without a cost.

    Raises:
        EvalSetError: Damaged lines, unknown models, missing prices: all of them.
    """
    card, budget, issues = prices or PriceCard(), Budget(), Issues()
    rows = [row for file in files for row in _rows(file, budget, issues)]
    issues.raise_any("import")
    names, problems = chosen_models(models or {}, sorted({row["model"] for row in rows}))
    rows = [row for row in rows if row["model"] in names]
    unpriced = {names[row["model"]] for row in rows if math.isnan(row["cost"])}
    problems += card.problems(sorted(unpriced))
    if problems or not rows:
        raise EvalSetError("import", problems or [Problem("", "there are no results")])
    records = Records()
    for row in rows:
        _add(records, row, names[row["model"]], card)
    if below := sum(row["below"] for row in rows):
        records.warnings.append(f"{below} scores below 0 count as 0")
    fractional = sum(0 < number_or_nan(row["quality"]) < 1 for row in rows)
    if fractional:
        records.warnings.append(f"{fractional} scores lie between 0 and 1 and are kept as they are")
    return records.draft("import", card, _TOKENS)


def _rows(file: TableFile, budget: Budget, issues: Issues) -> list[dict[str, Any]]:
    rows = []
    for line, entry in json_objects(file, budget, issues):
        budget.take_rows(1, file.name)
        result = _result(entry.get("evaluation_result"))
        if result is None:
            message = "evaluation_result is neither an object nor the text of one"
            issues.add(message, line, "get the file again", file.name)
            continue
        usage = entry.get("token_usage")
        usage = usage if isinstance(usage, dict) else {}
        below = -1 <= number_or_nan(result.get("score")) < 0
        rows.append(
            {
                "below": below,
                "place": (file.name, line),
                "query_id": str(entry.get("global_index") or ""),
                "text": str(entry.get("question") or ""),
                "model": str(entry.get("llm_selected") or Path(file.name).stem),
                "quality": 0.0 if below else result.get("score"),
                "cost": number_or_nan(result.get("inference_cost")) or math.nan,
                "tokens": tuple(
                    number_or_nan(usage.get(name)) for name in ("input_tokens", "output_tokens")
                ),
            }
        )
    return rows


def _result(value: object) -> dict[str, Any] | None:
    """The evaluation as a dict (empty where there is none), None if it is something else."""
    if value is None or isinstance(value, dict):
        return value or {}
    if not isinstance(value, str) or len(value) > _LITERAL_CHARS:
        return None
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def _add(records: Records, row: Mapping[str, Any], model: str, card: PriceCard) -> None:
    cost, query_id = row["cost"], row["query_id"]
    if math.isnan(cost) and not math.isnan(sum(row["tokens"])):
        cost = card.prices[model].cost_usd(*row["tokens"])
        records.estimated += 1
    records.query(row["place"], query_id, row["text"], query_id.rpartition("_")[0])
    records.outcome(row["place"], query_id, model, row["quality"], cost, row["tokens"])
