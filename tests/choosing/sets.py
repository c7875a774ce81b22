"""Small sets of outcomes in which the requirements predict success, or nothing does."""

import numpy as np

from hydra_core.choosing.material import Outcomes

MODELS = ("cheap", "middle", "strong")


def outcomes(n=1_500, *, seed=0, signal=1.0, shuffled=False, tokens=False):
    """Three models on two dimensions; the cheap one fails where the first requirement is high.

    Args:
        signal: 0 leaves success independent of the requirements.
        shuffled: Outcomes of another query: nothing predicts anything.
    """
    rng = np.random.default_rng(seed)
    requirements = rng.beta(1.2, 2.5, (n, 2))
    hard = requirements[:, 0] > 0.35
    easy = np.array([0.88, 0.9, 0.92])
    weak = np.array([0.25, 0.6, 0.9])
    chance = np.where(hard[:, None], easy + signal * (weak - easy), easy)
    quality = (rng.random((n, 3)) < chance).astype(float)
    written = rng.lognormal(5.0, 0.3, (n, 1)) * np.ones(3)
    read = np.full((n, 3), 100.0)
    cost = 1e-6 * (read * [0.1, 1.0, 5.0] + written * [0.4, 4.0, 20.0])
    if shuffled:
        order = rng.permutation(n)
        quality, cost, written = quality[order], cost[order], written[order]
    return Outcomes(
        MODELS,
        requirements,
        quality,
        cost,
        np.arange(n),
        read if tokens else None,
        written if tokens else None,
    )


PRICES = {"cheap": (0.1, 0.4), "middle": (1.0, 4.0), "strong": (5.0, 20.0)}
