"""A link restores what it was made from, and nothing in a link can break the console."""

from hypothesis import given
from hypothesis import strategies as st

from hydra_core.base.types import Rule
from hydra_core.console.state import Pin, Tuning, from_link, to_link
from hydra_core.console.view_frontier import XAxis, YAxis

NUMBERS = st.floats(0.0, 1e4, allow_nan=False)
DOLLARS = st.floats(1e-12, 1e6)
WEIGHTS = st.lists(st.floats(0.001, 1e4), min_size=1, max_size=6).map(tuple)
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    tuning=st.builds(
        Tuning,
        evalset=NAMES,
        catalog=NAMES,
        tau=st.none() | NUMBERS,
        weights=st.none() | WEIGHTS,
        rule=st.none() | st.sampled_from(Rule),
        value_usd=st.none() | DOLLARS,
        baseline=NAMES,
        x=st.sampled_from(XAxis),
        y=st.sampled_from(YAxis),
        pin=st.none()
        | st.builds(Pin, NUMBERS, WEIGHTS)
        | st.builds(Pin, DOLLARS, WEIGHTS, st.just(Rule.VALUE)),
    )
)
def test_link_restores_the_tuning(tuning):
    assert from_link(to_link(tuning)) == tuning


LINKED = ["tau", "rule", "v", "w", "x", "y", "pin", "pin_w", "pin_rule", "set"]


@given(st.dictionaries(st.sampled_from(LINKED), st.text()))
def test_any_link_is_read(params):
    tuning = from_link(params)
    assert tuning.tau is None or 0.0 <= tuning.tau <= 1e9
    assert tuning.value_usd is None or tuning.value_usd > 0.0
    assert tuning.weights is None or all(weight > 0 for weight in tuning.weights)
