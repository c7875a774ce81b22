"""A canary in the service: who is on it, who stays, and that it ends by itself."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from hydra_core.base.errors import HydraError
from hydra_core.cli.main import main
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    canaries,
    order_canary,
    refused_order,
)
from hydra_core.decision_log.reading import read_log
from hydra_core.decision_log.writer import LogWriter
from hydra_core.routing.router import Router
from hydra_core.server.canary import Canary
from hydra_core.server.live import FileSource, LiveCatalog
from hydra_core.server.run import check
from hydra_core.server.settings import Settings
from tests.decision_log.test_log import record
from tests.server.conftest import CATALOG, asked, wait_for


@pytest.fixture
def second(tmp_path):
    """A catalog that sends everything to its costliest model."""
    path = tmp_path / "second.yaml"
    text = CATALOG.read_text().replace("name: five-model", "name: second")
    path.write_text(text.replace("tau: 0.24", "tau: 0.0"))
    return path


def talk(client, number, turn=1):
    own = {"conversation_id": f"c{number}", "turn": turn}
    return client.post("/v1/chat/completions", json=asked("hi", hydra=own))


def test_a_conversation_is_on_the_canary_always_or_never(make, second, tmp_path):
    client = make(log=str(tmp_path / "log"), canary=str(second), canary_share=0.5)
    for turn in (1, 2):
        for number in range(20):
            assert talk(client, number, turn).status_code == 200
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 40)
    rows = read_log(tmp_path / "log").decisions
    arms = rows.groupby("conversation_id")["arm"].unique()
    assert all(len(one) == 1 for one in arms)
    assert {one[0] for one in arms} == {"main", "canary"}
    assert (rows["catalog"] == "second coding pool").tolist() == (rows["arm"] == "canary").tolist()


def test_what_the_canary_refuses_is_counted_and_logged_as_its_own(make, second, tmp_path):
    client = make(log=str(tmp_path / "log"), canary=str(second), canary_share=0.5)
    for number in range(20):
        body = asked("hi", hydra={"conversation_id": f"c{number}", "allow": []})
        assert client.post("/v1/chat/completions", json=body).status_code == 400
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 20)
    rows = read_log(tmp_path / "log").decisions
    assert set(rows["status"]) == {"refused"}
    assert set(rows["arm"]) == {"main", "canary"}
    assert (rows["catalog"] == "second coding pool").tolist() == (rows["arm"] == "canary").tolist()
    metrics = client.get("/metrics").text
    for arm, count in rows["arm"].value_counts().items():
        line = f'hydra_canary_requests_total{{arm="{arm}",status="refused"}} {count}.0'
        assert line in metrics


def test_a_canary_that_is_worse_gets_no_more_traffic(make, second, tmp_path, upstream):
    folder, upstream.behaviour["*"] = tmp_path / "log", "500"
    changes = {"log": str(folder), "canary_share": 0.5, "canary_look_s": 0.1}
    client = make(canary=str(second), **changes)
    said = []
    for number in range(400):
        decided = client.post(
            "/v1/decision", json=asked("hi", hydra={"conversation_id": f"c{number}"})
        )
        on_canary = decided.headers["x-hydra-catalog-revision"] != said_by_main(client)
        rating = {"decision_id": decided.json()["decision_id"], "quality": 1.0 - on_canary}
        client.post("/v1/outcomes", json=rating)
        said.append(on_canary)
        if client.get("/health/ready").json()["notes"]:
            break
    (note,) = client.get("/health/ready").json()["notes"]
    assert "feedback" in note
    assert any(said)
    assert "hydra_canary_stopped 1.0" in client.get("/metrics").text
    (kept,) = canaries(folder)
    assert kept.stopped
    assert {said_by(client, number) for number in range(40)} == {said_by_main(client)}


def said_by(client, number):
    own = {"conversation_id": f"c{number}"}
    answer = client.post("/v1/decision", json=asked("hi", hydra=own))
    return answer.headers["x-hydra-catalog-revision"]


def said_by_main(client):
    return client.get("/health/ready").json()["revision"]


def test_a_stopped_canary_stays_stopped_after_a_restart(make, second, tmp_path):
    changes = {"log": str(tmp_path / "log"), "canary": str(second), "canary_share": 0.9}
    make(**changes)
    (record,) = (tmp_path / "log").glob("canary-*.json")
    record.write_text(record.read_text().replace('"stopped": ""', '"stopped": "it was bad"'))
    client = make(**changes)
    assert {said_by(client, number) for number in range(10)} == {said_by_main(client)}
    assert "it was bad" in client.get("/health/ready").json()["notes"][0]


def test_a_canary_without_a_log_is_refused(second):
    with pytest.raises(HydraError, match="needs --log"):
        check(Settings(catalog=str(CATALOG), canary=str(second)))


def test_a_check_says_what_the_canary_would_be(second, tmp_path):
    settings = Settings(catalog=str(CATALOG), canary=str(second), log=str(tmp_path))
    assert check(settings)["canary"]["catalog"] == "second coding pool"


def arm_lines(client):
    lines = client.get("/metrics").text.splitlines()
    return [one for one in lines if one.startswith("hydra_canary_requests_total")]


def revisions(client):
    return {said_by(client, number) for number in range(30)}


def test_a_canary_is_begun_stopped_resumed_and_ended_without_a_restart(make, second, tmp_path):
    folder = tmp_path / "log"
    client = make(log=str(folder))
    assert len(revisions(client)) == 1
    assert arm_lines(client) == []
    verb = ["canary", "begin", str(folder), "--catalog", str(second), "--share", "0.5"]
    assert main(verb) == 0
    wait_for(lambda: len(revisions(client)) == 2)
    assert main(["canary", "stop", str(folder), "--why", "prices changed"]) == 0
    wait_for(lambda: len(revisions(client)) == 1)
    assert "prices changed" in client.get("/health/ready").json()["notes"][0]
    assert "hydra_canary_stopped 1.0" in client.get("/metrics").text
    assert main(["canary", "resume", str(folder)]) == 0
    wait_for(lambda: len(revisions(client)) == 2)
    assert client.get("/health/ready").json()["notes"] == []
    assert main(["canary", "end", str(folder)]) == 0
    wait_for(lambda: len(revisions(client)) == 1)
    assert client.get("/health/ready").json()["notes"] == []


def test_an_order_that_cannot_be_followed_changes_nothing_and_is_said(make, second, tmp_path):
    folder = tmp_path / "log"
    client = make(log=str(folder), canary=str(second), canary_share=0.5)
    order = CanaryOrder(str(tmp_path / "missing.yaml"))
    order_canary(folder, order)
    wait_for(lambda: client.get("/health/ready").json()["notes"])
    assert "missing.yaml" in client.get("/health/ready").json()["notes"][0]
    assert "missing.yaml" in refused_order(folder, order)
    assert len(revisions(client)) == 2
    order_canary(folder, CanaryOrder(str(second), 0.5))
    wait_for(lambda: refused_order(folder, order) == "")


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--share", "2"], "share: must"), (["--limit", "0.5"], "limit: must"), ([], "catalog: is")],
)
def test_an_order_that_makes_no_sense_is_refused(second, tmp_path, capsys, more, said):
    catalog = ["--catalog", str(second)] if more else []
    assert main(["canary", "begin", str(tmp_path), *catalog, *more]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.glob("canary.json")) == []


def test_the_arms_and_the_canarys_models_are_in_the_metrics_from_the_start(make, second, tmp_path):
    second.write_text(second.read_text().replace("id: gpt-5.4-mini", "id: only-there"))
    client = make(log=str(tmp_path / "log"), canary=str(second), upstreams="")
    assert 'hydra_canary_requests_total{arm="canary",status="answered"} 0.0' in arm_lines(client)
    assert 'hydra_canary_requests_total{arm="main",status="failed"} 0.0' in arm_lines(client)
    named = 'hydra_requests_total{model="only-there",status="answered"} 0.0'
    assert named in client.get("/metrics").text


@pytest.fixture
def other_cheapest(tmp_path):
    """A catalog whose cheapest model is another one, to which "hi" goes."""
    head, found, rest = CATALOG.read_text().partition("- id: gpt-5.4-mini")
    dear = re.sub(r"(input|output)_usd_per_mtok: \S+", r"\1_usd_per_mtok: 90.0", rest, count=2)
    path = tmp_path / "other.yaml"
    path.write_text(head.replace("name: five-model", "name: other") + found + dear)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("status", ["500", "404", "422"])
def test_a_canary_whose_every_call_fails_is_stopped_although_others_answer(
    make, other_cheapest, tmp_path, upstream, status
):
    upstream.behaviour["up-claude-haiku-4.5"] = status  # the canary's model alone
    changes = {"log": str(tmp_path / "log"), "canary_share": 0.5, "canary_look_s": 0.1}
    client = make(canary=str(other_cheapest), **changes)
    for number in range(400):
        talk(client, number)
        if client.get("/health/ready").json()["notes"]:
            break
    (note,) = client.get("/health/ready").json()["notes"]
    assert ("rejected" if status == "422" else "requests fail") in note


def test_a_canary_is_watched_although_the_clock_goes_back_a_day(tmp_path, second):
    now = [datetime(2026, 11, 25, 12, tzinfo=UTC)]
    log = LogWriter(tmp_path, clock=lambda: now[0])
    live = LiveCatalog(FileSource(second), Router)
    canary = Canary(live, 0.5, tmp_path, clock=lambda: now[0])
    digest = live.now.catalog.digest
    now[0] -= timedelta(days=1)
    canary.look()
    for number in range(200):
        arm, failed = ("canary", "failed") if number % 2 else ("main", "answered")
        log.add(record(number, at=now[0] + timedelta(seconds=number), arm=arm, status=failed,
                       conversation_id=f"c{number}", catalog_digest=digest))  # fmt: skip
    log.close()
    now[0] += timedelta(minutes=5)
    canary.look()
    assert "requests fail" in canary.stopped
