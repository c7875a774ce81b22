"""Time of the paired bootstrap, and its interval against a plain one that reads the same draws.

    python -m benchmarks.speed.bootstrap [--queries 8040] [--resamples 10000] [--runs 7] [--json]

Two simulated policies with heavy-tailed costs; each run resamples whole queries and reads the
saving of the second against the first. The plain reference adds one resample after another in
Python, so the comparison uses a small set.
"""

import argparse
import json
import math
import time

import numpy as np

from hydra_core.base.intervals import Interval
from hydra_core.base.types import FloatArray
from hydra_core.replay.significance import paired_bootstrap

LIMIT_S = 1.5
SMALL = (200, 2_000)  # queries, resamples of the comparison: one batch of draws
SEED = 7


def sample(n: int, seed: int = 42) -> FloatArray:
    """(n, 2) cost per query in USD of two policies that share each query's size."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(0.0, 1.0, (n, 1))
    return size * rng.lognormal(0.0, 0.3, (n, 2)) * [0.10, 0.06]


def saving(means: FloatArray) -> FloatArray:
    """(r, 2) mean costs -> (r,) share of the first policy's cost that the second saves."""
    return 1.0 - means[:, 1] / means[:, 0]


def plain(columns: FloatArray, resamples: int, seed: int) -> Interval:
    """The percentile interval of the saving, query by query, from the draws of the same seed."""
    n = len(columns)
    draws = np.random.default_rng(seed).integers(0, n, size=(resamples, n), dtype=np.uint16)
    first, second = columns.T.tolist()
    values = sorted(
        1.0 - math.fsum(second[i] for i in rows) / math.fsum(first[i] for i in rows)
        for rows in draws.tolist()
    )
    point = 1.0 - math.fsum(second) / math.fsum(first)
    return Interval(point, _quantile(values, 0.025), _quantile(values, 0.975))


def _quantile(ascending: list[float], share: float) -> float:
    """The value at a share of the way, on the line between its neighbours."""
    place = share * (len(ascending) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])


def compared(queries: int, resamples: int) -> tuple[Interval, Interval]:
    """The interval of a small set, by the bootstrap and by the plain reference."""
    columns = sample(queries)
    fast = paired_bootstrap(
        columns, saving, rng=np.random.default_rng(SEED), resamples=resamples, level=0.95
    )
    return fast, plain(columns, resamples, SEED)


def difference(one: Interval, other: Interval) -> float:
    """The largest difference of their point estimates and ends."""
    pairs = ((one.value, other.value), (one.lo, other.lo), (one.hi, other.hi))
    return max(abs(a - b) for a, b in pairs)


def timed(queries: int, resamples: int, runs: int) -> FloatArray:
    """(runs, 2) wall and CPU seconds of every run, each with its own seed."""
    columns, seconds = sample(queries), np.empty((runs, 2))
    for run in range(runs):
        start, cpu = time.perf_counter(), time.process_time()
        paired_bootstrap(columns, saving, rng=np.random.default_rng(run), resamples=resamples)
        seconds[run] = time.perf_counter() - start, time.process_time() - cpu
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=8_040)
    parser.add_argument("--resamples", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = timed(options.queries, options.resamples, options.runs)
    (median, median_cpu), (worst, _) = np.median(seconds, axis=0), seconds.max(axis=0)
    fast, slow = compared(*SMALL)
    apart = difference(fast, slow)
    if options.json:
        print(json.dumps({"seconds": seconds.tolist(), "median_s": median, "worst_s": worst,
                          "limit_s": LIMIT_S, "difference": apart}))  # fmt: skip
        return
    print(
        f"{options.resamples:,} resamples of {options.queries:,} queries, {options.runs} runs: "
        f"median {median:.2f} s ({median_cpu:.2f} s CPU), worst {worst:.2f} s "
        f"(bound {LIMIT_S} s: {'met' if worst <= LIMIT_S else 'MISSED'})"
    )
    print(
        f"{SMALL[1]:,} resamples of {SMALL[0]} queries, saving {fast.value:.4f} "
        f"[{fast.lo:.4f}, {fast.hi:.4f}]; plain reference {slow.value:.4f} "
        f"[{slow.lo:.4f}, {slow.hi:.4f}]: {apart:.0e} apart"
    )


if __name__ == "__main__":
    main()
