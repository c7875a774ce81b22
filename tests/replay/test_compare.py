"""Two policies side by side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.replay.compare import FlipCell, PolicyRun, compare, constant_run, policy_run
from hydra_core.replay.metrics import evaluate_choice
from hydra_core.replay.replay import replay
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
