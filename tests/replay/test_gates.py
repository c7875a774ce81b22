"""A replay keeps a model out where the set's columns say that a hard gate would."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.types import Rule, Selection, Team
from hydra_core.catalog import load_catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.choosing.sources.promise import _ranks, walk
from hydra_core.cli.main import main
from hydra_core.console.view_frontier import policy_table
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import save_scores
from hydra_core.replay.baselines import Checker, cascade
from hydra_core.replay.compare import constant_run
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.gated import closed_models, stand_ins
from hydra_core.replay.metrics import evaluate_choice, misrouted, single_models
from hydra_core.replay.replay import TEAMS, align_catalog, catalog_scores, data_frontier, replay
from hydra_core.replay.sweep import Sweep, sweep_catalog, sweep_own_value
from hydra_core.replay.verdict import verdict

SET = Path("sample_data/mixed_2024")
CATALOG = Path("catalog/mixed_2024.yaml")


def pooled(**facts):
    """Two models with these facts of the first; queries as given."""
    first = replace(load_catalog(CATALOG).models[0], **facts)
    return first, replace(first, id="other", vision=True, tools=True, context_window=10**6)


def test_every_gate_of_a_logged_request_holds_in_a_replay():
    first, other = pooled(vision=True, tools=False, context_window=1_000)
    for column, values in {
        "needs_tools": [True, False],
        "allow": ["other, third", ""],
        "deny": [first.id, None],
        "context_tokens": [1_001.0, np.nan],
        "text": ["x" * 4_004, "x" * 4_000],
    }.items():
        closed = closed_models(pd.DataFrame({column: values}), [first, other])
        assert closed.tolist() == [[True, False], [False, False]], column
    logged = pd.DataFrame({"text": ["x" * 8_000], "context_tokens": [900.0]})
    assert closed_models(logged, [first, other]) is None  # as the router counted it


def aligned(lacks=(), **columns):
    catalog, evalset = load_catalog(CATALOG), load_evalset(SET)
    first = replace(catalog.models[0], lacks=frozenset(lacks), tags=frozenset({"eu"}))
    catalog = replace(catalog, models=(first, *catalog.models[1:]))
    evalset = replace(evalset, queries=evalset.queries.assign(**columns))
    data = align_catalog(evalset, catalog, catalog_scores(evalset, catalog), today=date(2026, 1, 1))
    return data, data.pool.ids.index(first.id)


def test_a_replay_says_that_teams_do_not_count():
    catalog, evalset = load_catalog(CATALOG), load_evalset(SET)
    scores = catalog_scores(evalset, catalog)
    policy = replace(catalog.policy, teams={"search": Team(tau=0.0)})
    named = replace(catalog, policy=policy)
    for one, said in ((named, True), (catalog, False)):
        assert (TEAMS in align_catalog(evalset, one, scores, today=date(2026, 1, 1)).notes) is said


def test_a_query_never_goes_to_a_model_that_its_columns_keep_out():
    needs = ["pdf" if i % 2 else None for i in range(len(load_evalset(SET).queries))]
    data, lacking = aligned(["pdf"], needs=needs)
    plain, _ = aligned(["pdf"])
    asks = np.array([needs[i] is not None for i in data.rows])
    for tau in (0.0, 0.1, 1.0, 1e6):
        route, before = replay(data, tau), replay(plain, tau)
        assert not (route[asks] == lacking).any()
        assert np.array_equal(route[~asks], before[~asks])
    assert (before[asks] == lacking).any()
    kept_out = "A hard gate (such as image, tools or window) keeps a model out of "

    def said(found):
        return [note.removeprefix(kept_out) for note in found.notes if note.startswith(kept_out)]

    assert said(data)[0].startswith(f"{asks.sum():,} queries. Where")
    one, _ = aligned(
        ["pdf"], needs=["pdf" if i == data.rows[0] else None for i in range(len(needs))]
    )
    assert said(one)[0].startswith("1 query. ")
    none, _ = aligned([], needs=needs)
    assert not said(none)


def test_the_exact_curve_is_the_routes_with_gates_as_well():
    needs = ["pdf"] * len(load_evalset(SET).queries)
    data, _ = aligned(["pdf"], needs=needs)
    curve = data_frontier(data)
    assert curve.knob.max() < 1e6
    rows = np.arange(len(data.rows))
    for i in (0, len(curve.knob) // 2, len(curve.knob) - 1):
        route = replay(data, float(curve.knob[i]))
        assert np.isclose(curve.mean_cost_usd[i], data.cost_usd[rows, route].mean())


def test_oracle_and_overpaid_queries_know_the_gates_too():
    needs = ["pdf" if i % 2 else None for i in range(len(load_evalset(SET).queries))]
    data, lacking = aligned(["pdf"], needs=needs)
    plain, _ = aligned(["pdf"])
    asks = data.closed[:, lacking]
    assert (plain.oracle[asks] == lacking).any()
    assert not (data.oracle[asks] == lacking).any()
    assert np.array_equal(data.oracle[~asks], plain.oracle[~asks])
    route, curve = replay(data, 0.05), data_frontier(data)
    wrong = misrouted(data, route)
    cheaper = data.pool.cost[None, :] < data.pool.cost[route][:, None]
    resolved = (data.quality >= 0.5) & ~data.closed
    assert np.array_equal(wrong, (cheaper & resolved).any(axis=1))
    assert wrong.sum() < misrouted(plain, route).sum()
    assert curve.at(0.05).misroute == pytest.approx(wrong.mean())
    only = replace(data, unmeasured=data.pool.ids[1:], quality=0.0 * data.quality)
    assert not (only.oracle[asks] == lacking).any()


@pytest.mark.parametrize("rule", list(Rule))
def test_no_setting_of_a_promise_sends_a_query_past_a_gate(rule):
    catalog, evalset = load_catalog(CATALOG), load_evalset(SET)
    needs = ["pdf" if i % 2 else None for i in range(len(evalset.queries))]
    models = tuple(
        replace(one, lacks=frozenset({"pdf"} if i < 2 else ()), latency_s=9.0 if i == 2 else 1.0)
        for i, one in enumerate(catalog.models)
    )
    policy = replace(catalog.policy, second_usd=100.0, chosen_on=())
    catalog = replace(catalog, models=models, policy=policy)
    evalset = replace(evalset, queries=evalset.queries.assign(needs=needs))
    if rule is Rule.VALUE:
        sweep = sweep_own_value(evalset, catalog, cross_fitted=True, today=date(2026, 1, 1))
    else:
        scores = catalog_scores(evalset, catalog)
        sweep = sweep_catalog(evalset, catalog, scores, today=date(2026, 1, 1))
    shortfalls, order, calibrated_on = _ranks(sweep)
    assert ("cross-fitted" in calibrated_on) is (rule is Rule.VALUE)
    taus, choice = walk(shortfalls, order)
    data = sweep.data
    assert taus.size > 5
    assert not data.closed[np.arange(len(data.rows))[:, None], choice].any()
    if rule is Rule.VALUE:  # a second is dear: the slow one is the dearest of those that may serve
        free = ~data.closed.any(axis=1)
        assert (order[free, -1] == 2).all()


def test_the_next_dearer_model_that_may_stands_in_for_a_fixed_one():
    closed = np.array([[1, 0, 0, 0], [0, 1, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0]], dtype=bool)
    cost, measured = np.array([1.0, 3.0, 2.0, 4.0]), np.array([True, True, True, False])
    found = stand_ins(closed, measured, cost)  # in the order of their cost: 0, 2, 1, 3
    assert found.tolist() == [[2, 1, 2, 3], [0, 2, 2, 2], [2, 2, 2, 2], [0, 1, 2, 3]]


def test_fixed_models_and_mixes_obey_the_gates_too():
    needs = ["pdf" if i % 2 else None for i in range(len(load_evalset(SET).queries))]
    data, lacking = aligned(["pdf"], needs=needs)
    order = np.argsort(data.pool.cost)
    dearer = order[list(order).index(lacking) + 1]
    served = np.where(data.closed[:, lacking], dearer, lacking)
    rows = np.arange(len(served))
    single = single_models(data)[lacking]
    assert single.quality == pytest.approx(data.quality[rows, served].mean())
    assert single.mean_cost_usd == pytest.approx(data.cost_usd[rows, served].mean())
    name = data.pool.ids[lacking]
    always = constant_run(data, name)
    assert np.array_equal(always.choice, served)
    alone = verdict(data, served, Selection.FIXED)
    assert (alone.moved, alone.delta) == (0, 0.0)
    assert evaluate_choice(data, served, baseline=name).cs.value == pytest.approx(0.0, abs=1e-12)
    mixed = cascade(data, load_evalset(SET), Checker(0.0, 0.0))
    both = {name: data.served(np.full(rows.size, data.pool.ids.index(name)))
            for name in (mixed.cheap, mixed.strong)}  # fmt: skip
    right = np.stack([data.quality[rows, one] for one in both.values()]).max(axis=0)
    assert mixed.run.quality == pytest.approx(right)
    assert not data.closed[rows, mixed.run.choice].any()


def test_models_used_alone_have_one_set_of_figures():
    needs = ["pdf" if i % 2 else None for i in range(len(load_evalset(SET).queries))]
    data, lacking = aligned(["pdf"], needs=needs)
    catalog = load_catalog(CATALOG)
    found = evaluate(
        Sweep(load_evalset(SET), catalog, data, catalog.policy.weights), 0.05,
        selection=Selection.FIXED,
    )  # fmt: skip
    for one in found.sweep.singles:
        shown = found.constants[one.model]
        figures = (shown.resolved, shown.quality.value, shown.mean_cost_usd.value)
        assert figures == pytest.approx((one.resolved, one.quality, one.mean_cost_usd))
    assert found.constants[data.pool.ids[lacking]].shares[data.pool.ids[lacking]] < 1
    mix = policy_table(found).set_index("policy").loc["Best fixed mix at this cost"]
    wanted = found.verdict.constant
    assert mix["quality"] == pytest.approx(100 * wanted.quality)
    assert mix["cost"] == pytest.approx(wanted.mean_cost_usd)


def test_a_query_needs_outcomes_of_the_models_that_may_serve_it_alone():
    catalog, evalset = load_catalog(CATALOG), load_evalset(SET)
    models = tuple(replace(one, vision=i > 0) for i, one in enumerate(catalog.models))
    catalog, asked = replace(catalog, models=models), np.arange(evalset.n) % 3 == 0
    quality = evalset.quality.copy()
    quality[asked, evalset.models.index(models[0].id)] = np.nan
    quality[1, 0] = np.nan  # a model that may serve it
    queries = evalset.queries.assign(has_image=asked)
    seen = replace(evalset, quality=quality, queries=queries)
    scores = catalog_scores(evalset, catalog)
    data = align_catalog(seen, catalog, scores, today=date(2026, 1, 1))
    assert len(data.rows) == evalset.n - 1
    assert np.isfinite(data.quality).all()
    assert not (replay(data, 1e6)[asked[data.rows]] == 0).any()


def test_required_tags_of_a_query_leave_only_models_that_have_them():
    data, tagged = aligned(require=["eu"] * len(load_evalset(SET).queries))
    assert set(replay(data, 0.0)) == {tagged}


@pytest.mark.parametrize("rule", ["shortfall", "value"])
def test_a_log_is_routed_by_the_gates_and_the_price_of_time_as_a_whole_set_is(
    tmp_path, capsys, rule
):
    document = CatalogDocument.parse(CATALOG.read_text(encoding="utf-8"))
    document.set("policy", "rule", rule)
    document.set("policy", "second_usd", 0.001)
    catalog, whole = load_catalog(CATALOG), load_evalset(SET)
    for place, model in enumerate(catalog.models):
        document.set("models", model.id, "latency_s", 1.0 + 9.0 * (place % 2))
    document.set("models", catalog.models[0].id, "lacks", ["pdf"])
    named = tmp_path / "catalog.yaml"
    named.write_text(document.text(), encoding="utf-8")
    rows = np.arange(0, len(whole.queries), 20)
    one = np.zeros((rows.size, len(whole.models)), dtype=bool)
    one[np.arange(rows.size), rows % len(whole.models)] = True
    needs = ["pdf" if i % 2 else None for i in range(rows.size)]
    queries = whole.queries.iloc[rows].assign(needs=needs).reset_index(drop=True)
    shares = []
    for kept, key in ((np.ones_like(one), "router"), (one, "chosen")):
        quality, cost_usd = (
            np.where(kept, values[rows], np.nan) for values in (whole.quality, whole.cost_usd)
        )
        made = save_evalset(
            tmp_path / key, name=key, queries=queries, models=whole.models, quality=quality,
            cost_usd=cost_usd,
        )  # fmt: skip
        scores = catalog_scores(whole, catalog)[rows]
        save_scores(made, catalog.predictor_fingerprint, catalog.dimensions, scores)
        assert main(["evaluate", str(made.path), "--catalog", str(named), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)[key]
        shares.append({k: v for k, v in found.get("shares", found).items() if v})
    assert shares[1] == pytest.approx(shares[0])
