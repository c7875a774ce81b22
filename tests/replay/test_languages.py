"""A policy by language: intervals that hold, spreads over shared tasks, a funnel for small ones."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.replay.metrics import by_group, by_language, evaluate_choice, spread
from hydra_core.replay.replay import replay
from tests.replay.conftest import make_data


def with_languages(data, languages, clusters=None):
    return replace(data, languages=tuple(languages), clusters=clusters)


def test_a_slice_is_the_policy_on_its_queries():
    data = make_data(n=300)
    choice = replay(data, 0.3)
    german = next(found for found in by_language(data, choice) if found.name == "de")
    rows = np.flatnonzero(np.asarray(data.languages) == "de")
    alone = evaluate_choice(data.take(rows), choice[rows], baseline="m2")
    assert german.n == 150
    assert (german.qr, german.cs, german.mean_cost_usd) == (
        alone.qr,
        alone.cs,
        alone.mean_cost_usd,
    )
    assert german.strong.value == pytest.approx(alone.shares["m2"])


def test_languages_that_are_alike_seldom_differ():
    alarms = 0
    for seed in range(60):
        data = make_data(n=200, seed=seed)
        alarms += any(found.p_value < 0.05 for found in by_language(data, replay(data, 0.3)))
    assert alarms <= 9


def test_a_language_that_fares_worse_is_found():
    data = make_data(n=600, seed=2)
    worse = np.asarray(data.languages) == "de"
    choice = np.where(worse, 0, 2)
    german = next(found for found in by_language(data, choice) if found.name == "de")
    assert german.difference.hi < 0
    assert german.p_value < 0.001
    (against,) = spread(data, choice)
    assert (against.group, against.reference) == ("european", "english")
    assert against.qr.value == pytest.approx(german.difference.value)
    assert against.cs.lo > 0
    assert against.strong.value == -1.0


def test_groups_gather_languages():
    data = make_data(n=80)
    codes = [("en", "fr", "zh", "ar")[i % 4] for i in range(80)]
    found = by_group(with_languages(data, codes), np.zeros(80, dtype=int))
    assert {s.name: s.n for s in found} == {"english": 20, "european": 20, "cjk": 20, "other": 20}
    assert all(s.small for s in found)


def test_translations_are_compared_task_by_task():
    base = make_data(n=100, seed=3)
    both = base.take(np.repeat(np.arange(100), 2))
    codes = ["en", "fr"] * 100
    paired = with_languages(both, codes, clusters=np.repeat(np.arange(100), 2))
    choice = np.zeros(200, dtype=int)
    (same,) = spread(paired, choice)
    assert same.qr.value == pytest.approx(0, abs=1e-12)
    assert same.qr.hi - same.qr.lo < 1e-9  # equal outcomes: pairing leaves no doubt
    (loose,) = spread(with_languages(both, codes), choice)
    assert loose.qr.hi - loose.qr.lo > 0.1


def test_a_set_without_english_has_no_spread_against_it():
    data = make_data(n=40)
    assert spread(with_languages(data, ["fr", "zh"] * 20), np.zeros(40, dtype=int)) == ()
