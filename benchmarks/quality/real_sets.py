"""HyDRA and every baseline on real outcomes at matched cost, with intervals and results.

    python -m benchmarks.quality.real_sets [--shared ../shared/data/replay] [--workspace DIR]
        [--only NAME ...] [--out docs/real_sets.md] [--json]

Imports and scores go to the workspace (a temporary folder unless one is given; with one, a second
run reuses them, and a new predictor bundle is scored anew). Only the table of figures is written
into the project; the data never are.
"""

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.quality.real_policies import hydra_runs, real_data, value_run
from benchmarks.quality.real_pools import SETS, evalset_of, options_of_sets
from benchmarks.quality.real_table import document, sections_of_others
from hydra_core.base.types import Selection
from hydra_core.choosing.material import gather
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import list_evalsets
from hydra_core.evalsets.scores import (
    load_scores,
    load_text_facts,
    messages_of,
    save_scores,
    score_evalset,
    texts_digest,
)
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.baselines import RANDOM_MIX, run_baselines
from hydra_core.replay.fixed_mix import matched_cost_mix
from hydra_core.replay.metrics import (
    evaluate_choice,
    oracle_quality,
    picked,
    single_models,
    upper_hull,
)
from hydra_core.replay.routability import routability
from hydra_core.replay.significance import holm
from hydra_core.replay.verdict import verdict

STEPS = (0.25, 0.50, 0.75)
RESAMPLES = 2_000
#: One-sided: two-sided 95 %.
LEVEL = 0.025


def measured(data, choice):
    """One policy at one cost: QR with interval, delta from the best fixed mix at its own cost."""
    metrics, result = evaluate_choice(data, choice), verdict(data, choice, Selection.FIXED)
    return {
        "qr": [metrics.qr.value, metrics.qr.lo, metrics.qr.hi],
        "mean_cost_usd": metrics.mean_cost_usd.value,
        "delta": [result.delta, result.interval.lo, result.interval.hi],
    }


def over_all_costs(data, hull, choices, counts):
    """Mean delta from the best fixed mix over the costs, with a bootstrap interval and p values.

    Args:
        choices: One (n,) choice per cost.
        counts: (resamples, n) how often each query is drawn.
    """
    value, drawn = 0.0, np.zeros(len(counts))
    for choice in choices:
        quality, cost = picked(data.quality, choice), picked(data.cost_usd, choice)
        mix = matched_cost_mix(hull, float(cost.mean()))
        value += (float(quality.mean()) - mix.quality) / len(choices)
        a, b = mix.cheap.index, mix.strong.index
        columns = [quality, cost, *data.quality[:, [a, b]].T, *data.cost_usd[:, [a, b]].T]
        q, c, qa, qb, ca, cb = (counts @ np.column_stack(columns) / len(quality)).T
        share = np.where(a == b, 0.0, (c - ca) / np.where(cb == ca, 1.0, cb - ca))
        drawn += (q - (qa + share * (qb - qa))) / len(choices)
    spread = float(drawn.std())
    z = value / spread if spread > 0 else 0.0
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {
        "delta": [value, float(low), float(high)],
        "p": [float(stats.norm.sf(z)), float(stats.norm.cdf(z))],
    }


def all_policies(data, runs, hull, costs, rng):
    """Every policy at every cost, and over all of them with Holm's correction."""
    n = len(data.query_ids)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.float64)
    rows = {}
    for run in runs:
        choices = [run.at_cost(cost, rng) for cost in costs]
        cells = [measured(data, choice) for choice in choices]
        rows[run.name] = {"cells": cells, **over_all_costs(data, hull, choices, counts)}
    judged = [row for name, row in rows.items() if name != RANDOM_MIX]
    for side, result in ((0, "better"), (1, "worse")):
        for row, p in zip(judged, holm([row["p"][side] for row in judged]), strict=True):
            row.setdefault("result", "no difference")
            row["result"] = result if p < LEVEL else row["result"]
    rows[RANDOM_MIX]["result"] = "control"
    return rows


