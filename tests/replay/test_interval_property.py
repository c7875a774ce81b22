"""Every interval holds its point and lies within what is possible, or says why there is none."""

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.intervals import COST, DIFFERENCE, LEVEL, SAVING, SHARE, Interval
from hydra_core.base.types import Pool, Selection
from hydra_core.lab.audit.tables import alpha_interval
from hydra_core.live.drift import psi
from hydra_core.replay.compare import compare, constant_run, policy_run
from hydra_core.replay.fixed_mix import matched_gain
from hydra_core.replay.metrics import by_language, evaluate_choice, spread
from hydra_core.replay.replay import ReplayData
from hydra_core.replay.routability import auc_interval
from hydra_core.replay.significance import mean_interval, paired_bootstrap, wilson
from hydra_core.replay.significance_table import Entry, significance_table
from hydra_core.replay.verdict import verdict

ROOT = Path(__file__).resolve().parents[2] / "hydra_core"
ANY = (-math.inf, math.inf)


def holds(found: Interval, possible: tuple[float, float]) -> bool:
    if not found.known:
        return math.isnan(found.lo) and math.isnan(found.hi) and "nan" not in found.bounds()
    least, most = possible
    slack = 1e-9 * max(1.0, abs(found.value))
    inside = least - slack <= found.lo and found.hi <= most + slack
    return inside and found.lo <= found.value <= found.hi


@st.composite
def sets(draw):
    """Replay data of 1 to 60 queries, often tiny, one-sided, free of charge or clustered."""
    n, m = draw(st.integers(1, 60)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    chance = draw(st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]))
    quality = (rng.random((n, m)) < chance).astype(float)
    if draw(st.booleans()):
        quality *= rng.random((n, m))
    spreads = draw(st.sampled_from([0.0, 0.5, 2.5]))
    cost = rng.lognormal(0.0, spreads, (n, m)) * draw(st.sampled_from([0.0, 1e-4, 1.0]))
    cost *= 3.0 ** np.arange(m)
    clusters = None
    if draw(st.booleans()):
        of = rng.integers(0, draw(st.integers(1, n)), n)
        clusters = np.unique(of, return_inverse=True)[1]
    data = ReplayData(
        query_ids=tuple(f"q{i}" for i in range(n)),
        languages=tuple(("en", "de", "zh")[i % 3] for i in range(n)),
        requirements=rng.random((n, 2)),
        quality=quality,
        cost_usd=cost,
        pool=Pool(
            tuple(f"m{i}" for i in range(m)), rng.random((m, 2)), 3.0 ** np.arange(m), np.ones(2)
        ),
        rows=np.arange(n),
        clusters=clusters,
    )
    return data, rng.integers(0, m, (2, n))


@settings(max_examples=60, deadline=None)
@given(sets())
def test_every_interval_of_a_policy_holds_its_point(drawn):
    data, (choice, other) = drawn
    found = evaluate_choice(data, choice)
    shares = (found.quality, found.qr, found.misroute)
    assert all(holds(one, SHARE) for one in shares), found
    assert holds(found.mean_cost_usd, COST)
    assert holds(found.cs, SAVING)
    said = verdict(data, choice, Selection.LOOKED, critical=3.0)
    assert holds(said.interval, DIFFERENCE)
    assert holds(said.simultaneous, DIFFERENCE)
    for one in by_language(data, choice):
        assert holds(one.qr, SHARE)
        assert holds(one.strong, SHARE)
        assert holds(one.cs, SAVING)
        assert holds(one.mean_cost_usd, COST)
        assert holds(one.difference, DIFFERENCE)
    for one in spread(data, choice):
        assert holds(one.qr, DIFFERENCE)
        assert holds(one.strong, DIFFERENCE)
        assert holds(one.cs, ANY)
    gain = matched_gain(data, choice, other)
    assert holds(gain.quality, ANY)
    assert gain.saving is None or holds(gain.saving, ANY)


@settings(max_examples=40, deadline=None)
@given(sets())
def test_every_interval_of_a_comparison_holds_its_point(drawn):
    data, (choice, other) = drawn
    a, b = policy_run("a", data, choice), policy_run("b", data, other)
    found = compare(a, b, data.clusters)
    for one in (found.quality, found.qr, found.misroute):
        assert holds(one, DIFFERENCE)
    assert all(holds(one, SHARE) for one in found.retained)
    assert holds(found.savings, SAVING)
    assert holds(found.cost_usd, ANY)
    table = significance_table(
        [Entry(a), Entry(b)],
        constant_run(data, "m0"),
        data.clusters,
        rng=np.random.default_rng(0),
        resamples=50,
    )
    for row in table.standings:
        assert all(holds(one, SHARE) for one in (row.resolved, row.quality, row.qr))
        assert holds(row.mean_cost_usd, COST)
        assert holds(row.cs, SAVING)
    assert all(holds(row.quality, DIFFERENCE) for row in table.contrasts)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 80), seed=st.integers(0, 10_000), skew=st.sampled_from([0.05, 0.5, 1.0, 4.0])
)
def test_resampled_and_other_intervals_hold_their_points(n, seed, skew):
    rng = np.random.default_rng(seed)
    columns = rng.lognormal(0.0, skew, (n, 2))
    ratio = paired_bootstrap(columns, lambda m: m[:, 0] / m[:, 1], rng=rng, resamples=20)
    assert holds(ratio, COST)
    assert holds(psi(columns[:, 0], columns[:, 1]), COST)
    ratings = np.round(rng.random((2, n)) * 4) / 4
    assert holds(alpha_interval(ratings, rng=rng, resamples=20), SAVING)
    target = np.arange(n) % 2 == 0
    assert holds(auc_interval(columns[:, 0], target), SHARE)
    assert holds(wilson(int(rng.integers(0, n + 1)), n), SHARE)


def test_one_observation_has_no_interval_and_says_so():
    one = mean_interval(np.array([0.7]))
    assert one.value == 0.7
    assert not one.known
    assert one.bounds() == "one independent query gives no interval"
    assert one.scaled(100.0).text("pp") == "+70.0 pp (one independent query gives no interval)"


def test_an_interval_that_missed_its_estimate_is_widened_to_it():
    assert Interval.holding(0.38, 0.28, 0.37) == Interval(0.38, 0.28, 0.38)
    assert Interval(0.9, 0.4, 1.16).clipped(*SHARE) == Interval(0.9, 0.4, 1.0)


def test_the_level_is_set_in_one_place():
    """No module names 95 % in numbers of its own: every interval takes `LEVEL`."""
    assert LEVEL == 0.95
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            value = getattr(node, "value", None)
            if isinstance(node, ast.Constant):
                assert value not in {1.96, 97.5}, path
            named = isinstance(node, ast.arg) and node.arg == "level"
            assert not (named and node.annotation is None), path
            if isinstance(node, ast.FunctionDef):
                every = [*node.args.args, *node.args.kwonlyargs]
                given = [*node.args.defaults, *node.args.kw_defaults]
                if any(one.arg == "level" for one in every):
                    assert not any(isinstance(d, ast.Constant) and d.value == 0.95 for d in given)


@pytest.mark.parametrize("pattern", [r"quality[^=\n]*>=? 0?\.5\b", r"resolved[^=\n]*>=? 0?\.5\b"])
def test_what_counts_as_resolved_is_set_in_one_place(pattern):
    """Everything asks `RESOLVED_AT`."""
    for path in ROOT.rglob("*.py"):
        assert not re.search(pattern, path.read_text(encoding="utf-8")), path
