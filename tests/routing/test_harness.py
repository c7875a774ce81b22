"""Harness text is left out of what is scored; what a person says alone stays as it is."""

import pytest
import yaml

from hydra_core.base.types import Stall
from hydra_core.routing.conversations import harness
from hydra_core.routing.conversations.messages import read_messages
from hydra_core.server.chat import read_chat
from tests.harness_forms import FORMS, REQUESTS, TURNS, codex, user


def test_the_same_text_is_scored_with_and_without_a_harness():
    """The same text goes to the same model: at least 98 % of 280 turns."""
    assert len(TURNS) == 280
    same = 0
    for form, text in TURNS:
        plain, wrapped = (read_chat({"messages": m}).query for m in ([user(text)], form(text)))
        same += (plain.text, plain.turn) == (wrapped.text, wrapped.turn)
        assert wrapped.harness_tokens > 10
        assert plain.harness_tokens == 0
        assert wrapped.context_tokens >= plain.context_tokens + wrapped.harness_tokens - 2
    assert same >= 0.98 * len(TURNS)


@pytest.mark.parametrize("text", [*REQUESTS, " spaces stay \n", "", "<task> and no end"])
def test_a_persons_own_words_are_scored_to_the_last_letter(text):
    assert harness.said(text) == (text, 0)
    assert read_messages([user("before"), user(text)]).turns[0].text.endswith(text)


def test_a_message_that_is_nothing_but_harness_text_is_scored_as_it_stands():
    only = "<system-reminder>\nToday is Monday.\n</system-reminder>"
    assert harness.said(only) == (only, 0)
    assert read_chat({"messages": [user(only)]}).query.text == only


def test_results_in_user_messages_continue_the_turn():
    """Cline, OpenHands and Anthropic's form write tools' results as the user's."""
    answer = {"role": "assistant", "content": "<read_file>"}
    result = {"type": "tool_result", "content": [{"type": "text", "text": "ok"}]}
    for content in (
        "[read_file for 'a.py'] Result:\nok",
        "EXECUTION RESULT of [run]:\nok",
        "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
        [result],
    ):
        query = read_chat(
            {"messages": [user("go"), answer, {"role": "user", "content": content}]}
        ).query
        assert (query.text, query.turn, query.continues) == ("go", 1, True)


def called(name="run", arguments="{}"):
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


def given(text):
    return {"role": "tool", "content": text}


@pytest.mark.parametrize(
    ("after", "stalled"),
    [
        ([called("a"), given("fine")], 0),
        (
            [
                called("a"),
                given("Error: no such file"),
                called("b"),
                given("bash: x: command not found"),
            ],
            2,
        ),
        ([called("a"), given("Error: no"), called("b"), given("fine")], 0),
        ([called("a"), given("1"), called("a"), given("2"), called("a"), given("3")], 3),
    ],
)
def test_failures_in_a_row_and_the_same_call_are_a_stall(after, stalled):
    query = read_chat({"messages": [user("go"), *after]}).query
    assert (query.stalled, query.continues) == (stalled, True)


def test_a_sub_agent_is_a_conversation_of_its_own():
    def key(messages, **headers):
        return read_chat({"messages": messages}, "c", headers=headers).query.conversation_id

    system = {"role": "system", "content": "You are an agent for Claude Code, Anthropic's CLI"}
    assert key([user("go")]) == "c"
    keys = {
        key([system, user("look for x")]),
        key([system, user("look for y")]),
        key([user("go")], **{"x-hydra-agent": "review"}),
        key([user("go")], **{"x-openai-subagent": "compact"}),
    }
    assert len(keys) == 4
    assert all(one.startswith("c/") for one in keys)


def test_tokens_of_every_block_are_read_once_however_it_is_repeated():
    """No rule is a pattern; signs that are never closed end the search at once."""
    text = "<system-reminder>\n" * 50_000
    assert harness.rules().cleaned(text) == (text, 0.0, False)
    closed = "<system-reminder>x</system-reminder>\n" * 20_000
    assert harness.rules().cleaned(closed + "hi").text == "hi"


def test_an_operators_own_rules_are_in_force(tmp_path, monkeypatch):
    rules = {"schema": harness.SCHEMA, "rules": [{"name": "ours", "from": "[[ctx", "to": "ctx]]"}]}
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(rules))
    monkeypatch.setenv(harness.VARIABLE, str(path))
    assert harness.said("[[ctx a lot ctx]]\nhi") == ("hi", 4)
    assert read_chat({"messages": codex("hi")}).query.text != "hi"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"name": "a"}, "has 0 of"),
        ({"name": "a", "from": "<a>", "message": "abc"}, "has 2 of"),
        ({"name": "a", "from": "<"}, "shorter than 3"),
        ({"name": "a", "pattern": "(a+)+"}, "not a known key"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_with_its_place(rule, told):
    with pytest.raises(harness.HarnessError, match=told):
        harness.parse_rules(yaml.safe_dump({"schema": harness.SCHEMA, "rules": [rule]}))


def test_a_text_where_a_list_belongs_is_refused():
    text = yaml.safe_dump({"schema": harness.SCHEMA, "rules": [], "failures": {"starts": "Error"}})
    with pytest.raises(harness.HarnessError, match="failures.starts .* must be a list, got"):
        harness.parse_rules(text)


def test_every_form_has_rules():
    for form in FORMS:
        assert read_chat({"messages": form("hi")}).query.text == "hi"


def test_a_stall_is_raised_in_steps():
    assert [Stall(3).steps(n) for n in (0, 2, 3, 5, 6)] == [0, 0, 1, 1, 2]
