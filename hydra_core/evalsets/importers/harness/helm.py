"""HELM: the folder of a run, or its `scenario_state.json` beside the run's other files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
)
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import objects, read_json
from hydra_core.evalsets.importers.reading.paths import value_at
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served

STATE: Final = "scenario_state.json"
_STATS: Final = "per_instance_stats.json"
#: Figures of every instance that are no scores.
_NO_SCORES: Final = ("num_", "inference_", "training_", "logprob", "estimated_", "finish_reason",
                     "max_prob", "batch_size", "prompt_tokens", "completion_tokens")  # fmt: skip


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    if not isinstance(file, Path) or not (file.parent / _STATS).exists():
        remedy = f"give the run's folder, with {STATE} and {_STATS}"
        raise EvalSetError(file.name, [Problem("", f"stands without its {_STATS}", remedy)])
    state = read_json(file, reading.budget)
    stats = _stats(read_json(file.parent / _STATS, reading.budget))
    model = text(value_at(state, "adapter_spec.model")) if isinstance(state, Mapping) else ""
    states = objects(state.get("request_states")) if isinstance(state, Mapping) else []
    task = file.parent.name.split(":")[0].split(",")[0]
    for line, one in enumerate(states, 1):
        reading.budget.take_rows(1, file.name)
        key = (identifier(value_at(one, "instance.id")), identifier(one.get("train_trial_index")))
        figures = stats.get(key, {})
        where = reading.text_path or "instance.input.text"
        served = Served(
            (file.name, line),
            f"{task}:{key[0]}",
            asked_in(value_at(one, where)),
            model or text(value_at(one, "request.model")),
            input_tokens=figures.get("num_prompt_tokens", float("nan")),
            output_tokens=figures.get("num_output_tokens", float("nan")),
            latency_s=figures.get("inference_runtime", float("nan")),
            group=task,
        )
        scores = {n: Feedback(v) for n, v in figures.items() if not n.startswith(_NO_SCORES)}
        yield Scored(served, scores)


def _stats(document: Any) -> dict[tuple[str, str], dict[str, float]]:  # noqa: ANN401 (JSON)
    """(instance, trial) -> figure -> its mean."""
    stats: dict[tuple[str, str], dict[str, float]] = {}
    for one in objects(document):
        key = (identifier(one.get("instance_id")), identifier(one.get("train_trial_index")))
        for stat in objects(one.get("stats")):
            name = text(value_at(stat, "name.name"))
            value = number(stat.get("mean"))
            if value_at(stat, "name.perturbation") is None and as_feedback(value) == Feedback(
                value
            ):
                stats.setdefault(key, {}).setdefault(name, value)
    return stats


HELM: Final = Adapter("HELM", frozenset({"adapter_spec", "request_states"}), _read)
