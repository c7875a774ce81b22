"""What logs of one outcome a query add: complete rows with and without them, and logs alone.

    python -m benchmarks.quality.logs lift [--complete 250] [--logged 2000] [--seeds 5]
        [--pools ABCDE] [--explore 0.1] [--workspace DIR]
    python -m benchmarks.quality.logs alone [--logs 200] [--logged 1000]
    python -m benchmarks.quality.logs hidden [--complete 250] [--logged 1000] [--seeds 2]
        [--pools CDE] [--workspace DIR]

`lift` learns pools of mixed-2024 from complete queries alone and from these and a simulated log,
and measures both on all other queries. Its log is served by the value rule in the middle of the
cost range, by a model learned on the complete queries, and explores a share at random.
`alone` learns from simulated logs in which no router is better than a fixed mix of models (the
vector says nothing), and counts how often using the model is recommended.
`hidden` hides each model in turn from the complete queries, so that its outcomes are in the log
only, and measures on all other queries what is lost against learning from all complete outcomes.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import yaml

from benchmarks.quality.ladder_sets import materials
from benchmarks.quality.real_pools import SHARED
from hydra_core.choosing.by_rate import with_newcomers
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import lift_of
from hydra_core.choosing.material import Material
from hydra_core.outcome_model.heads import Messages
from hydra_core.outcome_model.model import LEAST_OUTCOMES
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.matcher import choose, value_shortfall

_VALUES = np.geomspace(1e-6, 100.0, 120)


def predictions(material, heads, rows, prices=None):
    """What heads say of some rows."""
    pool = heads.for_pool(material.models, np.zeros(len(material.models)), prices)
    return pool.predict(material.messages.take(rows))


def served(material, heads, rows, explore, rng):
    """(k,) the model of each logged query: the value rule's mid-range, a share at random."""
    said, cost = predictions(material, heads, rows), material.cost_usd[rows]
    middle = (cost.mean(axis=0).min() + cost.mean(axis=0).max()) / 2
    routes = [
        choose(value_shortfall(said.success, said.cost_usd, value), said.cost_usd, 0.0)
        for value in _VALUES
    ]
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


def hidden(material, name, complete, logged, chosen):
    """The material of the others, with the log; the named model's outcomes are in the log only."""
    j = material.models.index(name)
    known = np.full(material.evalset.n, fill_value=False)
    known[material.rows[logged[chosen == j]]] = True
    column = material.evalset.models.index(name)
    values = {}
    for kind in ("quality", "cost_usd"):
        values[kind] = getattr(material.evalset, kind).copy()
        values[kind][~known, column] = np.nan
    keep = [i for i in range(len(material.models)) if i != j]
    tokens = {
        kind: None if getattr(material, kind) is None else getattr(material, kind)[:, keep]
        for kind in ("input_tokens", "output_tokens")
    }
    others = replace(
        material, evalset=replace(material.evalset, **values), together=len(keep), **tokens,
        models=tuple(material.models[i] for i in keep), quality=material.quality[:, keep],
        cost_usd=material.cost_usd[:, keep], others=np.empty((material.n, 0)),
    )  # fmt: skip
    places = np.array([keep.index(i) if i != j else -1 for i in chosen])
    return replace(with_log(others, complete, logged, places), logged_only=(name,))


def hidden_lifts(material, options, seed):
    """(hidden models, 4) lift in points: all complete, without it, by its log, by its rate."""
    prices = per_mtok(material.models)
    rng = np.random.default_rng([17, seed])
    cuts = np.cumsum([options.complete, options.logged])
    complete, logged, rest = (np.sort(one) for one in np.split(rng.permutation(material.n), cuts))
    whole = learn(material.take(complete), None, folds=3, seed=seed, curve=False)
    chosen = served(material, whole.heads, logged, options.explore, rng)
    quality, cost = material.quality[rest], material.cost_usd[rest]

    def lift(heads, without=None):
        said = predictions(material, heads, rest, np.array([prices[n] for n in material.models]))
        if without is not None:
            success = said.success.copy()
            success[:, without] = 0.0
            said = replace(said, success=success)
        return 100 * lift_of(quality, cost, said, None, np.random.default_rng(0)).mean.value

    rows = []
    for j, name in enumerate(material.models):
        own = material.quality[logged, j][chosen == j]
        if own.size < LEAST_OUTCOMES:
            continue
        part = hidden(material, name, complete, logged, chosen)
        others = learn(part, None, folds=3, seed=seed, curve=False)
        by_log = with_newcomers(others, {}, prices).heads
        plain = replace(others, material=replace(part, logged=None, logged_only=()), logged=None)
        by_rate = with_newcomers(
            plain, {name: float(np.clip(own.mean(), 0.02, 0.98))}, prices
        ).heads
        rows.append([lift(whole.heads), lift(by_log, without=j), lift(by_log), lift(by_rate)])
    return rows


def per_mtok(models):
    """Model -> USD per million tokens read and written."""
    known = yaml.safe_load((SHARED / "mixed-2024" / "prices.yaml").read_text())["models"]
    return {name: (known[name]["input"], known[name]["output"]) for name in models}


def report_hidden(options):
    """Print the lifts with each model hidden in turn, and their means."""
    every = []
    for name, material in pools_of(options).items():
        for seed in range(options.seeds):
            for row in hidden_lifts(material, options, seed):
                print(f"pool {name}, seed {seed}: " + ", ".join(f"{one:+.2f}" for one in row))
                every.append(row)
    means = dict(zip(("all complete", "without it", "by its log", "by its rate in the log"),
                     np.mean(every, axis=0), strict=True))  # fmt: skip
    print(f"{len(every)} hidden: " + ", ".join(f"{what} {one:+.2f}" for what, one in means.items()))


def pools_of(options):
    """Name -> material of each pool that was asked for."""
    with tempfile.TemporaryDirectory() as scratch:
        found = materials("mixed-2024", options.workspace or Path(scratch), default_predictor())
        return {name: one for name, one in found if name in options.pools}


def report_lift(options):
    """Print the mean lift without and with the log, by pool."""
    every = []
    for name, material in pools_of(options).items():
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
    parser.add_argument("what", choices=("lift", "alone", "hidden"))
    parser.add_argument("--complete", type=int, default=250)
    parser.add_argument("--logged", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pools", default="ABCDE")
    parser.add_argument("--explore", type=float, default=0.1)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--workspace", type=Path)
    options = parser.parse_args()
    report = {"lift": report_lift, "alone": report_alone, "hidden": report_hidden}
    report[options.what](options)


if __name__ == "__main__":
    main()
