"""Figures of odd sets: what is known is shown, and what is not known is never a number."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog import load_catalog
from hydra_core.console.view_frontier import Axes, XAxis, YAxis, frontier_view, language_table
from hydra_core.console.view_result import Measure, tiles
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog


@pytest.fixture(scope="module")
def sweep():
    demo = load_evalset(SAMPLE_DATA / "console_demo")
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    return sweep_catalog(demo, catalog, catalog_scores(demo, catalog), today=date(2026, 6, 1))


def changed(sweep, **parts):
    """The same replay with other data."""
    return replace(sweep, data=replace(sweep.data, **parts))


def test_one_cluster_has_a_cost_per_resolved_query_without_an_interval(sweep):
    one = changed(sweep, clusters=np.zeros(len(sweep.data.rows), dtype=np.intp))
    found = evaluate(one, 0.1)
    shown = {tile.measure: tile for tile in tiles(found)}[Measure.PER_RESOLVED]
    assert shown.value != "–"
    assert shown.value.startswith("$")
    assert shown.interval == "one independent query gives no interval"


def test_a_language_is_small_by_its_independent_queries(sweep):
    table = language_table(evaluate(sweep, 0.1))
    assert (table["n"] >= 30).all()
    assert not table["small"].any()
    ten = changed(sweep, clusters=np.arange(len(sweep.data.rows)) % 10)
    assert language_table(evaluate(ten, 0.1))["small"].all()


def test_savings_on_nothing_have_no_axis(sweep):
    free = changed(sweep, cost_usd=np.zeros_like(sweep.data.cost_usd))
    axes = Axes(XAxis.SAVINGS, YAxis.RESOLVED, free.baselines[0])
    view = frontier_view(free, 0.1, axes, banded=False)
    assert view.x_axis.title == "Mean cost per query in USD"
    assert view.selected.x == 0.0
