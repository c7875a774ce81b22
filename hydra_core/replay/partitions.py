"""Parts of a large set: scored and swept one by one, resumable without any engine.

A part is one Parquet file; its result is written beside it and renamed when it is whole. A result
that is there is done. Processes of this machine or Ray do the parts; both give the same files.
"""

from __future__ import annotations

import hashlib
import json
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
from scipy import sparse

from hydra_core.base.errors import EvalSetError, ExtraError, Problem
from hydra_core.base.intervals import LEVEL, tails
from hydra_core.base.types import BoolArray, FloatArray, IntArray, ModelSpec, Pool, Progress
from hydra_core.base.whole_file import whole_file
from hydra_core.evalsets.evalset import CLUSTER, CONVERSATION, cluster_numbers
from hydra_core.evalsets.rules import check_optional_columns
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor, cores, default_predictor
from hydra_core.replay.frontier import CLOSED, Breakpoints, breakpoints
from hydra_core.replay.gated import GATED, closed_models
from hydra_core.routing.matcher import shortfall

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
    """The Parquet files of a folder, in the order of their names.

    Raises:
        EvalSetError: There are none.
    """
    found = sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))
    if not found:
        remedy = "give a folder of .parquet parts"
        raise EvalSetError.of(str(folder), "holds no Parquet files", remedy)
    return found


def tasks(parts: list[Path], out: Path, suffix: str) -> list[Task]:
    """One task a part; results carry the part's name and `suffix`.

    Raises:
        EvalSetError: The folder cannot be made.
    """
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
    """What runs a job."""

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
        """Score one part; all its columns are kept.

        Raises:
            EvalSetError: It is damaged, has no column text, or a row with a wrong text or turn.
        """
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


_QUALITY: Final = "quality:"
_COST: Final = "cost_usd:"
_SAMPLE_ROWS: Final = 20_000
_WEIGHTED: Final = 2  # quality and cost have intervals; misroute has its value only


@dataclass(frozen=True, slots=True, eq=False)
class SweepParts:
    """What is summed for each part.

    Attributes:
        dimensions: (K,) names, catalog order.
        taus: (g,) ascending grid.
        resamples: Poisson bootstrap resamples, 0 for no intervals.
        specs: (m,) the pool's models, whose gates the parts' columns may close.
        seed: Of the resamples; each part has its own stream.
    """

    pool: Pool
    dimensions: tuple[str, ...]
    taus: FloatArray
    resamples: int
    specs: tuple[ModelSpec, ...]
    seed: int = 0

    def __call__(self, task: Task) -> None:
        """Sum one part.

        Raises:
            EvalSetError: It is damaged, lacks a column, or holds a gap.
        """
        rng = np.random.default_rng((self.seed, task.number))
        size = len(self.taus)
        sums, n, gated, gone = np.zeros((3, size)), 0, 0, 0
        weighted = np.zeros((_WEIGHTED, size, self.resamples))
        counts = np.zeros(self.resamples)
        drawn = _Weights(rng, _clusters(task.source), self.resamples)
        for batch in _outcomes(task.source, self.pool, self.dimensions, self.specs):
            weights = drawn.next(batch.served.size)
            weights = weights if batch.served.all() else weights[batch.served]
            n, gated, gone = n + batch.n, gated + batch.gated, gone + int((~batch.served).sum())
            if not batch.n:
                continue
            found = breakpoints(batch.shortfalls, self.pool.cost, batch.quality, batch.cost_usd)
            cells = _cells(found, self.taus)
            for column in range(3):
                step = np.bincount(cells, found.step[:, column], minlength=size + 1)[:size]
                sums[column] += found.base[column].sum() + np.cumsum(step)
            for column in range(_WEIGHTED if self.resamples else 0):
                weighted[column] += _resampled(found, cells, column, weights, size)
            counts += weights.sum(axis=0)
        with whole_file(task.target) as fresh, fresh.open("wb") as stream:
            said = np.array([n, gated, gone])
            np.savez(stream, said=said, sums=sums, weighted=weighted, counts=counts)


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """The curve of the whole set at the grid's points.

    Attributes:
        table: tau, quality, mean_cost_usd, misroute; with resamples also the 95 % ends `_lo` and
            `_hi` of quality and cost.
        gated: Queries of the n that a hard gate keeps a model from.
        gone: Further queries that no model may serve.
    """

    n: int
    table: pd.DataFrame
    gated: int
    gone: int


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """The queries that a model may serve; `served` says which of the file's rows these are."""

    shortfalls: FloatArray
    quality: FloatArray
    cost_usd: FloatArray
    served: BoolArray
    gated: int

    @property
    def n(self) -> int:
        return len(self.quality)


