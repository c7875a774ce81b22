"""Spans cover the words of any script, and their effect is a plain difference of scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra_core.lab.robustness.occlusion import occlude, spans
from hydra_core.predictor.onnx_predictor import Prediction


class CountsBugs:
    """Scores a message by how often it says bug, on the first dimension only."""

    def predict_batches(self, texts, turns=None, progress=None):
        scores = np.zeros((len(texts), 4))
        scores[:, 0] = [0.2 * text.count("bug") for text in texts]
        return Prediction(scores, np.ones(len(texts)), np.zeros(len(texts), dtype=bool))


def test_the_word_that_raised_it_is_found():
    text = "please fix the bug now"
    found = occlude(CountsBugs(), text)
    words = [text[a:b] for a, b in found.spans]
    assert words == ["please", "fix", "the", "bug", "now"]
    assert found.effect[:, 0] == pytest.approx([0, 0, 0, 0.2, 0])
    assert not found.effect[:, 1:].any()


@pytest.mark.parametrize("text", ["修复这个错误", "แก้บั๊กนี้", "버그를 고쳐줘", "バグを直して"])
def test_scripts_without_spaces_are_cut_finer_than_a_sentence(text):
    assert len(spans(text)) >= 2


def test_an_empty_message_has_no_spans():
    assert spans("") == ()
    assert occlude(CountsBugs(), "").effect.shape == (0, 4)


@given(st.text(max_size=400), st.integers(1, 20))
def test_spans_are_in_order_bounded_and_cover_all_that_is_not_space(text, most):
    found = spans(text, most)
    assert len(found) <= most
    assert all(a < b for a, b in found)
    assert all(x[1] <= y[0] for x, y in zip(found, found[1:], strict=False))
    left = list(text)
    for a, b in found:
        left[a:b] = " " * (b - a)
    assert "".join(left).strip() == ""
