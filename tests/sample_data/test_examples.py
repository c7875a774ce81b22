"""The shipped messages and conversations: all sixteen languages, and every one can be played."""

from hydra_core.console.inspect.view import examples
from hydra_core.console.inspect.view_conversation import scenes
from hydra_core.predictor.languages import LANGUAGES, detect


def test_examples_cover_all_languages_and_levels():
    assert {one.language for one in examples()} == set(LANGUAGES)
    assert {one.level for one in examples()} == {"easy", "medium", "hard"}
    assert len({one.id for one in examples()}) == len(examples())
    assert len({one.label for one in examples()}) == len(examples())


def test_examples_are_in_the_language_they_name():
    wrong = [one.id for one in examples() if detect(one.text) != one.language]
    assert not wrong


def test_events_of_a_conversation_lie_within_it():
    for scene in scenes():
        count = len(scene.conversation.turns)
        assert count >= 3
        assert all(1 <= turn <= count for turn in (*scene.images, *scene.compacted))
