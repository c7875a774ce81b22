"""Conversations and feedback belong to whoever asked."""

import json
import stat

import pytest

from hydra_core.decision_log.reading import read_log
from hydra_core.server.callers import new_token
from hydra_core.server.decision_ids import DecisionIds, ids_of
from hydra_core.store.roles import Role
from tests.server.conftest import EASY, HARD, asked, wait_for

PEOPLE = {
    "ana": Role.EDITOR,
    "bo": Role.EDITOR,
    "eve": Role.VIEWER,
    "pub": Role.PUBLISHER,
}
TURNS = [
    {"role": "user", "content": HARD},
    {"role": "assistant", "content": "ok"},
    {"role": "user", "content": EASY},
]


@pytest.fixture
def people(tmp_path):
    """A token file, and the headers of each of its people."""
    made = {name: new_token(name, role) for name, role in PEOPLE.items()}
    path = tmp_path / "tokens.yaml"
    path.write_text("\n".join(["tokens:", *(line for _, line in made.values())]))
    headers = {name: {"authorization": f"Bearer {token}"} for name, (token, _) in made.items()}
    return str(path), headers


def chat(client, headers, messages=None, path="/v1/chat/completions", **own):
    body = {"model": "auto", "messages": messages or TURNS[:1]}
    body["hydra"] = {"conversation_id": "c-1", **own}
    return client.post(path, json=body, headers=headers)


def test_a_conversation_is_its_callers_alone(make, people):
    path, headers = people
    client = make(tokens=path)
    kept = chat(client, headers["ana"]).headers["x-hydra-model"]
    assert chat(client, headers["ana"], TURNS).headers["x-hydra-model"] == kept
    fresh = chat(client, headers["bo"], TURNS)
    assert "keep" not in fresh.headers["x-hydra-reason"].lower()
    for name in ("eve", "pub"):
        seen = chat(client, headers[name], TURNS, "/v1/decision", deny=[kept]).json()
        assert seen["cause"] != "kept_by_session"
    assert chat(client, headers["ana"], TURNS).headers["x-hydra-model"] == kept


def test_a_decision_that_spends_nothing_leaves_no_trace(make):
    client = make()
    first = chat(client, {}, None, "/v1/decision").json()
    later = chat(client, {}, TURNS, "/v1/decision").json()
    assert later["cause"] != "kept_by_session"
    spent = chat(client, {}).headers["x-hydra-model"]
    assert spent == first["model"]
    denied = chat(client, {}, TURNS, "/v1/decision", deny=[spent]).json()
    assert denied["model"] != spent
    kept = chat(client, {}, TURNS, "/v1/decision").json()
    assert (kept["model"], kept["cause"]) == (spent, "kept_by_session")


def rate(client, headers, decision_id, quality):
    told = {"decision_id": decision_id, "quality": quality}
    return client.post("/v1/outcomes", json=told, headers=headers)


def test_feedback_is_the_askers_or_a_publishers(make, people, tmp_path):
    path, headers = people
    client = make(tokens=path, log=str(tmp_path / "log"))
    mine = chat(client, headers["ana"]).headers["x-hydra-decision-id"]
    assert rate(client, headers["bo"], mine, 0.0).status_code == 403
    assert rate(client, headers["ana"], mine, 0.25).status_code == 202
    assert rate(client, headers["pub"], mine, 0.75).status_code == 202
    wait_for(lambda: list(read_log(tmp_path / "log").decisions["quality"]) == [0.75])
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert (row["caller"], row["author"]) == ("ana", "pub")


@pytest.mark.parametrize("wrong", ["d1", "a" * 24, "0" * 24, "\u00e4" * 24, "\ud800", "x" * 100])
def test_a_decision_that_was_never_made_is_not_rated(make, tmp_path, wrong):
    client = make(log=str(tmp_path / "log"))
    body = json.dumps({"decision_id": wrong, "quality": 1})
    answer = client.post("/v1/outcomes", content=body)
    assert answer.status_code == 404
    assert "no decision of this id" in answer.json()["error"]["message"]


def test_feedback_on_an_id_in_capitals_reaches_its_decision(make, tmp_path):
    client = make(log=str(tmp_path / "log"))
    found = client.post("/v1/decision", json=asked()).json()["decision_id"]
    rated = client.post("/v1/outcomes", json={"decision_id": found.upper(), "quality": 0.5})
    assert rated.json() == {"decision_id": found, "accepted": True}


def test_another_worker_and_a_restarted_service_know_the_decisions(make, tmp_path):
    changes = {"log": str(tmp_path / "log"), "upstreams": ""}
    asker, other = make(**changes), make(**changes)
    made = asker.post("/v1/decision", json=asked()).json()["decision_id"]
    assert rate(other, {}, made, 1).status_code == 202


def test_an_id_says_who_asked_and_cannot_be_changed(tmp_path):
    ids = ids_of(tmp_path)
    made = [ids.new(caller) for caller in ("ana", "ana", "bo")]
    assert len(set(made)) == 3
    assert all(len(one) == 24 and ids.is_ours(one) for one in made)
    assert [ids.is_callers(one, "ana") for one in made] == [True, True, False]
    forged = made[0][:-4] + made[2][-4:]
    assert not ids.is_callers(forged, "ana")
    assert not ids.is_callers(forged, "bo")
    assert not DecisionIds(b"x" * 32).is_ours(made[0])
    assert ids_of(tmp_path).is_callers(made[0], "ana")
    (key,) = tmp_path.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
