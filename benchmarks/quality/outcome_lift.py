"""What learned heads gain on public questions: pools A to E, newcomers, and shuffled outcomes.

    python -m benchmarks.quality.outcome_lift [--set DIR] [--pools ABCDE] [--newcomer]
        [--shuffled N]

Every pool is learned on two thirds of the queries and measured on the rest, for each third (cut
by a seed of its own; equal texts stay together); features, learner and penalties are chosen on the
training part alone. --newcomer keeps 50 outcomes of the strongest model there, drawn anew 24
times. --shuffled counts instead how often `recommend` is said when outcomes are dealt out anew, N
times over the pools.
Without --set, the data beside the project are read and scored, which takes minutes.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from hydra_core.choosing.heads import choose, fit, fit_costs, grouped_parts
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import lift_of
from hydra_core.choosing.material import gather
from hydra_core.choosing.sources.newcomers import fit_newcomers
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import messages_of, score_evalset
from hydra_core.outcome_model.heads import Predicted
from hydra_core.predictor.onnx_predictor import default_predictor
from sample_data import mixed_2024

_SONNET = "claude-3-5-sonnet-20240620"
POOLS = {
    "A": (
        *("gpt-4o-mini-2024-07-18", "claude-3-haiku-20240307", "llama-3-70b-instruct"),
        *(_SONNET, "gpt-4o-2024-05-13"),
    ),
    "B": (
        *("gemini-1.5-flash", "gpt-4o-mini-2024-07-18", "llama-3-70b-instruct"),
        *("gpt-4o-2024-08-06", _SONNET),
    ),
    "C": (
        *("llama-3-8b-instruct", "gpt-3.5-turbo-0125", "llama-3-70b-instruct"),
        *(_SONNET, "claude-3-opus-20240229"),
    ),
    "D": ("llama-3-8b-instruct", "claude-3-haiku-20240307", "gpt-4o-2024-05-13"),
    "E": ("gemini-1.5-flash", "llama-3-70b-instruct", _SONNET),
}
#: The strongest model of a pool, and how many of its outcomes a newcomer has.
STRONGEST = {"C": _SONNET, "D": "gpt-4o-2024-05-13", "E": _SONNET}
OUTCOMES = 50
DRAWS = 24
_THIRDS = 3


def thirds(material, seed):
    """(number, training rows, held-out rows) of each third; clusters stay whole."""
    part = grouped_parts(material.clusters, _THIRDS, np.random.default_rng(seed))
    for number in range(_THIRDS):
        yield number, np.flatnonzero(part != number), np.flatnonzero(part == number)


def held_out_lift(material, seed):
    """Lift on thirds that were not learned on."""
    predicted = nothing_of(material)
    for number, known, rows in thirds(material, seed):
        rng = np.random.default_rng([seed, number])
        train = material.take(known)
        put(predicted, fit(train, choose(train, rng), seed=seed + number), material, rows)
    return lift(material, predicted, seed)


def newcomer_lifts(material, seed, model):
    """The same with few outcomes of a model, for every draw of them; the others learn once."""
    predicted = [nothing_of(material) for _ in range(DRAWS)]
    for number, known, rows in thirds(material, seed):
        rng = np.random.default_rng([seed, number])
        draws = [
            with_few(material.take(known), model, np.random.default_rng([seed, number, draw]))
            for draw in range(DRAWS)
        ]
        choice = choose(draws[0], rng)
        heads = fit(draws[0], choice, seed=seed + number)
        wide = heads.features.with_products(heads.features.columns(draws[0].messages))
        for one, few in zip(predicted, draws, strict=True):
            newcomers = fit_newcomers(few, choice.held_out)
            costs = fit_costs(few, wide, choice.penalties[1])
            put(one, replace(heads, newcomers=newcomers, costs=costs), material, rows)
    return [lift(material, one, seed).mean.value for one in predicted]


def nothing_of(material):
    """Predictions to be filled in."""
    return Predicted(np.zeros(material.quality.shape), np.zeros(material.quality.shape))


def put(predicted, heads, material, rows):
    """Fill in what heads say of some rows."""
    pool = heads.for_pool(material.models, np.zeros(len(material.models)), None)
    found = pool.predict(material.messages.take(rows))
    predicted.success[rows], predicted.cost_usd[rows] = found.success, found.cost_usd


def lift(material, predicted, seed):
    """What the predictions gain."""
    return lift_of(
        material.quality,
        material.cost_usd,
        predicted,
        material.clusters,
        np.random.default_rng(seed),
    )


def with_few(train, model, rng):
    """The training part with a few outcomes of one model, which becomes a newcomer."""
    column = train.models.index(model)
    order = [i for i in range(len(train.models)) if i != column] + [column]
    gone = np.setdiff1d(np.arange(train.n), rng.choice(train.n, OUTCOMES, replace=False))
    quality, cost = train.quality[:, order].copy(), train.cost_usd[:, order].copy()
    tokens = [values[:, order].copy() for values in (train.input_tokens, train.output_tokens)]
    for values in (quality, cost, *tokens):
        values[gone, -1] = np.nan
    return replace(
        train,
        models=tuple(train.models[i] for i in order),
        together=len(order) - 1,
        quality=quality,
        cost_usd=cost,
        input_tokens=tokens[0],
        output_tokens=tokens[1],
    )


def shuffled(material, runs):
    """How often an outcome model is recommended whose outcomes are another query's."""
    said = 0
    for seed in range(runs):
        order = np.random.default_rng(seed).permutation(material.n)
        dealt = replace(
            material,
            quality=material.quality[order],
            cost_usd=material.cost_usd[order],
            others=material.others[order],
        )
        said += learn(dealt, None, folds=2, seed=seed, curve=False).recommend
    return said


