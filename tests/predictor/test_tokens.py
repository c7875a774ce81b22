"""Counting tokens, and where a long message was cut."""

import pytest

from hydra_core.predictor.tokens import TokenCounter


@pytest.fixture
def counter(tiny):
    return TokenCounter(tiny)


def test_counts_grow_with_the_text_and_are_estimated_beyond_the_limit(counter):
    assert counter.count("") == 0
    assert counter.count("fix bug") == 2
    assert counter.count("fix " * 1_000_000) == pytest.approx(1_000_000, rel=0.01)
    assert counter.count("\ud800 fix") > 0


def test_a_message_that_is_read_whole_has_no_gap(counter, tiny_predictor):
    assert counter.gap("fix bug") is None
    assert not tiny_predictor.predict(["fix bug"]).truncated[0]


@pytest.mark.parametrize("text", ["fix bug " * 200, "fix " * 5_000, "x" * 50_000, " " * 9_000])
def test_a_gap_is_told_whenever_the_predictor_says_that_it_cut(counter, tiny_predictor, text):
    gap = counter.gap(text)
    assert tiny_predictor.predict([text]).truncated[0]
    assert gap is not None
    assert 0 <= gap.start <= gap.end <= len(text)


def test_the_end_of_the_message_is_after_the_gap(counter, tiny_predictor):
    text = "fix " * 300
    gap = counter.gap(text)
    head, tail = text[: gap.start], text[gap.end :]
    assert counter.count(head) + counter.count(tail) <= 64
    before = tiny_predictor.predict([text]).requirements
    changed = head + " " + "bug " * ((gap.end - gap.start) // 4) + tail
    assert (tiny_predictor.predict([changed]).requirements == before).all()
