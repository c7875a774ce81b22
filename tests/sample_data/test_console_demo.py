"""The demo set is our own tasks word for word, simulated outcomes, and an honest trade-off."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.types import DIMENSIONS
from hydra_core.evalsets.evalset import load_evalset
from sample_data import console_demo
from sample_data.item_response import MODELS

FOLDER = Path("sample_data/console_demo")
CHEAP, STRONG = MODELS.index("gpt-5.4-mini"), MODELS.index("claude-sonnet-4.6")
LANGUAGES = set(
    ["en", "es", "pt", "zh", "fr", "ru", "vi", "de", "id", "tr", "it", "ja", "ar", "ko", "pl", "th"]
)
TASKS_SHA256 = "7f890423a4782837403ffd18f887ca8dfa6b295ab6292d7398f9958148a65509"


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(FOLDER)


@pytest.fixture(scope="module")
def hardest(evalset):
    return evalset.queries[[f"label_{d}" for d in DIMENSIONS]].max(axis=1).to_numpy()


def test_it_says_that_it_is_synthetic(evalset):
    assert evalset.synthetic
    assert evalset.cost_estimated
    assert "simulated" in evalset.origin


def test_messages_are_those_of_the_tasks_file(evalset):
    raw = console_demo.TASKS.read_bytes()
    assert hashlib.sha256(raw).hexdigest() == TASKS_SHA256
    tasks = [json.loads(line) for line in raw.decode().splitlines()]
    queries = evalset.queries
    assert list(queries["query_id"]) == [task["id"] for task in tasks]
    assert list(queries["text"]) == [task["text"] for task in tasks]
    assert list(queries["language"]) == [task["lang"] for task in tasks]
    for dimension in DIMENSIONS:
        assert list(queries[f"label_{dimension}"]) == [task[dimension] for task in tasks]


def test_every_task_comes_in_every_language_as_one_cluster(evalset):
    assert evalset.n == 640
    per_task = evalset.queries.groupby("cluster")["language"].agg(set)
    assert len(per_task) == 40
    assert (per_task == LANGUAGES).all()
    assert set(evalset.queries["group"]) == {"english", "european", "cjk", "other"}


def test_every_outcome_is_there(evalset):
    assert evalset.models == MODELS
    assert set(np.unique(evalset.quality)) == {0.0, 1.0}
    assert (evalset.cost_usd > 0).all()


def test_rates_are_plausible(evalset):
    rate = evalset.quality.mean(axis=0)
    assert rate[CHEAP] == pytest.approx(0.62, abs=0.03)
    assert rate[STRONG] == pytest.approx(0.81, abs=0.03)
    assert evalset.quality.max(axis=1).mean() < 0.98


def test_cheap_will_do_for_easy_tasks_but_not_for_hard_ones(evalset, hardest):
    gain = evalset.quality[:, STRONG] - evalset.quality[:, CHEAP]
    assert gain[hardest < 0.3].mean() < 0.1
    assert gain[hardest >= 0.6].mean() > 0.2


def test_cost_grows_with_price_and_difficulty(evalset, hardest):
    mean = evalset.cost_usd.mean(axis=0)
    assert mean[STRONG] > 2 * mean[CHEAP]
    cost = evalset.cost_usd[:, STRONG]
    assert cost[hardest >= 0.6].mean() > 2 * cost[hardest < 0.3].mean()


def test_rebuilding_gives_the_same_set(evalset, tmp_path):
    first = console_demo.build(tmp_path / "first")
    assert console_demo.build(tmp_path / "second").digest == first.digest
    pd.testing.assert_frame_equal(first.queries, evalset.queries)
    np.testing.assert_array_equal(first.quality, evalset.quality)
    np.testing.assert_array_equal(first.cost_usd, evalset.cost_usd)
