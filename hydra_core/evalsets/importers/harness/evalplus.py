"""EvalPlus: `*_eval_results.json`, one model's solutions; the problems lie in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.harness.scored import Adapter, Reading, Scored, key_of
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import objects, read_json
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import Asked, asked_in
from hydra_core.evalsets.importers.traffic.rows import text
from hydra_core.evalsets.importers.traffic.served import Served


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    document = read_json(file, reading.budget)
    tasks = document.get("eval") if isinstance(document, Mapping) else None
    if not isinstance(tasks, Mapping):
        raise EvalSetError.of(file.name, 'has no "eval"', "give *_eval_results.json")
    if not reading.problems:
        remedy = "give the problems with --problems, such as HumanEvalPlus.jsonl"
        raise EvalSetError.of(file.name, "holds no messages", remedy)
    model = reading.file_models[key_of(file)]
    for line, (task, solutions) in enumerate(tasks.items(), 1):
        asked = asked_in(reading.problems.get(task))
        for statuses in _statuses(solutions):
            reading.budget.take_rows(1, file.name)
            served = Served((file.name, line), str(task), asked or Asked(), model)
            scores = {name: Feedback(float(status == "pass")) for name, status in statuses.items()}
            yield Scored(served, scores, "plus" if "plus" in scores else "base")


def _statuses(solutions: Any) -> list[dict[str, str]]:  # noqa: ANN401 (JSON)
    """base and plus -> status, for each solution of a task; older files list them by side."""
    if isinstance(solutions, list):
        sides = (("base", "base_status"), ("plus", "plus_status"))
        return [
            {name: text(one[key]) for name, key in sides if isinstance(one.get(key), str)}
            for one in objects(solutions)
        ]
    if not isinstance(solutions, Mapping):
        return []
    listed = {name: solutions[name] for name in ("base", "plus") if solutions.get(name)}
    rows = [
        {name: text(result[0]) for name, result in zip(listed, results, strict=True) if result}
        for results in zip(*listed.values(), strict=False)
    ]
    return [row for row in rows if row]


EVALPLUS: Final = Adapter(
    "EvalPlus", frozenset({"eval", "base_status", "solution"}), _read, models_in_names=True
)
EVALPLUS_OLD: Final = Adapter(
    "EvalPlus", frozenset({"eval", "base", "nfiles"}), _read, models_in_names=True
)
