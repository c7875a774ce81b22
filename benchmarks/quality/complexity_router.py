"""LiteLLM's complexity router as released, imported as a policy, beside our rules.

    python -m benchmarks.quality.complexity_router [--python .venv-litellm/bin/python] [--set DIR]
        [--pools ABCDE] [--quick]

Its package runs offline in an environment of its own (`make litellm-test` makes one). Its score is
one threshold along the best fixed mixes, set by cost alone at 25, 50 and 75 % of the cost range.
It takes 36 values on these queries, so how ties are cut matters: at random, which is what it says,
or in the file's order, which keeps benchmarks together and so knows more than the score does. Its
four tiers with the boundaries it ships are one more policy, the pool's hull dealt out from SIMPLE
to REASONING. Each goes through `import policy` and is replayed
from there. Ours on the same queries and costs: the value rule learned on two thirds and measured on
the rest, the shortfall rule with profiles, bands and cost order from the other half. A constant
(or a mixture of two at that cost) is 0 by definition. Without --set, the data beside the project
are read and scored, which takes minutes. Exits with 2 where the package is missing.
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality.outcome_lift import POOLS, held_out_lift, mixed_set
from benchmarks.quality.real_policies import flat_pool, learned, own_bands
from hydra_core.choosing.lift import POINTS, differences_to_hull, hull_of
from hydra_core.choosing.material import gather
from hydra_core.cli.main import main as hydra
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.imported_policies import imported_choice
from hydra_core.replay.replay import align, data_frontier, folds, replay
from hydra_core.replay.significance import mean_interval

THEIRS = Path(__file__).with_name("litellm_complexity.py")
TIERS = ("SIMPLE", "MEDIUM", "COMPLEX", "REASONING")


def asked(python, texts):
    """(n,) tiers and (n,) scores of their router, and its release."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(
        [python, THEIRS], input=lines, stdout=subprocess.PIPE, text=True, check=True
    )
    first, *rest = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    tiers = np.array([TIERS.index(one["tier"]) for one in rest])
    return tiers, np.array([one["score"] for one in rest]), first["release"]


def decisions(data, tiers, scores, rng):
    """Policy name -> (n,) pool index: a threshold at each cost, and the tiers as they are."""
    hull = hull_of(data.quality, data.cost_usd)
    orders = {
        "random": np.lexsort((rng.random(scores.size), -scores)),
        "file": np.argsort(-scores, kind="stable"),
    }
    found = {}
    for ties, order in orders.items():
        for percent, cost in costs(hull).items():
            mix = matched_cost_mix(hull, cost)
            choice = np.full(scores.size, mix.cheap.index)
            choice[order[: round(mix.strong_share * scores.size)]] = mix.strong.index
            found[f"complexity-{ties}-{percent}"] = choice
    steps = np.rint(np.linspace(0, len(hull) - 1, len(TIERS))).astype(int)
    found["complexity-tiers"] = np.array([hull[step].index for step in steps])[tiers]
    return found


def costs(hull):
    """Percent of the cost range -> USD per query."""
    low, high = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    return {percent: low + percent / 100 * (high - low) for percent in POINTS}


def imported(evalset, data, found, folder):
    """The same decisions, through the command line and back from the eval set."""
    for name, choice in found.items():
        path = folder / f"{name}.csv"
        models = np.asarray(data.pool.ids)[choice]
        pd.DataFrame({"query_id": data.query_ids, "model": models}).to_csv(path, index=False)
        with contextlib.redirect_stdout(io.StringIO()):
            ended = hydra(
                ["import", "policy", str(path), "--evalset", str(evalset.path), "--name", name]
                + ["--force"]
            )
        assert ended == 0, name
    return {name: imported_choice(evalset, data, name) for name in found}


def shortfall_choices(data, seed):
    """(n, 3): profiles, bands and cost order from one half, tau on the other by cost alone."""
    wanted = costs(hull_of(data.quality, data.cost_usd)).values()
    choice = np.zeros((len(data.query_ids), len(POINTS)), dtype=np.intp)
    for fold in folds(data, 2, np.random.default_rng(seed)):
        pool = learned(data, fold.train, own_bands(data, fold.train))
        test = replace(data.take(fold.test), pool=pool)
        curve = data_frontier(test)
        rows = [int(np.abs(curve.mean_cost_usd - cost).argmin()) for cost in wanted]
        choice[fold.test] = np.stack([replay(test, float(curve.knob[r])) for r in rows], axis=1)
    return choice


def lift(data, choices):
    """Points above the hull at the same cost, mean of the given policies."""
    hull = hull_of(data.quality, data.cost_usd)
    added = differences_to_hull(data.quality, data.cost_usd, choices, hull).mean(axis=1)
    return mean_interval(added, data.clusters).scaled(100.0)


def report(options, evalset, messages, found, scratch):
    """Print a line a pool and policy, and the means."""
    tiers, scores = found
    table: dict[str, list[float]] = {}
    print("points above the best fixed mix at the same cost [95 % interval]; fixed mix: +0.00")
    for name in options.pools:
        models = POOLS[name]
        data = align(evalset, messages.requirements, flat_pool(models, range(4)))
        theirs = decisions(
            data, tiers[data.rows], scores[data.rows], np.random.default_rng(options.seed)
        )
        theirs = imported(evalset, data, theirs, scratch)
        *threshold, at_tiers = theirs.values()
        at_random, as_filed = threshold[: len(POINTS)], threshold[len(POINTS) :]
        lifts = {
            "their score, ties at random": lift(data, np.stack(at_random, axis=1)),
            "their score, ties as filed": lift(data, np.stack(as_filed, axis=1)),
            "their tiers as released": lift(data, at_tiers[:, None]),
            "shortfall rule": lift(data, shortfall_choices(data, options.seed)),
        }
        if not options.quick:
            material = gather(evalset, messages, models)
            lifts["value rule"] = held_out_lift(material, options.seed).mean.scaled(100.0)
        for policy, one in lifts.items():
            table.setdefault(policy, []).append(one.value)
            print(f"pool {name}  {policy:27} {one.value:+.2f} [{one.lo:+.2f}, {one.hi:+.2f}]")
        sys.stdout.flush()
    for policy, values in table.items():
        print(f"mean    {policy:27} {np.mean(values):+.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=".venv-litellm/bin/python")
    parser.add_argument("--set", type=Path, help="mixed-2024 as an eval set, scored already")
    parser.add_argument("--pools", default="ABCDE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="without the value rule")
    options = parser.parse_args()
    predictor = default_predictor()
    with tempfile.TemporaryDirectory() as scratch:
        evalset, messages = mixed_set(options.set, Path(scratch), predictor)
        try:
            *found, release = asked(options.python, evalset.queries["text"])
        except (OSError, subprocess.CalledProcessError) as error:
            print(
                f"{error}\nLiteLLM is not there: `make litellm-test` installs it", file=sys.stderr
            )
            sys.exit(2)
        print(f"LiteLLM {release}, {evalset.n:,} queries")
        report(options, evalset, messages, found, Path(scratch))


if __name__ == "__main__":
    main()
