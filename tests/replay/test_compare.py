"""Two policies or catalogs on the same queries: what moved, and what it changed."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import MismatchError
from hydra_core.catalog import load_catalog
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.compare import (
    FlipCell,
    PolicyRun,
    compare,
    constant_run,
    policy_run,
    replay_policy,
    what_if,
)
from hydra_core.replay.metrics import evaluate_choice
from hydra_core.replay.replay import catalog_scores, replay
from hydra_core.replay.significance import mcnemar
from hydra_core.replay.sweep import sweep_catalog
from tests.replay.conftest import make_data


def test_a_policy_against_itself_changes_nothing(data):
    run = policy_run("now", data, replay(data, 0.2))
    same = compare(run, run)
    assert same.flips == ()
    assert same.flipped.size == 0
    assert (same.quality.value, same.cost_usd.value, same.savings.value) == (0, 0, 0)
    assert same.mcnemar.p_value == 1.0


def test_deltas_are_the_differences_of_the_metrics(data):
    a, b = replay(data, 0.1), replay(data, 0.6)
    result = compare(policy_run("a", data, a), policy_run("b", data, b))
    x, y = evaluate_choice(data, a), evaluate_choice(data, b)
    assert result.quality.value == pytest.approx(y.quality.value - x.quality.value)
    assert result.qr.value == pytest.approx(y.qr.value - x.qr.value)
    assert result.misroute.value == pytest.approx(y.misroute.value - x.misroute.value)
    assert result.cost_usd.value == pytest.approx(y.mean_cost_usd.value - x.mean_cost_usd.value)
    assert result.savings.value == pytest.approx(1 - y.mean_cost_usd.value / x.mean_cost_usd.value)


def test_the_flip_matrix_adds_up_to_the_whole_change(data):
    result = compare(
        policy_run("a", data, replay(data, 0.1)), policy_run("b", data, replay(data, 0.6))
    )
    assert sum(cell.queries for cell in result.flips) == result.flipped.size > 0
    total = sum(cell.queries * cell.delta_quality for cell in result.flips)
    assert total == pytest.approx(result.n * result.quality.value)
    spent = sum(cell.queries * cell.delta_cost_usd for cell in result.flips)
    assert spent == pytest.approx(result.n * result.cost_usd.value)


def cell_by_cell(before, after, quality, cost):
    """The flip matrix from one mask per cell."""
    cells = []
    for x, y in {(x, y) for x, y in zip(before, after, strict=True) if x != y}:
        at = (before == x) & (after == y)
        cells.append(FlipCell(str(x), str(y), int(at.sum()), quality[at].mean(), cost[at].mean()))
    return sorted(cells, key=lambda cell: (-cell.queries, cell.before, cell.after))


def run_of(name, models, quality):
    n = len(models)
    ids = tuple(dict.fromkeys(models))
    choice = np.array([ids.index(model) for model in models])
    return PolicyRun(name, np.arange(n), ids, choice, quality, quality + 1, np.ones(n),
                     np.zeros(n))  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_flip_matrix_equals_one_mask_per_cell(data):
    n = data.draw(st.integers(1, 12))
    names = st.sampled_from(["a", "b", "a-longer-name", "é"])
    eighths = st.lists(st.integers(0, 8).map(lambda i: i / 8), min_size=n, max_size=n).map(np.array)
    a, b = (
        run_of(name, data.draw(st.lists(names, min_size=n, max_size=n)), data.draw(eighths))
        for name in "ab"
    )
    found = compare(a, b)
    wanted = cell_by_cell(a.models, b.models, found.delta_quality, found.delta_cost)
    assert list(found.flips) == wanted  # eighths add up without rounding
    assert found.flipped.tolist() == np.flatnonzero(a.models != b.models).tolist()


def test_clusters_as_numbers_and_as_names_give_the_same_intervals(data):
    a, b = constant_run(data, "m0"), constant_run(data, "m2")
    numbers = np.arange(200) // 4
    named = compare(a, b, [f"t{i:03}" for i in numbers])
    assert compare(a, b, numbers).quality == named.quality
    assert compare(a, b, numbers.tolist()).savings == named.savings


def test_only_common_queries_are_compared(data):
    half = data.take(np.arange(0, 200, 2))
    result = compare(constant_run(data, "m0"), constant_run(half, "m2"))
    assert (result.n, result.left_out) == (100, 100)
    assert result.flips[0].before == "m0"
    with pytest.raises(ValueError, match="no query in common"):
        compare(
            constant_run(data.take(np.arange(5)), "m0"),
            constant_run(data.take(np.arange(5, 9)), "m0"),
        )


def test_clusters_widen_the_interval():
    base = make_data(n=50, seed=4)
    many = base.take(np.repeat(np.arange(50), 8))
    a, b = constant_run(many, "m0"), constant_run(many, "m2")
    a, b = (
        type(r)(r.name, np.arange(400), *(getattr(r, f) for f in r.__slots__[2:])) for r in (a, b)
    )
    alone = compare(a, b).quality
    together = compare(a, b, [f"t{i // 8}" for i in range(400)]).quality
    assert together.hi - together.lo > 2 * (alone.hi - alone.lo)


ROOT = Path(__file__).resolve().parents[2]
CATALOG = load_catalog(ROOT / "catalog" / "paper_five_published.yaml")


@pytest.fixture(scope="module")
def evalset():
    return load_evalset(ROOT / "sample_data" / "paper_swebench")


@pytest.fixture(scope="module")
def replayed(evalset):
    def run(catalog):
        scores = catalog_scores(evalset, catalog)
        return replay_policy(
            catalog, sweep_catalog(evalset, catalog, scores, today=date(2026, 1, 1))
        )

    return run


def without(model):
    return replace(CATALOG, models=tuple(m for m in CATALOG.models if m.id != model))


def test_the_same_catalog_changes_nothing(replayed):
    found = what_if(replayed(CATALOG), replayed(CATALOG))
    assert found.comparison.flipped.size == 0
    assert found.comparison.cost_usd.value == 0.0
    assert all(before == after for before, after in found.shares.values())


def test_a_removed_model_hands_its_traffic_on(replayed):
    found = what_if(replayed(CATALOG), replayed(without("gpt-5.3-codex")))
    before, after = found.shares["gpt-5.3-codex"]
    assert before > 0.5
    assert after == 0.0
    assert found.comparison.flipped.size == round(before * 500)
    assert sum(after for _, after in found.shares.values()) == pytest.approx(1.0)


def test_deltas_are_after_minus_before(replayed):
    a, b = replayed(CATALOG), replayed(without("gpt-5.3-codex"))
    found = what_if(a, b).comparison
    assert found.cost_usd.value == pytest.approx(
        b.metrics.mean_cost_usd.value - a.metrics.mean_cost_usd.value
    )
    assert found.cost_usd.lo < found.cost_usd.value < found.cost_usd.hi


def test_another_predictors_catalog_is_refused(replayed):
    with pytest.raises(MismatchError, match="is not scored by"):
        replayed(replace(CATALOG, predictor_fingerprint="0" * 64))
    others = tuple(replace(model, id=f"other-{model.id}") for model in CATALOG.models)
    with pytest.raises(MismatchError, match="no outcomes for any model"):  # no rebind would help
        replayed(replace(CATALOG, models=others, predictor_fingerprint="0" * 64))


def test_a_set_without_texts_is_not_to_be_scored(evalset):
    other = replace(CATALOG, predictor_fingerprint="0" * 64)
    with pytest.raises(MismatchError, match="It has no texts to score: import it again"):
        catalog_scores(replace(evalset, queries=evalset.queries.drop(columns="text")), other)


@pytest.mark.parametrize("model", [model.id for model in CATALOG.models])
def test_a_pool_that_lost_a_model_is_held_against_the_same_oracle(replayed, model):
    before, after = replayed(CATALOG), replayed(without(model))
    found = what_if(before, after).comparison
    best = before.data.quality.max(axis=1).mean()
    for side, run in zip(found.retained, (before.run, after.run), strict=True):
        assert side.value == pytest.approx(run.quality.mean() / best)
    assert found.qr.value == pytest.approx(found.retained[1].value - found.retained[0].value)
    assert found.qr.value == pytest.approx(found.quality.value / best)


def _run(name, model, quality, unknown=None):
    n = len(quality)
    nothing = np.zeros(n)
    return PolicyRun(
        name, np.arange(n), (model,), np.zeros(n, dtype=np.intp), np.asarray(quality), np.ones(n),
        np.ones(n), nothing, unknown,
    )  # fmt: skip


def test_the_paired_test_counts_dependent_queries_once():
    before, after = _run("a", "x", [0.0] * 40), _run("b", "y", [1.0] * 20 + [0.0] * 20)
    alone = compare(before, after).mcnemar
    assert alone == mcnemar(after.quality, before.quality)
    two = compare(before, after, np.repeat([0, 1], 20)).mcnemar
    assert (two.only_a, two.only_b) == (20, 0)
    # one cluster moved, one did not: a difference of 0.5 with a standard error of 0.5
    assert two.p_value == pytest.approx(0.5)
    assert alone.p_value < 0.001


def test_the_paired_test_leaves_out_what_nobody_knows():
    known = _run("a", "x", [1.0] * 30)
    open_ = _run("b", "new", [0.0] * 30, np.ones(30, dtype=bool))
    found = compare(known, open_)
    assert (found.mcnemar.only_a, found.mcnemar.only_b) == (0, 0)
    assert np.isnan(found.mcnemar.p_value)
    assert found.unknown == 1.0
