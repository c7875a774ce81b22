"""Alerts: each event once, retried, never in a request's way, and never with the address."""

import json
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import HydraError
from hydra_core.cli.main import main
from hydra_core.decision_log.canaries_and_alerts import (
    Events,
    canaries,
    read_alerts,
    resume_canary,
    stop_canary,
)
from hydra_core.server.alerts import Webhook, shifted, webhook_address
from hydra_core.server.callers import new_token
from hydra_core.server.telemetry import RecentKinds
from hydra_core.store.roles import Role
from tests.server.conftest import CATALOG, asked, upstreams_text, wait_for

PAGE = Path("docs/guide/alerts.md").read_text()
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


class Hook(ThreadingHTTPServer):
    """A webhook that answers with the statuses it is told, 200 afterwards."""

    def __init__(self):
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                hook.asked.append(json.loads(body)["text"])
                time.sleep(hook.slow_s)
                self.send_response(hook.statuses.pop(0) if hook.statuses else 200)
                self.end_headers()

            def log_message(self, *words):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.statuses, self.slow_s = [], [], 0.0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/services/secret-of-ours"


@pytest.fixture
def hook():
    server = Hook()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def alerted(make, hook, monkeypatch):
    """Starts a service that alerts the hook, looking often."""
    monkeypatch.setenv("HYDRA_ALERT_WEBHOOK", hook.url)
    return partial(make, canary_look_s=0.05)


def test_a_model_that_does_not_answer_is_told_once_and_again_after_it_came_back(
    alerted, upstream, hook, tmp_path
):
    client = alerted(log=str(tmp_path / "log"))

    def ask(times):
        for _ in range(times):
            client.post("/v1/chat/completions", json=asked(model="gpt-5.4"))

    upstream.behaviour["up-gpt-5.4"] = "500"
    ask(6)
    wait_for(lambda: hook.asked)
    ask(3)
    upstream.behaviour.clear()
    ask(1)
    upstream.behaviour["up-gpt-5.4"] = "500"
    time.sleep(0.3)
    assert len(hook.asked) == 1
    ask(6)
    wait_for(lambda: len(hook.asked) == 2)
    assert all(text.startswith("HyDRA: gpt-5.4 does not answer") for text in hook.asked)
    assert len(read_alerts(tmp_path / "log")) == 2
    wait_for(lambda: 'hydra_alerts_total{end="sent"} 2.0' in client.get("/metrics").text)
    kept = b"".join(p.read_bytes() for p in (tmp_path / "log").rglob("*") if p.is_file())
    assert b"secret-of-ours" not in kept


def test_answers_without_tokens_are_told_once_a_day(alerted, upstream, hook):
    client = alerted()
    upstream.behaviour["*"] = "uncounted"
    for _ in range(3):
        client.post("/v1/chat/completions", json=asked(model="gpt-5.4"))
        time.sleep(0.1)
    wait_for(lambda: hook.asked)
    assert hook.asked == [
        "HyDRA: gpt-5.4 answers without counting its tokens: what it costs is not known"
    ]


def test_a_canary_that_is_stopped_is_told_with_the_reason(alerted, hook, tmp_path):
    log = tmp_path / "log"
    alerted(log=str(log), canary=str(CATALOG), canary_share=0.5)
    (record,) = canaries(log)
    for told in (1, 2):  # the same reason after it was resumed is another stop
        at = datetime(2026, 11, 25, 12, told, tzinfo=UTC)
        record = stop_canary(log, record, "it fails more often", at)
        wait_for(lambda told=told: len(hook.asked) == told)
        record = resume_canary(log, record, at)
    assert all("is stopped: it fails more often" in text for text in hook.asked)


