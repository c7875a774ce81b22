"""Import of LLMRouterBench results: one JSON file per dataset, split and model.

A file holds `model_name`, `dataset_name`, `split`, `demo` and `records` (index, origin_query,
score, prompt_tokens, completion_tokens, cost). Files of one dataset are joined on the index; demo
runs are skipped, and of several runs the newest (by the time in the file's name) is taken. Costs
are the recorded ones; where one is missing it is estimated from the price card and the tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.json_document import read_json
from hydra_core.evalsets.importers.records import Records, chosen_models, number_or_nan

_MAX_BYTES = 1 << 30
_MAX_FILES = 2_000
_TOKENS = "recorded tokens"


def result_files(path: Path) -> list[Path]:
    """The .json files of a results folder, sorted; a file stands for itself.

    Raises:
        EvalSetError: There are none, or more than 2,000.
    """
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not 0 < len(found) <= _MAX_FILES:
        message = f"holds {len(found)} .json files"
        raise EvalSetError.of(str(path), message, f"give a folder with 1 to {_MAX_FILES} results")
    return found


def read_llmrouterbench(
    files: Sequence[TableFile],
    models: Mapping[str, str] | None = None,
    prices: PriceCard | None = None,
) -> Draft:
    """Read result files into an eval set in memory.

    Args:
        files: Result files; at most 1 GiB together.
        models: Model id -> model_name; by default every model under its own name.
        prices: For records without a cost.

    Raises:
        EvalSetError: Damaged files, unknown models, missing prices: all of them.
    """
    card, budget = prices or PriceCard(), Budget(_MAX_BYTES)
    records, problems = Records(), []
    runs: dict[tuple[str, str], tuple[TableFile, dict[str, Any]]] = {}
    for file in sorted(files, key=lambda one: one.name):
        try:
            found = _slim(file, budget)
        except EvalSetError as error:
            problems += [Problem(file.name, str(p)) for p in error.problems]
            continue
        if found["demo"]:
            records.warnings.append(f"{file.name} is a demo run: skipped")
            continue
        key = (found["dataset"], found["model"])
        if key in runs:
            records.warnings.append(f"{runs[key][0].name}: there is a newer run, it is skipped")
        runs[key] = (file, found)
    names, wrong = chosen_models(models or {}, sorted({model for _, model in runs}))
    chosen = {key: run for key, run in runs.items() if key[1] in names}
    unpriced = {names[key[1]] for key, (_, run) in chosen.items() if run["unpriced"]}
    problems += [*wrong, *card.problems(sorted(unpriced))]
    if problems or not chosen:
        raise EvalSetError("import", problems or [Problem("", "there are no results")])
    for (dataset, upstream), (file, run) in chosen.items():
        _add(records, file.name, dataset, names[upstream], run["records"], card)
    return records.draft("import", card, _TOKENS)


def _slim(file: TableFile, budget: Budget) -> dict[str, Any]:
    """What is needed of one result file, so that prompts and raw outputs do not pile up."""
    content = read_json(file, budget)
    rows = content.get("records") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise EvalSetError.of(file.name, 'has no "records" list')
    missing = [name for name in ("model_name", "dataset_name") if not content.get(name)]
    if missing:
        raise EvalSetError(file.name, [Problem(name, "is missing") for name in missing])
    split = str(content.get("split") or "")
    keep = ("index", "score", "prompt_tokens", "completion_tokens", "cost")
    slim = [
        {**{k: row.get(k) for k in keep}, "text": row.get("origin_query") or row.get("prompt")}
        for row in rows
    ]
    return {
        "model": str(content["model_name"]),
        "dataset": str(content["dataset_name"]) + (f"-{split}" if split else ""),
        "demo": content.get("demo") is True,
        "records": slim,
        "unpriced": any(math.isnan(number_or_nan(row["cost"])) for row in slim),
    }


def _add(
    records: Records,
    file: str,
    dataset: str,
    model: str,
    rows: list[dict[str, Any]],
    card: PriceCard,
) -> None:
    for number, row in enumerate(rows):
        place, query_id = (file, number + 1), f"{dataset}-{row['index']}"
        tokens = (number_or_nan(row["prompt_tokens"]), number_or_nan(row["completion_tokens"]))
        cost = number_or_nan(row["cost"])
        if math.isnan(cost) and not math.isnan(sum(tokens)):
            cost = card.prices[model].cost_usd(*tokens)
            records.estimated += 1
        text = row["text"] if isinstance(row["text"], str) else ""
        records.query(place, query_id, text, dataset)
        records.outcome(place, query_id, model, row["score"], cost, tokens)
