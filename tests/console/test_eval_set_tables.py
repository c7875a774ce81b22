"""Intervals in the tables of Eval sets hold their point and stay possible, or are left out."""

import numpy as np
import pandas as pd
import pytest

from hydra_core.console import tables
from hydra_core.console.eval_sets.view import (
    interval_text,
    model_table,
    outcomes,
    percent_range,
    query_table,
    saving_text,
    spread_table,
)
from hydra_core.replay.significance import Interval, mean_interval
from tests.evalsets.sets import COST_USD, QUALITY, queries, saved


@pytest.mark.parametrize("seed", range(40))
def test_every_range_holds_its_share_and_is_possible(seed):
    rng = np.random.default_rng(seed)
    values = (rng.random(int(rng.integers(1, 12))) < rng.random()).astype(float)
    low, high = percent_range(mean_interval(values))
    if np.isnan(low):
        assert values.size == 1
    else:
        assert 0.0 <= low <= 100 * values.mean() <= high <= 100.0


def test_a_range_without_ends_is_left_out():
    assert np.isnan(percent_range(Interval(0.5, float("-inf"), float("inf")))).all()


def test_one_cluster_has_no_range_and_is_still_drawn(tmp_path):
    evalset = saved(tmp_path / "one", queries=queries().assign(cluster="same"), quality=QUALITY)
    table = model_table(evalset)
    assert table["low"].isna().all()
    assert np.isfinite(outcomes(table)[["low", "high"]]).all(axis=None)


@pytest.mark.parametrize(
    ("known", "models"), [([], []), ([1], ["strong"]), ([0, 1], ["cheap", "strong"])]
)
def test_the_spread_of_costs_is_that_of_the_models_with_costs(tmp_path, known, models):
    costs = np.full_like(COST_USD, np.nan)
    costs[:, known] = COST_USD[:, known]
    found = spread_table(saved(tmp_path / "s", cost_usd=costs))
    assert found.index.tolist() == models
    if models:
        strong = found.loc["strong", ["p05", "median", "mean"]]
        assert strong.tolist() == pytest.approx([0.205, 0.25, 0.25])


def test_a_query_is_resolved_by_so_many_of_the_models_that_were_tried(tmp_path):
    found = query_table(saved(tmp_path / "s"))
    assert found["resolved by"].tolist() == ["2 of 2", "1 of 2", "1 of 1"]


def test_an_interval_has_no_sign_where_it_rounds_to_nothing():
    assert interval_text(Interval(-0.001, -0.02, 0.004)) == "0.00 [−0.02, 0.00]"
    assert interval_text(Interval(0.001, -0.02, 0.02), signed=True) == "0.00 [−0.02, +0.02]"


def test_a_perfect_router_that_costs_more_saves_nothing():
    assert saving_text(0.4) == "saves up to 40 %"
    assert saving_text(-0.3) == "costs 30 % more"
    assert saving_text(np.nan) == "no cost to save"


def test_models_that_begin_alike_can_be_told_apart_in_the_table(monkeypatch):
    drawn = []
    monkeypatch.setattr(tables.st, "dataframe", lambda frame, **_: drawn.append(frame))
    names = [f"provider/very-long-model-family-name-2026-{i}" for i in (1, 2)]
    rows = pd.DataFrame({"model": names, "resolved": 1, "quality": 50.0, "low": 40.0,
                         "high": 60.0, "cost": 0.1, "missing_quality": 0,
                         "missing_cost": 0})  # fmt: skip
    tables.models(rows)
    shown = list(drawn[0]["model"])
    assert [name[-6:] for name in shown] == ["2026-1", "2026-2"]
    assert max(map(len, shown)) <= 30