def test_budgets_are_told_at_80_and_at_100_percent(budgets, alerted, hook, tmp_path):
    team = "policy:\n  teams: {build: {budget: {usd: 1, per: month}}}\n"
    pool = tmp_path / "pool.yaml"
    pool.write_text(CATALOG.read_text().replace("policy:\n", team))
    token, line = new_token("ana", Role.EDITOR, "build")
    (tmp_path / "tokens.yaml").write_text(f"tokens:\n{line}\n")
    log = tmp_path / "log"
    client = alerted(catalog=pool, log=str(log), tokens=str(tmp_path / "tokens.yaml"))
    ledger = budgets(log)
    budget = _catalog_budget(pool)
    for usd, told in ((0.85, "used 85 % of $1"), (0.2, "requests are refused")):
        ledger.settle(ledger.take("build", budget, 0.0, most=False), usd)
        wait_for(lambda told=told: any(told in text for text in hook.asked))
    assert len(hook.asked) == 2
    refused = client.post("/v1/chat/completions", json=asked(), headers=_bearer(token))
    assert refused.status_code == 429
    ledger.close()
    scraped = client.get("/metrics", headers=_bearer(token)).text
    assert 'hydra_team_budget_used{team="build"} 1.05' in scraped


def _catalog_budget(pool):
    from hydra_core.catalog import load_catalog

    return load_catalog(pool).policy.teams["build"].budget


def _bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_a_webhook_that_fails_is_tried_again_and_given_up(hook, caplog):
    counted = []
    webhook = Webhook(hook.url, counted.append, waits_s=(0.01, 0.01))
    hook.statuses = [500, 302]
    webhook.post("first")
    wait_for(lambda: counted == ["sent"])
    hook.statuses = [500] * 3
    webhook.post("second")
    wait_for(lambda: counted == ["sent", "lost"])
    webhook.close()
    assert hook.asked == ["first"] * 3 + ["second"] * 3
    assert "status 500" in caplog.text
    assert "secret-of-ours" not in caplog.text


def test_a_slow_webhook_is_never_waited_for(hook):
    webhook = Webhook(hook.url, lambda end: None)
    hook.slow_s = 1.0
    began = time.monotonic()
    for number in range(150):
        webhook.post(str(number))
    assert time.monotonic() - began < 1.0
    webhook.close()


def test_the_address_is_checked_and_not_shown(monkeypatch, capsys, tmp_path):
    with pytest.raises(HydraError, match="HYDRA_ALERT_WEBHOOK is no http") as caught:
        webhook_address({"HYDRA_ALERT_WEBHOOK": "hooks.example/secret-of-ours"})
    assert "secret-of-ours" not in str(caught.value)
    assert webhook_address({}) == ""


def test_the_pages_example_says_whether_it_would_start(monkeypatch, capsys, tmp_path):
    name, value = re.search(r"export (HYDRA_ALERT_WEBHOOK)=(\S+)", PAGE).groups()
    words = re.search(r"hydra-router (serve .*)", PAGE)[1].split()
    (tmp_path / "upstreams.yaml").write_text(upstreams_text("http://127.0.0.1:1"))
    changed = {"mine": str(CATALOG.resolve()), "upstreams.yaml": str(tmp_path / "upstreams.yaml")}
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAKE_KEY", "k")
    assert main([changed.get(word, word) for word in words]) == 0
    assert value not in capsys.readouterr().out
    monkeypatch.setenv(name, "no-address")
    assert main([changed.get(word, word) for word in words]) != 0


def test_what_was_told_is_told_once_by_all_workers_of_a_log(tmp_path):
    one, other = Events(tmp_path), Events(tmp_path)
    assert one.first("k", "text", NOW)
    assert not one.first("k", "text", NOW)
    assert not other.first("k", "text", NOW)
    one.over("k")
    other.over("k")
    assert Events(tmp_path).first("k", "again", NOW + timedelta(hours=1))
    assert [told.text for told in read_alerts(tmp_path)] == ["again", "text"]
    alone = Events(None)
    assert (alone.first("k", "t", NOW), alone.first("k", "t", NOW)) == (True, False)


def test_traffic_of_another_kind_is_an_event_of_each_window():
    moments = iter([0.0] * 200 + [86_400.0 * 2] * 400)
    kinds = RecentKinds(lambda: next(moments))
    rng = np.random.default_rng(0)
    for number in range(260):
        kinds.add(rng.uniform(0, 0.5, 4) + 0.5 * (number >= 200))
    found = [text for _, text in shifted(kinds.shifts(), NOW)]
    assert len(found) == 3
    assert found[0].startswith("requests of the last 15 minutes ask for something else than before")