def mixed_set(path, scratch, predictor):
    """(eval set, messages) of mixed-2024: at `path`, scored already, or made and scored here."""
    if path is None:
        every = tuple(sorted({model for pool in POOLS.values() for model in pool}))
        evalset = mixed_2024.read(scratch / "mixed", models=every)
        score_evalset(evalset, predictor)
    else:
        evalset = load_evalset(path)
    bundle = predictor.bundle
    return evalset, messages_of(evalset, bundle.fingerprint, bundle.vectors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=Path, help="mixed-2024 as an eval set, scored already")
    parser.add_argument("--pools", default="ABCDE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--newcomer", action="store_true")
    parser.add_argument("--shuffled", type=int, default=0, metavar="N")
    options = parser.parse_args()
    predictor = default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        evalset, messages = mixed_set(options.set, Path(scratch), predictor)
        (report_shuffled if options.shuffled else report)(options, evalset, messages)


def report(options, evalset, messages):
    """Print a line a pool, and their mean."""
    means, kept = [], []
    for name in options.pools:
        material = gather(evalset, messages, POOLS[name])
        found = held_out_lift(material, options.seed)
        means.append(found.mean.value)
        ends = f"[{100 * found.mean.lo:+.2f}, {100 * found.mean.hi:+.2f}]"
        line = f"pool {name}: {100 * found.mean.value:+.2f} points {ends}"
        if options.newcomer and name in STRONGEST:
            few = np.array(newcomer_lifts(material, options.seed, STRONGEST[name]))
            shares = few / found.mean.value
            kept.append(shares.mean())
            line += f"; with {OUTCOMES} outcomes of {STRONGEST[name]} {100 * kept[-1]:.0f} % of it"
            line += f" (sd {100 * shares.std(ddof=1):.0f} over {DRAWS} draws)"
        print(line, flush=True)
    print(f"mean: {100 * np.mean(means):+.2f} points")
    if kept:
        print(f"newcomer: {100 * np.mean(kept):.0f} % of the lift on average")


def report_shuffled(options, evalset, messages):
    """Print how often each pool was recommended although its outcomes say nothing."""
    said, runs = 0, options.shuffled // len(options.pools)
    for name in options.pools:
        found = shuffled(gather(evalset, messages, POOLS[name]), runs)
        said += found
        print(f"pool {name}: recommended in {found} of {runs} runs", flush=True)
    print(f"shuffled outcomes: recommended in {said} of {runs * len(options.pools)} runs")


if __name__ == "__main__":
    main()
