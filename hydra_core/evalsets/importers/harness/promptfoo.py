"""promptfoo: results as JSON or JSONL, one row a test and provider, or as CSV without costs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from hydra_core.base.json_values import mapping, objects
from hydra_core.base.spelling import counted
from hydra_core.evalsets.importers.harness.scored import Adapter, Reading, Scored, as_feedback
from hydra_core.evalsets.importers.reading.bounded import TableFile, suffix_of
from hydra_core.evalsets.importers.reading.json_document import (
    read_json,
    value_at,
)
from hydra_core.evalsets.importers.reading.tables import csv_records, json_objects
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served, whole_tokens

_ERROR: Final = 2
#: Why an answer passed that nothing judged.
_UNJUDGED: Final = "No assertions"
_ANSWER: Final = re.compile(r"\[(?P<model>[^\]]+)\] (?P<prompt>(?s:.*))")
_STATUS: Final = re.compile(r"\s*\[(PASS|FAIL|ERROR)\]")
_VARIABLE: Final = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
#: Tokens from a provider's prompt cache, into it, and of reasoning.
_DETAILS: Final = (
    "completionDetails.cacheReadInputTokens",
    "completionDetails.cacheCreationInputTokens",
    "completionDetails.reasoning",
)
_WORTH: Final = {"PASS": 1.0, "FAIL": 0.0}


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    rows = list(_rows(file, reading))
    tests = _tests([row for _, row in rows], several_files=reading.several_files)
    prompts = _prompts(rows, tests)
    own_words = {test for test, by_model in prompts.items() if _in_own_words(by_model)}
    twins = _twins(rows, tests)
    names = sorted({name for name in twins.values()})
    if names:
        reading.traffic.warnings.append(
            f"one provider was run with several settings and no labels of their own: "
            f"{', '.join(names)}, in the file's order; name them with --model ID=NAME"
        )
    if own_words and not reading.traffic.given.text_path:
        reading.traffic.warnings.append(
            f"each provider has a prompt of its own in {counted(len(own_words), 'test')}: the "
            "variables of the test count as its message"
        )
    for (line, row), test in zip(rows, tests, strict=True):
        model = _model(row)
        query_id = _query_id(test, text(value_at(row, "prompt.raw")), prompts[test])
        answer = mapping(row.get("response"))
        if _failed(row, answer):
            reading.traffic.skip("the provider gave an error", query_id)
        elif value_at(row, "gradingResult.reason") == _UNJUDGED:
            reading.traffic.skip("no assertion judged the answer", query_id)
        else:
            model = twins.get((model, identifier(row.get("promptIdx"))), model)
            asked = reading.asked(row, "prompt.raw")
            if test in own_words and not reading.traffic.given.text_path:
                asked = asked_in(_asked("", _variables(row)))
            served = Served((file.name, line), query_id, asked, model, **_figures(row, answer))
            yield Scored(served, _scores(row), "score")


def _failed(row: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether the provider gave an error; an assertion that failed is written as one, too."""
    if row.get("failureReason") is not None:
        return bool(row["failureReason"] == _ERROR)
    graded = answer.get("output") or row.get("gradingResult")
    return bool(row.get("error")) and not graded


def _rows(file: TableFile, reading: Reading) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if suffix_of(file) in (".jsonl", ".ndjson"):
        yield from json_objects(file, reading.budget, reading.traffic.unread)
        return
    document = read_json(file, reading.budget)
    inner = document.get("results") if isinstance(document, Mapping) else document
    listed = objects(inner.get("results") if isinstance(inner, Mapping) else inner)
    reading.budget.take_rows(len(listed), file.name)
    yield from enumerate(listed, 1)


def _variables(row: Mapping[str, Any]) -> dict[str, str]:
    found = mapping(value_at(row, "testCase.vars")) or mapping(row.get("vars"))
    return {
        str(name): value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in found.items()
    }


def _tests(rows: Sequence[Mapping[str, Any]], *, several_files: bool) -> list[str]:
    """The test of each row, by its number; older files have none, and tests of several files may
    share theirs, so there the variables count, and the prompt where a test has none.
    """
    numbers: dict[str, str] = {}
    tests = []
    for row in rows:
        number = identifier(row.get("testIdx"))
        if several_files or not number:
            facts = repr(sorted(_variables(row).items()) or value_at(row, "prompt.raw"))
            mark = sha256(facts.encode("utf-8", "replace")).hexdigest()[:8]
            known = (
                [number, mark] if several_files else [numbers.setdefault(mark, str(len(numbers)))]
            )
            number = "-".join(filter(None, known))
        tests.append(f"test-{number}")
    return tests


def _prompts(
    rows: Sequence[tuple[int, Mapping[str, Any]]], tests: Sequence[str]
) -> dict[str, dict[str, list[str]]]:
    """Test -> provider -> the prompts that it was tried with, in order."""
    tried: dict[str, dict[str, list[str]]] = {}
    for (_, row), test in zip(rows, tests, strict=True):
        raw = text(value_at(row, "prompt.raw"))
        listed = tried.setdefault(test, {}).setdefault(_model(row), [])
        if raw not in listed:
            listed.append(raw)
    return tried


def _in_own_words(by_model: Mapping[str, Sequence[str]]) -> bool:
    """Whether each provider was tried with one prompt, and not all with the same."""
    several = len({raw for listed in by_model.values() for raw in listed}) > 1
    return several and all(len(listed) == 1 for listed in by_model.values())


