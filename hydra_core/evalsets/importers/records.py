"""Imports of published records: LiveCodeBench, LLMRouterBench, RouterArena, RouteLLM.

A cost that was not recorded is estimated from the price card and the tokens, where a file holds
any, else from the length of the texts and the stated tokens of an answer.
"""

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.json_values import mapping
from hydra_core.base.spelling import counted_that
from hydra_core.base.tokens import text_tokens
from hydra_core.evalsets.importers.assemble import Rows, assemble
from hydra_core.evalsets.importers.draft import Draft, with_estimates
from hydra_core.evalsets.importers.given import NOTHING, Given, PriceCard
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import FILE, LINE, Issues
from hydra_core.evalsets.importers.reading.json_document import number_in, read_json
from hydra_core.evalsets.importers.reading.tables import columns_of, json_objects, read_columns

_Place = tuple[str, int]
_Tokens = tuple[float, float]
_UNKNOWN: Final[_Tokens] = (math.nan, math.nan)
_SIDES: Final = ("input_tokens", "output_tokens")
_QUERY: Final = (FILE, LINE, "query_id", "text", "group")
_OUTCOME: Final = (FILE, LINE, "query_id", "model", "quality", "cost_usd", *_SIDES)
_RECORDED: Final = "recorded tokens"
_RESPONSE: Final = "_response"
_LITERAL_CHARS: Final = 200_000
_MAX_BYTES: Final = 1 << 30
_MAX_FILES: Final = 2_000


