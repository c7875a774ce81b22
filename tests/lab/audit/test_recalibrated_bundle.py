"""A recalibrated bundle scores through the curves that were fitted, each message by its script."""

import numpy as np
import pytest

from hydra_core.base.errors import BundleError
from hydra_core.lab.audit.recalibrate import Curves, fit_curve, recalibrate, write_recalibrated
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.languages import script_of
from hydra_core.predictor.onnx_predictor import Predictor
from tests.predictor.tiny_bundle import make_bundle

WORDS = {"latin": "write more about", "cyrillic": "напиши ещё о", "other": "เขียนเพิ่มเติม"}
TEXTS = [
    f"{words} {i * 37} {(words + ' ') * (i % 9)}{'fix bug ' if i % 2 else ''}"
    for words in WORDS.values()
    for i in range(60)
]
SCRIPTS = [script_of(text) for text in TEXTS]
RUSSIAN = np.array(SCRIPTS) == "cyrillic"


@pytest.fixture
def old(tmp_path):
    make_bundle(tmp_path / "old")
    return load_bundle(tmp_path / "old")


def scored(bundle):
    return Predictor(bundle).predict_batches(TEXTS).requirements


def test_the_texts_are_of_three_scripts():
    assert {name: SCRIPTS.count(name) for name in WORDS} == dict.fromkeys(WORDS, 60)


def test_the_new_bundle_scores_through_one_curve_a_dimension(old, tmp_path):
    scores = scored(old)
    curves = Curves(tuple(fit_curve(x, x**0.5) for x in scores.T), ({},) * scores.shape[1])
    new = write_recalibrated(old, curves, scores, tmp_path / "new", note="test", scripts=SCRIPTS)
    assert new.fingerprint != old.fingerprint
    assert new.calibration_by_script == {}
    assert "by_script" not in (new.path / "bundle.yaml").read_text("utf-8")
    assert scored(new) == pytest.approx(curves.through(scores, SCRIPTS), abs=1e-5)


def test_the_new_bundle_scores_as_the_final_curves_by_script(old, tmp_path):
    scores = scored(old)
    human = np.clip(scores**0.8, 0.0, 1.0)
    human[RUSSIAN, 3] = np.clip(human[RUSSIAN, 3] + 0.2, 0.0, 1.0)
    rng = np.random.default_rng(1)
    found = recalibrate(scores, human, scripts=SCRIPTS, rng=rng)
    assert found.curves.by_script[3].keys() == {"cyrillic"}
    new = write_recalibrated(
        old, found.curves, scores, tmp_path / "new", note="test", scripts=SCRIPTS
    )
    expected = found.curves.through(scores, SCRIPTS)
    said = scored(new)
    assert said == pytest.approx(expected, abs=1e-5)
    assert said[RUSSIAN, 3].mean() > scores[RUSSIAN, 3].mean() + 0.1
    low, high = np.quantile(said, [0.05, 0.95], axis=0)
    assert [band.lo for band in new.bands] == pytest.approx(low.tolist(), abs=1e-5)
    assert [band.hi for band in new.bands] == pytest.approx(high.tolist(), abs=1e-5)


def test_recalibrated_again_old_and_new_scripts_keep_their_curves(old, tmp_path):
    """Old curves by script stand below new ones, and new ones below old common ones."""
    scores = scored(old)
    bent = tuple(fit_curve(x, x**0.7) for x in scores.T)
    own = fit_curve(scores[:, 0], scores[:, 0] * 0.5)
    first = Curves(bent, ({"cyrillic": own}, {}, {}, {}))
    once = write_recalibrated(old, first, scores, tmp_path / "1", note="", scripts=SCRIPTS)
    before = scored(once)
    bent = tuple(fit_curve(x, x**1.2) for x in before.T)
    low = fit_curve(before[:, 0], before[:, 0] * 0.8)
    second = Curves(bent, ({"other": low}, {"cyrillic": low}, {}, {}))
    twice = write_recalibrated(once, second, before, tmp_path / "2", note="", scripts=SCRIPTS)
    assert twice.calibration_by_script.keys() == {"cyrillic", "other"}
    assert twice.calibration_by_script["cyrillic"].keys() == set(old.dimensions[:2])
    assert scored(twice) == pytest.approx(second.through(before, SCRIPTS), abs=1e-5)


def test_a_folder_that_is_there_is_left_alone(old, tmp_path):
    curves = Curves((fit_curve(np.arange(9.0), np.arange(9.0)),) * 4, ({},) * 4)
    with pytest.raises(BundleError, match="is there already"):
        write_recalibrated(old, curves, np.zeros((9, 4)), tmp_path / "old", note="")
