"""Cost per synthetic query and model: correlated lognormals scaled to the published savings.

The mean of claude-sonnet-4.6 is assumed (the paper prints no absolute cost); every other mean
follows from the CS column. The spreads were chosen so that the paired-bootstrap intervals of CS
come near the published ones: that needs a heavier tail for claude-sonnet-4.6 than for the others.
"""

import numpy as np

from hydra_core.base.types import FloatArray
from sample_data.published import COST_SAVINGS, MODELS, STRONG

__all__ = ["MEAN_STRONG_COST_USD", "costs", "difficulty"]

MEAN_STRONG_COST_USD = 0.45
#: Standard deviation of log cost: claude-sonnet-4.6, the others, and the part all models share.
SIGMA_STRONG, SIGMA_OTHER, SIGMA_SHARED = 1.35, 0.70, 0.60
#: Correlation of the shared part with how many models fail the query.
DIFFICULTY_SHARE = 0.4


def difficulty(quality: FloatArray) -> FloatArray:
    """(n, m) outcomes -> (n,) standardised number of models that fail the query."""
    failed = quality.shape[1] - quality.sum(axis=1)
    return np.asarray((failed - failed.mean()) / failed.std())


def costs(quality: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(n, m) outcomes -> (n, m) USD per query, rounded to a millionth of a dollar."""
    n, m = quality.shape
    noise = rng.standard_normal(n)
    shared = DIFFICULTY_SHARE * difficulty(quality) + np.sqrt(1 - DIFFICULTY_SHARE**2) * noise
    sigma = np.full(m, SIGMA_OTHER)
    sigma[STRONG] = SIGMA_STRONG
    own = np.sqrt(sigma**2 - SIGMA_SHARED**2) * rng.standard_normal((n, len(MODELS)))
    drawn = np.exp(SIGMA_SHARED * shared[:, None] + own)
    means = MEAN_STRONG_COST_USD * (1.0 - np.array(COST_SAVINGS))
    return np.asarray(np.round(drawn / drawn.mean(axis=0) * means, 6))
