"""Hard constraints through the service: abilities, tags of requests, tokens and the policy."""

import pytest
import yaml

from hydra_core.server.callers import new_token
from hydra_core.store.roles import Role
from tests.server.conftest import CATALOG, MODELS, asked

FILE = {
    "type": "file",
    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA"},
}
PDF = "https://example.com/a.PDF"
ADDRESS = {"type": "url", "url": "https://example.com/paper"}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def having(tmp_path, models, **policy):
    """The catalog with further keys of its models, by id, and of its policy."""
    found = yaml.safe_load(CATALOG.read_text())
    for one in found["models"]:
        one |= models.get(one["id"], {})
    found["policy"] |= policy
    path = tmp_path / "constrained.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    return path


def decided(client, body, **own):
    return client.post("/v1/decision", json={**body, "hydra": {"receipt": True, **own}})


def content(part):
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, part]}]}


@pytest.mark.parametrize(
    ("lacks", "body"),
    [
        ("structured_output", asked("hi", response_format={"type": "json_object"})),
        ("parallel_tools", asked("hi", tools=[TOOL], parallel_tool_calls=True)),
        ("pdf", {"model": "auto", **content(FILE)}),
        ("pdf", {"model": "auto", **content({"type": "document", "source": ADDRESS})}),
        ("pdf", {"model": "auto", **content({"type": "input_file", "file_url": f"{PDF}?a=1"})}),
        ("audio", {"model": "auto", **content(AUDIO)}),
    ],
)
def test_a_model_gets_no_request_that_needs_what_it_lacks(make, tmp_path, lacks, body):
    first = decided(make(), body).json()["model"]
    client = make(catalog=having(tmp_path, {first: {"lacks": [lacks]}}))
    answer = decided(client, body).json()
    assert answer["model"] != first
    row = next(one for one in answer["receipt"]["candidates"] if one["model"] == first)
    assert row["gate"] == f"Lacks what the request needs: {lacks.replace('_', ' ')}."
    assert first not in answer["fallbacks"]
    assert decided(client, asked("hi")).json()["model"] == first
    nobody = having(tmp_path, {name: {"lacks": [lacks]} for name in MODELS})
    refused = decided(make(catalog=nobody), body)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].count("Lacks what the request needs") == len(MODELS)


def test_a_request_requires_tags_of_the_model_named_or_not(make, tmp_path):
    client = make(catalog=having(tmp_path, {"gpt-5.4": {"tags": ["eu", "zdr"]}}))
    assert decided(client, asked("hi"), require=["eu"]).json()["model"] == "gpt-5.4"
    named = decided(client, {**asked("hi"), "model": MODELS[0]}, require=["eu"])
    assert named.status_code == 400
    assert "Does not have the required tags eu." in named.json()["error"]["message"]
    assert decided(client, asked("hi"), require=["mars"]).status_code == 400


def test_a_token_requires_tags_for_all_that_it_asks(make, tmp_path):
    token, line = new_token("search", Role.EDITOR, "search", ["eu"])
    (tmp_path / "tokens.yaml").write_text(f"tokens:\n{line}\n")
    client = make(
        catalog=having(tmp_path, {"gpt-5.4": {"tags": ["eu"]}}),
        tokens=str(tmp_path / "tokens.yaml"),
        headers={"authorization": f"Bearer {token}"},
    )
    answer = client.post("/v1/chat/completions", json=asked("hi"))
    assert answer.headers["x-hydra-model"] == "gpt-5.4"


def test_the_policy_requires_tags_and_the_receipt_says_who_is_out(make, tmp_path):
    tags = {"gpt-5.4": {"tags": ["eu"]}, "claude-haiku-4.5": {"tags": ["eu"]}}
    client = make(catalog=having(tmp_path, tags, require=["eu"]))
    answer = decided(client, asked("hi")).json()
    assert {answer["model"], *answer["fallbacks"]} == set(tags)
    out = answer["receipt"]["outside_policy"]
    assert set(out) == set(MODELS) - set(tags)
    assert set(out.values()) == {"The policy requires the tags eu, which it does not have."}


def test_a_policy_that_leaves_nobody_is_refused_before_it_serves(make, tmp_path):
    bad = having(tmp_path, {}, require=["eu"]).read_text()
    answer = make().post("/v1/dry-run", json={"catalog": bad}).json()
    assert answer["valid"] is False
    assert "require eu: no routable model has all of it" in answer["problems"][0]
