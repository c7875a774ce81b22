"""A sweep over millions of queries in bounded memory, on both engines.

    python -m benchmarks.speed.sweep [--rows 10000000] [--engines local,ray] [--workers 2]

Generated parts of 200,000 queries x 12 models; printed are wall time, CPU time and the peak memory
of all processes together (shared pages counted once), and how far the first part's curve lies from
the exact frontier at the grid's points.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.speed.router import catalog
from hydra_core.base.types import DIMENSIONS
from hydra_core.catalog import pool
from hydra_core.replay.frontier import frontier
from hydra_core.replay.partitions import Engine, parts_of, run, tasks
from hydra_core.replay.sweep_parts import SweepParts, grid_of, key_of, merged
from hydra_core.routing.matcher import shortfall

MODELS = 12
PART = 200_000
POINTS = 4_096


def generate(folder, models, rows):
    for number in range(-(-rows // PART)):
        rng = np.random.default_rng(number)
        needs = rng.beta(1.5, 4.0, (PART, len(DIMENSIONS)))
        level = models.capabilities.mean(axis=1) - needs.mean(axis=1)[:, None]
        quality = (rng.random((PART, MODELS)) < 0.5 + level / 2).astype(np.float32)
        cost = (rng.lognormal(0.0, 0.6, (PART, 1)) * models.cost / 1e3).astype(np.float64)
        columns = {f"requirement:{name}": needs[:, k] for k, name in enumerate(DIMENSIONS)}
        for j, model in enumerate(models.ids):
            columns |= {f"quality:{model}": quality[:, j], f"cost_usd:{model}": cost[:, j]}
        pq.write_table(pa.table(columns), folder / f"part-{number:04}.parquet")


class Watch:
    """Peak memory (PSS) and CPU time of this process and all below it."""

    def __init__(self):
        self.peak, self.cpu, self._stop = 0, {}, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        me = psutil.Process()
        while not self._stop.wait(0.5):
            total = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                    times = process.cpu_times()
                    self.cpu[process.pid] = times.user + times.system
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def one(folder, engine, workers, resamples):
    whole = catalog(MODELS)
    models = pool(whole, today=date(2026, 1, 1))
    specs = tuple(whole.model(name) for name in models.ids)
    found = parts_of(folder)
    with tempfile.TemporaryDirectory() as out, Watch() as watch:
        begun = time.perf_counter()
        taus = grid_of(found, models, DIMENSIONS, POINTS, specs)
        job = SweepParts(models, DIMENSIONS, taus, resamples, specs)
        todo = tasks(found, Path(out), f".{key_of(job, found)}.npz")
        run(job, todo, Engine(engine), workers)
        swept = merged(todo, taus)
        wall = time.perf_counter() - begun
        alone = merged(todo[:1], taus)
    print(
        f"{engine}: {swept.n:,} x {MODELS}, {len(taus):,} taus, {resamples} resamples: "
        f"{wall:.0f} s, CPU {sum(watch.cpu.values()):.0f} s, peak {watch.peak / 2**30:.2f} GiB"
    )
    print(f"  first part against the exact frontier: {_apart(found[0], models, alone):.1e}")


def _apart(part, models, alone):
    table = pq.read_table(part).to_pandas()
    needs = table[[f"requirement:{name}" for name in DIMENSIONS]].to_numpy()
    quality = table[[f"quality:{name}" for name in models.ids]].to_numpy(np.float64)
    cost = table[[f"cost_usd:{name}" for name in models.ids]].to_numpy(np.float64)
    short = shortfall(needs, models.capabilities, models.weights)
    exact = frontier(short, models.cost, quality, cost)
    rows = [exact.row(tau) for tau in alone.table["tau"]]
    names = ("quality", "mean_cost_usd", "misroute")
    return max(np.abs(alone.table[name] - getattr(exact, name)[rows]).max() for name in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engines", default="local")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--parts", type=Path, help="generated parts that are there already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts = options.parts or Path(folder)
        if not options.parts or not any(parts.glob("*.parquet")):
            parts.mkdir(parents=True, exist_ok=True)
            generate(parts, pool(catalog(MODELS), today=date(2026, 1, 1)), options.rows)
        for engine in options.engines.split(","):
            if len(options.engines.split(",")) == 1:
                one(parts, engine, options.workers, options.resamples)
            else:  # a process of its own: peaks do not mix
                words = ["--parts", str(parts), "--engines", engine]
                words += ["--workers", str(options.workers)]
                words += ["--resamples", str(options.resamples)]
                subprocess.run([sys.executable, "-m", "benchmarks.speed.sweep", *words], check=True)


if __name__ == "__main__":
    main()
