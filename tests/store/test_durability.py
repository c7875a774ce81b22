"""Short runs of what `benchmarks/speed/store.py` does at length."""

import random

import pytest

from benchmarks.speed.store_load import kill_rounds, soak

pytestmark = pytest.mark.slow


def test_killed_at_any_moment_no_acknowledged_revision_is_lost(url):
    text = url.render_as_string(hide_password=False)
    kept, promised = kill_rounds(text, rounds=5, rng=random.Random(7))
    assert kept >= promised > 0


def test_editors_at_once_lose_nothing_and_are_in_form_of_conflicts(url):
    report = soak(url.render_as_string(hide_password=False), editors=3, seconds=1.5)
    assert report["lost"] == 0
    assert report["published"] >= 3
