"""Is the verdict calibrated? Simulated eval sets with no real difference, and with a known one.

    python -m benchmarks.quality.verdict_calibration [--sets 400] [--queries 500] [--json]

The models' outcomes share the query's hidden difficulty, and all of them lie on the hull. The
router that is judged sends a share of the queries from the cheapest model to the next one:
- blind: at random, so that it is exactly the matched-cost mixture (no real difference);
- tuned: blind scores, but tau cross-fitted for a quality on one half and used on the other;
- skilled: with a bias towards queries only the dearer one resolves, set so that the mean gain
  over the mixture is two standard errors of the verdict's own delta.
Costs are heavy-tailed and correlate with difficulty, as real ones do.
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from hydra_core.evaluation.replay.operating_point import cheapest_with_quality, cross_fit
from hydra_core.evaluation.replay.replay import ReplayData
from hydra_core.evaluation.replay.verdict import VerdictLabel, verdict
from hydra_core.evaluation.significance import wilson
from hydra_core.types import Pool

TARGET_FALSE, TARGET_POWER = 0.03, 0.45
PRICES = 0.02 * 4.0 ** np.arange(4)
SKILLS = np.array([0.0, 0.6, 0.9, 1.1])


def simulated(rng, n, m):
    """Outcomes and costs that depend on a hidden difficulty which the requirements do not show."""
    hidden = rng.normal(size=(n, 1))
    quality = (rng.normal(size=(n, m)) + SKILLS[:m] > hidden).astype(np.float64)
    cost = PRICES[:m] * np.exp(0.4 * hidden + rng.normal(0, 0.6, (n, m)))
    return ReplayData(
        query_ids=tuple(map(str, range(n))),
        languages=("en",) * n,
        requirements=rng.random((n, 1)),
        quality=quality,
        cost_usd=cost,
        pool=Pool(
            tuple(f"m{i}" for i in range(m)),
            np.linspace(0.1, 0.9, m)[:, None],
            PRICES[:m],
            np.ones(1),
        ),
        rows=np.arange(n),
    )


def blind(rng, data, share):
    """A random share to the dearer model."""
    return np.where(rng.random(len(data.rows)) < share, 1, 0)


def tuned(rng, data):
    """Blind scores, tau cross-fitted for a quality between the two models'."""
    wanted = float(data.quality[:, :2].mean())

    def aim(half, curve):
        reach = min(wanted, float(curve.quality.max()))
        return cheapest_with_quality(curve, reach).tau

    return cross_fit(data, aim, rng=rng).verdict


def skilled(rng, data, share, bias):
    """A share to the dearer model; queries only it resolves are likelier to go."""
    gain = data.quality[:, 1] - data.quality[:, 0]
    return np.where(rng.random(len(data.rows)) < share * (1 + bias * gain), 1, 0)


def label_and_z(data, choice):
    found = verdict(data, choice)
    half = (found.interval.hi - found.interval.lo) / 2 / 1.96
    return found.label, found.delta / half if half > 0 else 0.0


def bias_for(rng, n, m, share, wanted, sets=200):
    """The bias whose mean delta is `wanted` standard errors, by bisection on fresh sets."""
    low, high = 0.0, 1.0
    worlds = [simulated(rng, n, m) for _ in range(sets)]
    for _ in range(12):
        middle = (low + high) / 2
        z = np.mean([label_and_z(data, skilled(rng, data, share, middle))[1] for data in worlds])
        low, high = (middle, high) if z < wanted else (low, middle)
    return (low + high) / 2


def rate(labels):
    hits = sum(label is VerdictLabel.BEATS for label in labels)
    found = wilson(hits, len(labels))
    return {"beats": hits, "sets": len(labels), "rate": found.value, "lo": found.lo, "hi": found.hi}


def measure(sets, n, m, share, seed):
    rng = np.random.default_rng(seed)
    worlds = [simulated(rng, n, m) for _ in range(sets)]
    bias = bias_for(rng, n, m, share, 2.0)
    some = [label_and_z(data, skilled(rng, data, share, bias)) for data in worlds]
    return {
        "queries": n,
        "models": m,
        "share": share,
        "no_difference": rate([label_and_z(d, blind(rng, d, share))[0] for d in worlds]),
        "no_difference_tuned": rate([tuned(rng, data).label for data in worlds]),
        "two_standard_errors": rate([label for label, _ in some]),
        "mean_z": float(np.mean([z for _, z in some])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--queries", type=int, nargs="+", default=[200, 500, 2000])
    parser.add_argument("--models", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--shares", type=float, nargs="+", default=[0.2, 0.5])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    cases = [(n, m, s) for n in options.queries for m in options.models for s in options.shares]
    rows = [measure(options.sets, n, m, share, options.seed) for n, m, share in cases]
    if options.json:
        print(json.dumps(rows))
        return
    print(f'"beats" said on {options.sets} simulated sets each, in % (95 % interval):')
    print(f"{'queries':>7} {'models':>6} {'share':>5} {'no difference':>18}", end=" ")
    print(f"{'same, tau tuned':>18} {'difference of 2 SE':>20} {'mean z':>6}")
    for row in rows:
        keys = ("no_difference", "no_difference_tuned", "two_standard_errors")
        cells = [
            f"{100 * r['rate']:.1f} [{100 * r['lo']:.1f}, {100 * r['hi']:.1f}]"
            for r in (row[key] for key in keys)
        ]
        print(
            f"{row['queries']:>7} {row['models']:>6} {row['share']:>5.2f} {cells[0]:>18}", end=" "
        )
        print(f"{cells[1]:>18} {cells[2]:>20} {row['mean_z']:>6.2f}")
    null = [row[key]["rate"] for row in rows for key in ("no_difference", "no_difference_tuned")]
    least = min(row["two_standard_errors"]["rate"] for row in rows)
    print(f"wanted: at most {TARGET_FALSE:.0%} and at least {TARGET_POWER:.0%}", end="; ")
    print(f"worst found: {max(null):.1%} and {least:.1%}; mean of the nulls {np.mean(null):.1%}")


if __name__ == "__main__":
    main()
