"""The verb lab evaluate-predictor: a bundle measured on labelled messages."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.cli.options import Verbs, bundle_option, verb
from hydra_core.cli.output import print_json, progress_bar, table
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import existing

_EVALUATE_PREDICTOR = """\
Measures a predictor bundle on labelled messages: one JSON object a line with "id", "text", "lang"
and the label of each dimension in [0, 1].

examples:
  hydra-router lab evaluate-predictor labelled.jsonl --json
  hydra-router lab evaluate-predictor labelled.jsonl --bundle bundles/compact-2
"""


def add_verbs(verbs: Verbs) -> None:
    """Add lab evaluate-predictor."""
    short = "measure a bundle on labelled messages"
    parser = verb(verbs, "evaluate-predictor", _evaluate, short, _EVALUATE_PREDICTOR)
    parser.add_argument("labelled", type=Path, metavar="LABELLED.jsonl")
    parser.add_argument(
        "--resamples", type=int, default=1000, metavar="N", help="bootstrap, 0: no intervals"
    )
    bundle_option(parser)


def _evaluate(options: argparse.Namespace) -> int:
    import numpy as np

    from hydra_core.lab.evaluate import report
    from hydra_core.predictor.languages import group_of

    path = existing(options.labelled)
    predictor = open_predictor(options.bundle)
    messages = _labelled(path, predictor.bundle.dimensions)
    with progress_bar(path.name) as step:
        scored = predictor.predict_batches(
            messages["text"], progress=step, turns=[int(turn) for turn in messages["turn"]]
        )
    labels = np.column_stack([messages[name] for name in predictor.bundle.dimensions])
    languages = messages["lang"]
    by = {"groups": [group_of(code) for code in languages], "languages": languages}
    result = report(predictor.bundle, scored.requirements, labels, by, resamples=options.resamples)
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
