"""Lifts obey the gates of a set: no route past one, and fixed mixes with who stands in."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.types import CostBasis, Rule
from hydra_core.catalog import load_catalog
from hydra_core.choosing.learn import learn
from hydra_core.choosing.lift import cross_fit
from hydra_core.choosing.material import gather, outcomes_of_replay, with_gates
from hydra_core.choosing.sources.ladder import Kind, fit_rung, judged_rung, rank_outcomes
from hydra_core.choosing.sources.profiles import fit_success_profiles
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import messages_of
from hydra_core.outcome_model.heads import Predicted
from hydra_core.replay.frontier import frontier
from hydra_core.replay.gated import stand_ins
from hydra_core.replay.predictions import gated
from hydra_core.replay.replay import align_catalog, catalog_scores
from hydra_core.routing.matcher import returns_on_upgrading
from tests.choosing.learning_sets import learnable, material_of
from tests.choosing.sets import outcomes

SET = Path("sample_data/mixed_2024")
CATALOG = Path("catalog/mixed_2024.yaml")


def gated_outcomes(n=800, seed=0):
    """A third of the queries, with an image say, may not go to the cheap model."""
    data = outcomes(n, seed=seed)
    closed = np.zeros((n, 3), dtype=bool)
    closed[::3, 0] = True
    return gated_by(data, closed)


def gated_by(data, closed):
    """The same with these gates; models in the order of their names' prices."""
    stand_in = stand_ins(closed, np.ones(3, dtype=bool), np.arange(3.0))
    stand_in[closed.all(axis=1)] = -1
    return replace(data, stand_in=stand_in)


def plain_lift(data, choice):
    """(p,) quality above the best mix of two fixed models, written out."""
    quality, cost = data.quality.copy(), data.cost_usd.copy()
    for values in (quality, cost):  # the middle model stands in for the cheap one
        values[data.closed[:, 0], 0] = values[data.closed[:, 0], 1]
    q, c = quality.mean(axis=0), cost.mean(axis=0)
    every = np.arange(data.n)
    found = []
    for column in choice.T:
        spent = data.cost_usd[every, column].mean()
        mixes = [
            q[i] + (spent - c[i]) / (c[j] - c[i]) * (q[j] - q[i])
            for i in range(3)
            for j in range(3)
            if c[i] <= spent <= c[j] and i != j
        ]
        found.append(data.quality[every, column].mean() - max(mixes))
    return np.array(found)


@pytest.mark.parametrize("kind", [Kind.BENCHMARKS, Kind.SUCCESS, Kind.PROFILES])
def test_a_source_is_judged_by_the_gates(kind):
    data = gated_outcomes()
    lift = fit_rung(kind, data).lift
    every = np.arange(data.n)
    assert not data.closed[every[:, None], lift.choice].any()
    assert lift.mean.value == pytest.approx(plain_lift(data, lift.choice).mean(), abs=1e-12)


def test_heads_are_judged_by_the_gates_along_the_curve_of_a_replay():
    data = gated_outcomes()
    said = Predicted(np.random.default_rng(1).random((data.n, 3)), data.cost_usd)
    lift = judged_rung(Kind.HEADS, rank_outcomes(data, said), None, None, (), False, 0).lift
    assert not data.closed[np.arange(data.n)[:, None], lift.choice].any()
    assert lift.mean.value == pytest.approx(plain_lift(data, lift.choice).mean(), abs=1e-12)
    by = gated(said, data.closed)
    returns = returns_on_upgrading(by.success, by.cost_usd)
    curve = frontier(
        returns, data.cost_usd.mean(axis=0), data.quality, data.cost_usd, ranked_by=by.cost_usd
    )
    assert curve.rule is Rule.VALUE
    quality = data.quality[np.arange(data.n)[:, None], lift.choice].mean(axis=0)
    assert all(np.isclose(curve.quality, one).any() for one in quality)


def test_what_is_learned_obeys_gates_where_it_is_judged_alone(tmp_path):
    material = material_of(learnable(tmp_path / "set", 300))
    closed = np.zeros((300, 3), dtype=bool)
    closed[::3, 0] = True
    closed[0] = True  # no model may serve it
    free = learn(material, None, curve=False)
    found = learn(gated_by(material, closed), None, curve=False)
    assert np.array_equal(found.raw.difference, free.raw.difference)
    rows = np.arange(1, 300)
    judged = material.take(rows)
    data = replace(outcomes(299), quality=judged.quality, cost_usd=judged.cost_usd)
    data = gated_by(data, closed[1:])
    assert not data.closed[np.arange(299)[:, None], found.lift.choice].any()
    assert found.lift.mean.value == pytest.approx(plain_lift(data, found.lift.choice).mean())


@pytest.mark.parametrize("basis", list(CostBasis))
def test_stand_ins_are_those_of_the_replay_whatever_orders_the_models(basis):
    catalog, whole = load_catalog(CATALOG), load_evalset(SET)
    first = replace(catalog.models[0], lacks=frozenset({"pdf"}))
    policy = replace(catalog.policy, cost_basis=basis)
    catalog = replace(
        catalog, models=(first, *catalog.models[1:]), policy=policy, realised_costs=None
    )
    second, third = (whole.models.index(one.id) for one in catalog.models[1:3])
    cost_usd = whole.cost_usd.copy()
    cost_usd[:, second] = 2 * cost_usd[:, third]  # at a lower price: it writes more
    needs = ["pdf" if i % 2 else None for i in range(whole.n)]
    queries = whole.queries.assign(needs=needs)
    evalset = replace(whole, cost_usd=cost_usd, queries=queries, extras={})
    scores = catalog_scores(evalset, catalog)
    data = align_catalog(evalset, catalog, scores, today=date(2026, 1, 1))
    outcomes = outcomes_of_replay(data, evalset)
    messages = messages_of(evalset, catalog.predictor_fingerprint, 384)
    material = with_gates(gather(evalset, messages, data.pool.ids, costs=cost_usd), catalog)
    assert np.array_equal(material.rows, data.rows)
    by = catalog.models[1 if basis is CostBasis.LIST_PRICE else 2].id
    assert data.pool.ids[data.stand_in[1, data.pool.ids.index(first.id)]] == by
    for found in (outcomes.stand_in, material.stand_in):
        assert np.array_equal(found, data.stand_in)


def test_nothing_is_fitted_to_the_outcomes_of_stand_ins():
    data = gated_outcomes(400)
    known = ~data.closed[:, 0]
    wrong = data.quality.copy()
    wrong[~known, 0] = 1.0 - wrong[~known, 0]
    one, other = (
        cross_fit(source, fit_success_profiles, known=known).ranked
        for source in (data, replace(data, quality=wrong))
    )
    assert np.array_equal(one.shortfalls, other.shortfalls)
