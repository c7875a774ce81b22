"""Results of harnesses whose files hold one model or one answer a row: lm-evaluation-harness,
EvalPlus, HELM, LLMRouter, and Inspect's `.eval` logs (a zip of JSON) and `.json` logs.
"""

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from hydra_core.base.errors import EvalSetError
from hydra_core.base.json_values import mapping, objects
from hydra_core.base.tokens import text_tokens
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
)
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile, bytes_of
from hydra_core.evalsets.importers.reading.json_document import (
    read_json,
    value_at,
)
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served, whole_tokens

#: Where the tasks keep a document's own question, before the prompt that was made of it.
_QUESTIONS: Final = ("question", "query", "problem", "prompt", "instruction", "input", "text")
#: What a question is about, which stands beside it.
_CONTEXTS: Final = ("passage", "context", "article", "story")
_PROMPT: Final = "arguments.gen_args_0.arg_0"
_NO_METRICS: Final = frozenset(
    {
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
        *("doc_hash", "prompt_hash", "target_hash", "task_name"),
    }
)


def _read_lm_eval(file: TableFile, reading: Reading) -> Iterator[Scored]:
    for line, row in json_objects(file, reading.budget, reading.traffic.unread):
        asked = asked_in(_message(row, reading.traffic.given.text_path))
        group = text(row.get("task_name"))
        served = Served(
            (file.name, line), _query_id(row), asked, "", group=group, length=_length(row)
        )
        yield Scored(served, _metrics(row))


def _query_id(row: Mapping[str, Any]) -> str:
    """The number of the document, with its hash: numbers begin anew in every task."""
    number, mark = identifier(row.get("doc_id")), text(row.get("doc_hash"))
    return f"{number}-{mark[:12]}" if number and mark else number


def _length(row: Mapping[str, Any]) -> tuple[float, float]:
    """Tokens of the prompt and of the answer by their length; NaN where no answer was written."""
    prompt, answer = _prompt(row), value_at(row, "resps.0.0")
    stated = prompt if isinstance(prompt, str) else json.dumps(prompt)
    written = text_tokens(answer) if isinstance(answer, str) else float("nan")
    return text_tokens(stated), written


def _message(row: Mapping[str, Any], path: str) -> object:
    if path:
        return value_at(row, path)
    facts = mapping(row.get("doc"))
    own = next((facts[name] for name in _QUESTIONS if isinstance(facts.get(name), str)), None)
    if own is not None:
        about = (facts[name] for name in _CONTEXTS if isinstance(facts.get(name), str))
        return "\n\n".join(filter(None, [*about, own]))
    return _prompt(row)


def _prompt(row: Mapping[str, Any]) -> object:
    prompt = value_at(row, _PROMPT)
    arguments = row.get("arguments")
    if prompt is None and isinstance(arguments, list):  # older versions: a list of lists
        prompt = value_at(row, "arguments.0.0")
    return prompt


def _metrics(row: Mapping[str, Any]) -> dict[str, Any]:
    """Metric and filter -> value, named as the harness names them: `exact_match,strict-match`."""
    listed = row.get("metrics")
    plain = (int, float, bool)
    names = [n for n, value in row.items() if n not in _NO_METRICS and isinstance(value, plain)]
    if isinstance(listed, list):
        names = [str(name) for name in listed]
    chosen = text(row.get("filter"))
    suffix = f",{chosen}" if chosen and chosen != "none" else ""
    return {f"{name}{suffix}": as_feedback(row[name]) for name in names if name in row}


#: Names at the beginning of a file of means, which stands beside the samples.
RESULTS_SIGNS: Final = frozenset({"results", "configs"})
LM_EVAL: Final = Adapter(
    "lm-evaluation-harness",
    frozenset({"doc_id", "filtered_resps"}),
    _read_lm_eval,
    models_in_names=True,
)