def _twins(
    rows: Sequence[tuple[int, Mapping[str, Any]]], tests: Sequence[str]
) -> dict[tuple[str, str], str]:
    """(provider, promptIdx) -> its own name, where providers of one name share test and prompt.

    promptfoo counts pairs of a provider and a prompt, so they are the same provider set otherwise,
    such as at another effort; a repeat has the same number.
    """
    shared: dict[tuple[str, str, str], list[str]] = {}
    for (_, row), test in zip(rows, tests, strict=True):
        key = (test, _model(row), text(value_at(row, "prompt.raw")))
        listed, number = shared.setdefault(key, []), identifier(row.get("promptIdx"))
        if number not in listed:
            listed.append(number)
    return {
        (model, number): f"{model}:{place}"
        for (_, model, _), numbers in shared.items()
        if len(numbers) > 1
        for place, number in enumerate(sorted(numbers, key=lambda n: (len(n), n)), 1)
    }


def _query_id(test: str, raw: str, by_model: Mapping[str, Sequence[str]]) -> str:
    """The test, and which of several prompts where one provider was tried with several."""
    if all(len(listed) < 2 for listed in by_model.values()):
        return test
    prompts = list(dict.fromkeys(one for listed in by_model.values() for one in listed))
    return f"{test}-prompt-{prompts.index(raw)}"


def _model(row: Mapping[str, Any]) -> str:
    provider = row.get("provider")
    if isinstance(provider, Mapping):
        return text(provider.get("label")) or text(provider.get("id"))
    return text(provider)


def _figures(row: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Cost, tokens and latency; one out of promptfoo's cache has only tokens of its own."""
    usage = mapping(answer.get("tokenUsage", row.get("tokenUsage")))
    read, written, total = (number(usage.get(name)) for name in ("prompt", "completion", "total"))
    cached, stored, thought = (number(value_at(usage, path)) for path in _DETAILS)
    read, written = whole_tokens(
        read, written, cached=cached, stored=stored, thought=thought, total=total
    )
    tokens = {"input_tokens": read, "output_tokens": written, "cached_input_tokens": cached}
    if answer.get("cached") is True:
        return tokens
    cost_usd = number(row.get("cost", answer.get("cost")))
    return {**tokens, "cost_usd": cost_usd, "latency_s": number(row.get("latencyMs")) / 1e3}


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    scores = {str(n): as_feedback(v) for n, v in mapping(row.get("namedScores")).items()}
    stated = row.get("score")
    return {"score": as_feedback(row.get("success") if stated is None else stated), **scores}


PROMPTFOO: Final = Adapter("promptfoo", frozenset({"provider", "testCase"}), _read)
#: Before version 3, without the tests themselves.
PROMPTFOO_OLD: Final = Adapter("promptfoo", frozenset({"provider", "namedScores"}), _read)


def is_promptfoo_csv(names: Sequence[str]) -> bool:
    """Whether some column is headed by a provider in brackets, as promptfoo writes it."""
    return any(_ANSWER.fullmatch(name) for name in names)


def read_promptfoo_csv(file: TableFile, reading: Reading) -> Iterator[Scored]:
    records = csv_records(file, reading.budget)
    header = next(records, (0, []))[1]
    answers = _answers(header)
    first = min((column for column, *_ in answers), default=0)
    names = [name for name in header[:first] if name != "Description"]
    for index, (line, row) in enumerate(records):
        if len(row) != len(header):
            reading.traffic.skip(f"has {len(row)} cells instead of {len(header)}", f"line {line}")
            continue
        variables = {name: row[header.index(name)] for name in names}
        for column, model, prompt, has_scores in answers:
            match = _STATUS.match(row[column])
            status = row[column + 1] if has_scores else match[1] if match else ""
            query_id = f"test-{index}"
            if status == "ERROR":
                reading.traffic.skip("the provider gave an error", query_id)
                continue
            if has_scores and _UNJUDGED in row[column + 3 : column + 5]:
                reading.traffic.skip("no assertion judged the answer", query_id)
                continue
            stated = row[column + 2] if has_scores else ""
            worth = as_feedback(stated) if stated else Feedback(_WORTH.get(status, float("nan")))
            message = asked_in(_asked(prompt, variables))
            yield Scored(
                Served((file.name, line), query_id, message, model), {"score": worth}, "score"
            )


def _answers(header: Sequence[str]) -> list[tuple[int, str, str, bool]]:
    """(column, model, prompt, whether status and score stand behind it) of each provider."""
    matches = ((column, _ANSWER.fullmatch(name)) for column, name in enumerate(header))
    return [
        (at, match["model"], match["prompt"], [*header[at + 1 : at + 3]] == ["Status", "Score"])
        for at, match in matches
        if match is not None
    ]


def _asked(prompt: str, variables: Mapping[str, str]) -> str:
    """The prompt with the test's variables in it; the variables alone where it has none of them."""
    used = _VARIABLE.findall(prompt)
    if used and set(used) <= set(variables):
        return _VARIABLE.sub(lambda match: variables[match[1]], prompt)
    if len(variables) == 1:
        return next(iter(variables.values()))
    return "\n".join(f"{name}: {value}" for name, value in variables.items())
