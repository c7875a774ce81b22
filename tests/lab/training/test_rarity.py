import numpy as np
import pytest

from hydra_core.lab.training.network.fit import rarity_of

LABELS = np.repeat([0.0, 0.2, 0.6], [800, 150, 50])[:, None].astype(np.float32)


def weight_at(label: float, power: float = 0.5) -> float:
    return float(rarity_of(LABELS, power)(np.array([[label]], np.float32))[0, 0])


def test_a_rarer_label_weighs_more_and_the_commonest_one() -> None:
    assert weight_at(0.0) == pytest.approx(1.0)
    assert weight_at(0.0) < weight_at(0.2) < weight_at(0.6)


def test_no_label_weighs_more_than_four_times_the_commonest() -> None:
    assert weight_at(1.0, 2.0) == pytest.approx(4.0)


def test_power_zero_weighs_all_alike() -> None:
    assert {weight_at(label, 0.0) for label in (0.0, 0.2, 0.6, 0.9)} == {1.0}


def test_dimensions_have_weights_of_their_own() -> None:
    other = np.hstack([LABELS, LABELS[::-1] * 0 + 0.6])
    weights = rarity_of(other, 0.5)(np.array([[0.6, 0.6]], np.float32))[0]
    assert weights[1] == pytest.approx(1.0)
    assert weights[0] > 1.5
