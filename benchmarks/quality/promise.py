"""Simulated calibrations of the promise: how often it is broken, and what it saves.

    python -m benchmarks.quality.promise [--workspace DIR] [--simulations 500] [--within 0.02 0.05]
        [--sizes 500 1000 2000] [--source heads|success] [--pools ABCDE]

Each pool of mixed-2024 is a population: its queries with cross-fitted routes. A calibration draws
so many queries from it with replacement and promises a setting; the promise is broken where the
mean difference to the best single model over the whole population is below -within. Beside it
stands what is done without a test: the cheapest setting whose mean on the drawn queries is within
the margin.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.quality.ladder_sets import materials
from benchmarks.quality.sources import cross_fit_heads, outcomes_of
from hydra_core.choosing.lift import cross_fit
from hydra_core.choosing.sources.ladder import Kind, fit_of
from hydra_core.choosing.sources.promise import promise, walk
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.metrics import picked


def calibrations(found, size, within, simulations, seed):
    """Broken, saving, kept of the promise; broken, saving without a test; saving of an oracle."""
    outcomes = found.ranked.outcomes
    taus, choice = walk(found.ranked.shortfalls, found.ranked.order)
    best = int(outcomes.quality.mean(axis=0).argmax())
    quality = picked(outcomes.quality, choice.astype(np.intp))
    cost = picked(outcomes.cost_usd, choice.astype(np.intp))
    truth = (quality - outcomes.quality[:, [best]]).mean(axis=0)
    saves = 1 - cost.mean(axis=0) / outcomes.cost_usd[:, best].mean()
    rng = np.random.default_rng(seed)
    text = np.zeros((simulations, 3))
    naive = np.zeros((simulations, 2))
    for row in range(simulations):
        drawn = rng.integers(0, outcomes.n, size)
        made = promise(
            outcomes.models,
            outcomes.quality[drawn],
            outcomes.cost_usd[drawn],
            taus,
            choice[drawn],
            baseline=best,
            within=within,
            rng=rng,
        )
        if made.kept:
            text[row] = truth[made.position] < -within, saves[made.position], 1
        means = (quality[drawn] - outcomes.quality[drawn][:, [best]]).mean(axis=0)
        fine = np.flatnonzero(means >= -within)
        if fine.size:
            naive[row] = truth[fine[-1]] < -within, saves[fine[-1]]
    oracle = saves[truth >= -within].max(initial=0.0)
    return (*text.mean(axis=0), *naive.mean(axis=0), oracle)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--within", type=float, nargs="+", default=[0.02])
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 1_000, 2_000])
    parser.add_argument(
        "--source", choices=(Kind.HEADS, Kind.SUCCESS), type=Kind, default=Kind.HEADS
    )
    parser.add_argument("--pools", default="ABCDE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        pools = materials("mixed-2024", options.workspace or Path(scratch), default_predictor())
        found = {}
        for pool, material in pools:
            if pool in options.pools:
                found[pool] = (
                    cross_fit_heads(material)
                    if options.source is Kind.HEADS
                    else cross_fit(outcomes_of(material), fit_of(options.source))
                )
    for within in options.within:
        for size in options.sizes:
            rows = [
                calibrations(one, size, within, options.simulations, [size, i])
                for i, one in enumerate(found.values())
            ]
            each = "; ".join(
                f"{pool} {100 * row[1]:.0f} % (broken {100 * row[0]:.1f} %)"
                for pool, row in zip(found, rows, strict=True)
            )
            broken, saving, kept, unsafe, saved, oracle = 100 * np.mean(rows, axis=0)
            print(
                f"within {100 * within:g} points, n = {size}: saves {saving:.0f} %, kept in "
                f"{kept:.0f} %, broken in {broken:.1f} % (worst pool "
                f"{100 * max(row[0] for row in rows):.1f} %); without a test saves {saved:.0f} %, "
                f"broken in {unsafe:.0f} %; oracle {oracle:.0f} %\n   {each}",
                flush=True,
            )


if __name__ == "__main__":
    main()
