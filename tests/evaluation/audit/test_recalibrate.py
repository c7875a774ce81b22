"""Recalibration: cross-fitted, monotone, and a bundle of its own."""

import numpy as np
import pytest

from hydra_core.errors import BundleError
from hydra_core.evaluation.audit.recalibrate import (
    apply_curve,
    fit_curve,
    recalibrate,
    write_recalibrated,
)
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from tests.predictor.tiny_bundle import make_bundle


def test_a_constant_offset_is_taken_out_on_queries_not_fitted_on():
    rng = np.random.default_rng(1)
    human = rng.random((400, 2)) * 0.8
    scores = np.clip(0.6 * human + rng.normal(scale=0.03, size=human.shape), 0, 1)
    found = recalibrate(scores, human, rng=rng)
    assert (found.after < 0.5 * found.before).all()
    assert np.abs(found.bias_after).max() < 0.01
    for curve in found.curves:
        assert (np.diff(curve.y) >= 0).all()
        assert (np.diff(curve.x) > 0).all()


def test_noise_gains_nothing():
    rng = np.random.default_rng(2)
    human = rng.random((200, 1))
    found = recalibrate(rng.random((200, 1)), human, rng=rng)
    level = np.abs(human - human.mean()).mean()
    assert found.after[0] > 0.95 * level


def test_too_few_ratings_are_refused():
    with pytest.raises(BundleError, match="too few"):
        recalibrate(np.zeros((5, 1)), np.zeros((5, 1)), rng=np.random.default_rng(0))


def test_the_new_bundle_scores_through_the_curve(tmp_path):
    make_bundle(tmp_path / "old")
    old = load_bundle(tmp_path / "old")
    texts = [f"text number {i} {'with much more to say ' * (i % 9)}" for i in range(60)]
    scores = Predictor(old).predict_batches(texts).requirements
    curves = tuple(fit_curve(scores[:, k], scores[:, k] ** 0.5) for k in range(scores.shape[1]))
    new = write_recalibrated(old, curves, scores, tmp_path / "new", note="test")
    assert new.fingerprint != old.fingerprint
    expected = np.column_stack([apply_curve(c, scores[:, k]) for k, c in enumerate(curves)])
    found = Predictor(new).predict_batches(texts).requirements
    assert found == pytest.approx(expected, abs=1e-5)


def test_scores_with_a_wide_gap_have_a_finite_curve():
    """A knot in the gap between two clumps of scores would be the mean of nothing."""
    scores = np.concatenate([np.zeros(10), np.linspace(0.9, 1.0, 10)])
    curve = fit_curve(scores, np.linspace(0.0, 1.0, 20))
    assert np.isfinite([*curve.x, *curve.y]).all()
