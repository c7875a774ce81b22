"""A pasted transcript becomes the conversation it writes down."""

import pytest

from hydra_core.base.errors import ProblemsError
from hydra_core.routing.conversations.messages import parse_messages, transcript_messages


def test_speakers_become_roles_and_turns():
    text = "User: Why does it fail?\nAssistant: What does the log say?\n\nUser: Nothing.\nAt all."
    first, second = parse_messages(text).turns
    assert (first.text, first.answer) == ("Why does it fail?", "What does the log say?")
    assert (second.text, second.answer) == ("Nothing.\nAt all.", "")


def test_bold_speakers_and_a_system_prompt_are_read():
    text = "system: Be brief.\n**Human:** hi\n**AI**: hello"
    said = parse_messages(text)
    assert said.opening == "Be brief."
    assert (said.turns[0].text, said.turns[0].answer) == ("hi", "hello")


@pytest.mark.parametrize("text", ["", "The user: was here\n", "[]", "Error: no user", "Users: 3"])
def test_other_text_is_no_transcript(text):
    assert transcript_messages(text) is None


def test_a_text_that_is_neither_says_both_ways():
    with pytest.raises(ProblemsError, match="begin with"):
        parse_messages("nonsense")
