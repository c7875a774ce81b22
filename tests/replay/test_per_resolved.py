"""Cost per resolved query: one function, the same figure wherever it is shown."""

import math

import numpy as np
import pandas as pd
import pytest

from hydra_core.live.traffic import Traffic, cost_per_resolved
from hydra_core.replay.evaluation import _metrics
from hydra_core.replay.metrics import evaluate_choice
from hydra_core.replay.significance import per_resolved
from tests.replay.conftest import make_data


def test_it_is_cost_over_quality_with_the_interval_of_a_ratio():
    cost, quality = np.array([1.0, 3.0, 2.0, 2.0]), np.array([1.0, 0.0, 1.0, 0.0])
    found = per_resolved(cost, quality)
    assert found.value == pytest.approx(4.0)
    assert 0 <= found.lo < 4.0 < found.hi


def test_without_a_resolved_query_there_is_no_such_cost():
    found = per_resolved(np.ones(3), np.zeros(3))
    assert math.isnan(found.value)
    assert found.reason == "no query is resolved"


def test_nineteen_of_twenty_intervals_hold_the_truth():
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        quality = (rng.random(400) < 0.4).astype(float)
        cost = rng.exponential(0.01 + 0.02 * quality)
        found = per_resolved(cost, quality)
        held += found.lo <= 0.018 / 0.4 <= found.hi
    assert 0.91 <= held / 300 <= 0.98


def test_metrics_and_report_say_the_same():
    data = make_data()
    found = evaluate_choice(data, np.zeros(len(data.rows), dtype=int))
    expected = data.cost_usd[:, 0].sum() / data.quality[:, 0].sum()
    assert found.per_resolved_usd.value == pytest.approx(expected)
    assert _metrics(found)["per_resolved_usd"] == found.per_resolved_usd.value


def test_live_counts_rated_answers_whose_cost_is_known():
    rows = pd.DataFrame(
        {
            "quality": [1.0, 0.0, None, 1.0],
            "cost_usd": [0.02, 0.04, 0.5, None],
            "decision_id": list("abcd"),
            "conversation_id": None,
        }
    )
    found = cost_per_resolved(Traffic(rows, np.arange(4), 0, 0))
    assert found is not None
    assert (found[0].value, found[1]) == (pytest.approx(0.06), 2)