def one_set(real, shared, workspace, predictor, *, trials, seed):
    """All figures of one set."""
    start = time.perf_counter()
    evalset = evalset_of(real, shared, workspace)
    bundle = predictor.bundle
    reuse_scores(evalset, workspace, bundle)
    frame = score_evalset(evalset, predictor)
    requirements = frame.drop(columns="query_id").to_numpy(np.float64)
    data = real_data(evalset, requirements, real, bundle)
    texts = list(evalset.queries["text"].iloc[data.rows])
    if real.catalog is None:  # static order by realised cost; each half learns its own for HyDRA
        data = in_cost_order(data)
    explored = routability(data, texts, seed=seed)
    derive = real.catalog is None
    runs = [*hydra_runs(data, bundle.bands, derive=derive, seed=seed, trials=trials)]
    messages = messages_of(evalset, bundle.fingerprint, bundle.vectors)
    runs.append(value_run(data, gather(evalset, messages, data.pool.ids), seed))
    runs += run_baselines(data, texts, seed=seed)
    singles = single_models(data)
    hull = upper_hull(singles)
    span = hull[0].mean_cost_usd, hull[-1].mean_cost_usd
    costs = [span[0] + step * (span[1] - span[0]) for step in STEPS]
    rng = np.random.default_rng(seed)
    rows = all_policies(data, runs, hull, costs, rng)
    best = oracle_quality(data)
    oracle = picked(data.cost_usd, data.oracle).mean()
    return {
        "name": real.name,
        "title": real.title,
        "note": real.note,
        "derived": derive,
        "queries": len(data.query_ids),
        "cost_estimated": evalset.cost_estimated,
        "constants": [[one.model, one.quality / best, one.mean_cost_usd] for one in singles],
        "hull": [one.model for one in hull],
        "hull_qr": [matched_cost_mix(hull, cost).quality / best for cost in costs],
        "costs": costs,
        "oracle": [best, float(oracle)],
        "routability": explored,
        "policies": rows,
        "seconds": time.perf_counter() - start,
    }


def reuse_scores(evalset, workspace, bundle):
    """Take the scores of another set in the workspace that holds the very same texts."""
    if load_scores(evalset, bundle.fingerprint) is not None:
        return
    for info in list_evalsets(workspace):
        other = load_evalset(info.path)
        if bundle.fingerprint in info.scored and texts_digest(other) == texts_digest(evalset):
            found = load_scores(other, bundle.fingerprint)
            facts = load_text_facts(other, bundle.fingerprint)
            save_scores(evalset, bundle.fingerprint, bundle.dimensions, found, facts)
            return


def in_cost_order(data):
    """The pool with its mean realised cost as the static order (for oracle and baselines)."""
    return replace(data, pool=replace(data.pool, cost=data.cost_usd.mean(axis=0)))


def main():
    parser = options_of_sets(__doc__)
    parser.add_argument("--trials", type=int, default=240, help="weight settings per half")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    predictor = default_predictor()
    chosen = [real for real in SETS if not options.only or real.name in options.only]
    with tempfile.TemporaryDirectory() as scratch:
        workspace = options.workspace or Path(scratch)
        results = []
        for real in chosen:
            results.append(
                one_set(
                    real,
                    options.shared,
                    workspace,
                    predictor,
                    trials=options.trials,
                    seed=options.seed,
                )
            )
    if options.json:
        print(json.dumps(results, default=str))
    else:
        text = document(results, predictor.bundle)
        print(text)
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            before = options.out.read_text(encoding="utf-8") if options.out.exists() else ""
            options.out.write_text(text + sections_of_others(before), encoding="utf-8")
        print(", ".join(f"{found['name']} {found['seconds']:.0f} s" for found in results))


if __name__ == "__main__":
    main()
