"""What logs of one outcome a query add: complete rows with and without them, and logs alone.

    python -m benchmarks.quality.logs lift [--complete 250] [--logged 2000] [--seeds 5]
        [--pools ABCDE] [--explore 0.1] [--workspace DIR]
    python -m benchmarks.quality.logs alone [--logs 200] [--logged 1000]

`lift` learns pools of mixed-2024 from complete queries alone and from these and a simulated log,
and measures both on all other queries. Its log is served by the value rule in the middle of the
cost range, by a model learned on the complete queries, and explores a share at random.
`alone` learns from simulated logs in which no router is better than a fixed mix of models (the
vector says nothing), and counts how often using the model is recommended.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from benchmarks.quality.ladder_sets import materials
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import lift_of
from hydra_core.choosing.material import Material
from hydra_core.outcome_model.features import Messages
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.matcher import choose_by_value

_VALUES = np.geomspace(1e-6, 100.0, 120)


def predictions(material, heads, rows):
    """What heads say of some rows."""
    pool = heads.for_pool(material.models, np.zeros(len(material.models)), None)
    return pool.predict(material.messages.take(rows))


def served(material, heads, rows, explore, rng):
    """(k,) the model of each logged query: the value rule's mid-range, a share at random."""
    said, cost = predictions(material, heads, rows), material.cost_usd[rows]
    middle = (cost.mean(axis=0).min() + cost.mean(axis=0).max()) / 2
    routes = [choose_by_value(said.success, said.cost_usd, value) for value in _VALUES]
    means = [cost[np.arange(rows.size), route].mean() for route in routes]
    chosen = routes[int(np.abs(np.array(means) - middle).argmin())].copy()
    tried = rng.random(rows.size) < explore
    chosen[tried] = rng.integers(0, len(material.models), int(tried.sum()))
    return chosen


def with_log(material, complete, logged, chosen):
    """The complete rows of a material, and a log in which one model answered each query."""
    part = material.take(logged)
    kept = np.arange(len(material.models)) == chosen[:, None]
    quality, cost_usd = (np.where(kept, v, np.nan) for v in (part.quality, part.cost_usd))
    return replace(
        material.take(complete), logged=replace(part, quality=quality, cost_usd=cost_usd)
    )


def both_lifts(material, options, seed):
    """Lift in points on queries that nothing learned from: without the log, and with it."""
    rng = np.random.default_rng([11, seed])
    order = rng.permutation(material.n)
    cuts = np.cumsum([options.complete, options.logged])
    complete, logged, rest = (np.sort(one) for one in np.split(order, cuts))
    first = learn(material.take(complete), None, folds=3, seed=seed, curve=False)
    chosen = served(material, first.heads, logged, options.explore, rng)
    both = with_log(material, complete, logged, chosen)
    joined = learn(both, None, folds=3, seed=seed, curve=False)
    lifts = []
    for found in (first, joined):
        said = predictions(material, found.heads, rest)
        quality, cost = material.quality[rest], material.cost_usd[rest]
        lift = lift_of(quality, cost, said, None, np.random.default_rng(0))
        lifts.append(100 * lift.mean.value)
    return (*lifts, joined.logged.used)


def report_lift(options):
    """Print the mean lift without and with the log, by pool."""
    with tempfile.TemporaryDirectory() as scratch:
        found = materials("mixed-2024", options.workspace or Path(scratch), default_predictor())
        pools = {name: one for name, one in found if name in options.pools}
    every = []
    for name, material in pools.items():
        rows = np.array([both_lifts(material, options, s) for s in range(options.seeds)])
        every.append(rows)
        without, joined, share = rows.mean(axis=0)
        print(f"pool {name}: without {without:+.2f}, with {joined:+.2f}, joined in {share:.0%}")
    whole = np.concatenate(every)
    added = whole[:, 1] - whole[:, 0]
    error = added.std(ddof=1) / np.sqrt(added.size)
    print(
        f"{options.complete} complete and {options.logged} logged: without "
        f"{whole[:, 0].mean():+.2f}, with {whole[:, 1].mean():+.2f}, "
        f"added {added.mean():+.2f} (se {error:.2f})"
    )


def report_alone(options):
    """Print how often a log alone, of outcomes that nothing foretells, is said to be of use."""
    said = sum(
        learn(null_log(options.logged, seed), None, folds=2, curve=False).recommend
        for seed in range(options.logs)
    )
    print(f"'use it' from {options.logs} logs alone, where no router is better: {said}")


def null_log(n, seed):
    """A log of three models whose success the message does not foretell."""
    rng = np.random.default_rng([13, seed])
    served = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    kept = np.arange(3) == served[:, None]
    quality = (rng.random((n, 3)) < [0.5, 0.6, 0.7]).astype(float)
    cost = rng.lognormal(0.0, 0.3, (n, 1)) * [0.001, 0.004, 0.02]
    messages = Messages(
        rng.random((n, 4)), rng.normal(size=(n, 32)).astype(np.float16),
        rng.integers(10, 500, (n, 6)),
    )  # fmt: skip
    return Material(
        evalset=SimpleNamespace(queries=pd.DataFrame({"query_id": np.arange(n).astype(str)})),
        models=("small", "middle", "large"), together=3, messages=messages,
        quality=np.where(kept, quality, np.nan), cost_usd=np.where(kept, cost, np.nan),
        input_tokens=None, output_tokens=None, rows=np.arange(n), clusters=np.arange(n),
        others=np.empty((n, 0)),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("lift", "alone"))
    parser.add_argument("--complete", type=int, default=250)
    parser.add_argument("--logged", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pools", default="ABCDE")
    parser.add_argument("--explore", type=float, default=0.1)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--workspace", type=Path)
    options = parser.parse_args()
    (report_lift if options.what == "lift" else report_alone)(options)


if __name__ == "__main__":
    main()
