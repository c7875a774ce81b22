"""How often intervals of a policy's value from a log hold the truth, in simulated logs.

    python -m benchmarks.quality.log_values [--logs 500] [--n 600 2400] [--share 0.1]

Five models whose success depends on the message. The log routes by difficulty, explores a share.
`open` explores among all models (serve --explore-all): the estimate is doubly robust. `floor`
explores only models whose success it holds above a floor: part of the other policies traffic has no
support, and bounds are given. A value is given only from an effective size of 100 on, which depends
on the probabilities alone.
"""

import argparse

import numpy as np

from hydra_core.live.off_policy import (
    LoggedOutcomes,
    NoOverlapError,
    cross_fitted_quality,
    policy_value,
)

MODELS = 5
FLOOR = 0.4
#: How much dearer (or cheaper) the other policies route than the log.
KNOBS = (0.1, -0.2, 0.4)
_SLOPES = np.array(
    [[0.9, 0.5, 0.0], [0.7, 0.3, 0.3], [0.5, 0.2, 0.1], [0.3, 0.1, 0.1], [0.1, 0.0, 0.2]]
)
_LEVELS = np.array([-0.7, -0.2, 0.3, 0.8, 1.2])
_CUTS = np.array([-0.8, -0.2, 0.4, 1.0])


def world(rng, n):
    """(n, 3) features and (n, m) chances of success."""
    features = rng.normal(size=(n, 3))
    return features, 1 / (1 + np.exp(-(features @ _SLOPES.T + _LEVELS)))


def routes(features, knob):
    """(n,) the harder the message, the dearer the model."""
    return np.digitize(features[:, 0], _CUTS + knob)


def one_hot(choice):
    """(n, m) of a deterministic policy."""
    return np.eye(MODELS)[choice]


def simulated(rng, n, share, floor):
    """A log and its features; models below the floor are not explored."""
    features, success = world(rng, n)
    chosen = one_hot(routes(features, 0.0))
    able = (success >= floor) | (chosen > 0)
    chances = (1 - share) * chosen + share * able / able.sum(axis=1, keepdims=True)
    served = (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    quality = (rng.random(n) < success[np.arange(n), served]).astype(float)
    return features, LoggedOutcomes(served, chances, quality)


def covered(logs, n, share, floor, knob):
    """How many logs gave an answer, and in how many of them it held the truth."""
    rng = np.random.default_rng([17, n, int(1000 * share), int(10 * knob + 20)])
    features, success = world(rng, 400_000)
    truth = (one_hot(routes(features, knob)) * success).sum(axis=1).mean()
    given = held = 0
    width = []
    for _ in range(logs):
        features, log = simulated(rng, n, share, floor)
        target = one_hot(routes(features, knob))
        try:
            value = policy_value(log, target, cross_fitted_quality(features, log))
        except NoOverlapError:
            continue
        found = value.dr if value.bounds is None else value.bounds
        given += 1
        held += found.lo <= truth <= found.hi
        width.append(found.hi - found.lo)
    return given, held, np.mean(width) if width else np.nan


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--n", type=int, nargs="*", default=[600, 2400])
    parser.add_argument("--share", type=float, default=0.3)
    options = parser.parse_args()
    for kind, floor in (("open", 0.0), ("floor", FLOOR)):
        for n in options.n:
            for knob in KNOBS:
                given, held, width = covered(options.logs, n, options.share, floor, knob)
                said = f"{100 * held / given:.1f} %, width {100 * width:.1f} pp" if given else "-"
                print(f"{kind}, n {n}, knob {knob:+.1f}: {given} given, held in {said}", flush=True)


if __name__ == "__main__":
    main()
