"""All harnesses whose files are read, and one way to read them: recognised by content."""

from collections.abc import Iterable, Sequence
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
    STATE,
    STATS_SIGNS,
)
from hydra_core.evalsets.importers.harness.scored import (
    Adapter,
    Reading,
    Scored,
    models_of_files,
    scored_draft,
)
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects, names_in
from hydra_core.evalsets.importers.traffic.rows import text
from hydra_core.evalsets.importers.traffic.served import Traffic

PROMPTFOO_CSV: Final = Adapter("promptfoo", frozenset(), read_promptfoo_csv)
#: The first whose signs all stand at a file's beginning reads it.
ADAPTERS: Final = (
    *(LM_EVAL, PROMPTFOO, PROMPTFOO_OLD, EVALPLUS, EVALPLUS_OLD, HELM, LLMROUTER, INSPECT),
)


def adapter_of(file: TableFile) -> Adapter | None:
    """The adapter that reads a file, by what it holds; None where none does.

    Raises:
        EvalSetError: The file cannot be read.
    """
    if file.name.lower().endswith(".eval"):
        return INSPECT
    names, tabular = names_in(file)
    if tabular and is_promptfoo_csv(sorted(names)):
        return PROMPTFOO_CSV
    return next((one for one in ADAPTERS if one.signs <= names), None)


def is_helm_stats(file: TableFile) -> bool:
    """Whether it holds the statistics of a HELM run, which its scenario state is read with."""
    names, tabular = names_in(file)
    return not tabular and names >= STATS_SIGNS


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
    beside = [file for file in files if adapter_of(file) is None and is_helm_stats(file)]
    files = [file for file in files if file not in beside]
    adapters = [_required(file) for file in files]
    traffic, names = Traffic(given), models_of_files(files)
    statements = _statements(given.more[0]) if given.more else {}
    reading = Reading(traffic, Budget(), names, statements, beside, len(files) > 1)
    answers: list[Scored] = []
    for file, adapter in zip(files, adapters, strict=True):
        answers += adapter.read(file, reading)
    if any(adapter.models_in_names for adapter in adapters) and not given.models:
        listed = ", ".join(dict.fromkeys(names.values()))
        traffic.warnings.append(
            f"the files do not name their models; their own names do: {listed}. Name them "
            "otherwise with --model ID=NAME"
        )
    return scored_draft(answers, traffic)


def _required(file: TableFile) -> Adapter:
    adapter = adapter_of(file)
    if adapter is None:
        known = ", ".join(dict.fromkeys(one.name for one in ADAPTERS))
        raise EvalSetError.of(
            file.name, "is of no harness that is read", f"files are read of {known}"
        )
    return adapter


def _statements(file: TableFile) -> dict[str, str]:
    """Task -> its message."""
    issues, messages = Issues(), {}
    for _, row in json_objects(file, Budget(), issues):
        messages[text(row.get("task_id"))] = text(row.get("prompt"))
    issues.raise_any(file.name)
    return messages


def kinds_of(files: Iterable[TableFile]) -> list[str]:
    return list(dict.fromkeys(_required(file).name for file in files))
