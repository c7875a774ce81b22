"""Does the interval of the result hold at a vertex of the hull of fixed mixes?

    python -m benchmarks.quality.kink_coverage [--sets 300] [--queries 500 2000]

Three models; most queries go to the middle one, which is where the hull bends. The true difference
is taken from two million queries. The delta method keeps the hull's segment; the bootstrap picks
the hull anew in every draw (percentile and basic interval). Printed: coverage and mean width.
"""

import argparse

import numpy as np

from hydra_core.replay.fixed_mix import MatchedCost, matched_cost_mix
from hydra_core.replay.metrics import ConstantPolicy, picked, upper_hull
from hydra_core.replay.significance import student_quantile

PRICES = 0.02 * 4.0 ** np.arange(3)
SKILLS = {"soft": (0.0, 0.6, 0.9), "sharp": (0.0, 0.9, 0.95), "flat": (0.0, 0.9, 0.9)}
SHARES = ((0.02, 0.96, 0.02), (0.05, 0.95, 0.0), (0.0, 0.95, 0.05), (0.2, 0.7, 0.1))
DRAWS = 400


def world(rng, n, skills):
    hidden = rng.normal(size=(n, 1))
    quality = (rng.normal(size=(n, 3)) + np.array(skills) > hidden) * 1.0
    return quality, PRICES * np.exp(0.4 * hidden + rng.normal(0, 0.6, (n, 3)))


def policy(rng, quality, shares, skill):
    """Random routes with these shares, leaning by `skill` towards models that resolve the query."""
    weight = np.array(shares) * (1 + skill * (quality - quality.mean(axis=1, keepdims=True)))
    weight /= weight.sum(axis=1, keepdims=True)
    beyond = rng.random((len(quality), 1)) > np.cumsum(weight, axis=1)
    return beyond.sum(axis=1).clip(max=2)


def hull_of(quality, cost):
    points = zip(quality.mean(axis=0).tolist(), cost.mean(axis=0).tolist(), strict=True)
    return upper_hull([ConstantPolicy(str(i), i, 0, q, c) for i, (q, c) in enumerate(points)])


def hull_at(quality, cost, at):
    """(r,) height of each draw's own hull at its own cost: the best single, or pair around it.

    Args:
        quality, cost: (r, m) means of the constants in each draw.
        at: (r,) mean cost of the policy.
    """
    best = np.where(cost <= at[:, None], quality, -np.inf).max(axis=1)
    cheapest = quality[np.arange(len(at)), cost.argmin(axis=1)]
    best = np.where(at < cost.min(axis=1), cheapest, best)
    for i, j in ((i, j) for i in range(quality.shape[1]) for j in range(quality.shape[1])):
        inside = (cost[:, i] <= at) & (at <= cost[:, j]) & (cost[:, i] < cost[:, j])
        spread = np.where(inside, cost[:, j] - cost[:, i], 1.0)
        height = quality[:, i] + (at - cost[:, i]) / spread * (quality[:, j] - quality[:, i])
        best = np.where(inside, np.maximum(best, height), best)
    return best


def intervals(rng, quality, cost, choice):
    """name -> (low, high) of the difference to the hull."""
    n, got, paid = len(choice), picked(quality, choice), picked(cost, choice)
    mix = matched_cost_mix(hull_of(quality, cost), float(paid.mean()))
    against = MatchedCost.of([mix], 3)
    values = against.differences(quality, cost, choice[:, None])[:, 0]
    delta, half = values.mean(), student_quantile(n) * values.std(ddof=1) / np.sqrt(n)
    drawn = rng.multinomial(n, np.full(n, 1 / n), DRAWS) / n
    means = drawn @ np.column_stack([got, paid, quality, cost])
    found = means[:, 0] - hull_at(means[:, 2:5], means[:, 5:8], means[:, 1])
    low, high = np.quantile(found, [0.025, 0.975])
    return {
        "delta": (delta - half, delta + half),
        "percentile": (low, high),
        "basic": (2 * delta - high, 2 * delta - low),
    }


def measure(n, skills, shares, skill, sets):
    rng = np.random.default_rng(1)
    quality, cost = world(rng, 2_000_000, skills)
    choice = policy(rng, quality, shares, skill)
    means = quality.mean(axis=0)[None], cost.mean(axis=0)[None]
    at = picked(cost, choice).mean()
    true = picked(quality, choice).mean() - hull_at(*means, np.array([at]))[0]
    held, widths = {}, {}
    for _ in range(sets):
        quality, cost = world(rng, n, skills)
        found = intervals(rng, quality, cost, policy(rng, quality, shares, skill))
        for name, (low, high) in found.items():
            held.setdefault(name, []).append(low <= true <= high)
            widths.setdefault(name, []).append(high - low)
    return {name: (np.mean(held[name]), 100 * np.mean(widths[name])) for name in held}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--queries", type=int, nargs="+", default=[500, 2_000])
    options = parser.parse_args()
    for n in options.queries:
        for kind, skills in SKILLS.items():
            for shares in SHARES:
                for skill in (0.0, 0.5):
                    found = measure(n, skills, shares, skill, options.sets)
                    listed = ", ".join(
                        f"{name} {100 * held:.1f} % ({width:.2f} pp wide)"
                        for name, (held, width) in found.items()
                    )
                    print(f"{n} queries, {kind} vertex, shares {shares}, skill {skill}: {listed}")


if __name__ == "__main__":
    main()
