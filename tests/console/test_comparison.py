"""Two policies on the shipped reconstruction: totals, slices, lists and receipts agree."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from hydra_core.base.intervals import FREE_BASELINE, Interval
from hydra_core.console.compare.page import _headline, _saved
from hydra_core.console.compare.queries import MOST_TRIAGED, Filters, Which, receipts, selected
from hydra_core.console.compare.state import _checker
from hydra_core.console.compare.view import (
    Kind,
    Measure,
    Side,
    flip_view,
    mix_run,
    pair,
    routed_run,
    sentence,
    side_run,
    slice_names,
    slices,
    totals,
)
from hydra_core.replay.baselines import Checker
from tests.pages.conftest import workspace  # noqa: F401 (a fixture)
from tests.pages.pairs import paper_pair, paper_sweep


@pytest.fixture
def both(workspace):  # noqa: F811
    return paper_pair()


def listed(both, which, **filters):
    found, evalset = both
    names = slice_names(evalset, "language")
    return selected(found, which, Filters(**filters), names, frozenset())


def test_the_slices_of_one_language_are_the_whole(both):
    found, evalset = both
    frame = slices(found, evalset, "language")
    assert frame["n"].sum() == found.found.n
    assert frame["quality"].iloc[0] == pytest.approx(100 * found.found.quality.value)
    assert frame["savings"].iloc[0] == pytest.approx(100 * found.found.savings.value)
    assert frame["savings_lo"].iloc[0] == pytest.approx(100 * found.found.savings.lo)


def test_losses_are_losses_and_wastes_are_wastes(both):
    found, _ = both
    losses, wastes = listed(both, Which.LOSSES), listed(both, Which.WASTES)
    assert (found.found.delta_quality[losses] < 0).all()
    assert (np.diff(found.found.delta_quality[losses]) >= 0).all()
    assert (found.found.delta_quality[wastes] <= 0).all()
    assert (np.diff(found.found.delta_cost[wastes]) <= 0).all()
    assert max(len(losses), len(wastes)) <= MOST_TRIAGED


def test_the_flip_matrix_counts_every_query_that_moved(both):
    view = flip_view(both[0], Measure.NUMBER)
    assert np.nansum(view.values) == both[0].found.flipped.size


def test_a_mixture_spends_what_it_is_told_to(workspace):  # noqa: F811
    sweep = paper_sweep()
    run = mix_run(sweep, 0.2)
    assert run.cost_usd.mean() == pytest.approx(0.2, rel=0.15)


def test_the_receipt_names_the_model_that_the_run_chose(both):
    found, _ = both
    sweep = paper_sweep()
    router = Side("x", "router", Kind.ROUTER, knob=0.24)
    always = Side("y", "always", Kind.ALWAYS, model=sweep.baselines[0])
    for row in found.found.rows[:20]:
        frame = receipts(int(row), found, ((always, sweep), (router, sweep)))
        at = int(np.searchsorted(found.found.rows, row))
        chosen = frame.loc[frame["says_b"] == "chosen", "model"].item()
        assert chosen == found.b.models[at]
        eligible = frame.loc[frame["says_b"] == "eligible", "says_of_b"]
        assert (eligible <= 0.24).all()


def test_the_receipt_has_the_costs_and_gates_of_the_replay(workspace):  # noqa: F811
    sweep = paper_sweep()
    data = sweep.data
    closed = np.zeros(data.quality.shape, dtype=bool)
    closed[:, 0] = True
    dearer = replace(sweep, data=replace(data, cost_usd=10 * data.cost_usd, closed=closed))
    router = Side("x", "router", Kind.ROUTER, knob=0.24)
    always = Side("y", "always", Kind.ALWAYS, model=sweep.baselines[0])
    sides = ((always, dearer), (router, dearer))
    both = pair(*(side_run(side, own, None) for side, own in sides), dearer)
    frame = receipts(int(data.rows[0]), both, sides).set_index("model")
    assert frame.loc[list(data.pool.ids), "cost_usd"].tolist() == dearer.data.cost_usd[0].tolist()
    assert frame.loc[data.pool.ids[0], "says_b"] == "kept out by a gate"
    assert np.isnan(frame.loc[data.pool.ids[0], "says_of_b"])


def test_the_sentence_says_when_nothing_differs(workspace):  # noqa: F811
    sweep = paper_sweep()
    run = routed_run("a", sweep, 0.3)
    same = pair(run, run, sweep)
    assert "same model" in sentence(same)
    assert totals(same)[0].quality.value == pytest.approx(run.quality.mean())


def test_a_side_without_outcomes_is_open_where_nobody_knows(both):
    found, _ = both
    unknown = found.b.models == found.models[0]
    assert unknown.any()
    quality = np.where(unknown, 0.0, found.b.quality)
    side = totals(replace(found, b=replace(found.b, quality=quality, unknown=unknown)))[1]
    cost = found.b.cost_usd.mean()
    assert side.unknown == unknown.mean()
    assert side.quality.value == pytest.approx(quality.mean())
    assert side.quality.hi > (quality + unknown).mean()
    assert side.per_resolved_usd.value == pytest.approx(cost / quality.mean())
    assert side.per_resolved_usd.lo < cost / (quality + unknown).mean()


def test_a_side_that_costs_something_is_dearer_than_one_that_costs_nothing():
    free = Interval.none(float("nan"), FREE_BASELINE)
    better, same = Interval(0.1, 0.05, 0.15), Interval(0.0, -0.1, 0.1)
    assert _headline(better, free, free_before=True)[1] == "B buys quality"
    assert _headline(same, free, free_before=True)[1].startswith("B costs more")
    assert _headline(same, free)[1] == "No difference can be shown"
    assert _saved(free, 0.0, 0.0012) == ("−$0.00120", "A costs nothing")


@pytest.mark.parametrize("checker", [Checker(0.3, 0.0, 0.0, 0.0), Checker(0.0, 1.0, 2.0, 250.0)])
def test_a_link_restores_a_checker_also_with_zeros(checker):
    text = ",".join(map(repr, astuple(checker)))
    assert _checker(text) == checker
    assert _checker("2,0,0,0") == _checker("nan,0,0,0") == _checker("x") == Checker()
