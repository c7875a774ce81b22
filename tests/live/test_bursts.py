"""A burst of another kind of traffic is seen, ordinary traffic is not; predictions are checked."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hydra_core.console.live.view_traffic import burst_command, burst_text, calibration_text
from hydra_core.live.drift import bursts
from hydra_core.live.traffic import calibration
from hydra_core.server.telemetry import RecentKinds
from tests.live.logs import AT, decision, traffic

DAY = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
DIMENSIONS = ("reasoning", "code_generation")


def ordinary(rng, n=4025):
    """A day of steady traffic: times and requirements."""
    return DAY + np.sort(rng.random(n)) * 86_400, rng.beta(2, 4, (n, 2))


def test_206_of_4231_requests_of_another_kind_are_seen():
    rng = np.random.default_rng(0)
    at, values = ordinary(rng)
    begin = DAY + 50_000
    at = np.concatenate([at, begin + rng.random(206) * 1200])
    values = np.concatenate([values, np.column_stack([rng.beta(2, 4, 206), rng.beta(6, 2, 206)])])
    found = bursts(at, values, DIMENSIONS, np.arange(len(at)))
    assert {one.dimension for one in found} == {"code_generation"}
    assert {one.window for one in found} == {"15 minutes"}
    assert min(one.start.timestamp() for one in found) <= begin
    tone, said = burst_text(found)
    assert tone == "warning"
    assert "Collect 250 of these, learn again" in said
    command = burst_command(found, Path("/srv/of ana/log"))
    assert f"--since {found[0].start:%Y-%m-%dT%H:%M}" in command
    assert "--from-log '/srv/of ana/log' " in command


def test_ordinary_days_have_no_burst():
    rng = np.random.default_rng(1)
    assert not any(bursts(*ordinary(rng), DIMENSIONS, np.arange(4025)) for _ in range(20))


def test_one_long_conversation_of_another_kind_is_no_burst():
    rng = np.random.default_rng(4)
    at, values = ordinary(rng)
    at = np.concatenate([at, DAY + 50_000 + rng.random(300) * 800])
    values = np.concatenate([values, np.column_stack([rng.beta(2, 4, 300), rng.beta(6, 2, 300)])])
    own = np.arange(len(at))
    assert bursts(at, values, DIMENSIONS, own)
    assert not bursts(at, values, DIMENSIONS, np.minimum(own, 4025))


def test_a_burst_of_what_nearly_no_request_asks_for_is_seen():
    rng = np.random.default_rng(5)
    at, values = ordinary(rng)
    values[:, 1] = 0.0
    values[(at > DAY + 50_000) & (at < DAY + 55_000), 1] = 0.6
    found = bursts(at, values, DIMENSIONS, np.arange(len(at)))
    assert {one.dimension for one in found} == {"code_generation"}
    assert not bursts(at, np.zeros_like(values), DIMENSIONS, np.arange(len(at)))


def test_the_metric_follows_the_last_quarter_of_an_hour():
    rng, now = np.random.default_rng(2), [0.0]
    kinds = RecentKinds(lambda: now[0])
    for i in range(600):
        now[0] = 30.0 * i
        kinds.add(rng.beta(2, 4, 2))
    psi, shifted = kinds.shifts()["15m"]
    assert not shifted
    for i in range(60):
        now[0] = 18_000 + 10.0 * i
        kinds.add(rng.beta(6, 2, 2))
    now[0] += 60
    worse, shifted = kinds.shifts()["15m"]
    assert shifted
    assert worse > psi


def test_the_metric_takes_no_conversation_for_a_shift():
    rng, now = np.random.default_rng(2), [0.0]
    kinds = RecentKinds(lambda: now[0])
    for i in range(600):
        now[0] = 30.0 * i
        kinds.add(rng.beta(2, 4, 2))
    for i in range(60):
        now[0] = 18_000 + 10.0 * i
        kinds.add(rng.beta(6, 2, 2), "one")
    psi, shifted = kinds.shifts()["15m"]
    assert psi > 0.25
    assert not shifted


@pytest.mark.parametrize(("rate", "tone"), [(0.7, "success"), (0.3, "warning")])
def test_predicted_success_is_compared_with_what_was_achieved(tmp_path, rate, tone):
    rng = np.random.default_rng(3)
    rows, ratings = [], {}
    for i in range(200):
        said = {"predicted_success": (0.7, 0.8, 0.9), "at": AT + timedelta(seconds=i)}
        rows.append(decision(i, 0.1, **said))
        ratings[f"d{i}"] = float(rng.random() < rate)
    (one,) = calibration(traffic(tmp_path, rows, ratings))
    assert (one.model, one.rated) == ("cheap", 200)
    assert one.predicted == pytest.approx(0.7)
    assert one.achieved == pytest.approx(np.mean(list(ratings.values())))
    assert calibration_text([one])[0] == tone
