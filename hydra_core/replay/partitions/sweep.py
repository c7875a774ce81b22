"""Quality and cost for thousands of taus over a set of any size, with intervals.

Every part gives exact sums at the points of one shared grid, plain and under Poisson(1) weights a
query (or a cluster). Sums add up, so memory does not depend on the set's size.
"""

from __future__ import annotations

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
from hydra_core.base.types import FloatArray, IntArray, Pool
from hydra_core.base.whole_file import whole_file
from hydra_core.evalsets.dependence import CLUSTER, CONVERSATION, cluster_numbers
from hydra_core.replay.frontier import Breakpoints, breakpoints
from hydra_core.replay.partitions.parts import REQUIREMENT, Task, batches
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
        seed: Of the resamples; each part has its own stream.
    """

    pool: Pool
    dimensions: tuple[str, ...]
    taus: FloatArray
    resamples: int
    seed: int = 0

    def __call__(self, task: Task) -> None:
        """Sum one part.

        Raises:
            EvalSetError: It is damaged, lacks a column, or holds a gap.
        """
        rng = np.random.default_rng((self.seed, task.number))
        size = len(self.taus)
        sums, n = np.zeros((3, size)), 0
        weighted = np.zeros((_WEIGHTED, size, self.resamples))
        counts = np.zeros(self.resamples)
        for batch in _outcomes(task.source, self.pool, self.dimensions):
            found = breakpoints(batch.shortfalls, self.pool.cost, batch.quality, batch.cost_usd)
            weights = _weights(rng, batch.clusters, batch.n, self.resamples)
            cells = _cells(found, self.taus)
            for column in range(3):
                step = np.bincount(cells, found.step[:, column], minlength=size + 1)[:size]
                sums[column] += found.base[column].sum() + np.cumsum(step)
            for column in range(_WEIGHTED if self.resamples else 0):
                weighted[column] += _resampled(found, cells, column, weights, size)
            counts += weights.sum(axis=0)
            n += batch.n
        with whole_file(task.target) as fresh, fresh.open("wb") as stream:
            np.savez(stream, n=n, sums=sums, weighted=weighted, counts=counts)


@dataclass(frozen=True, slots=True, eq=False)
class Swept:
    """The curve of the whole set at the grid's points.

    Attributes:
        table: tau, quality, mean_cost_usd, misroute; with resamples also the 95 % ends `_lo` and
            `_hi` of quality and cost.
    """

    n: int
    table: pd.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    shortfalls: FloatArray
    quality: FloatArray
    cost_usd: FloatArray
    clusters: IntArray | None

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
        raise EvalSetError(part.name, [Problem("", "has outcomes of no model", remedy)])
    ids = tuple(pool.ids[i] for i in kept)
    return Pool(ids, pool.capabilities[kept], pool.cost[kept], pool.weights)


def grid_of(
    parts: Sequence[Path], pool: Pool, dimensions: tuple[str, ...], points: int
) -> FloatArray:
    """(g,) taus, g <= points: quantiles of the breakpoints in the first rows of every part."""
    found = []
    for part in parts:
        batch = next(_outcomes(part, pool, dimensions), None)
        if batch is not None:
            rows = slice(0, _SAMPLE_ROWS)
            kept = batch.shortfalls[rows], batch.quality[rows], batch.cost_usd[rows]
            found.append(breakpoints(kept[0], pool.cost, kept[1], kept[2]).tau)
    taus = np.concatenate([[0.0], *found])
    return np.unique(np.quantile(taus, np.linspace(0.0, 1.0, points)))


def key_of(job: SweepParts, parts: Sequence[Path]) -> str:
    """What results of a job are named by, so that those of another one are never added up."""
    digest = hashlib.sha256()
    names = [[part.name, part.stat().st_size] for part in parts]
    facts = [job.pool.ids, job.dimensions, job.resamples, job.seed, names]
    digest.update(json.dumps(facts).encode())
    for values in (job.pool.capabilities, job.pool.cost, job.pool.weights, job.taus):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:12]


def merged(all_tasks: Sequence[Task], taus: FloatArray) -> Swept:
    """The parts' sums as one curve.

    Raises:
        EvalSetError: There is no query at all.
    """
    n, sums, weighted, counts = 0, 0.0, 0.0, 0.0
    for task in all_tasks:
        with np.load(task.target, allow_pickle=False) as found:
            n += int(found["n"])
            sums, weighted = sums + found["sums"], weighted + found["weighted"]
            counts = counts + found["counts"]
    if not n:
        raise EvalSetError("sweep", [Problem("", "the parts hold no queries")])
    means = np.asarray(sums) / n
    columns = {"tau": taus, "quality": means[0], "mean_cost_usd": means[1], "misroute": means[2]}
    if np.size(counts):
        for column, name in enumerate(("quality", "mean_cost_usd")):
            drawn = np.asarray(weighted)[column] / counts
            lo, hi = np.quantile(drawn, tails(LEVEL), axis=1)
            value = means[column]
            columns |= {f"{name}_lo": np.minimum(lo, value), f"{name}_hi": np.maximum(hi, value)}
    return Swept(n, pd.DataFrame(columns))


def _outcomes(path: Path, pool: Pool, dimensions: tuple[str, ...]) -> Iterator[_Batch]:
    needs = [f"{REQUIREMENT}{name}" for name in dimensions]
    quality = [f"{_QUALITY}{model}" for model in pool.ids]
    cost = [f"{_COST}{model}" for model in pool.ids]
    grouped = [name for name in (CLUSTER, CONVERSATION) if name in pq.read_schema(path).names]
    for batch in batches(path, [*needs, *quality, *cost, *grouped]):
        if not batch.num_rows:
            continue
        requirements = _matrix(batch, needs, path)
        yield _Batch(
            shortfall(requirements, pool.capabilities, pool.weights),
            _matrix(batch, quality, path),
            _matrix(batch, cost, path),
            cluster_numbers(batch.select(grouped).to_pandas()),
        )


def _matrix(batch: pa.RecordBatch, names: Sequence[str], path: Path) -> FloatArray:
    values = np.empty((batch.num_rows, len(names)))
    for column, name in enumerate(names):
        values[:, column] = batch[name].to_numpy(zero_copy_only=False)
    named = [name for k, name in enumerate(names) if not np.isfinite(values[:, k]).all()]
    if named:
        remedy = "drop the rows, or leave the model out of the catalog"
        message = "holds missing values"
        raise EvalSetError(path.name, [Problem(name, message, remedy) for name in named])
    return values


def _weights(
    rng: np.random.Generator, clusters: IntArray | None, n: int, resamples: int
) -> FloatArray:
    """(n, resamples) Poisson(1) weights, equal within a cluster."""
    if clusters is None:
        return rng.poisson(1.0, (n, resamples)).astype(np.float64)
    drawn = rng.poisson(1.0, (int(clusters.max()) + 1, resamples)).astype(np.float64)
    return drawn[clusters]


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