@dataclass(slots=True)
class _Records:
    """Raw queries and outcomes as they are read, with the costs that had to be estimated."""

    card: PriceCard
    queries: list[tuple[object, ...]] = field(default_factory=list)
    outcomes: list[tuple[object, ...]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    estimated: int = 0

    def query(self, place: _Place, query_id: str, text: str, group: str) -> None:
        self.queries.append((*place, query_id, text, group))

    def outcome(
        self,
        place: _Place,
        query_id: str,
        model: str,
        quality: object,
        cost_usd: float = math.nan,
        tokens: _Tokens = _UNKNOWN,
        assumed: _Tokens = _UNKNOWN,
    ) -> None:
        """One outcome; NaN where a number is not known.

        Args:
            tokens: Recorded input and output tokens.
            assumed: Those that a cost is estimated from where none are recorded.
        """
        counted = tokens if math.isnan(sum(assumed)) else assumed
        if math.isnan(cost_usd) and not math.isnan(sum(counted)):
            cost_usd = self.card.prices[model].price.usd_of_one(*counted)
            self.estimated += 1
        shown = str(quality).lower() if isinstance(quality, bool) else quality
        figures = ("" if math.isnan(value) else repr(value) for value in (cost_usd, *tokens))
        self.outcomes.append(
            (*place, query_id, model, "" if shown is None else str(shown), *figures)
        )

    def draft(self, source: str, tokens: str, *, scale: float = 1.0) -> Draft:
        """Check everything and line it up; see `assemble`.

        Args:
            tokens: Where the tokens of estimated costs come from, for the price notes.

        Raises:
            EvalSetError: With every problem found.
        """
        queries = pd.DataFrame(self.queries, columns=_QUERY, dtype=object)
        outcomes = pd.DataFrame(self.outcomes, columns=_OUTCOME, dtype=object)
        unknown = [name for name in _SIDES if (outcomes[name] == "").all()]
        rows = Rows(queries, outcomes.drop(columns=unknown), tuple(self.warnings))
        need_text = bool((queries["text"] != "").any())
        draft = assemble(rows, source, scale=scale, need_text=need_text)
        self.card.require_used(draft.models)
        return with_estimates(draft, self.estimated, self.card, tokens)


def read_livecodebench(files: Sequence[TableFile], given: Given) -> Draft:
    """Read the leaderboard's pass@1, which is 100 times the quality, joined with problem texts.

    No costs are recorded: they are estimated from the questions' lengths and the stated mean
    tokens of an answer.

    Args:
        files: performances_generation.json, plain, .gz or .zip: `performances` (question_id,
            model, pass@1 in percent, difficulty, platform).
        given: The leaderboard's names of the models, and beside it any submission's evaluation
            file with question_content and starter_code; without, the set has no texts or costs.

    Raises:
        EvalSetError: Unknown models, missing prices, damaged files: all of them.
    """
    performances = files[0]
    outcomes = _performances(performances)
    names, wrong = given.chosen_models(sorted({str(entry.get("model")) for entry in outcomes}))
    if given.more:
        wrong += given.prices.problems(sorted(names.values()), need_answers=True)
    EvalSetError.raise_any(performances.name, wrong)
    records = _Records(given.prices)
    lengths = _problem_texts(given.more[0], records) if given.more else {}
    for number, entry in enumerate(outcomes, 1):
        model = names.get(str(entry.get("model")))
        if model is None:
            continue
        place, query_id = (performances.name, number), str(entry.get("question_id", ""))
        assumed = _UNKNOWN
        if not given.more:
            records.query(place, query_id, "", _difficulty(entry))
        if query_id in lengths:
            assumed = (lengths[query_id], given.prices.prices[model].answer_tokens or 0.0)
        records.outcome(place, query_id, model, entry.get("pass@1"), assumed=assumed)
    tokens = "question bytes / 4 and the stated mean answer tokens"
    return records.draft(performances.name, tokens, scale=100.0)


def _performances(file: TableFile) -> list[dict[str, Any]]:
    found = mapping(read_json(file)).get("performances")
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        remedy = "give the leaderboard's performances_generation.json"
        raise EvalSetError.of(file.name, 'has no "performances" list', remedy)
    return found


def _difficulty(entry: Mapping[str, Any]) -> str:
    return "/".join(str(entry[k]) for k in ("platform", "difficulty") if entry.get(k))


def _problem_texts(file: TableFile, records: _Records) -> dict[str, float]:
    """Add the problems to the records; tokens by question id."""
    content = read_json(file)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        remedy = "give a submission's evaluation file (*_eval_all.json)"
        raise EvalSetError.of(file.name, "is not a list of problems", remedy)
    lengths = {}
    for number, entry in enumerate(content, 1):
        query_id, text = str(entry.get("question_id", "")), str(entry.get("question_content") or "")
        starter = str(entry.get("starter_code") or "")
        text = f"{text}\n\n{starter}" if text and starter.strip() else text
        records.query((file.name, number), query_id, text, _difficulty(entry))
        lengths[query_id] = text_tokens(text)
    return lengths


@dataclass(frozen=True, slots=True)
class _Answer:
    """One recorded answer of a model, under the model's name in the file."""

    place: _Place
    query_id: str
    group: str
    text: str
    model: str
    quality: object
    cost_usd: float
    tokens: _Tokens


def _answers_draft(
    answers: Sequence[_Answer],
    known: Sequence[str],
    given: Given,
    warnings: Sequence[str] = (),
    problems: Sequence[Problem] = (),
) -> Draft:
    """The eval set of recorded answers; a model with one that has no cost needs a price."""
    names, wrong = given.chosen_models(known)
    chosen = [answer for answer in answers if answer.model in names]
    unpriced = {names[answer.model] for answer in chosen if math.isnan(answer.cost_usd)}
    found = [*problems, *wrong, *given.prices.problems(sorted(unpriced))]
    if found or not chosen:
        raise EvalSetError("import", found or [Problem("", "there are no results")])
    records = _Records(given.prices, warnings=list(warnings))
    for one in chosen:
        records.query(one.place, one.query_id, one.text, one.group)
        records.outcome(
            one.place, one.query_id, names[one.model], one.quality, one.cost_usd, one.tokens
        )
    return records.draft("import", _RECORDED)


def result_files(path: Path) -> list[Path]:
    """The .json files of LLMRouterBench's results folder, sorted; a file stands for itself.

    Raises:
        EvalSetError: There are none, or more than 2,000.
    """
    found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    if not 0 < len(found) <= _MAX_FILES:
        message = f"holds {len(found)} .json files"
        raise EvalSetError.of(str(path), message, f"give a folder with 1 to {_MAX_FILES} results")
    return found


def read_llmrouterbench(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Read LLMRouterBench's results: one JSON file per dataset, split and model, 1 GiB together.

    A file holds `model_name`, `dataset_name`, `split`, `demo` and `records` (index, origin_query,
    score, prompt_tokens, completion_tokens, cost). Files of one dataset are joined on the index;
    demo runs are skipped, and of several runs the newest, by the time in the name, is taken. A
    cost of 0 is none: it stands where the model was run without a price.

    Raises:
        EvalSetError: Damaged files, unknown models, missing prices: all of them.
    """
    budget, problems, warnings = Budget(_MAX_BYTES), [], []
    runs: dict[tuple[str, str], tuple[str, list[_Answer]]] = {}
    for file in sorted(files, key=lambda one: one.name):
        try:
            content = _results(file, budget)
        except EvalSetError as error:
            problems += [Problem(file.name, str(p)) for p in error.problems]
            continue
        if content.get("demo") is True:
            warnings.append(f"{file.name} is a demo run: skipped")
            continue
        split, model = str(content.get("split") or ""), str(content["model_name"])
        key = (str(content["dataset_name"]) + (f"-{split}" if split else ""), model)
        if key in runs:
            warnings.append(f"{runs[key][0]}: there is a newer run, it is skipped")
        # prompts and raw outputs are not kept: they would pile up
        runs[key] = (file.name, list(_answers(file.name, key, content["records"])))
    answers = [answer for _, run in runs.values() for answer in run]
    return _answers_draft(answers, sorted({m for _, m in runs}), given, warnings, problems)


def _results(file: TableFile, budget: Budget) -> dict[str, Any]:
    content = mapping(read_json(file, budget))
    rows = content.get("records")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise EvalSetError.of(file.name, 'has no "records" list')
    missing = [name for name in ("model_name", "dataset_name") if not content.get(name)]
    EvalSetError.raise_any(file.name, [Problem(name, "is missing") for name in missing])
    return dict(content)


def _answers(file: str, key: tuple[str, str], rows: list[dict[str, Any]]) -> Iterator[_Answer]:
    dataset, model = key
    for line, row in enumerate(rows, 1):
        text = row.get("origin_query") or row.get("prompt")
        yield _Answer(
            (file, line),
            f"{dataset}-{row.get('index')}",
            dataset,
            text if isinstance(text, str) else "",
            model,
            row.get("score"),
            number_in(row.get("cost")) or math.nan,
            (number_in(row.get("prompt_tokens")), number_in(row.get("completion_tokens"))),
        )


def read_routerarena(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Read RouterArena's cached results: one JSONL file a model, 400 MiB together.

    A line holds global_index, question, llm_selected, token_usage and evaluation_result with score
    and inference_cost (USD). Scores are used as they are: most are 0 or 1, METEOR scores lie
    between, and one below 0 (METEOR has such) counts as 0. A cost of zero is none.

    Raises:
        EvalSetError: Damaged lines, unknown models, missing prices: all of them.
    """
    budget, issues = Budget(), Issues()
    answers = [answer for file in files for answer in _cached(file, budget, issues)]
    issues.raise_any("import")
    wanted = set(given.models.values())
    scores = [number_in(one.quality) for one in answers if not wanted or one.model in wanted]
    warnings = []
    if below := sum(-1 <= score < 0 for score in scores):
        warnings.append(f"{counted_that(below, 'score', 'is', 'are')} below 0: read as 0")
    if fractional := sum(0 < score < 1 for score in scores):
        lie = counted_that(fractional, "score", "lies", "lie")
        warnings.append(f"{lie} between 0 and 1: kept")
    answers = [
        replace(one, quality=0.0) if -1 <= number_in(one.quality) < 0 else one for one in answers
    ]
    return _answers_draft(answers, sorted({one.model for one in answers}), given, warnings)


def _cached(file: TableFile, budget: Budget, issues: Issues) -> Iterator[_Answer]:
    for line, entry in json_objects(file, budget, issues):
        result = _evaluation(entry.get("evaluation_result"))
        if result is None:
            message = "evaluation_result is neither an object nor the text of one"
            issues.add(message, line, "get the file again", file.name)
            continue
        usage = mapping(entry.get("token_usage"))
        query_id = str(entry.get("global_index") or "")
        yield _Answer(
            (file.name, line),
            query_id,
            query_id.rpartition("_")[0],
            str(entry.get("question") or ""),
            str(entry.get("llm_selected") or Path(file.name).stem),
            result.get("score"),
            number_in(result.get("inference_cost")) or math.nan,
            (number_in(usage.get("input_tokens")), number_in(usage.get("output_tokens"))),
        )


def _evaluation(value: object) -> dict[str, Any] | None:
    """An object or the text of a Python dict (literals only, nothing is executed), else None."""
    if value is None or isinstance(value, dict):
        return value or {}
    if not isinstance(value, str) or len(value) > _LITERAL_CHARS:
        return None
    try:
        found = ast.literal_eval(value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def read_routellm(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Read RouteLLM's responses: CSV files with `prompt` and one True/False column per model.

    `<model>_response`, where there is one, holds the model's answer. A file's name is its queries'
    group. No cost is recorded: it is estimated from the lengths of prompt and answer, or from the
    stated tokens of an answer where no answer is kept.

    Raises:
        EvalSetError: Missing columns or prices, unknown models, damaged files: all of them.
    """
    budget, records = Budget(), _Records(given.prices)
    budget.check_sizes(list(files))
    columns = {file.name: columns_of(file) for file in files}
    named = {name for names in columns.values() for name in names if not name.endswith(_RESPONSE)}
    names, problems = given.chosen_models(sorted(named - {"", "prompt"}))
    problems += _lacking(columns, names, given.prices)
    if problems or not files:
        raise EvalSetError("import", problems or [Problem("", "there are no files")])
    for file in files:
        _read_responses(file, columns[file.name], names, budget, records)
    tokens = "bytes / 4 of prompt and answer (or the stated answer tokens)"
    return records.draft("import", tokens)


def _lacking(
    columns: Mapping[str, list[str]], names: Mapping[str, str], prices: PriceCard
) -> list[Problem]:
    """Columns that a file lacks, and prices that its models have not."""
    found, unanswered = [], set()
    for file, having in columns.items():
        for name in ("prompt", *names):
            if name not in having:
                found.append(Problem(file, f"there is no column {name!r}"))
        unanswered |= {m for name, m in names.items() if name + _RESPONSE not in having}
    found += prices.problems(sorted(set(names.values()) - unanswered))
    return found + prices.problems(sorted(unanswered), need_answers=True)


def _read_responses(
    file: TableFile,
    columns: list[str],
    names: Mapping[str, str],
    budget: Budget,
    records: _Records,
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
            price, answer = records.card.prices[model], cells.get(name + _RESPONSE)
            written = (price.answer_tokens or 0.0) if answer is None else text_tokens(answer[i])
            assumed = (text_tokens(prompt), written)
            records.outcome(place, query_id, model, cells[name][i], assumed=assumed)
