"""A canary beside the main revision: stopped when it is worse, and hardly ever when it is not."""

from dataclasses import replace

import numpy as np

from hydra_core.live.canary import canary_report
from tests.live.logs import decision, traffic


def arms(n, failing=(0.0, 0.0), seed=0, every=5):
    """Decisions of two arms with these shares of failures; every fifth is the canary's."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        canary = i % every == 0
        failed = rng.random() < failing[canary]
        yield decision(i, arm="canary" if canary else "main", conversation_id=f"c{i}",
                       catalog_digest="new" if canary else "old",
                       status="failed" if failed else "answered")  # fmt: skip


def test_an_arm_that_fails_is_stopped_with_its_rates(tmp_path):
    found = canary_report(traffic(tmp_path, arms(400, (0.01, 0.4))), "new")
    assert "requests fail" in found.worse
    assert found.failed.units == (320, 80)
    assert found.failed.means[1] > 0.3


def test_an_arm_that_always_fails_is_stopped_early(tmp_path):
    assert canary_report(traffic(tmp_path, arms(150, (0.0, 1.0))), "new").worse


def test_worse_feedback_stops_it_and_better_does_not(tmp_path):
    rows = list(arms(600))
    worse = {f"d{i}": float(i % 5 > 0) for i in range(600)}
    found = canary_report(traffic(tmp_path / "worse", rows, worse), "new")
    assert "feedback" in found.worse
    assert found.quality.units == (480, 120)
    assert found.quality.means == (1.0, 0.0)
    better = {name: 1 - quality for name, quality in worse.items()}
    assert canary_report(traffic(tmp_path / "better", rows, better), "new").worse == ""


def changed(folder, canary, main=None):
    """600 equal decisions, those of each arm with these values."""
    rows = [replace(one, **(canary if one.arm == "canary" else main or {})) for one in arms(600)]
    return canary_report(traffic(folder, rows), "new")


def test_a_first_attempt_that_failed_counts_although_another_model_answered(tmp_path):
    found = changed(tmp_path, {"attempts": ("strong:server_error",), "served": "mid"})
    assert "100.0 % of its requests fail, 0.0 %" in found.worse


def test_requests_that_upstreams_reject_stop_it(tmp_path):
    found = changed(tmp_path, {"status": "rejected"})
    assert "100.0 % of its requests are rejected" in found.worse
    assert found.failed.means == (0.0, 0.0)


def test_much_slower_or_dearer_stops_it_and_a_little_does_not(tmp_path):
    slow = changed(tmp_path / "slow", {"latency_ms": 900.0}, {"latency_ms": 300.0})
    assert slow.worse == "a request takes 900 ms, 300 ms on the main revision"
    dear = changed(tmp_path / "dear", {"cost_usd": 0.009}, {"cost_usd": 0.002})
    assert dear.worse == "a request costs $0.00900, $0.00200 on the main revision"
    assert changed(tmp_path / "little", {"cost_usd": 0.003}, {"cost_usd": 0.002}).worse == ""
    unknown = {"cost_usd": None, "about_usd": 0.009}
    assert "costs" in changed(tmp_path / "unknown", unknown, {"cost_usd": 0.002}).worse


def test_before_enough_conversations_nothing_is_said(tmp_path):
    found = canary_report(traffic(tmp_path, arms(140, (0.0, 1.0))), "new")
    assert (found.failed.effect, found.worse) == (None, "")


def test_another_canary_in_the_log_does_not_count(tmp_path):
    some = traffic(tmp_path, arms(400, (0.0, 1.0)))
    assert canary_report(some, "another").failed.units == (0, 0)


def test_equal_arms_are_hardly_ever_stopped_however_often_one_looks(tmp_path):
    base, rng, stopped = traffic(tmp_path, arms(500)), np.random.default_rng(0), 0
    for _ in range(25):
        status = np.where(rng.random(500) < 0.05, "failed", "answered")
        sizes = {"latency_ms": rng.lognormal(6, 1, 500), "cost_usd": rng.lognormal(-6, 1.5, 500)}
        some = replace(base, rows=base.rows.assign(status=status, **sizes))
        looks = (canary_report(some.take(np.arange(500) < n), "new") for n in (200, 350, 500))
        stopped += any(one.worse for one in looks)
    assert stopped <= 2
