"""With a price of a second the exact curve of V is still the sum of the routes."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.console.view_result import mean_seconds
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.sweep import sweep_own_value


def test_the_curve_is_exact_and_time_has_its_price():
    evalset = load_evalset(Path("sample_data/mixed_2024"))
    catalog = load_catalog(Path("catalog/mixed_2024.yaml"))
    seconds = {one.id: 1.0 + 9.0 * (i == 0) for i, one in enumerate(catalog.models)}
    models = tuple(replace(one, latency_s=seconds[one.id]) for one in catalog.models)
    priced = replace(catalog, models=models, policy=replace(catalog.policy, second_usd=0.002))
    plain, timed = (
        sweep_own_value(evalset, one, cross_fitted=True, today=date(2026, 1, 1))
        for one in (replace(priced, policy=catalog.policy), priced)
    )
    rows = np.arange(len(timed.data.rows))
    for knob in (0.001, 0.02, 0.5):
        route = timed.route(knob)
        cost = timed.data.cost_usd[rows, route].mean()
        assert timed.curve.at(knob).mean_cost_usd == pytest.approx(cost)
    slow = timed.data.pool.ids.index(catalog.models[0].id)
    assert (timed.route(0.02) == slow).sum() < (plain.route(0.02) == slow).sum()
    times = np.array([[seconds[name] for name in evalset.models]] * len(evalset.queries))
    told = replace(timed, evalset=replace(evalset, extras={"latency_s": times}))
    said = mean_seconds(evaluate(told, 0.02, told.baselines[0]))
    mean = np.where(timed.route(0.02) == slow, 10.0, 1.0).mean()
    assert said.startswith(f"{mean:.3g} s an answer (")
    assert mean_seconds(evaluate(timed, 0.02, timed.baselines[0])) is None
