"""promptfoo: results as JSON or JSONL, one row a test and provider, or as CSV without costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hydra_core.evalsets.importers.harness.scored import Adapter, Reading, Scored, as_feedback
from hydra_core.evalsets.importers.reading.bounded import TableFile, suffix_of
from hydra_core.evalsets.importers.reading.json_document import (
    mapping,
    objects,
    read_json,
    value_at,
)
from hydra_core.evalsets.importers.reading.tables import csv_records, json_objects
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Feedback, Served, whole_tokens

_ERROR: Final = 2
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
    prompts = _prompts(row for _, row in rows)
    twins = _twins(row for _, row in rows)
    names = sorted({name for name in twins.values()})
    if names:
        reading.traffic.warnings.append(
            f"one provider was run with several settings and no labels of their own: "
            f"{', '.join(names)}, in the file's order; name them with --model ID=NAME"
        )
    for line, row in rows:
        query_id = _query_id(row, prompts)
        answer = mapping(row.get("response"))
        if row.get("failureReason") == _ERROR or (row.get("error") and not answer.get("output")):
            reading.traffic.skip("the provider gave an error", query_id)
        else:
            model = _model(row)
            model = twins.get((model, identifier(row.get("promptIdx"))), model)
            asked = reading.asked(row, "prompt.raw")
            served = Served((file.name, line), query_id, asked, model, **_figures(row, answer))
            yield Scored(served, _scores(row), "score")


def _rows(file: TableFile, reading: Reading) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if suffix_of(file) in (".jsonl", ".ndjson"):
        yield from json_objects(file, reading.budget, reading.traffic.unread)
        return
    document = read_json(file, reading.budget)
    inner = document.get("results") if isinstance(document, Mapping) else document
    listed = objects(inner.get("results") if isinstance(inner, Mapping) else inner)
    reading.budget.take_rows(len(listed), file.name)
    yield from enumerate(listed, 1)


def _prompts(rows: Iterator[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """(test, provider) -> the prompts that it was tried with, in order."""
    tried: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        raw = text(value_at(row, "prompt.raw"))
        listed = tried.setdefault((identifier(row.get("testIdx")), _model(row)), [])
        if raw not in listed:
            listed.append(raw)
    return tried


def _twins(rows: Iterator[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """(provider, promptIdx) -> its own name, where providers of one name share test and prompt.

    promptfoo counts pairs of a provider and a prompt, so they are the same provider set otherwise,
    such as at another effort; a repeat has the same number.
    """
    shared: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        key = (identifier(row.get("testIdx")), _model(row), text(value_at(row, "prompt.raw")))
        listed, number = shared.setdefault(key, []), identifier(row.get("promptIdx"))
        if number not in listed:
            listed.append(number)
    return {
        (model, number): f"{model}:{place}"
        for (_, model, _), numbers in shared.items()
        if len(numbers) > 1
        for place, number in enumerate(sorted(numbers, key=lambda n: (len(n), n)), 1)
    }


def _query_id(row: Mapping[str, Any], prompts: Mapping[tuple[str, str], list[str]]) -> str:
    """The test, and which of several prompts where one provider was tried with several."""
    test = identifier(row.get("testIdx"))
    tried = prompts[(test, _model(row))]
    if len(tried) < 2:
        return f"test-{test}"
    return f"test-{test}-prompt-{tried.index(text(value_at(row, 'prompt.raw')))}"


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
