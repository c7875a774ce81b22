"""Inspect: `.eval` logs (a zip of JSON) and `.json` logs, one model and task each."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, cast

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    as_feedback,
)
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.json_document import objects, read_json, value_at
from hydra_core.evalsets.importers.traffic.feedback import Feedback
from hydra_core.evalsets.importers.traffic.rows import identifier, number, text
from hydra_core.evalsets.importers.traffic.served import Served

#: What the harness's own letters are worth: correct, partly, incorrect, no answer.
_LETTERS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_HEADERS: Final = ("header.json", "_journal/start.json")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, KeyError)


def _read(file: TableFile, reading: Reading) -> Iterator[Scored]:
    header, samples = _log(file, reading)
    model, task = text(value_at(header, "eval.model")), text(value_at(header, "eval.task"))
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
        usage = _usage(sample, model)
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
        yield Scored(served, dict(_scores(sample)))


def _log(file: TableFile, reading: Reading) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """The header of a log, and its samples."""
    if not file.name.lower().endswith(".eval"):
        document = read_json(file, reading.budget)
        log = document if isinstance(document, Mapping) else {}
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


def _scores(sample: Mapping[str, Any]) -> Iterator[tuple[str, Feedback]]:
    """Scorer -> feedback; a scorer that gives several values has one score for each."""
    scores = sample.get("scores")
    for name, score in scores.items() if isinstance(scores, Mapping) else ():
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", _worth(one)) for key, one in value.items())
        else:
            yield str(name), _worth(value)


def _worth(value: object) -> Feedback:
    return as_feedback(_LETTERS.get(value, value) if isinstance(value, str) else value)


def _usage(sample: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    usage = sample.get("model_usage")
    own = usage.get(model) if isinstance(usage, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _tokens(usage: Mapping[str, Any]) -> tuple[float, float, float]:
    """(input, output, cached) tokens; what was cached is a part of the input."""
    read, written = number(usage.get("input_tokens")), number(usage.get("output_tokens"))
    cached = number(usage.get("input_tokens_cache_read"))
    stored = number(usage.get("input_tokens_cache_write"))
    beside = sum(count for count in (cached, stored) if not math.isnan(count))
    if number(usage.get("total_tokens")) == read + written + beside:
        read += beside
    return read, written, cached


INSPECT: Final = Adapter("Inspect", frozenset({"version", "status", "eval", "plan"}), _read)


def members(file: TableFile, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """(name, content) of every file in an archive, as the budget allows.

    Raises:
        EvalSetError: Damaged, compressed in a way that is not read, or over the budget.
    """
    try:
        if not isinstance(file, Path):
            file.seek(0)
        with zipfile.ZipFile(file if isinstance(file, Path) else cast(IO[bytes], file)) as archive:
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
