"""Which models resolve which synthetic query: an integer programme over 32 outcome patterns.

The published marginals do not determine the joint outcomes. Of all counts that fit them, those
nearest (in absolute deviation) to a plain one-factor item-response model are taken: a query has a
standard normal difficulty, a model resolves it with a logistic probability of common slope.
"""

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, brentq, milp
from scipy.special import expit

from hydra_core.base.types import FloatArray, IntArray
from sample_data.published import MODELS, N_QUERIES, ORACLE_RESOLVED, RESOLVED, STRONG

__all__ = ["SLOPE", "constraints", "expected_counts", "outcomes", "pattern_counts", "patterns"]

#: Slope of the item-response model; of 1.5, 2, 2.5, 3 and 4 the one that fits the figures best.
SLOPE = 4.0
#: Resolved by at least one of the first k models of the cost order: Mis. of the next row x 500.
UNIONS = {2: 390, 3: 412, 4: 425, 5: ORACLE_RESOLVED}
STRONG_AND_CHEAP = 318
#: Resolved by the strong model and not by this one (McNemar's b).
STRONG_WITHOUT = {1: 50, 2: 38, 4: 37}


def patterns() -> IntArray:
    """(32, 5) every outcome pattern, one bit per model of `MODELS`."""
    return (np.arange(2 ** len(MODELS))[:, None] >> np.arange(len(MODELS))) & 1


def constraints() -> tuple[FloatArray, FloatArray]:
    """(c, 32) coefficients and (c,) totals that the pattern counts must meet exactly."""
    solved = patterns().astype(np.float64)
    rows = [np.ones(len(solved)), *solved.T]
    totals = [float(N_QUERIES), *map(float, RESOLVED)]
    for size, total in UNIONS.items():
        rows.append(solved[:, :size].max(axis=1))
        totals.append(float(total))
    rows.append(solved[:, STRONG] * solved[:, 0])
    totals.append(float(STRONG_AND_CHEAP))
    for model, total in STRONG_WITHOUT.items():
        rows.append(solved[:, STRONG] * (1.0 - solved[:, model]))
        totals.append(float(total))
    return np.array(rows), np.array(totals)


def expected_counts() -> FloatArray:
    """(32,) pattern counts the item-response model expects at the published resolution rates."""
    nodes, mass = np.polynomial.hermite.hermgauss(60)
    ability, mass = nodes * np.sqrt(2.0), mass / np.sqrt(np.pi)

    def probability(rate: float) -> FloatArray:
        def excess(easiness: float) -> float:
            return float(mass @ expit(SLOPE * ability + easiness)) - rate

        return np.asarray(expit(SLOPE * ability + brentq(excess, -30.0, 30.0)))

    chance = np.array([probability(count / N_QUERIES) for count in RESOLVED])
    bits = patterns()[:, :, None]
    return np.asarray(N_QUERIES * np.where(bits == 1, chance, 1.0 - chance).prod(axis=1) @ mass)


def pattern_counts() -> IntArray:
    """(32,) whole counts that meet every constraint, nearest to `expected_counts`.

    Raises:
        RuntimeError: The solver found no solution.
    """
    rows, totals = constraints()
    expected = expected_counts()
    size = len(expected)
    unit = np.eye(size)
    # Minimise sum |count - expected|; the small slope on the index makes the optimum unique.
    price = np.concatenate([1e-4 * np.arange(size), np.ones(size)])
    solution = milp(
        price,
        constraints=[
            LinearConstraint(np.hstack([rows, np.zeros((len(totals), size))]), totals, totals),
            LinearConstraint(np.hstack([unit, -unit]), -np.inf, expected),
            LinearConstraint(np.hstack([unit, unit]), expected, np.inf),
        ],
        integrality=np.concatenate([np.ones(size), np.zeros(size)]),
        bounds=Bounds(0.0, N_QUERIES),
        options={"mip_rel_gap": 0.0},
    )
    if solution.x is None:
        raise RuntimeError(f"no outcome pattern counts fit the published figures: {solution}")
    return np.asarray(np.rint(solution.x[:size]), dtype=np.intp)


def outcomes(rng: np.random.Generator) -> FloatArray:
    """(500, 5) outcomes 0 or 1 in a random order of queries."""
    rows = np.repeat(patterns(), pattern_counts(), axis=0)
    return rows[rng.permutation(len(rows))].astype(np.float64)
