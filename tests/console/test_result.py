"""A result is a title and at most two sentences; the rest stands behind Details."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hydra_core.base.types import Rule, Selection
from hydra_core.console.view_result import answer, details, next_step
from hydra_core.replay.matched_cost import Mix
from hydra_core.replay.metrics import ConstantPolicy
from hydra_core.replay.significance import Interval
from hydra_core.replay.verdict import Verdict

CHEAP = ConstantPolicy("small-1.5", 0, 50, 0.5, 0.001)
STRONG = ConstantPolicy("large-4.0", 1, 90, 0.9, 0.01)
WORSE = Verdict(
    delta=-0.041,
    interval=Interval(-0.041, -0.05, -0.03),
    simultaneous=Interval(-0.041, -0.058, -0.023),
    selection=Selection.LOOKED,
    moved=80,
    independent=100,
    constant=Mix(CHEAP, STRONG, 0.2, 0.704, 0.0013),
    quality=0.664,
    mean_cost_usd=0.0013,
)
BETTER = replace(
    WORSE, delta=0.02, interval=Interval(0.02, 0.01, 0.03),
    simultaneous=Interval(0.02, 0.005, 0.035), quality=0.724,
)  # fmt: skip
EVEN = replace(
    WORSE, delta=0.01, interval=Interval(0.01, -0.01, 0.03),
    simultaneous=Interval(0.01, -0.02, 0.04),
)  # fmt: skip


def test_it_leads_with_the_answer_then_the_number_then_what_to_do():
    shown = answer(WORSE)
    assert shown.title == "A fixed mix of models does better here"
    assert shown.text == (
        "Sending 80 % to small-1.5 and 20 % to large-4.0 costs the same and reaches 70.4 % "
        "quality, against 66.4 % with the router (−4.1 points, 95 % interval −5.8 to −2.3)."
    )
    assert next_step(WORSE) == "Serve that mix, or change the weights or the pool."


@pytest.mark.parametrize("verdict", [WORSE, BETTER, EVEN])
def test_with_what_to_do_it_is_at_most_two_sentences(verdict):
    text = f"{answer(verdict).text} {next_step(verdict)}"
    assert len(re.findall(r"[.?!](?= [A-Z]|$)", text)) <= 2


def test_it_says_better_and_no_measurable_difference():
    assert answer(BETTER).title == "Routing helps here"
    assert answer(EVEN).title == "No measurable difference from a fixed mix"
    assert "small-1.5" not in next_step(EVEN)


def test_a_result_that_hangs_on_models_without_outcomes_is_not_known():
    shown = answer(replace(EVEN, unknown=0.2))
    assert shown.title == "The result is not known"
    assert "20.0 % of the queries" in shown.text
    assert "−2.0 to +4.0 points" in shown.text


def test_details_say_which_interval_holds_and_name_the_knob_that_was_picked():
    said = details(WORSE, Rule.VALUE)
    assert said.startswith("V was picked on these queries, so the interval covers the whole curve.")
    assert "80 of 100 independent queries go elsewhere" in said
    fixed = details(replace(WORSE, selection=Selection.FIXED), Rule.SHORTFALL)
    assert fixed.startswith("The setting was fixed beforehand")
