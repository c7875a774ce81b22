"""Probes are there in every language, and wordings of a task are compared with the English."""

import numpy as np
import pytest

from benchmarks.quality.robustness import parallel_consistency
from hydra_core.lab.robustness.attack import load_probes
from hydra_core.predictor.languages import LANGUAGES


def cheapest_above(requirements: np.ndarray) -> np.ndarray:
    """Model 0 up to .3, model 2 up to .6, else model 3."""
    return np.array([0, 2, 3])[np.digitize(requirements[:, 0], [0.3, 0.6])]


def test_the_probes_are_eight_families_in_sixteen_languages() -> None:
    probes = load_probes()
    paper = {"keywords", "concerns", "role", "jargon", "assertion"}
    assert set(probes) == paper | {"authority", "stakes", "effort"}
    for suffixes in probes.values():
        assert set(suffixes) == set(LANGUAGES)
        assert len(set(suffixes.values())) == 16


def test_consistency_measures_spread_and_agreement() -> None:
    requirements = np.array([[0.1, 0.2], [0.3, 0.2], [0.7, 0.5], [0.8, 0.5], [0.1, 0.0]])
    labels = np.array([[0.1, 0.2], [0.1, 0.2], [0.8, 0.5], [0.8, 0.5], [0.1, 0.0]])
    found = parallel_consistency(
        requirements,
        ["a", "a", "b", "b", "c"],
        ["en", "fr", "en", "ja", "th"],
        cheapest_above,
        labels,
    )
    assert found.tasks == 2
    expected = [(np.std([0.1, 0.3], ddof=1) + np.std([0.7, 0.8], ddof=1)) / 2, 0.0]
    assert found.std == pytest.approx(expected)
    assert found.mean_std == pytest.approx(np.mean(expected))
    assert found.pearson == pytest.approx(
        [np.corrcoef(requirements[:, k], labels[:, k])[0, 1] for k in range(2)]
    )
    assert found.by_language == {"fr": 0.0, "ja": 1.0}
    assert found.agreement == 0.5


def test_without_labels_or_english_there_is_nothing_to_compare() -> None:
    found = parallel_consistency(np.full((2, 1), 0.2), ["a", "a"], ["fr", "de"], cheapest_above)
    assert np.isnan(found.pearson).all()
    assert np.isnan(found.agreement)
    assert found.by_language == {}
