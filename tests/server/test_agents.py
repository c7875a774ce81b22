"""Agents' requests through the service: what is scored, kept, raised and logged."""

import pytest
import yaml

from hydra_core.decision_log.reading import read_log
from hydra_core.server.chat import read_chat
from hydra_core.server.wire import Form
from tests.harness_forms import FORMS, user
from tests.routing.test_harness import called, given
from tests.server.conftest import CATALOG, EASY, HARD, wait_for

SAMPLE = (EASY, HARD, "Rename the variable x in `parser.py`", "Prove that no deadlock is possible")


def stalling(tmp_path, **stall):
    found = yaml.safe_load(CATALOG.read_text())
    found["policy"]["stall"] = {"after": 3, **stall}
    path = tmp_path / "stalling.yaml"
    path.write_text(yaml.safe_dump(found, sort_keys=False))
    return path


def decided(client, messages, **changes):
    body = {"model": "auto", "messages": messages, "hydra": {"receipt": True, **changes}}
    return client.post("/v1/decision", json=body).json()


@pytest.mark.parametrize("form", FORMS)
def test_a_harness_does_not_move_a_request(make, form):
    client = make()
    for text in SAMPLE:
        plain, wrapped = (decided(client, one) for one in ([user(text)], form(text)))
        assert wrapped["model"] == plain["model"]
        assert wrapped["requirements"] == plain["requirements"]
        assert "harness_tokens" not in plain["receipt"]
        tokens = wrapped["receipt"]["harness_tokens"]
        assert wrapped["receipt"]["ignored"] == f"{tokens:,} tokens of harness text ignored"


def test_tool_results_keep_the_model_and_a_sub_agent_does_not_move_it(make, upstream, tmp_path):
    client = make(log=str(tmp_path / "log"))

    def ask(messages, **headers):
        headers = {"x-hydra-conversation-id": "c", **headers}
        body = {"model": "auto", "messages": messages}
        return client.post("/v1/chat/completions", json=body, headers=headers).headers

    first = ask([user(HARD)])["x-hydra-model"]
    assert ask([user(EASY)], **{"x-hydra-agent": "look"})["x-hydra-model"] != first
    kept = ask([user(HARD), called(), given("fine")])
    assert kept["x-hydra-model"] == first
    assert kept["x-hydra-reason"].startswith("Kept")


def test_a_stall_raises_the_requirement_and_says_so(make, tmp_path):
    client = make(catalog=stalling(tmp_path, requirement_step=0.9))
    failed = [called("a"), given("Error: x"), called("b"), given("Error: y"), called("c")]
    calm = decided(client, [user(EASY), *failed[:4]])
    stalled = decided(client, [user(EASY), *failed, given("Error: z")])
    needs = zip(calm["requirements"].values(), stalled["requirements"].values(), strict=True)
    assert all(after == min(1.0, before + 0.9) for before, after in needs)
    assert stalled["model"] != calm["model"]
    assert "was raised once: 3 tool results in a row" in stalled["reason"]
    assert stalled["receipt"]["raised"] == 1


def test_without_the_policy_a_stall_changes_nothing(make):
    client = make()
    failed = [called("a"), given("Error: x")] * 5
    assert decided(client, [user(EASY), *failed])["model"] == decided(client, [user(EASY)])["model"]


def test_a_stalled_conversation_never_goes_to_a_cheaper_model(make, tmp_path):
    client = make(catalog=stalling(tmp_path, requirement_step=0.01))
    failed = [called("a"), given("Error: x")] * 3
    strong = "gpt-5.4"
    found = decided(client, [user(EASY), *failed], current=strong)
    assert (found["model"], found["cause"]) == (strong, "kept_by_session")


def test_the_log_counts_harness_text_and_stalls(make, tmp_path):
    client = make(log=str(tmp_path / "log"))
    messages = [*FORMS[0](EASY), called("a"), given("1"), called("a"), given("2")]
    client.post("/v1/decision", json={"model": "auto", "messages": messages})
    client.close()
    expected = read_chat({"messages": messages}).query
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert (row["harness_tokens"], row["stalled"]) == (expected.harness_tokens, 2)


def test_a_failed_result_of_the_messages_form_counts_as_failed():
    turns = [user(EASY)]
    for name in ("a", "b"):
        call = {"type": "tool_use", "id": name, "name": name, "input": {}}
        result = {"type": "tool_result", "tool_use_id": name, "is_error": True, "content": "no"}
        turns += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    query = read_chat({"max_tokens": 10, "messages": turns}, form=Form.MESSAGES).query
    assert (query.text, query.continues, query.stalled) == (EASY, True, 2)
