"""Parts of a large set: scored and swept one by one, resumable without any engine.

A part is one Parquet file; its result is written beside it and renamed when it is whole. A result
that is there is done. Processes of this machine or Ray do the parts; both give the same files.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from hydra_core.base.errors import EvalSetError, ExtraError, Problem
from hydra_core.base.types import Progress
from hydra_core.base.whole_file import whole_file
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, cores, default_predictor

#: Rows that are in memory at a time, whatever a part holds.
BATCH_ROWS: Final = 100_000
#: CPUs that Ray's own reading needs besides the actors; without them a small machine stalls.
_SPARE_CPUS: Final = 2
#: In front of a dimension's name in a scored part's columns.
REQUIREMENT = "requirement:"


@dataclass(frozen=True, slots=True)
class Task:
    """One part and where its result goes; `number` is the part's place in the set."""

    source: Path
    target: Path
    number: int


#: What is done with a part; can be sent to another process.
Job = Callable[[Task], None]


def parts_of(folder: Path) -> list[Path]:
    """The Parquet files of a folder by name; EvalSetError where there are none."""
    found = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    if not found:
        remedy = "give a folder of .parquet parts"
        raise EvalSetError.of(str(folder), "holds no Parquet files", remedy)
    return found


def tasks(parts: list[Path], out: Path, suffix: str) -> list[Task]:
    """One task a part, whose result carries its name and `suffix`; EvalSetError for no folder."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvalSetError.of(str(out), f"cannot be made: {error.strerror}") from error
    return [Task(path, out / f"{path.stem}{suffix}", number) for number, path in enumerate(parts)]


def remove_partial_results(unfinished: Sequence[Task]) -> None:
    """Remove what processes of this machine that were killed left of these tasks' results."""
    targets = {task.target for task in unfinished}
    for folder in {target.parent for target in targets}:
        for torn in folder.glob(".*.partial"):
            name, pid, *_ = torn.name[1:].rsplit(".", 3)
            if folder / name in targets and pid.isdecimal() and not _alive(int(pid)):
                torn.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's, so it is there
        return True
    return True


def batches(
    path: Path, columns: list[str] | None = None, also: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """A part, piece by piece: these columns, `also` those of these that are there; or all.

    Raises:
        EvalSetError: It is damaged, or lacks a column.
    """
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in columns or [] if name not in file.schema_arrow.names]
            problems = [Problem(name, "the column is missing") for name in missing]
            EvalSetError.raise_any(path.name, problems)
            given = [name for name in also if name in file.schema_arrow.names]
            read = None if columns is None else [*columns, *given]
            yield from file.iter_batches(batch_size=BATCH_ROWS, columns=read)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot be read: {str(error).splitlines()[0]}"
        raise EvalSetError.of(path.name, message) from error


class Engine(StrEnum):
    LOCAL = "local"
    RAY = "ray"


def run(
    job: Job,
    all_tasks: Sequence[Task],
    engine: Engine,
    workers: int,
    progress: Progress = lambda done, total: None,
) -> int:
    """Do the parts that have no result yet; how many that were.

    Args:
        progress: Called with (done, all) after each part; what it raises stops the job.

    Raises:
        EvalSetError: A part is not valid.
        ExtraError: Ray is asked for and not installed.
    """
    todo = [task for task in all_tasks if not task.target.exists()]
    done = len(all_tasks) - len(todo)
    progress(done, len(all_tasks))
    if not todo:
        return 0
    remove_partial_results(todo)
    finished = _local(job, todo, workers) if engine is Engine.LOCAL else _ray(job, todo, workers)
    for _ in finished:
        done += 1
        progress(done, len(all_tasks))
    return len(todo)


def _local(job: Job, todo: Sequence[Task], workers: int) -> Iterator[object]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures = [pool.submit(job, task) for task in todo]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ray(job: Job, todo: Sequence[Task], workers: int) -> Iterator[object]:
    """Yield the number of each part as it is done.

    Args:
        workers: Actors, one part each at a time. A cluster that is connected already is used as it
            is; otherwise a local one is started and stopped.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ExtraError("--engine ray", "ray") from error
    started = not ray.is_initialized()
    if started:
        cpus = max(workers + _SPARE_CPUS, cores())
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        places = ray.data.from_items(
            [{"place": place} for place in range(len(todo))], override_num_blocks=len(todo)
        )
        done = places.map_batches(
            _Worker,
            fn_constructor_args=(job, list(todo)),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(todo))),
        )
        for row in done.iter_rows():
            yield int(row["place"])
    finally:
        if started:
            ray.shutdown()


class _Worker:
    """An actor: it lives through many parts, and with it what the job keeps (a session)."""

    def __init__(self, job: Job, todo: list[Task]) -> None:
        self._job, self._todo = job, todo

    def __call__(self, batch: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
        for place in batch["place"].tolist():
            self._job(self._todo[place])
        return dict(batch)


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """Adds a column `requirement:<dimension>` for each dimension; text must be in `text`.

    Attributes:
        bundle: The bundle's folder, '' for the shipped one.
    """

    bundle: str = ""

    def __call__(self, task: Task) -> None:
        """Score one part; all its columns are kept. EvalSetError where it is damaged."""
        predictor, begin = _predictor(self.bundle), 0
        with whole_file(task.target) as fresh:
            writer: pq.ParquetWriter | None = None
            for batch in batches(task.source):
                scored = _scored(batch, predictor, task.source.name, begin)
                begin += batch.num_rows
                writer = writer or pq.ParquetWriter(fresh, scored.schema)
                writer.write_table(scored)
            if writer is None:
                pq.write_table(pq.read_schema(task.source).empty_table(), fresh)
            else:
                writer.close()


def _scored(batch: pa.RecordBatch, predictor: Predictor, part: str, begin: int) -> pa.Table:
    """The rows of a part from row `begin` on, with their requirements."""
    table = pa.Table.from_batches([batch])
    if "text" not in table.column_names:
        raise EvalSetError.of(part, "the column is missing", "name the messages so", place="text")
    texts, turns = table["text"].to_pylist(), None
    lacking = np.array([not isinstance(text, str) for text in texts], dtype=bool)
    _require(part, begin, "text", lacking, "holds no text", "drop the row")
    if "turn" in table.column_names:
        said = table["turn"].to_pandas()
        numbers = pd.to_numeric(said, errors="coerce")
        wrong = (said.notna() & ~((numbers >= 1) & (numbers % 1 == 0))).to_numpy()
        _require(part, begin, "turn", wrong, "is no whole number from 1", "empty counts as 1")
        turns = numbers.fillna(1).astype(int).tolist()
    before = table["context"].to_pylist() if "context" in table.column_names else None
    contexts = None if before is None else [context or "" for context in before]
    scores = predictor.predict(texts, turns, contexts).requirements
    for k, name in enumerate(predictor.bundle.dimensions):
        table = table.append_column(f"{REQUIREMENT}{name}", pa.array(scores[:, k]))
    return table


def _require(
    part: str, begin: int, place: str, wrong: np.ndarray, message: str, remedy: str
) -> None:
    if wrong.any():
        row = f"{place}, row {begin + int(wrong.argmax()) + 1:,}"
        raise EvalSetError.of(part, message, remedy, place=row)


@lru_cache(maxsize=1)
def _predictor(bundle: str) -> Predictor:
    return Predictor(load_bundle(Path(bundle))) if bundle else default_predictor()
