"""All harnesses whose files are read, and one way to read them: recognised by content."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.draft import Draft
from hydra_core.evalsets.importers.given import NOTHING, Given
from hydra_core.evalsets.importers.harness.promptfoo import (
    PROMPTFOO,
    PROMPTFOO_OLD,
    is_promptfoo_csv,
    read_promptfoo_csv,
)
from hydra_core.evalsets.importers.harness.results import (
    EVALPLUS,
    EVALPLUS_OLD,
    HELM,
    INSPECT,
    LLMROUTER,
    LM_EVAL,
    RESULTS_SIGNS,
    STATE,
    STATS_SIGNS,
)
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    models_of_files,
    scored_draft,
)
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects, names_in
from hydra_core.evalsets.importers.traffic.rows import text
from hydra_core.evalsets.importers.traffic.served import Served, Traffic

PROMPTFOO_CSV: Final = Adapter("promptfoo", frozenset(), read_promptfoo_csv)
#: The first whose signs all stand at a file's beginning reads it.
ADAPTERS: Final = (
    *(LM_EVAL, PROMPTFOO, PROMPTFOO_OLD, EVALPLUS, EVALPLUS_OLD, HELM, LLMROUTER, INSPECT),
)


def adapter_of(file: TableFile) -> Adapter | None:
    """The adapter that reads a file, by what it holds, or None; EvalSetError if unreadable."""
    if file.name.lower().endswith(".eval"):
        return INSPECT
    names, tabular = names_in(file)
    if tabular and is_promptfoo_csv(sorted(names)):
        return PROMPTFOO_CSV
    return next((one for one in ADAPTERS if one.signs <= names), None)


def goes_with_others(file: TableFile) -> bool:
    """Whether it belongs to files that are read: the statistics of a HELM run, which its scenario
    state is read with, or the results of lm-evaluation-harness, of which the samples hold more.
    """
    return _has(file, STATS_SIGNS) or _has(file, RESULTS_SIGNS)


def _has(file: TableFile, signs: frozenset[str]) -> bool:
    names, tabular = names_in(file)
    return not tabular and names >= signs


def run_files(path: Path) -> list[Path]:
    """The files of a path: itself, or what a folder holds of runs (HELM) and logs."""
    if not path.is_dir():
        return [path]
    files = sorted(path.rglob(STATE)) or sorted(
        one for suffix in ("eval", "jsonl", "json") for one in path.rglob(f"*.{suffix}")
    )
    if not files:
        raise EvalSetError.of(
            str(path), "holds no files that are read", "give the files of one harness"
        )
    return files


def read_harness(files: Sequence[TableFile], given: Given = NOTHING) -> Draft:
    """Results of harnesses as one eval set, one outcome a query and model.

    Args:
        files: Each of any harness that is read here.
        given: Names are the models' in the files, or of their files where those name none; beside
            the files JSONL with task_id and prompt, for a harness that keeps its messages apart.

    Raises:
        EvalSetError: A file of no known harness, several scores and none chosen, nothing left.
    """
    known = {file: adapter_of(file) for file in files}
    beside = [file for file, one in known.items() if one is None and _has(file, STATS_SIGNS)]
    files = [file for file, one in known.items() if one is not None or not goes_with_others(file)]
    if known and not files:
        remedy = "give samples_*.jsonl (--log_samples) or scenario_state.json, too"
        raise EvalSetError.of(next(iter(known)).name, "holds no answers of a run", remedy)
    adapters = [_required(file) for file in files]
    traffic = Traffic(given)
    statements = _statements(given.more[0]) if given.more else {}
    reading = Reading(traffic, Budget(), statements, beside, len(files) > 1)
    found = [list(one.read(file, reading)) for file, one in zip(files, adapters, strict=True)]
    named = {
        file: {_question(one.served) for one in listed}
        for file, adapter, listed in zip(files, adapters, found, strict=True)
        if adapter.models_in_names
    }
    names = models_of_files(named) if named else {}
    answers = [
        replace(one, served=replace(one.served, model=names[file])) if file in names else one
        for file, listed in zip(files, found, strict=True)
        for one in listed
    ]
    if names and not given.models:
        listed = ", ".join(dict.fromkeys(names.values()))
        traffic.warnings.append(
            f"the files do not name their models; their own names do: {listed}. Name them "
            "otherwise with --model ID=NAME"
        )
    return scored_draft(answers, traffic)


def _question(row: Served) -> str:
    """What tells a question from those of other tasks: its id with a hash in it, else its text."""
    return row.query_id if "-" in row.query_id else f"{row.query_id} {row.asked.text}"


def _required(file: TableFile) -> Adapter:
    adapter = adapter_of(file)
    if adapter is None:
        known = ", ".join(dict.fromkeys(one.name for one in ADAPTERS))
        raise EvalSetError.of(
            file.name, "is of no harness that is read", f"files are read of {known}"
        )
    return adapter


def _statements(file: TableFile) -> dict[str, str]:
    issues, messages = Issues(), {}
    for _, row in json_objects(file, Budget(), issues):
        messages[text(row.get("task_id"))] = text(row.get("prompt"))
    issues.raise_any(file.name)
    return messages


def kinds_of(files: Iterable[TableFile]) -> list[str]:
    adapters = (adapter_of(file) for file in files)
    return list(dict.fromkeys(adapter.name for adapter in adapters if adapter is not None))
