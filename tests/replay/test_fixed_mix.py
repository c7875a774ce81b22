"""A model that a mixture of the others beats is found; one that is merely unlucky is not."""

import numpy as np
from scipy import stats

from hydra_core.base.types import Pool
from hydra_core.replay.fixed_mix import under_hull
from hydra_core.replay.replay import ReplayData


def data_of(quality, cost):
    n, m = quality.shape
    pool = Pool(tuple("abcd"[:m]), np.ones((m, 1)), np.arange(m) + 1.0, np.ones(1))
    return ReplayData(
        tuple(map(str, range(n))), ("en",) * n, np.zeros((n, 1)), quality, cost, pool, np.arange(n)
    )


def made(rates, costs, n=2000, seed=0):
    rng = np.random.default_rng(seed)
    quality = (rng.random((n, len(rates))) < np.asarray(rates)).astype(float)
    return data_of(quality, np.tile(np.asarray(costs, dtype=float), (n, 1)))


def test_a_dearer_and_worse_model_is_found_with_its_mixture():
    (found,) = under_hull(made([0.5, 0.9, 0.6], [1, 2, 3]))
    assert found.model == "c"
    assert str(found.mix) == "always b"
    assert 0.25 < found.gap < 0.35


def test_a_model_between_two_others_is_held_against_their_mixture():
    (found,) = under_hull(made([0.2, 0.3, 0.9], [1, 2, 3]))
    assert found.model == "b"
    assert abs(found.mix.strong_share - 0.5) < 1e-9
    # constant costs: the gap is a plain paired mean, tested by hand
    data = made([0.2, 0.3, 0.9], [1, 2, 3])
    gaps = 0.5 * data.quality[:, 0] + 0.5 * data.quality[:, 2] - data.quality[:, 1]
    by_hand = stats.ttest_1samp(gaps, 0.0, alternative="greater").pvalue
    assert np.isclose(found.p_value, 2 * by_hand, rtol=1e-6)  # Holm over two testable models


def test_models_on_the_hull_are_left_alone():
    assert under_hull(made([0.3, 0.6, 0.8], [1, 2, 4])) == ()


def test_chance_alone_rarely_finds_one():
    sets = [made([0.6, 0.6, 0.6], [1, 1, 1], n=200, seed=seed) for seed in range(100)]
    assert sum(bool(under_hull(one)) for one in sets) <= 12
