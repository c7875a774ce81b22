"""Differences are spelled one way, and nothing is never negative."""

import pytest

from hydra_core.base.spelling import signed


@pytest.mark.parametrize(
    ("value", "told"),
    [(1.76, "+1.8"), (-0.72, "−0.7"), (0.0, "0.0"), (-0.0, "0.0"), (-0.04, "0.0"), (0.04, "0.0")],
)
def test_a_difference_has_its_sign_unless_it_rounds_to_nothing(value, told):
    assert signed(value) == told


def test_digits_are_as_asked():
    assert (signed(0.4, 0), signed(-12.0, 0), signed(0.004, 2)) == ("0", "−12", "0.00")
