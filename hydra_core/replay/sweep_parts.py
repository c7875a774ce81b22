"""Every tau over the parts of a large set: exact sums at a grid, added up at the end."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.intervals import LEVEL, tails
from hydra_core.base.types import BoolArray, FloatArray, IntArray, ModelSpec, Pool
from hydra_core.base.whole_file import whole_file
from hydra_core.evalsets.evalset import CLUSTER, CONVERSATION, cluster_numbers
from hydra_core.evalsets.rules import check_optional_columns
from hydra_core.replay.frontier import CLOSED, Breakpoints, breakpoints
from hydra_core.replay.gated import GATED, closed_models
from hydra_core.replay.partitions import REQUIREMENT, Task, batches
from hydra_core.routing.matcher import shortfall

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
        """Sum one part; EvalSetError where it is damaged, lacks a column, or holds a gap."""
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
            `_hi` of quality and cost, NaN where the queries are too few to resample.
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
    """The models of a pool that a part has outcomes for, in order; EvalSetError for none."""
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
    """The parts' sums as one curve; EvalSetError where there is no query at all."""
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
            with np.errstate(invalid="ignore"):  # a resample of no query: too few for intervals
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


def require_whole_clusters(parts: Sequence[Path]) -> None:
    """Refuse (EvalSetError) a cluster or conversation in two parts: each resamples its own."""
    for name in (CLUSTER, CONVERSATION):
        hashes = [np.unique(np.concatenate(list(_hashed(part, name)))) for part in parts]
        owner = np.repeat(np.arange(len(parts)), [one.size for one in hashes])
        every = np.concatenate(hashes)
        order = np.argsort(every, kind="stable")
        twice = np.flatnonzero(every[order][1:] == every[order][:-1])
        if twice.size:
            one, other = order[twice[0] : twice[0] + 2]
            first, second = parts[owner[one]], parts[owner[other]]
            cells = np.concatenate(list(_values(second, name)))
            value = cells[pd.util.hash_array(cells) == every[one]][0]
            message = f"{value!r} lies in {first.name}, too"
            remedy = "write each into one part, or sweep without intervals: --resamples 0"
            raise EvalSetError.of(second.name, message, remedy, place=name)


def _hashed(part: Path, name: str) -> Iterator[np.ndarray]:
    yield np.empty(0, dtype=np.uint64)
    yield from map(pd.util.hash_array, _values(part, name))


def _values(part: Path, name: str) -> Iterator[np.ndarray]:
    """The different values of a column that a part may have, as words, batch by batch."""
    for batch in batches(part, [], [name]):
        if name in batch.schema.names:
            cells = batch[name].to_pandas(integer_object_nulls=True)
            yield cells.dropna().astype(str).unique()


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
