"""Conversations in the OpenAI messages form: what is read, what is refused and how it is said."""

import json

import pytest

from hydra_core.base.errors import ProblemsError
from hydra_core.routing.conversations.messages import MAX_BYTES, MAX_MESSAGES, parse_messages


def user(content):
    return {"role": "user", "content": content}


def read(*messages, **more):
    return parse_messages(json.dumps({"messages": list(messages), **more} if more else messages))


def problems(raw):
    with pytest.raises(ProblemsError) as caught:
        parse_messages(raw, "chat.json")
    return str(caught.value)


def test_turns_with_answers_system_prompt_and_tool_results():
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    chat = read(
        {"role": "system", "content": "Be brief."},
        user("What is in the folder?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "a.py"},
        {"role": "assistant", "content": "One file."},
        user("Thanks"),
    )
    assert chat.opening == "Be brief."
    assert [turn.text for turn in chat.turns] == ["What is in the folder?", "Thanks"]
    assert chat.turns[0].answer == "ls {}\nOne file."
    assert chat.turns[0].results == "a.py"
    assert chat.tools


def test_parts_of_text_and_images_are_told_apart():
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/never-fetched.png"}}
    chat = read(user([{"type": "text", "text": "What is this?"}, image, image]))
    assert chat.turns[0].text == "What is this?"
    assert chat.turns[0].images == 2


def test_user_messages_in_a_row_are_one_turn():
    assert [turn.text for turn in read(user("one"), user("two")).turns] == ["one\n\ntwo"]


def test_a_request_with_declared_tools_needs_tools():
    assert read(user("go"), tools=[{"type": "function"}]).tools
    assert not read(user("go"), model="any").tools


def test_every_problem_is_listed_with_its_place():
    told = problems(
        json.dumps([{"role": "usr", "content": "x"}, user([{"type": "audio"}]), 5, user(7)])
    )
    assert "messages[0]: role" in told
    assert "'usr'" in told
    assert "messages[1]: content[0]" in told
    assert "messages[2]: is a number" in told
    assert "messages[3]: content" in told


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ("", "not JSON"),
        ("{'role': 'user'}", "line 1"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe[]", "UTF-8"),
        ("5", "holds a number"),
        ("{}", "holds nothing"),
        ("[]", "no user message"),
        ('[{"role": "assistant", "content": "hi"}]', "no user message"),
        (" " * (MAX_BYTES + 1), "at most"),
        (json.dumps([user("x")] * (MAX_MESSAGES + 1)), "at most 1,000"),
        ('[{"role": "user", "content": 1' + "0" * 5_000 + "}]", "JSON"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(raw, told):
    assert told in problems(raw)


def test_problems_do_not_repeat_a_long_value():
    assert len(problems(json.dumps([{"role": "x" * 100_000, "content": ""}]))) < 300


def test_a_byte_order_mark_does_not_matter():
    assert parse_messages(b"\xef\xbb\xbf" + json.dumps([user("hi")]).encode()).turns[0].text == "hi"
