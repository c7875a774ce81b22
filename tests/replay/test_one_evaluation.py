"""One evaluation stands behind every figure of a point."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.types import Selection
from hydra_core.replay.metrics import evaluate_choice
from hydra_core.replay.operating_point import cross_fit
from hydra_core.replay.replay import replay
from hydra_core.replay.verdict import VerdictLabel, verdict
from tests.replay.conftest import make_data


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("clusters", [None, np.arange(300) // 2])
def test_result_and_metrics_of_a_point_have_the_same_quality_and_cost(binary, clusters):
    data = make_data(300, clusters=clusters)
    if not binary:
        data = replace(data, quality=data.quality * np.random.default_rng(1).random((300, 3)))
    for tau in (0.0, 0.1, 0.3, 1.0):
        choice = replay(data, tau)
        metrics, found = evaluate_choice(data, choice), verdict(data, choice, Selection.FIXED)
        assert found.quality == metrics.quality.value
        assert found.mean_cost_usd == metrics.mean_cost_usd.value
        assert not found.cross_fitted
        assert not found.note


def test_cross_fitted_figures_are_one_set_and_say_that_they_differ(data):
    found = cross_fit(data, lambda half, curve: 0.2, rng=np.random.default_rng(0))
    assert found.verdict.cross_fitted
    assert found.verdict.quality == found.metrics.quality.value
    assert found.verdict.mean_cost_usd == found.metrics.mean_cost_usd.value
    assert "cross-fitted" in found.verdict.note
    assert found.verdict.note in found.verdict.details


def test_a_result_is_two_sentences_and_names_the_better_side():
    data = make_data(n=3000, seed=2)
    backwards = np.where(data.requirements.mean(axis=1) > 0.5, 0, 2)
    found = verdict(data, backwards, Selection.FIXED)
    assert found.label is VerdictLabel.WORSE
    assert found.label == "worse"
    assert found.title.endswith("does better here")
    assert not found.title.startswith("The router")
    assert found.comparison.startswith(found.constant.action)
    assert found.text == f"{found.comparison} {found.next}"
    assert "-" not in found.comparison.split("(")[1].split("points")[0]  # a true minus sign
