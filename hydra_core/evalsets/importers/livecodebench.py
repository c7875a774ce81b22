"""Import of LiveCodeBench: per-question pass@1 of its leaderboard joined with problem texts.

`performances_generation.json` holds `performances` (question_id, model, pass@1 in percent,
difficulty, platform); the texts come from any submission's evaluation file, a list of problems
with question_content and starter_code. Neither costs nor tokens are recorded: costs are estimated
from a price card that also says how many tokens an answer of each model has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hydra_core.base.errors import EvalSetError
from hydra_core.base.tokens import text_tokens
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import read_json
from hydra_core.evalsets.importers.records import Records, chosen_models

_TOKENS = "question bytes / 4 and the stated mean answer tokens"


def read_livecodebench(
    performances: TableFile,
    problems: TableFile | None,
    models: Mapping[str, str],
    prices: PriceCard,
) -> Draft:
    """Read pass@1 and problem texts into an eval set in memory; quality is pass@1 / 100.

    Args:
        performances: performances_generation.json, plain, .gz or .zip.
        problems: A submission's evaluation file with question_content; None for a set without
            texts, and then without costs: they are estimated from the questions' lengths.
        models: Model id -> the leaderboard's model name (model_repr).
        prices: Prices and mean answer tokens by model id.

    Raises:
        EvalSetError: Unknown models, missing prices, damaged files: all of them.
    """
    outcomes = _performances(performances)
    names, wrong = chosen_models(models, sorted({str(entry.get("model")) for entry in outcomes}))
    if problems is not None:
        wrong += prices.problems(sorted(names.values()), need_answers=True)
    if wrong:
        raise EvalSetError(performances.name, wrong)
    records = Records()
    lengths = {} if problems is None else _texts(problems, records)
    for number, entry in enumerate(outcomes):
        model = names.get(str(entry.get("model")))
        if model is None:
            continue
        query_id = str(entry.get("question_id", ""))
        place, cost = (performances.name, number + 1), float("nan")
        if problems is None:
            records.query(place, query_id, "", _group(entry))
        if query_id in lengths:
            price = prices.prices[model]
            cost = price.cost_usd(lengths[query_id], price.answer_tokens or 0.0)
            records.estimated += 1
        records.outcome(place, query_id, model, entry.get("pass@1"), cost)
    return records.draft(performances.name, prices, _TOKENS, scale=100.0)


def _performances(file: TableFile) -> list[dict[str, Any]]:
    content = read_json(file)
    found = content.get("performances") if isinstance(content, dict) else None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        remedy = "give the leaderboard's performances_generation.json"
        raise EvalSetError.of(file.name, 'has no "performances" list', remedy)
    return found


def _group(entry: Mapping[str, Any]) -> str:
    return "/".join(str(entry[k]) for k in ("platform", "difficulty") if entry.get(k))


def _texts(file: TableFile, records: Records) -> dict[str, float]:
    """Add the problems to the records; tokens by question id."""
    content = read_json(file)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        remedy = "give a submission's evaluation file (*_eval_all.json)"
        raise EvalSetError.of(file.name, "is not a list of problems", remedy)
    lengths = {}
    for number, entry in enumerate(content):
        query_id, text = str(entry.get("question_id", "")), str(entry.get("question_content") or "")
        starter = str(entry.get("starter_code") or "")
        text = f"{text}\n\n{starter}" if text and starter.strip() else text
        records.query((file.name, number + 1), query_id, text, _group(entry))
        lengths[query_id] = text_tokens(text)
    return lengths
