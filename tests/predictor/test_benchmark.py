"""The predictor's benchmark runs on any bundle and prints one table."""

import json

import pytest

from benchmarks.speed.predictor import measure, message_of, table
from hydra_core.predictor.bundle import Bundle
from hydra_core.predictor.onnx_predictor import Predictor


@pytest.mark.slow
def test_a_benchmark_of_the_tiny_bundle_is_one_table(tiny: Bundle) -> None:
    found = measure(tiny.path, seconds=0.0)
    text = table(json.loads(json.dumps(found)))
    assert text.startswith("| predictor bundle tiny 1 | measured | bound |")
    assert "cold start" in text
    assert found["latency"]["32"]["tokens"] <= 32


def test_a_message_has_the_tokens_asked_for(tiny_predictor: Predictor) -> None:
    message = message_of(tiny_predictor, 40)
    assert tiny_predictor.predict([message]).tokens[0] in {39, 40}