def _read_evalplus(file: TableFile, reading: Reading) -> Iterator[Scored]:
    tasks = mapping(read_json(file, reading.budget)).get("eval")
    if not isinstance(tasks, Mapping):
        raise EvalSetError.of(file.name, 'has no "eval"', "give *_eval_results.json")
    if not reading.problems:
        remedy = "give the problems with --problems, such as HumanEvalPlus.jsonl"
        raise EvalSetError.of(file.name, "holds no messages", remedy)
    for line, (task, solutions) in enumerate(tasks.items(), 1):
        asked = asked_in(reading.problems.get(task))
        for statuses in _statuses(solutions):
            reading.budget.take_rows(1, file.name)
            served = Served((file.name, line), str(task), asked, "")
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
    "EvalPlus", frozenset({"eval", "base_status", "solution"}), _read_evalplus, models_in_names=True
)
EVALPLUS_OLD: Final = Adapter(
    "EvalPlus", frozenset({"eval", "base", "nfiles"}), _read_evalplus, models_in_names=True
)


STATE: Final = "scenario_state.json"
_STATS: Final = "per_instance_stats.json"
#: Names at the beginning of a file of statistics.
STATS_SIGNS: Final = frozenset({"instance_id", "stats"})
#: Figures of every instance that are no scores.
_NO_SCORES: Final = ("num_", "inference_", "training_", "logprob", "estimated_", "finish_reason",
                     "max_prob", "batch_size", "prompt_tokens", "completion_tokens")  # fmt: skip


def _read_helm(file: TableFile, reading: Reading) -> Iterator[Scored]:
    beside = _stats_of(file, reading)
    state = mapping(read_json(file, reading.budget))
    stats = _figures(read_json(beside, reading.budget))
    model, states = (
        text(value_at(state, "adapter_spec.model")),
        objects(state.get("request_states")),
    )
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


def _figures(document: Any) -> dict[tuple[str, str], dict[str, float]]:  # noqa: ANN401 (JSON)
    """(instance, trial) -> figure -> its mean."""
    stats: dict[tuple[str, str], dict[str, float]] = {}
    for one in objects(document):
        key = (identifier(one.get("instance_id")), identifier(one.get("train_trial_index")))
        for stat in objects(one.get("stats")):
            if value_at(stat, "name.perturbation") is None:
                name = text(value_at(stat, "name.name"))
                stats.setdefault(key, {}).setdefault(name, number(stat.get("mean")))
    return stats


HELM: Final = Adapter("HELM", frozenset({"adapter_spec", "request_states"}), _read_helm)


def _read_llmrouter(file: TableFile, reading: Reading) -> Iterator[Scored]:
    for line, row in json_objects(file, reading.budget, reading.traffic.unread):
        asked = reading.asked(row, "query")
        task = text(row.get("task_name"))
        mark = sha256(asked.text.encode("utf-8", "replace")).hexdigest()[:16]
        served = Served(
            (file.name, line),
            f"{task}-{mark}" if task else mark,
            asked,
            text(row.get("model_name")),
            cost_usd=number(row.get("cost")),
            input_tokens=number(row.get("input_tokens", row.get("prompt_tokens"))),
            output_tokens=number(row.get("output_tokens", row.get("completion_tokens"))),
            latency_s=number(row.get("response_time")),
            group=task,
        )
        yield Scored(served, {"performance": as_feedback(row.get("performance"))})


LLMROUTER: Final = Adapter(
    "LLMRouter", frozenset({"query", "model_name", "performance"}), _read_llmrouter
)


#: What the harness's own letters are worth: correct, partly, incorrect, no answer.
_LETTERS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
#: Settings of a run that say how much its model reasons.
_EFFORTS: Final = ("reasoning_effort", "effort", "reasoning_tokens")
_HEADERS: Final = ("header.json", "_journal/start.json")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, KeyError)


