"""promptfoo: results as CSV, a row a test and some columns a provider; it has no costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hydra_core.evalsets.importers.harness.scored import Reading, Scored, as_feedback
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.tables import csv_records
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.served import Served

_ANSWER: Final = re.compile(r"\[(?P<model>[^\]]+)\] (?P<prompt>(?s:.*))")
_STATUS: Final = re.compile(r"\s*\[(PASS|FAIL|ERROR)\]")
_VARIABLE: Final = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_WORTH: Final = {"PASS": 1.0, "FAIL": 0.0}


@dataclass(frozen=True, slots=True)
class _Answer:
    """The columns of one provider: where its answer, its status and its score stand."""

    model: str
    prompt: str
    column: int
    status: int = -1
    score: int = -1


def is_promptfoo_csv(names: Sequence[str]) -> bool:
    """Whether some column is headed by a provider in brackets, as promptfoo writes it."""
    return any(_ANSWER.fullmatch(name) for name in names)


def read_promptfoo_csv(file: TableFile, reading: Reading) -> Iterator[Scored]:
    """The answers of a CSV file."""
    records = csv_records(file, reading.budget)
    header = next(records, (0, []))[1]
    answers = _answers(header)
    first = min((answer.column for answer in answers), default=0)
    names = [name for name in header[:first] if name != "Description"]
    for number, (line, row) in enumerate(records):
        if len(row) != len(header):
            reading.traffic.skip(f"has {len(row)} cells instead of {len(header)}", f"line {line}")
            continue
        variables = {name: row[header.index(name)] for name in names}
        for answer in answers:
            status = row[answer.status] if answer.status >= 0 else _status(row[answer.column])
            query_id = f"test-{number}"
            if status == "ERROR":
                reading.traffic.skip("the provider gave an error", query_id)
                continue
            stated = row[answer.score] if answer.score >= 0 else ""
            worth = as_feedback(stated) if stated else Feedback(_WORTH.get(status, float("nan")))
            message = asked_in(_asked(answer.prompt, variables))
            served = Served((file.name, line), query_id, message, answer.model)
            yield Scored(served, {"score": worth}, "score")


def _answers(header: Sequence[str]) -> list[_Answer]:
    answers: list[_Answer] = []
    for column, name in enumerate(header):
        match = _ANSWER.fullmatch(name)
        if match is not None:
            beside = list(header[column + 1 : column + 4])
            has = beside[:2] == ["Status", "Score"]
            places = (column + 1, column + 2) if has else (-1, -1)
            answers.append(_Answer(match["model"], match["prompt"], column, *places))
    return answers


def _status(cell: str) -> str:
    match = _STATUS.match(cell)
    return match[1] if match is not None else ""


def _asked(prompt: str, variables: Mapping[str, str]) -> str:
    """The prompt with the test's variables in it; the variables alone where it has none of them."""
    used = _VARIABLE.findall(prompt)
    if used and set(used) <= set(variables):
        return _VARIABLE.sub(lambda match: variables[match[1]], prompt)
    if len(variables) == 1:
        return next(iter(variables.values()))
    return "\n".join(f"{name}: {value}" for name, value in variables.items())
