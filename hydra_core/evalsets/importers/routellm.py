"""Import of RouteLLM's evaluation responses: CSV files with a prompt and a column per model.

A model's column says True or False (answered correctly); `<model>_response`, where there is one,
holds its answer. No cost is recorded: it is estimated from the price card, the length of the
prompt and of the answer, or the stated tokens of an answer where no answer is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.price_card import PriceCard, text_tokens
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.tables import LINE, columns_of, read_columns
from hydra_core.evalsets.importers.records import Records, chosen_models

_RESPONSE = "_response"
_TOKENS = "bytes / 4 of prompt and answer (or the stated answer tokens)"


def read_routellm(
    files: Sequence[TableFile], models: Mapping[str, str], prices: PriceCard
) -> Draft:
    """Read response tables into an eval set in memory; a file's name is its queries' group.

    Args:
        files: CSV files with `prompt` and one True/False column per model.
        models: Model id -> column; by default every column but prompt and the answers.
        prices: Prices by model id, with answer tokens where a file keeps no answers.

    Raises:
        EvalSetError: Missing columns or prices, unknown models, damaged files: all of them.
    """
    budget, records = Budget(), Records()
    budget.check_sizes(list(files))
    columns = {file.name: columns_of(file) for file in files}
    known = sorted({name for names in columns.values() for name in names if _is_model(name)})
    names, problems = chosen_models(models, known)
    problems += _problems(columns, names, prices)
    if problems or not files:
        raise EvalSetError("import", problems or [Problem("", "there are no files")])
    for file in files:
        _read(file, columns[file.name], names, prices, budget, records)
    return records.draft("import", prices, _TOKENS)


def _is_model(column: str) -> bool:
    return column not in ("", "prompt") and not column.endswith(_RESPONSE)


def _problems(
    columns: Mapping[str, list[str]], names: Mapping[str, str], prices: PriceCard
) -> list[Problem]:
    found, unanswered = [], set()
    for file, having in columns.items():
        for name in ("prompt", *names):
            if name not in having:
                found.append(Problem(file, f"there is no column {name!r}"))
        unanswered |= {m for name, m in names.items() if name + _RESPONSE not in having}
    answered = sorted(set(names.values()) - unanswered)
    found += prices.problems(answered)
    return found + prices.problems(sorted(unanswered), need_answers=True)


def _read(
    file: TableFile,
    columns: list[str],
    names: Mapping[str, str],
    prices: PriceCard,
    budget: Budget,
    records: Records,
) -> None:
    answers = [name + _RESPONSE for name in names if name + _RESPONSE in columns]
    frame, warnings = read_columns(file, ["prompt", *names, *answers], budget)
    records.warnings += warnings
    group = Path(file.name).name.split(".")[0]
    cells = {name: frame[name].tolist() for name in frame.columns}
    for i, (line, prompt) in enumerate(zip(cells[LINE], cells["prompt"], strict=True)):
        query_id, place = f"{group}-{i}", (file.name, int(line))
        records.query(place, query_id, prompt, group)
        for name, model in names.items():
            price, answer = prices.prices[model], cells.get(name + _RESPONSE)
            tokens = (price.answer_tokens or 0.0) if answer is None else text_tokens(answer[i])
            cost = price.cost_usd(text_tokens(prompt), tokens)
            records.outcome(place, query_id, model, cells[name][i], cost)
            records.estimated += 1