def pool_of(pool: Pool, part: Path) -> Pool:
    """The models of a pool that a part has outcomes for, catalog order.

    Raises:
        EvalSetError: It has none.
    """
    names = set(pq.read_schema(part).names)
    kept = [i for i, model in enumerate(pool.ids) if f"{_QUALITY}{model}" in names]
    if not kept:
        remedy = "name columns quality:MODEL and cost_usd:MODEL by the catalog's model ids"
        raise EvalSetError.of(part.name, "has outcomes of no model", remedy)
    ids = tuple(pool.ids[i] for i in kept)
    capabilities, cost = pool.capabilities[kept], pool.cost[kept]
    return Pool(ids, capabilities, cost, pool.weights, pool.caps, pool.level)


def grid_of(
    parts: Sequence[Path],
    pool: Pool,
    dimensions: tuple[str, ...],
    points: int,
    specs: Sequence[ModelSpec],
) -> FloatArray:
    """(g,) taus, g <= points: quantiles of the breakpoints in the first rows of every part."""
    found = []
    for part in parts:
        batch = next(_outcomes(part, pool, dimensions, specs), None)
        if batch is not None and batch.n:
            rows = slice(0, _SAMPLE_ROWS)
            kept = batch.shortfalls[rows], batch.quality[rows], batch.cost_usd[rows]
            taus = breakpoints(kept[0], pool.cost, kept[1], kept[2]).tau
            found.append(taus[taus < CLOSED])
    taus = np.concatenate([[0.0], *found])
    return np.unique(np.quantile(taus, np.linspace(0.0, 1.0, points)))


def key_of(job: SweepParts, parts: Sequence[Path]) -> str:
    """What results of a job are named by, so that those of another one are never added up."""
    digest = hashlib.sha256()
    names = [[part.name, part.stat().st_size, part.stat().st_mtime_ns] for part in parts]
    gates = [
        (one.id, one.context_window, one.vision, one.tools, sorted(one.tags), sorted(one.lacks))
        for one in job.specs
    ]
    facts = [job.pool.ids, job.dimensions, job.resamples, job.seed, names, gates]
    digest.update(json.dumps(facts).encode())
    caps = () if job.pool.caps is None else (job.pool.caps,)
    for values in (job.pool.capabilities, job.pool.cost, job.pool.weights, job.taus, *caps):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def merged(all_tasks: Sequence[Task], taus: FloatArray) -> Swept:
    """The parts' sums as one curve.

    Raises:
        EvalSetError: There is no query at all.
    """
    said, sums, weighted, counts = np.zeros(3, dtype=np.int64), 0.0, 0.0, 0.0
    for task in all_tasks:
        with np.load(task.target, allow_pickle=False) as found:
            said += found["said"]
            sums, weighted = sums + found["sums"], weighted + found["weighted"]
            counts = counts + found["counts"]
    n, gated, gone = said.tolist()
    if not n:
        which = " that a model may serve" if gone else ""
        raise EvalSetError.of("sweep", f"the parts hold no queries{which}")
    means = np.asarray(sums) / n
    columns = {"tau": taus, "quality": means[0], "mean_cost_usd": means[1], "misroute": means[2]}
    if np.size(counts):
        for column, name in enumerate(("quality", "mean_cost_usd")):
            drawn = np.asarray(weighted)[column] / counts
            lo, hi = np.quantile(drawn, tails(LEVEL), axis=1)
            value = means[column]
            columns |= {f"{name}_lo": np.minimum(lo, value), f"{name}_hi": np.maximum(hi, value)}
    return Swept(n, pd.DataFrame(columns), gated, gone)