def _read_inspect(file: TableFile, reading: Reading) -> Iterator[Scored]:
    header, samples = _log(file, reading)
    model, task = text(value_at(header, "eval.model")), text(value_at(header, "eval.task"))
    effort = _effort(header)
    status = text(header.get("status")) or "started"  # a log that was cut short has none
    if status != "success":
        reading.traffic.warnings.append(
            f"{file.name}: the run did not finish (status {status}): the {len(samples):,} samples "
            "that the log holds were read, others are missing"
        )
    for line, sample in enumerate(samples, 1):
        reading.budget.take_rows(1, file.name)
        own = identifier(sample.get("id"))
        query_id = f"{task}:{own}" if task else own
        if sample.get("error"):
            reading.traffic.skip("the sample ended in an error", query_id)
            continue
        usage = mapping(mapping(sample.get("model_usage")).get(model))
        read, written, cached = _tokens(usage)
        served = Served(
            (file.name, line),
            query_id,
            reading.asked(sample, "input"),
            model,
            cost_usd=number(usage.get("total_cost")),
            input_tokens=read,
            output_tokens=written,
            latency_s=number(sample.get("working_time", sample.get("total_time"))),
            cached_input_tokens=cached,
            group=task,
        )
        yield Scored(served, dict(_inspect_scores(sample)), effort=effort)


def _effort(header: Mapping[str, Any]) -> str:
    places = ("plan.config", "eval.model_generate_config")
    configs = [mapping(value_at(header, place)) for place in places]
    stated = (one.get(name) for one in configs for name in _EFFORTS)
    return next((str(one) for one in stated if isinstance(one, str | int)), "")


def _log(file: TableFile, reading: Reading) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The header of a log, and its samples."""
    if not file.name.lower().endswith(".eval"):
        log = mapping(read_json(file, reading.budget))
        return log, objects(log.get("samples"))
    header: Mapping[str, Any] = {}
    samples = []
    for name, content in members(file, reading.budget):
        if name in _HEADERS or name.startswith("samples/"):
            try:
                inner = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise EvalSetError.of(
                    file.name, f"is not valid JSON: {error}", "get the log again", place=name
                ) from error
            if isinstance(inner, Mapping) and name.startswith("samples/"):
                samples.append(inner)
            elif isinstance(inner, Mapping) and (not header or name == _HEADERS[0]):
                header = inner
    return header, samples


def _inspect_scores(sample: Mapping[str, Any]) -> Iterator[tuple[str, Feedback]]:
    """Scorer -> feedback; a scorer that gives several values has one score for each."""
    listed = sample.get("scores", {"score": sample.get("score")})  # older logs have one alone
    for name, score in mapping(listed).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", _worth(one)) for key, one in value.items())
        else:
            yield str(name), _worth(value)


def _worth(value: object) -> Feedback:
    return as_feedback(_LETTERS.get(value, value) if isinstance(value, str) else value)


def _tokens(usage: Mapping[str, Any]) -> tuple[float, float, float]:
    """(input, output, cached) tokens; what was cached is a part of the input."""
    cached = number(usage.get("input_tokens_cache_read"))
    read, written = whole_tokens(
        number(usage.get("input_tokens")),
        number(usage.get("output_tokens")),
        cached=cached,
        stored=number(usage.get("input_tokens_cache_write")),
        thought=number(usage.get("reasoning_tokens")),
        total=number(usage.get("total_tokens")),
    )
    return read, written, cached


INSPECT: Final = Adapter("Inspect", frozenset({"version", "status", "eval", "plan"}), _read_inspect)


def members(file: TableFile, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file in an archive, as the budget allows.

    Raises:
        EvalSetError: Damaged, compressed in a way that is not read, or over the budget.
    """
    try:
        with bytes_of(file) as stream, zipfile.ZipFile(stream) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                with archive.open(info) as member:
                    content = member.read(budget.bytes_left + 1)
                budget.take_bytes(len(content), file.name)
                yield info.filename, content
    except NotImplementedError as error:
        remedy = "save it as JSON (inspect log convert --to json)"
        raise EvalSetError.of(
            file.name, f"is compressed in a way that is not read: {error}", remedy
        ) from error
    except _DAMAGED as error:
        if isinstance(error, EvalSetError):
            raise
        raise EvalSetError.of(
            file.name, f"is damaged or cut off: {error}", "get the file again"
        ) from error
