"""Differences are spelled one way, and nothing is never negative."""

import pytest

from hydra_core.base.spelling import set_usd, short_number, signed
from hydra_core.base.types import Rule
from hydra_core.console.numbers import knob_text
from hydra_core.console.tune.view_learned import Lifted


@pytest.mark.parametrize(
    ("value", "told"),
    [(1.76, "+1.8"), (-0.72, "−0.7"), (0.0, "0.0"), (-0.0, "0.0"), (-0.04, "0.0"), (0.04, "0.0")],
)
def test_a_difference_has_its_sign_unless_it_rounds_to_nothing(value, told):
    assert signed(value) == told


def test_digits_are_as_asked():
    assert (signed(0.4, 0), signed(-12.0, 0), signed(0.004, 2)) == ("0", "−12", "0.00")


def test_a_lift_without_an_interval_says_so():
    assert Lifted("Together", 1.0, -0.5, 2.5).ends == "−0.5 to +2.5 pp"
    assert Lifted("Gain within groups", 1.0, float("nan"), float("nan")).ends == "too few moved"


def test_a_setting_has_no_exponent():
    assert knob_text(Rule.SHORTFALL, 1e-5) == "τ 0.00001"
    assert knob_text(Rule.SHORTFALL, 0.24) == "τ 0.24"
    assert knob_text(Rule.SHORTFALL, 150.0) == "τ 150"
    assert knob_text(Rule.VALUE, 100.0) == "V $100"


def test_amounts_that_are_set_have_no_exponent_and_no_zeros_at_the_end():
    shown = [set_usd(value) for value in (0.02, 0.00001, 1500.0, 12345.6, 100.0, 0.0)]
    assert shown == ["$0.02", "$0.00001", "$1,500", "$12,345.6", "$100", "$0"]
    assert [short_number(value) for value in (0.24, 0.00001, 150.0, 0.0)] == [
        "0.24",
        "0.00001",
        "150",
        "0",
    ]
