"""Verbs about the predictor alone: score-texts, evaluate-predictor."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.cli.grammar import bundle_option, verb
from hydra_core.cli.output import (
    existing,
    open_predictor,
    print_json,
    progress_bar,
    say,
    stdin,
    table,
)

if TYPE_CHECKING:
    from hydra_core.predictor.onnx_predictor import Predictor


_CHUNK = 256
_LINE_BYTES = 16 << 20
_SCORE_TEXTS = """\
Scores messages. Standard input: one JSON object a line with "id", "text" and optionally "turn";
standard output: one JSON object a line with "id" and a score in [0, 1] for each dimension, in the
same order, and "truncated": true where a part of the message was not seen.

example:
  echo '{"id": 1, "text": "Why does this loop never end?"}' | python -m hydra_core score-texts
"""
_EVALUATE_PREDICTOR = """\
Measures a predictor bundle on labelled messages: one JSON object a line with "id", "text", "lang"
and the label of each dimension in [0, 1].

examples:
  python -m hydra_core evaluate-predictor labelled.jsonl --json
  python -m hydra_core evaluate-predictor labelled.jsonl --bundle bundles/compact-2
"""


def add_predictor(verbs: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add both verbs."""
    short = "score messages from standard input (JSONL)"
    bundle_option(verb(verbs, "score-texts", score_texts, short, _SCORE_TEXTS))
    short = "measure a bundle on labelled messages"
    parser = verb(verbs, "evaluate-predictor", evaluate_predictor, short, _EVALUATE_PREDICTOR)
    parser.add_argument("labelled", type=Path, metavar="LABELLED.jsonl")
    parser.add_argument(
        "--resamples", type=int, default=1000, metavar="N", help="bootstrap, 0: no intervals"
    )
    bundle_option(parser)


def score_texts(options: argparse.Namespace) -> int:
    """Score messages from standard input, in order, as they come."""
    predictor = open_predictor(options.bundle)
    lines = _lines()
    count = 0
    while chunk := list(itertools.islice(lines, _CHUNK)):
        count += len(chunk)
        _score_chunk(predictor, chunk)
    if count == 0:
        say("note: there were no messages on standard input")
    return 0


def _lines() -> Iterator[dict[str, Any]]:
    """The objects on standard input.

    Raises:
        EvalSetError: A line that is no object with "id" and a text.
    """
    number = 0
    while raw := stdin().readline(_LINE_BYTES + 1):
        number += 1
        if len(raw) > _LINE_BYTES:
            raise _bad(number, "is longer than 16 MiB")
        if raw.strip():
            yield _parsed(number, raw)


def _parsed(number: int, raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise _bad(number, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _bad(number, "is not an object")
    if "id" not in found or not isinstance(found.get("text"), str):
        raise _bad(number, 'needs "id" and "text", a string')
    turn = found.get("turn", 1)
    if isinstance(turn, bool) or not isinstance(turn, int) or turn < 1:
        raise _bad(number, f'"turn" must be a whole number from 1, got {turn!r}')
    return found


def _bad(number: int, message: str) -> EvalSetError:
    remedy = 'one object a line, such as {"id": 1, "text": "Hello"}'
    return EvalSetError("standard input", [Problem(f"line {number}", message, remedy)])


def _score_chunk(predictor: Predictor, chunk: list[dict[str, Any]]) -> None:
    texts = [entry["text"] for entry in chunk]
    turns = [int(entry.get("turn", 1)) for entry in chunk]
    found = predictor.predict_batches(texts, turns=turns)
    rows = zip(chunk, found.requirements.tolist(), found.truncated.tolist(), strict=True)
    for entry, scores, truncated in rows:
        named = dict(zip(predictor.bundle.dimensions, scores, strict=True))
        more = {"truncated": True} if truncated else {}
        print_json({"id": entry["id"], **named, **more}, indent=None)
    sys.stdout.flush()


def evaluate_predictor(options: argparse.Namespace) -> int:
    """Measure a bundle on labelled messages."""
    import numpy as np

    from hydra_core.lab.evaluate import report
    from hydra_core.predictor.languages import group_of

    path = existing(options.labelled)
    predictor = open_predictor(options.bundle)
    messages = _labelled(path, predictor.bundle.dimensions)
    with progress_bar(path.name) as step:
        found = predictor.predict_batches(
            messages["text"], progress=step, turns=[int(turn) for turn in messages["turn"]]
        )
    labels = np.column_stack([messages[name] for name in predictor.bundle.dimensions])
    languages = messages["lang"]
    by = {"groups": [group_of(code) for code in languages], "languages": languages}
    result = report(predictor.bundle, found.requirements, labels, by, resamples=options.resamples)
    if options.json:
        print_json(result)
    else:
        print(_metrics_text(result, predictor.bundle.dimensions))
    return 0


def _labelled(path: Path, dimensions: Sequence[str]) -> dict[str, list[Any]]:
    """Columns text, lang, turn and one per dimension of a JSONL file.

    Raises:
        EvalSetError: Every line with a problem is counted, the first ones are named.
    """
    from hydra_core.evalsets.importers.reading.bounded import Budget
    from hydra_core.evalsets.importers.reading.issues import Issues
    from hydra_core.evalsets.importers.reading.tables import json_objects

    issues = Issues()
    columns: dict[str, list[Any]] = {name: [] for name in ("text", "lang", "turn", *dimensions)}
    for number, entry in json_objects(path, Budget(), issues):
        row = {"turn": 1, **entry}
        for name in ("text", "lang"):
            if not isinstance(row.get(name), str):
                issues.add(f"{name} must be text", number)
        if isinstance(row["turn"], bool) or not isinstance(row["turn"], int) or row["turn"] < 1:
            issues.add("turn must be a whole number from 1", number)
        for name in dimensions:
            value = row.get(name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not 0 <= value <= 1
            ):
                issues.add(f"{name} must be a number in [0, 1]", number)
        for name, column in columns.items():
            column.append(row.get(name))
    issues.raise_any(path.name)
    if not columns["text"]:
        raise EvalSetError(path.name, [Problem("", "there are no messages")])
    return columns


def _metrics_text(result: Mapping[str, Any], dimensions: Sequence[str]) -> str:
    """Metrics by dimension, then Pearson and MAE by language group."""
    names = ("pearson", "spearman", "mae", "rmse", "accuracy", "alpha")
    rows = [
        [name, *(_number(result[name][d]) for d in dimensions), _number(result["mean"][name])]
        for name in names
    ]
    parts = [
        [part, str(one["n"]), _number(one["mean"]["pearson"]), _number(one["mean"]["mae"])]
        for part, one in result["groups"].items()
    ]
    bundle = result["bundle"]
    return "\n".join(
        [
            f"{result['n']} messages, bundle {bundle['name']} {bundle['version']}",
            "",
            table(["metric", *dimensions, "mean"], rows),
            "",
            table(["group", "n", "pearson", "mae"], parts),
        ]
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
