"""Time and peak memory of the exact frontier, its growth with N, and a naive 41-point grid.

    python -m benchmarks.speed.frontier [--json] [--runs 7]

Each size runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from hydra_core.replay.frontier import frontier
from hydra_core.routing.matcher import choose, shortfall

SIZES = ((8_040, 4), (100_000, 12), (1_000_000, 12))
GROWTH = tuple((n, 12) for n in (50_000, 100_000, 200_000, 400_000, 800_000))
GRID = 41


def sample(n, m, seed=42):
    """Random requirements, profiles that rise with price, and outcomes that follow them."""
    rng = np.random.default_rng(seed)
    requirements = rng.random((n, 4))
    capabilities = np.clip(np.linspace(0.1, 0.9, m)[:, None] + rng.normal(0, 0.1, (m, 4)), 0, 1)
    shortfalls = shortfall(requirements, capabilities, np.array([1.238, 0.691, 0.772, 1.299]))
    quality = (rng.random((n, m)) < 0.7).astype(np.float64)
    return shortfalls, np.geomspace(0.1, 5.0, m), quality, rng.random((n, m))


def naive(shortfalls, cost, quality, cost_usd):
    """41 values of tau, each replayed from scratch."""
    rows = np.arange(len(shortfalls))
    for tau in np.linspace(0, shortfalls.max(), GRID):
        choice = choose(shortfalls, cost, tau)
        cheaper = cost[None, :] < cost[choice][:, None]
        (cheaper & (quality >= 0.5)).any(axis=1).mean()
        quality[rows, choice].mean()
        cost_usd[rows, choice].mean()


def median_ms(call, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def measure(n, m, runs, with_naive):
    case = sample(n, m)
    result = {"queries": n, "models": m, "breakpoints": int(frontier(*case).knob.size)}
    result["exact_ms"] = median_ms(lambda: frontier(*case), runs)
    result["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if with_naive:
        result["grid_ms"] = median_ms(lambda: naive(*case), max(1, runs // 3))
    return result


def in_own_process(n, m, runs, with_naive):
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed.frontier",
        "--one",
        str(n),
        str(m),
        str(runs),
    ]
    command += ["--naive"] if with_naive else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--naive", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.naive)))
        return
    sizes = [in_own_process(n, m, options.runs, with_naive=True) for n, m in SIZES]
    growth = [in_own_process(n, m, max(3, options.runs // 2), False) for n, m in GROWTH]
    logs = np.log([[row["queries"], row["exact_ms"]] for row in growth])
    exponent = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    if options.json:
        print(json.dumps({"sizes": sizes, "growth": growth, "exponent": exponent}))
        return
    print(
        f"{'queries x models':>18} {'breakpoints':>12} {'exact, ms':>10} {'41-point grid, ms':>18} "
        f"{'peak, MiB':>10}"
    )
    for row in sizes:
        print(
            f"{row['queries']:>13,} x {row['models']:<2} {row['breakpoints']:>12,} "
            f"{row['exact_ms']:>10.1f} {row['grid_ms']:>18.1f} {row['peak_mib']:>10.0f}"
        )
    print(
        "growth with N (12 models): "
        + ", ".join(f"{row['queries']:,}: {row['exact_ms']:.0f} ms" for row in growth)
        + f"; time ~ N^{exponent:.2f}"
    )


if __name__ == "__main__":
    main()
