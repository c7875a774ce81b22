"""What an event or a nudged number of the catalog does to a running policy."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import CatalogError, MismatchError
from hydra_core.base.types import (
    Band,
    Benchmark,
    Catalog,
    ModelSpec,
    ModelStatus,
    Policy,
    Selection,
)
from hydra_core.catalog import load_catalog, pool
from hydra_core.evalsets.evalset import save_evalset
from hydra_core.lab.ablation import ablation
from hydra_core.replay.catalog_changes import (
    Cell,
    Event,
    EventKind,
    Steps,
    default_events,
    dominated,
    event_catalogs,
    parse_event,
    portability,
    reach,
    sensitivity,
)
from hydra_core.replay.replay import ReplayData, replay
from hydra_core.replay.verdict import VerdictLabel
from tests.replay.conftest import make_data

TODAY = date(2026, 1, 1)
BANDS = (Band(0.2, 0.8),) * 4
DIMENSIONS = ("a", "b", "c", "d")


def spec(name, price, score):
    return ModelSpec(
        id=name,
        provider="x",
        status=ModelStatus.ACTIVE,
        input_usd_per_mtok=price,
        output_usd_per_mtok=price,
        context_window=1000,
        vision=False,
        tools=True,
        scores={"bench": score},
        overrides={},
        price_source="x",
        price_date=TODAY,
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    data = make_data(n=400, seed=1)
    queries = pd.DataFrame(
        {"query_id": data.query_ids, "text": list(data.query_ids), "language": data.languages}
    )
    evalset = save_evalset(
        tmp_path_factory.mktemp("sets") / "s",
        name="s",
        queries=queries,
        models=data.pool.ids,
        quality=data.quality,
        cost_usd=data.cost_usd,
    )
    models = tuple(spec(f"m{i}", 4.0**i, 0.2 + 0.3 * i) for i in range(3))
    benchmarks = (Benchmark("bench", 1.0, (1.0,) * 4),)
    policy = Policy(tau=0.2, weights=(1.0,) * 4)
    catalog = Catalog("c", DIMENSIONS, "p", "0" * 64, BANDS, policy, benchmarks, models)
    return catalog, evalset, data


def report(world, *events):
    catalog, evalset, data = world
    return portability(catalog, evalset, data.requirements, events, today=TODAY)


def test_a_removed_model_gets_no_traffic_and_the_rest_is_compared(world):
    (found,) = report(world, Event(EventKind.REMOVE, "m1"))
    assert found.before.shares["m1"] > 0
    assert set(found.after.shares) == {"m0", "m2"}
    assert found.comparison.moved >= found.before.shares["m1"]
    assert found.comparison.n == 400
    assert found.comparison.quality.value == pytest.approx(
        found.after.quality.value - found.before.quality.value
    )


def test_a_tau_picked_on_these_queries_is_judged_by_its_band(world):
    """As `evaluate` judges it: an interval for one point is too narrow."""
    catalog, evalset, data = world
    settings = {"today": TODAY, "tau": 0.4, "selection": Selection.LOOKED, "critical": 1e6}
    (found,) = portability(
        catalog, evalset, data.requirements, [Event(EventKind.REMOVE, "m1")], **settings
    )
    assert found.verdict.selection is Selection.LOOKED
    assert found.verdict.label is VerdictLabel.SAME
    assert found.verdict.simultaneous is not None


def test_adding_is_removing_the_other_way_round(world):
    added, removed = report(world, Event(EventKind.ADD, "m1"), Event(EventKind.REMOVE, "m1"))
    assert added.before.shares == removed.after.shares
    assert added.comparison.quality.value == pytest.approx(-removed.comparison.quality.value)


def test_a_model_that_becomes_the_cheapest_takes_traffic_and_recorded_costs_stay(world):
    (found,) = report(world, parse_event("reprice:m2=0.1,0.1"))
    assert found.after.shares["m2"] == 1.0
    assert found.after.mean_cost_usd.value == pytest.approx(world[2].cost_usd[:, 2].mean())
    assert found.notes[0].startswith("Price edits do not change this set's costs")
    catalog, evalset, data = world
    priced = replace(evalset, prices={"m2": catalog.model("m2").price})
    (found,) = report((catalog, priced, data), parse_event("reprice:m2=0.1,0.1"))
    scaled = world[2].cost_usd[:, 2].mean() * 0.1 / catalog.model("m2").input_usd_per_mtok
    assert found.after.mean_cost_usd.value == pytest.approx(scaled)


def test_effort_levels_that_have_the_price_of_their_model_are_repriced_with_it(world):
    catalog = world[0]
    models = [replace(one, variant_of="m2") for one in catalog.models[:2]]
    models[1] = replace(models[1], output_usd_per_mtok=catalog.model("m2").output_usd_per_mtok)
    family = replace(catalog, models=(*models, catalog.model("m2")))
    _, after = event_catalogs(family, parse_event("reprice:m2=7,9"))
    prices = [(one.input_usd_per_mtok, one.output_usd_per_mtok) for one in after.models]
    assert prices == [(1.0, 1.0), (4.0, 9.0), (7.0, 9.0)]


def test_effort_levels_leave_with_their_model(world):
    catalog, _, data = world
    first = catalog.models[0]
    family = replace(catalog, models=(first, replace(catalog.models[1], variant_of=first.id),
                                      catalog.models[2]))  # fmt: skip
    _, after = event_catalogs(family, Event(EventKind.REMOVE, first.id))
    assert [one.status.in_pool for one in after.models] == [False, False, True]
    before, _ = event_catalogs(family, Event(EventKind.ADD, catalog.models[1].id))
    assert [one.status.in_pool for one in before.models] == [True, False, True]
    alone = replace(family, models=family.models[:2])
    two = data.pool.ids[:2]
    pair = replace(data, pool=replace(data.pool, ids=two), quality=data.quality[:, :2])
    removed = [one.model for one in default_events(alone, pair) if one.kind is EventKind.REMOVE]
    assert removed == [catalog.models[1].id]  # without its model nothing is left


def test_both_pools_are_held_against_one_oracle(world):
    (found,) = report(world, Event(EventKind.REMOVE, "m2"))
    gained = found.comparison.retained[1].value - found.comparison.retained[0].value
    best = world[2].quality.max(axis=1).mean()  # of all models, before and after
    assert gained == pytest.approx(found.comparison.quality.value / best)
    own = found.after.qr.value - found.before.qr.value
    assert own > gained  # without its best model a pool seems to lose less than it does


def test_every_unknown_model_is_named_at_once(world):
    with pytest.raises(CatalogError) as caught:
        report(world, Event(EventKind.REMOVE, "x"), Event(EventKind.ADD, "y"))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("text", ["", "remove:", "drop:m1", "reprice:m1", "reprice:m1=1,-1"])
def test_what_is_no_event_is_refused(text):
    with pytest.raises(CatalogError, match="is not an event"):
        parse_event(text)


def test_by_default_each_model_is_removed_and_added(world):
    assert len(default_events(world[0], world[2])) == 6


def test_ablation_covers_every_subset_at_no_more_than_the_full_cost():
    data = make_data(n=600, seed=2)
    found = ablation(data, DIMENSIONS, (1.0,) * 4, BANDS, 0.2)
    assert [len(one.kept) for one in found] == [4] + [3] * 4 + [2] * 6 + [1] * 4
    assert found[0].against_full.quality.value == 0.0
    costs = [one.metrics.mean_cost_usd.value for one in found]
    assert max(costs) < 1.1 * costs[0]  # nobody gets more than the full policy


def test_the_dimension_that_matters_is_missed():
    data = make_data(n=1500, seed=3)
    levels = data.pool.capabilities.mean(axis=1)
    data.quality[:] = levels[None, :] >= data.requirements[:, :1]
    found = {one.kept: one for one in ablation(data, DIMENSIONS, (1.0,) * 4, BANDS, 0.2)}
    assert found[("a",)].against_full.quality.lo > 0
    assert found[("b", "c", "d")].against_full.quality.hi < 0


def test_too_many_dimensions_are_refused():
    with pytest.raises(MismatchError, match="too many subsets"):
        ablation(make_data(n=20), tuple("abcdefg"), (1.0,) * 7, BANDS, 0.1)


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def catalog():
    return load_catalog(ROOT / "catalog" / "paper_five.yaml")


@pytest.fixture(scope="module")
def data(catalog):
    models = pool(catalog, today=date(2026, 1, 1))
    rng, n = np.random.default_rng(0), 400
    lo, hi = np.array([[band.lo, band.hi] for band in catalog.bands]).T
    return ReplayData(
        query_ids=tuple(f"q{i}" for i in range(n)),
        languages=("en",) * n,
        requirements=lo + rng.random((n, len(lo))) * (hi - lo),
        quality=(rng.random((n, len(models.ids))) < 0.6).astype(float),
        cost_usd=rng.random((n, len(models.ids))),
        pool=models,
        rows=np.arange(n),
    )


def test_every_number_is_nudged_once(catalog, data):
    found = sensitivity(data, catalog)
    cells = {(effect.cell, effect.benchmark, effect.of) for effect in found}
    benchmarks, k, m = len(catalog.benchmarks), len(catalog.dimensions), len(catalog.models)
    assert len(found) == len(cells) == benchmarks * (1 + k + m)
    assert [e.flips for e in found] == sorted((e.flips for e in found), reverse=True)
    assert found[0].flips > 0


def test_an_effect_is_what_replaying_the_edited_catalog_gives(catalog, data):
    effect = next(e for e in sensitivity(data, catalog) if e.cell is Cell.SCORE)
    models = tuple(
        replace(m, scores={**m.scores, effect.benchmark: effect.after}) if m.id == effect.of else m
        for m in catalog.models
    )
    edited = replace(catalog, models=models)
    other = replace(data, pool=pool(edited, today=date(2026, 1, 1)))
    moved = replay(other, catalog.policy.tau) != replay(data, catalog.policy.tau)
    assert effect.flips == moved.sum()


def test_no_step_has_no_effect(catalog, data):
    found = sensitivity(data, catalog, Steps(0.0, 0.0, 0.0))
    assert {effect.flips for effect in found} == {0}


def test_capabilities_set_by_hand_do_not_depend_on_evidence(catalog, data):
    by_hand = tuple(
        replace(m, overrides=dict(zip(catalog.dimensions, row, strict=True)))
        for m, row in zip(catalog.models, data.pool.capabilities.tolist(), strict=True)
    )
    found = sensitivity(data, replace(catalog, models=by_hand))
    assert {effect.flips for effect in found} == {0}


def test_a_dearer_model_that_can_do_no_more_is_dominated():
    capability = np.array([[0.5, 0.5], [0.5, 0.4], [0.6, 0.2], [0.5, 0.5]])
    assert dominated(capability, np.array([1.0, 2.0, 3.0, 1.0])) == (None, 0, None, 0)


def test_a_dominated_model_is_reached_at_no_tau(data):
    capability = data.pool.capabilities.copy()
    last = int(np.argmax(data.pool.cost))
    capability[last] = capability[int(np.argmin(data.pool.cost))]
    weaker = replace(data, pool=replace(data.pool, capabilities=capability))
    found = {one.model: one for one in reach(weaker, 0.1)}[data.pool.ids[last]]
    assert found.dominated_by
    assert found.at_some_tau == found.share == 0.0


def test_shares_add_up_and_lie_within_reach(data):
    found = reach(data, 0.1)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert all(one.share <= one.at_some_tau + 1e-12 for one in found)


def test_gates_hold_where_numbers_are_nudged_and_where_reach_is_counted(catalog, data):
    cheapest = int(np.argmin(data.pool.cost))
    closed = np.zeros(data.quality.shape, dtype=bool)
    closed[::2, cheapest] = True
    gated = replace(data, closed=closed)
    still = sensitivity(gated, catalog, Steps(0.0, 0.0, 0.0))
    assert {effect.flips for effect in still} == {0}
    choice = replay(gated, 0.1)
    found = {one.model: one for one in reach(gated, 0.1)}
    for i, name in enumerate(data.pool.ids):
        assert found[name].share == pytest.approx(float((choice == i).mean()))
    assert found[data.pool.ids[cheapest]].at_some_tau <= 0.5
    assert not any(one.dominated_by == data.pool.ids[cheapest] for one in found.values())


def test_queries_of_one_cluster_are_not_cut_into_halves():
    data = replace(make_data(n=30), clusters=np.zeros(30, dtype=int))
    with pytest.raises(MismatchError, match="all depend on each other"):
        ablation(data, DIMENSIONS, (1.0,) * 4, BANDS, 0.2)
