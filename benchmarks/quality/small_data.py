"""Few outcomes and newcomers on mixed-2024: lift on queries that were not learned on.

    python -m benchmarks.quality.small_data [--workspace DIR] [--few 250 500] [--draws 14]
        [--newcomer] [--pools ABCDE] [--seed 1] [--today]

--few learns from so many queries, drawn anew each time, and measures on all others; --today learns
as `learn` does now, for comparison. --newcomer learns pools C, D and E without the outcomes of
their strongest model and adds it by its rate (right, or wrong by .06), with 0 to 100 outcomes: the
share of the lift that all its outcomes give. Costs of newcomers are predicted tokens times list
prices.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from benchmarks.quality.ladder_sets import materials
from benchmarks.quality.outcome_lift import STRONGEST, nothing_of, thirds
from benchmarks.quality.real_pools import SHARED
from hydra_core.choosing.heads import choose, fit
from hydra_core.choosing.lift import lift_of
from hydra_core.choosing.sources.few_outcomes import fit_few
from hydra_core.choosing.sources.newcomers import place_newcomer
from hydra_core.predictor.onnx_predictor import default_predictor

#: Whether the rate is known, how many outcomes, how wrong the rate is.
CASES = {
    "rate, 0 outcomes": (True, 0, 0.0),
    "rate, 10 outcomes": (True, 10, 0.0),
    "rate, 25 outcomes": (True, 25, 0.0),
    "rate, 50 outcomes": (True, 50, 0.0),
    "rate, 100 outcomes": (True, 100, 0.0),
    "rate .06 too high, 0": (True, 0, 0.06),
    "rate .06 too low, 0": (True, 0, -0.06),
    "rate .06 too high, 50": (True, 50, 0.06),
    "rate .06 too low, 50": (True, 50, -0.06),
    "no rate, 50 outcomes": (False, 50, 0.0),
}
DRAWS = 8


def few_lift(material, count, draws, learn, seed):
    """Mean lift in points over the draws, and its standard error."""
    lifts = []
    for draw in range(draws):
        order = np.random.default_rng([seed, count, draw]).permutation(material.n)
        heads = learn(material.take(np.sort(order[:count])), draw)
        rows = np.sort(order[count:])
        pool = heads.for_pool(material.models, np.zeros(len(material.models)), None)
        predicted = pool.predict(material.messages.take(rows))
        rng = np.random.default_rng(0)
        found = lift_of(material.quality[rows], material.cost_usd[rows], predicted, None, rng)
        lifts.append(100 * found.mean.value)
    return np.mean(lifts), np.std(lifts, ddof=1) / np.sqrt(draws)


def by_recipe(material, draw):
    """The fixed recipe."""
    return fit_few(material, seed=draw)


def as_today(material, draw):
    """The choice among learners by inner folds."""
    return fit(material, choose(material, np.random.default_rng(draw)), seed=draw)


def list_prices(models):
    """(m, 2) USD per million tokens read and written."""
    text = (SHARED / "mixed-2024" / "prices.yaml").read_text(encoding="utf-8")
    known = yaml.safe_load(text)["models"]
    return np.array([[known[name]["input"], known[name]["output"]] for name in models])


def newcomer_lifts(material, model, seed):
    """Lift in points with all outcomes, and in every case (mean over the draws)."""
    prices = list_prices(material.models)
    full = nothing_of(material)
    cases = {
        name: [nothing_of(material) for _ in range(DRAWS if count else 1)]
        for name, (_, count, _) in CASES.items()
    }
    for number, known, rows in thirds(material, seed):
        train, held = material.take(known), material.messages.take(rows)
        rng = np.random.default_rng([seed, number])
        put(full, fit(train, choose(train, rng), seed=seed), prices, held, rows, material.models)
        last, others = without(train, model)
        choice = choose(others, np.random.default_rng([seed, number]))
        heads = fit(others, choice, seed=seed)
        success = np.clip(choice.held_out, 0.0, 1.0)
        for name, (has_rate, count, error) in CASES.items():
            for draw, into in enumerate(cases[name]):
                drawn = np.random.default_rng([seed, number, draw]).permutation(train.n)[:count]
                some = np.isin(np.arange(train.n), drawn)
                own = [
                    np.where(some, values[:, -1], np.nan)
                    for values in (
                        last.quality, last.cost_usd, last.input_tokens, last.output_tokens,
                    )
                ]  # fmt: skip
                rate = float(np.clip(last.quality[:, -1].mean() + error, 0.02, 0.98))
                joined = place_newcomer(
                    heads, others.messages, success, model,
                    rate=rate if has_rate else None, quality=own[0], cost_usd=own[1],
                    input_tokens=own[2], output_tokens=own[3],
                )  # fmt: skip
                put(into, joined, prices, held, rows, material.models)
    whole = lift_in_points(material, full)
    return whole, {
        name: np.mean([lift_in_points(material, one) for one in found])
        for name, found in cases.items()
    }


def without(train, model):
    """The training part with `model` last, and without it."""
    column = train.models.index(model)
    order = [i for i in range(len(train.models)) if i != column] + [column]
    last = replace(
        train,
        models=tuple(train.models[i] for i in order),
        together=len(order) - 1,
        quality=train.quality[:, order],
        cost_usd=train.cost_usd[:, order],
        input_tokens=train.input_tokens[:, order],
        output_tokens=train.output_tokens[:, order],
    )
    others = replace(
        last,
        models=last.models[:-1],
        quality=last.quality[:, :-1],
        cost_usd=last.cost_usd[:, :-1],
        input_tokens=last.input_tokens[:, :-1],
        output_tokens=last.output_tokens[:, :-1],
    )
    return last, others


def put(into, heads, prices, messages, rows, models):
    """Fill in what heads say of some rows, at list prices."""
    pool = heads.for_pool(models, np.zeros(len(models)), prices)
    found = pool.predict(messages)
    into.success[rows], into.cost_usd[rows] = found.success, found.cost_usd


def lift_in_points(material, predicted):
    """Mean lift of the value rule by these predictions."""
    rng = np.random.default_rng(0)
    found = lift_of(material.quality, material.cost_usd, predicted, material.clusters, rng)
    return 100 * found.mean.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--few", type=int, nargs="*", default=[250, 500])
    parser.add_argument("--draws", type=int, default=14)
    parser.add_argument("--newcomer", action="store_true")
    parser.add_argument("--pools", default="ABCDE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--today", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = materials("mixed-2024", options.workspace or Path(scratch), default_predictor())
        pools = {name: material for name, material in found if name in options.pools}
    if options.newcomer:
        report_newcomers(pools, options)
        return
    for count in options.few:
        for title, learn in (("recipe", by_recipe), ("today", as_today))[: 1 + options.today]:
            rows = [
                few_lift(material, count, options.draws, learn, options.seed)
                for material in pools.values()
            ]
            error = np.sqrt(np.mean([e**2 for _, e in rows]) / len(rows))
            each = ", ".join(f"{p} {v:+.2f}" for p, (v, _) in zip(pools, rows, strict=True))
            mean = np.mean([value for value, _ in rows])
            print(f"{count} queries, {title}: {mean:+.2f} (se {error:.2f}); {each}", flush=True)


def report_newcomers(pools, options):
    """Print the share of the full lift in every case."""
    shares = {}
    for pool in (name for name in pools if name in STRONGEST):
        whole, cases = newcomer_lifts(pools[pool], STRONGEST[pool], options.seed)
        for name, value in cases.items():
            shares.setdefault(name, []).append(value / whole)
        print(f"pool {pool}: full lift {whole:+.2f}", flush=True)
    for name, values in shares.items():
        each = ", ".join(f"{100 * value:.0f} %" for value in values)
        print(f"{name}: {100 * np.mean(values):.0f} % of the full lift ({each})")


if __name__ == "__main__":
    main()
