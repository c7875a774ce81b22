"""What a service logs of itself, and the series that say what runs."""

import json
import logging
import os
import subprocess
import sys

from hydra_core.base.shipped import VERSION, commit
from hydra_core.server.run import EXTRA, JsonFormatter
from hydra_core.server.telemetry import Metrics
from tests.server.conftest import CATALOG, asked, wait_for

FIELDS = {"at", "level", "event", "message", "pid", *EXTRA}


def lines(caplog):
    return [json.loads(JsonFormatter().format(record)) for record in caplog.records]


def test_every_line_has_the_same_fields_and_the_events_are_there(make, upstream, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="hydra_core")
    pool = tmp_path / "pool.yaml"
    pool.write_text(CATALOG.read_text())
    client = make(catalog=pool)
    first = client.post("/v1/decision", json=asked()).json()["model"]
    upstream.behaviour[f"up-{first}"] = "500"
    for _ in range(2):
        client.post("/v1/chat/completions", json=asked())
    client.post("/v1/decision", json=asked(model="gpt-9"))
    pool.write_text(CATALOG.read_text().replace("tau: 0.24", "tau: 0.3"))
    wait_for(lambda: "revision_taken" in {one["event"] for one in lines(caplog)})
    found = {one["event"]: one for one in lines(caplog)}
    assert all(set(one) == FIELDS for one in found.values())
    assert found["start"]["catalog"] == "five-model coding pool"
    marked = found["upstream_marked"]
    assert (marked["model"], marked["kind"], marked["status"]) == (first, "server_error", 500)
    assert sum(one["event"] == "upstream_marked" for one in lines(caplog)) == 1
    assert found["request_refused"]["status"] == 404
    assert found["revision_taken"]["revision"] != found["start"]["revision"]


def test_an_error_is_one_line_with_its_trace():
    try:
        raise LookupError("x")
    except LookupError:
        info = logging.sys.exc_info()
    record = logging.LogRecord("n", logging.ERROR, "p", 1, "it %s", ("failed",), info)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert json.loads(text)["message"].startswith("it failed\nTraceback")


def test_the_version_and_the_revision_in_use_are_series(make, tmp_path):
    pool = tmp_path / "pool.yaml"
    pool.write_text(CATALOG.read_text())
    client = make(catalog=pool)
    before = client.get("/health/ready").json()["revision"]
    line = 'hydra_revision_info{{arm="main",catalog="five-model coding pool",revision="{}"}} {}'
    found = client.get("/metrics").text
    assert line.format(before, "1.0") in found
    assert f'hydra_build_info{{commit="{commit()}",version="{VERSION}"}} 1.0' in found
    for path in ("/health", "/health/live", "/health/ready"):
        said = client.get(path).json()
        assert (said["version"], said["commit"]) == (VERSION, commit())
    pool.write_text(CATALOG.read_text().replace("tau: 0.24", "tau: 0.3"))
    wait_for(lambda: client.get("/health/ready").json()["revision"] != before)
    now = client.get("/health/ready").json()["revision"]
    found = client.get("/metrics").text
    assert line.format(now, "1.0") in found
    assert line.format(before, "0.0") in found


def test_a_team_without_a_budget_any_more_has_no_share_of_it():
    metrics = Metrics()
    states = dict.fromkeys(("problem", "stopped", "promise_ended"), 0)
    metrics.budgets({"a": 0.9, "b": 0.5})
    metrics.budgets({"b": 0.6})
    found = [line for line in metrics.text(**states).decode().splitlines() if "{team=" in line]
    assert found == ['hydra_team_budget_used{team="a"} NaN', 'hydra_team_budget_used{team="b"} 0.6']


def test_records_that_were_given_up_are_counted_as_they_are(make, tmp_path, monkeypatch):
    monkeypatch.setattr("hydra_core.decision_log.writer._MOST_WAITING", 0)
    client = make(log=str(tmp_path / "log"))
    for model in ("auto", "gpt-9"):  # decided and refused
        client.post("/v1/decision", json=asked(model=model))
    assert "hydra_log_given_up 2.0" in client.get("/metrics").text.splitlines()


def test_decisions_are_counted_by_what_chose(make):
    client = make(explore_all=1.0, explore_budget_usd=9.0)
    drawn = {client.post("/v1/decision", json=asked()).json()["model"] for _ in range(20)}
    named = client.post("/v1/decision", json=asked(model="gpt-5.4-mini"))
    assert named.json()["model"] == "gpt-5.4-mini"
    lines = client.get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith(("hydra_decisions_", "hydra_vetoes_"))]
    counts = {}
    for line in found:
        name, _, count = line.rpartition(" ")
        if float(count) and "_created" not in name:
            counts[name] = float(count)
    named = 'hydra_decisions_total{cause="named",model="gpt-5.4-mini"}'
    assert counts.pop(named) == 1
    assert len(drawn) > 1
    assert sum(counts.values()) == 20
    assert {name.partition('model="')[2].rstrip('"}') for name in counts} == drawn
    assert any('cause="explored"' in name for name in counts)


def test_a_worker_that_was_killed_no_longer_waits_or_shifts(tmp_path):
    text = """
from hydra_core.server.telemetry import Metrics
metrics = Metrics(["m"])
metrics.finished("m", "answered")
print(metrics.text().decode())
metrics.depth.set(5)
metrics._shifted.labels("1h").set(1)
"""
    environ = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    command = [sys.executable, "-c", text]
    subprocess.run(command, env=environ, check=True, capture_output=True)  # the worker
    after = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    lines = after.stdout.splitlines()
    assert "hydra_queue_depth 0.0" in lines
    assert 'hydra_traffic_shifted{window="1h"} 0.0' in lines
    assert 'hydra_requests_total{model="m",status="answered"} 2.0' in lines  # counters stay
