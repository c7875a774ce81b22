"""HELM: the folder of a run, or its `scenario_state.json` beside the run's other files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
)
from hydra_core.evalsets.importers.reading.bounded import TableFile
from hydra_core.evalsets.importers.reading.json_document import objects, read_json, value_at
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served

STATE: Final = "scenario_state.json"
_STATS: Final = "per_instance_stats.json"
#: Names at the beginning of a file of statistics.
STATS_SIGNS: Final = frozenset({"instance_id", "stats"})
#: Figures of every instance that are no scores.
_NO_SCORES: Final = ("num_", "inference_", "training_", "logprob", "estimated_", "finish_reason",
                     "max_prob", "batch_size", "prompt_tokens", "completion_tokens")  # fmt: skip


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    beside = _stats_of(file, reading)
    state = read_json(file, reading.budget)
    stats = _stats(read_json(beside, reading.budget))
    model = text(value_at(state, "adapter_spec.model")) if isinstance(state, Mapping) else ""
    states = objects(state.get("request_states")) if isinstance(state, Mapping) else []
    task = file.parent.name.split(":")[0].split(",")[0] if isinstance(file, Path) else ""
    for line, one in enumerate(states, 1):
        reading.budget.take_rows(1, file.name)
        key = (identifier(value_at(one, "instance.id")), identifier(one.get("train_trial_index")))
        figures = stats.get(key, {})
        served = Served(
            (file.name, line),
            f"{task}:{key[0]}" if task else key[0],
            reading.asked(one, "instance.input.text"),
            model or text(value_at(one, "request.model")),
            input_tokens=figures.get("num_prompt_tokens", float("nan")),
            output_tokens=figures.get("num_output_tokens", float("nan")),
            latency_s=figures.get("inference_runtime", float("nan")),
            group=task,
        )
        scores = {n: Feedback(v) for n, v in figures.items() if not n.startswith(_NO_SCORES)}
        yield Scored(served, scores)


def _stats_of(file: TableFile, reading: Reading) -> TableFile:
    """The statistics of a run: those of its folder, else the ones that were given with it."""
    if isinstance(file, Path) and (file.parent / _STATS).exists():
        return file.parent / _STATS
    if len(reading.beside) == 1:
        return reading.beside[0]
    found = "stands without" if not reading.beside else "stands beside several of"
    remedy = f"give one run, its {STATE} and {_STATS}, or the folders on the command line"
    raise EvalSetError.of(file.name, f"{found} {_STATS}", remedy)


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
