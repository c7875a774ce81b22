"""Small real replay data."""

import numpy as np
import pytest

from hydra_core.base.types import Pool
from hydra_core.replay.replay import ReplayData


def make_data(n=200, m=3, k=4, seed=0, *, signal=1.0, clusters=None):
    """Replay data with a real relation between requirement and outcome; `signal` 0 removes it."""
    rng = np.random.default_rng(seed)
    capabilities = np.linspace(0.2, 0.8, m)[:, None] * np.ones((1, k))
    requirements = rng.random((n, k))
    hidden = signal * requirements.mean(axis=1) + (1 - signal) * rng.random(n)
    chance = 1 / (1 + np.exp(-8 * (capabilities.mean(axis=1)[None, :] - hidden[:, None])))
    return ReplayData(
        query_ids=tuple(f"q{i}" for i in range(n)),
        languages=tuple(("en", "de")[i % 2] for i in range(n)),
        requirements=requirements,
        quality=(rng.random((n, m)) < chance).astype(float),
        cost_usd=rng.lognormal(np.log(0.01 * 4.0 ** np.arange(m)), 0.5, size=(n, m)),
        pool=Pool(
            ids=tuple(f"m{i}" for i in range(m)),
            capabilities=capabilities,
            cost=4.0 ** np.arange(m),
            weights=np.ones(k),
        ),
        rows=np.arange(n),
        clusters=clusters,
    )


@pytest.fixture
def data():
    return make_data()