def _outcomes(
    path: Path, pool: Pool, dimensions: tuple[str, ...], specs: Sequence[ModelSpec]
) -> Iterator[_Batch]:
    scored = dimensions[: len(dimensions) - pool.level]  # nothing scores the level
    needs = [f"{REQUIREMENT}{name}" for name in scored]
    quality = [f"{_QUALITY}{model}" for model in pool.ids]
    cost = [f"{_COST}{model}" for model in pool.ids]
    gates = (*GATED, "text")
    for batch in batches(path, [*needs, *quality, *cost], gates):
        if not batch.num_rows:
            continue
        queries = batch.select([name for name in gates if name in batch.schema.names]).to_pandas()
        EvalSetError.raise_any(path.name, check_optional_columns(queries))
        closed = closed_models(queries, specs)
        requirements = pool.capped(_matrix(batch, needs, path))
        outcomes = [_matrix(batch, names, path, closed) for names in (quality, cost)]
        shortfalls = shortfall(requirements, pool.capabilities, pool.weights)
        served: BoolArray = np.ones(batch.num_rows, dtype=bool)
        if closed is not None:
            served = np.asarray(~closed.all(axis=1))
            shortfalls = np.where(closed, CLOSED, shortfalls)[served]
            outcomes = [np.where(closed, 0.0, values)[served] for values in outcomes]
        gated = 0 if closed is None else int(closed[served].any(axis=1).sum())
        yield _Batch(shortfalls, outcomes[0], outcomes[1], served, gated)


def _matrix(
    batch: pa.RecordBatch, names: Sequence[str], path: Path, closed: BoolArray | None = None
) -> FloatArray:
    """(rows, columns) numbers; what is missing where a model may not serve counts as 0."""
    values = np.empty((batch.num_rows, len(names)))
    for column, name in enumerate(names):
        values[:, column] = pd.to_numeric(batch[name].to_pandas(), errors="coerce")
    if closed is not None:
        values[closed & np.isnan(values)] = 0.0
    named = [name for k, name in enumerate(names) if not np.isfinite(values[:, k]).all()]
    if named:
        remedy = "drop the rows, or leave the model out of the catalog"
        message = "holds missing values, or some that are not numbers"
        raise EvalSetError(path.name, [Problem(name, message, remedy) for name in named])
    for name, column in zip(names, values.T, strict=True):
        most = np.inf if name.startswith(_COST) else 1.0
        if column.min() < 0 or column.max() > most:
            message = f"lies from {column.min():g} to {column.max():g}"
            raise EvalSetError.of(path.name, message, "scale it to 0 to 1; USD from 0", place=name)
    return values


def _clusters(path: Path) -> IntArray | None:
    """(rows,) cluster numbers of a whole part: a cluster may lie in several of its batches."""
    grouped = [name for name in (CLUSTER, CONVERSATION) if name in pq.read_schema(path).names]
    frames = [batch.to_pandas() for batch in batches(path, grouped)] if grouped else []
    return cluster_numbers(pd.concat(frames, ignore_index=True)) if frames else None


class _Weights:
    """Poisson(1) weights of a part's rows, equal within a cluster."""

    def __init__(self, rng: np.random.Generator, clusters: IntArray | None, resamples: int) -> None:
        self._rng, self._clusters, self._resamples = rng, clusters, resamples
        self._begin, self._known = 0, 0
        count = 0 if clusters is None else int(clusters.max()) + 1
        self._drawn = np.zeros((count, resamples), dtype=np.uint8)

    def next(self, n: int) -> FloatArray:
        """(n, resamples) weights of the next rows."""
        if self._clusters is None:
            return self._draw(n).astype(np.float64)
        rows = self._clusters[self._begin : self._begin + n]
        self._begin += n
        above = max(int(rows.max()) + 1, self._known)  # numbered as they appear
        self._drawn[self._known : above] = self._draw(above - self._known)
        self._known = above
        return self._drawn[rows].astype(np.float64)

    def _draw(self, count: int) -> IntArray:
        return self._rng.poisson(1.0, (count, self._resamples))


def _cells(found: Breakpoints, taus: FloatArray) -> np.ndarray:
    """(b,) the first point of the grid at which each change holds; g where it never does."""
    return np.searchsorted(taus, np.maximum(found.tau, 0.0), side="left")


def _resampled(
    found: Breakpoints, cells: np.ndarray, column: int, weights: FloatArray, size: int
) -> FloatArray:
    """(g, resamples) weighted sums at every point of the grid."""
    shape = (size + 1, weights.shape[0])
    steps = sparse.csr_array((found.step[:, column], (cells, found.row)), shape=shape)
    start = found.base[column] @ weights
    total: FloatArray = start + np.cumsum(np.asarray(steps @ weights)[:size], axis=0)
    return total
