"""Head and end of what is too long; valid Unicode always."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.predictor.tokens import CHARS_PER_TOKEN, cut, model_text, shorten


@given(st.lists(st.integers(), max_size=80), st.integers(8, 64))
def test_ids_keep_their_head_and_their_last_quarter(ids: list[int], cap: int) -> None:
    kept = shorten(ids, cap)
    assert len(kept) == min(len(ids), cap)
    tail = cap // 4
    if len(ids) > cap:
        assert kept[: cap - tail] == ids[: cap - tail]
        assert kept[cap - tail :] == ids[-tail:]
    else:
        assert kept == ids


@pytest.mark.parametrize("length", [0, 1, 95, 96])
def test_a_text_within_the_limit_is_left_alone(length: int) -> None:
    assert cut("x" * length, 96 // CHARS_PER_TOKEN) == "x" * length


def test_a_text_beyond_the_limit_loses_its_middle() -> None:
    assert cut("a" * 500 + "b" * 500, 8) == "a" * 72 + " … " + "b" * 24


def test_the_prefix_is_that_of_the_whole_message() -> None:
    text = "words " * 300 + "see https://example.org"
    assert model_text(text, 3, 8, "query: ").startswith("query: [T2 URL] words")


@given(st.text(st.characters(codec=None, categories=None), max_size=300))
def test_any_text_becomes_valid_unicode(text: str) -> None:
    model_text(text, 1, 8).encode("utf-8")
