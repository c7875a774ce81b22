"""The metrics equal the textbook's, and their intervals hold what they should."""

import json
import time
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from scipy import stats

from hydra_core.lab.evaluate import METRICS, evaluate, reliability, report
from hydra_core.predictor.bundle import Bundle
from tests.predictor.tiny_bundle import make_bundle

D = ("a", "b")


@pytest.fixture
def tiny(tmp_path: Path) -> Bundle:
    return make_bundle(tmp_path / "bundle")


def sample(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 9, (n, 2)) / 10
    scores = np.clip(labels + rng.normal(0, 0.2, (n, 2)), 0, 1).round(2)
    return scores, labels


def test_point_values_equal_scipy_and_numpy() -> None:
    scores, labels = sample(200)
    found = evaluate(scores, labels, D, resamples=0)
    for k, name in enumerate(D):
        x, y = scores[:, k], labels[:, k]
        expected = {
            "pearson": stats.pearsonr(x, y).statistic,
            "spearman": stats.spearmanr(x, y).statistic,
            "mae": np.abs(x - y).mean(),
            "rmse": np.sqrt(((x - y) ** 2).mean()),
            "bias": (x - y).mean(),
            "accuracy": ((x >= 0.5) == (y >= 0.5)).mean(),
            "alpha": krippendorff.alpha([x, y], level_of_measurement="interval"),
        }
        for metric, value in expected.items():
            assert found[metric][name] == pytest.approx(value, abs=1e-12), metric
    assert found["n"] == 200
    assert found["mean"]["mae"] == pytest.approx(np.abs(scores - labels).mean())
    assert "ci" not in found


@pytest.mark.parametrize("n", [3, 17, 400])
def test_alpha_equals_the_krippendorff_package(n: int) -> None:
    scores, labels = sample(n, seed=n)
    expected = krippendorff.alpha([scores[:, 0], labels[:, 0]], level_of_measurement="interval")
    found = evaluate(scores, labels, D, resamples=0)["alpha"][D[0]]
    assert found == pytest.approx(expected, abs=1e-12)


def test_bootstrap_intervals_equal_a_plain_loop() -> None:
    scores, labels = sample(80)
    found = evaluate(scores, labels, D, resamples=4000)["ci"]
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(2000):
        index = rng.integers(0, 80, 80)
        x, y = scores[index, 0], labels[index, 0]
        ranks = np.corrcoef(stats.rankdata(x), stats.rankdata(y))
        drawn.append([np.corrcoef(x, y)[0, 1], ranks[0, 1], np.abs(x - y).mean()])
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    for i, metric in enumerate(["pearson", "spearman", "mae"]):
        assert found[metric]["a"] == pytest.approx([low[i], high[i]], abs=0.02)


def test_dependent_messages_are_drawn_together() -> None:
    """Every message ten times says no more than once; whole clusters keep the interval."""
    rng = np.random.default_rng(3)
    labels = rng.random((60, 2))
    scores = np.clip(labels + rng.normal(0, 0.2, labels.shape), 0, 1)
    ten, unit = (np.repeat(values, 10, axis=0) for values in (scores, np.arange(60)))
    once = evaluate(scores, labels, ("a", "b"))["ci"]["mae"]["mean"]
    wanted = once[1] - once[0]
    for clusters, factor in ((unit, 1.0), (None, 10**-0.5)):
        found = evaluate(ten, np.repeat(labels, 10, axis=0), ("a", "b"), clusters=clusters)
        low, high = found["ci"]["mae"]["mean"]
        assert (high - low) / wanted == pytest.approx(factor, rel=0.15)


def test_intervals_hold_the_point_and_are_reproducible() -> None:
    scores, labels = sample(120)
    one = evaluate(scores, labels, D, resamples=200)
    two = evaluate(scores, labels, D, resamples=200)
    assert one == two
    for metric in METRICS:
        for name in D:
            low, high = one["ci"][metric][name]
            assert low <= one[metric][name] <= high
        assert one["ci"][metric]["mean"][0] <= one["mean"][metric]


def test_a_breakdown_evaluates_each_part_alone() -> None:
    scores, labels = sample(90)
    parts = ["cjk", "english", "other"] * 30
    found = evaluate(scores, labels, D, {"groups": parts}, resamples=0)
    alone = evaluate(scores[1::3], labels[1::3], D, resamples=0)
    assert found["groups"]["english"] == alone
    assert list(found["groups"]) == ["cjk", "english", "other"]


def test_no_spread_has_no_correlation() -> None:
    found = evaluate(np.full((5, 1), 0.3), np.linspace(0, 0.8, 5)[:, None], ("a",), resamples=50)
    assert found["pearson"]["a"] is None
    assert found["spearman"]["a"] is None
    assert found["mae"]["a"] == pytest.approx(0.26)


def test_two_messages_are_too_few() -> None:
    found = evaluate(np.zeros((2, 1)), np.ones((2, 1)), ("a",))
    assert found["n"] == 2
    assert found["pearson"] == {"a": None}


@pytest.mark.parametrize(
    ("scores", "labels"),
    [(np.zeros((3, 2)), np.zeros((3, 1))), (np.zeros((3, 1)), np.zeros((3, 1)))],
)
def test_shapes_must_agree(scores: np.ndarray, labels: np.ndarray) -> None:
    with pytest.raises(ValueError, match="labels"):
        evaluate(scores, labels, D)


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        evaluate(np.full((3, 2), np.nan), np.zeros((3, 2)), D)


def test_reliability_has_bins_of_equal_count() -> None:
    scores, labels = sample(100)
    found = reliability(scores[:, 0], labels[:, 0], bins=7)
    assert found.count.sum() == 100
    assert np.ptp(found.count) <= 1
    assert np.all(np.diff(found.score) >= 0)
    assert np.average(found.label, weights=found.count) == pytest.approx(labels[:, 0].mean())
    assert len(reliability(scores[:3, 0], labels[:3, 0]).count) == 3


def test_the_report_is_json_and_names_its_bundle(tiny: Bundle) -> None:
    rng = np.random.default_rng(0)
    scores, labels = rng.random((12, 4)), rng.random((12, 4))
    found = report(tiny, scores, labels, {"groups": ["english"] * 12}, resamples=20)
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again["bundle"]["fingerprint"] == tiny.fingerprint
    assert set(again["pearson"]) == set(tiny.dimensions)
    assert again["groups"]["english"]["n"] == 12


def test_a_thousand_resamples_of_a_thousand_messages_take_seconds() -> None:
    scores, labels = sample(1000)
    start = time.perf_counter()
    evaluate(scores, labels, D, resamples=1000)
    assert time.perf_counter() - start < 5
