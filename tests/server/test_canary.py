"""A canary in the service: who is on it, who stays, and that it ends by itself."""

import pytest

from hydra_core.base.errors import HydraError
from hydra_core.decision_log.canaries import canaries
from hydra_core.decision_log.reading import read_log
from hydra_core.server.run import check
from hydra_core.server.settings import Settings
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
