"""Simulated eval sets whose truth is known: outcomes, costs, requirements and text vectors."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from hydra_core.base.types import Pool
from hydra_core.choosing.material import Material
from hydra_core.outcome_model.heads import Messages
from hydra_core.replay.replay import ReplayData

PRICES = 0.02 * 4.0 ** np.arange(4)
SKILLS = np.array([0.0, 0.6, 0.9, 1.1])
DIMENSIONS = 4
WIDTH = 8
COUNTS = 6


def simulated(rng, n, m, clusters=None, follow=0.0):
    """Outcomes and costs that depend on a hidden difficulty.

    Args:
        clusters: (n,) cluster numbers; members share difficulty and requirements.
        follow: How closely the requirements follow the gain of the second model; 0 is noise.
    """
    unit = np.arange(n) if clusters is None else clusters
    hidden = rng.normal(size=(unit.max() + 1, 1))[unit]
    taste = rng.normal(size=(unit.max() + 1, m))[unit] if clusters is not None else 0.0
    own = rng.normal(size=(n, m))
    noise = own if clusters is None else 0.9 * taste + np.sqrt(1 - 0.9**2) * own
    quality = (noise + SKILLS[:m] > hidden).astype(np.float64)
    cost = PRICES[:m] * np.exp(0.4 * hidden + rng.normal(0, 0.6, (n, m)))
    needs = rng.normal(size=(unit.max() + 1, DIMENSIONS))[unit]
    needs = needs + follow * (quality[:, 1:2] - quality[:, 0:1])
    return ReplayData(
        query_ids=tuple(map(str, range(n))),
        languages=("en",) * n,
        requirements=1 / (1 + np.exp(-needs)),
        quality=quality,
        cost_usd=cost,
        pool=Pool(
            tuple(f"m{i}" for i in range(m)),
            np.linspace(0.2, 0.8, m)[:, None] * np.ones((1, DIMENSIONS)),
            PRICES[:m],
            np.ones(DIMENSIONS),
        ),
        rows=np.arange(n),
        clusters=clusters,
    )


def fixed_tau(data):
    """The tau at which half the queries leave the cheapest model: known before any outcome."""
    return float(np.median(data.shortfalls()[:, 0]))


def clusters_of(n, clustered):
    return np.arange(n) // 4 if clustered else None


def material(data, seed):
    """The same set as Learn reads it: vectors and counts are noise, shared within a cluster."""
    rng = np.random.default_rng([seed, 1])
    n = len(data.rows)
    unit = np.arange(n) if data.clusters is None else data.clusters
    vectors = rng.normal(size=(unit.max() + 1, WIDTH))[unit].astype(np.float16)
    counts = rng.integers(1, 400, (unit.max() + 1, COUNTS))[unit]
    return Material(
        evalset=SimpleNamespace(queries=pd.DataFrame({"query_id": data.query_ids})),
        models=data.pool.ids,
        together=len(data.pool.ids),
        messages=Messages(data.requirements, vectors, counts),
        quality=data.quality,
        cost_usd=data.cost_usd,
        input_tokens=None,
        output_tokens=None,
        rows=data.rows,
        clusters=unit,
        others=np.empty((n, 0)),
    )
