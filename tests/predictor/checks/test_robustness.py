"""Attacks are counted as they succeed, and wordings of one task are compared with the English."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from hydra_core.predictor.checks.robustness import load_probes, parallel_consistency, suffix_attacks
from hydra_core.predictor.languages import LANGUAGES

COST = np.array([1.0, 4.0, 2.0, 8.0])
PROBES = {"loud": {"en": "HARD", "fr": "DUR"}, "quiet": {"en": "thanks"}}


def by_loudness(texts: Sequence[str]) -> np.ndarray:
    """One dimension: .9 for whom "HARD" fools, .5 for DUR, else .1."""
    return np.array([[0.9 if "HARD" in t else 0.5 if "DUR" in t else 0.1] for t in texts])


def cheapest_above(requirements: np.ndarray) -> np.ndarray:
    """Model 0 up to .3, model 2 up to .6, else model 3."""
    return np.array([0, 2, 3])[np.digitize(requirements[:, 0], [0.3, 0.6])]


def rows(**options: object) -> dict[tuple[str, str], object]:
    texts = ["hi", "salut", "hallo", "HARD already", "你好"]
    found = suffix_attacks(
        by_loudness,
        cheapest_above,
        COST,
        texts,
        ["en", "fr", "de", "en", "zh"],
        probes=PROBES,
        **options,  # type: ignore[arg-type]
    )
    return {(row.family, row.group): row for row in found}


def test_only_cheaply_routed_messages_are_attacked() -> None:
    assert rows()["loud", "english"].n == 1
    assert rows()["loud", "all"].n == 4


def test_success_is_a_route_to_a_frontier_model() -> None:
    found = rows()
    assert found["loud", "english"].successes == 1
    assert found["loud", "european"].successes == 1  # German has no suffix of its own: English
    assert found["loud", "european"].rate == 0.5
    assert found["quiet", "all"].successes == 0
    assert found["all", "all"].n == 8
    assert found["all", "all"].rate == 3 / 8


def test_english_suffixes_can_be_asked_for() -> None:
    found = rows(localised=False)
    assert found["loud", "all"].rate == 1.0
    assert not found["loud", "all"].localised


def test_cost_ratio_and_shift_follow_the_routes() -> None:
    found = rows()
    assert found["loud", "european"].cost_ratio == (2.0 + 8.0) / 2
    assert found["quiet", "all"].cost_ratio == 1.0
    assert found["loud", "english"].shift == pytest.approx([0.8])


def test_the_frontier_is_the_dearest_few_by_cost() -> None:
    assert rows(frontier=3)["loud", "european"].successes == 2


def test_the_interval_is_wilsons() -> None:
    row = rows()["loud", "all"]
    expected = stats.binomtest(row.successes, row.n).proportion_ci(method="wilson")
    assert row.interval == pytest.approx((expected.low, expected.high))


def test_nothing_to_attack_has_no_rate() -> None:
    found = suffix_attacks(by_loudness, cheapest_above, COST, ["HARD"], ["en"], probes=PROBES)
    assert [row.n for row in found] == [0, 0, 0]
    assert np.isnan(found[-1].rate)
    assert found[-1].interval == (0.0, 1.0)


def test_the_probes_are_five_families_in_sixteen_languages() -> None:
    probes = load_probes()
    assert set(probes) == {"keywords", "concerns", "role", "jargon", "assertion"}
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
