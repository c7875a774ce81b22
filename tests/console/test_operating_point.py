"""What the live knob shows at a step is what an evaluation there says."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.base.types import Selection
from hydra_core.catalog import load_catalog
from hydra_core.choosing.sources.promise import promise_on
from hydra_core.console.tune.knob import forecast_text
from hydra_core.console.tune.search import cost_apart
from hydra_core.console.view_result import Measure, step_table
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog


@pytest.fixture(scope="module")
def sweep():
    demo = load_evalset(SAMPLE_DATA / "console_demo")
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    return sweep_catalog(demo, catalog, catalog_scores(demo, catalog), today=date(2026, 6, 1))


def test_every_step_is_the_evaluation_at_that_setting(sweep):
    baseline = sweep.baselines[1]
    table = step_table(sweep, baseline)
    for i in (0, len(table) // 3, len(table) - 1):
        step = table.iloc[i]
        there = evaluate(sweep, step["knob"], baseline, selection=Selection.FIXED)
        found = there.router
        assert step[Measure.QR] == pytest.approx(100 * found.qr.value)
        assert step[Measure.QUALITY] == pytest.approx(100 * found.quality.value)
        assert step[Measure.COST] == pytest.approx(found.mean_cost_usd.value)
        assert step[Measure.PER_RESOLVED] == pytest.approx(found.per_resolved_usd.value)
        assert step[Measure.CS] == pytest.approx(100 * found.cs.value)
        assert step[Measure.MISROUTE] == pytest.approx(100 * found.misroute.value)
        assert step["lift"] == pytest.approx(100 * there.verdict.delta, abs=1e-5)
        traffic = [step[f"share_{k}"] for k in range(len(sweep.models))]
        assert traffic == pytest.approx([found.shares[model] for model in sweep.models], abs=1e-6)


def test_a_promise_counts_independent_queries_now_and_in_its_forecast(sweep):
    made = promise_on(sweep, within=0.3, confidence=0.9)
    assert made.n == sweep.data.independent < len(sweep.data.rows) / 2
    assert [one.queries for one in made.forecast] == [
        round(made.n * more) for more in (0.5, 2.0, 4.0)
    ]
    said = forecast_text(made)
    assert f"with these {made.n:,} independent queries; with {2 * made.n:,} " in said
    assert f"with {round(0.5 * made.n):,} " not in said


def test_a_search_among_models_that_cost_nothing_has_its_figures():
    assert cost_apart(0.0, 0.0) == "cost $0"
    assert cost_apart(0.002, 0.002) == "cost +$0.00200"
    assert cost_apart(0.003, 0.001) == "cost +50.0 %"


def test_steps_span_the_curve_and_are_few_enough_to_send(sweep):
    table = step_table(sweep, sweep.baselines[0])
    assert table["knob"].iloc[0] == 0
    assert sweep.curve.row(table["knob"].iloc[-1]) == sweep.curve.knob.size - 1
    assert np.all(np.diff(table["knob"]) > 0)
    twelve = table.assign(**{f"share_{k}": table["share_0"] for k in range(12)})
    assert twelve.memory_usage(index=False).sum() < 40_000


def test_traffic_is_drawn_as_far_as_it_changes_or_the_knob_stands(sweep):
    knob, traffic = sweep.shares(0.1)
    ends_up = sweep.traffic(np.array([np.inf]))[0]
    assert np.abs(sweep.traffic(np.linspace(knob[-1], 2.0, 500)) - ends_up).max() <= 0.01
    assert np.abs(traffic[len(knob) * 9 // 10] - ends_up).max() > 0.01
    far = knob[-1] + 0.5
    assert sweep.shares(far)[0][-1] > far
    assert sweep.shares(far)[1].sum(axis=1) == pytest.approx(1.0)


def test_what_nothing_is_a_share_of_is_not_known_during_a_drag(sweep):
    data = replace(
        sweep.data, quality=np.zeros_like(sweep.data.quality),
        cost_usd=np.zeros_like(sweep.data.cost_usd),
    )  # fmt: skip
    nothing = replace(sweep, data=data)
    table = step_table(nothing, nothing.baselines[0])
    assert table[[Measure.PER_RESOLVED, Measure.CS]].isna().all(axis=None)
