"""Hostile messages through the API; `python -m benchmarks.quality.hostile` does it 10,000 times."""

import pytest

from benchmarks.quality.hostile import CATALOG, attack
from benchmarks.quality.hostile_messages import MARKUP, hostile_messages
from hydra_core.catalog import load_catalog
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.router import Router
from tests.predictor.tiny_bundle import make_bundle


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return Predictor(make_bundle(tmp_path_factory.mktemp("tiny") / "bundle"))


def test_no_hostile_message_breaks_the_router(predictor):
    catalog = load_catalog(CATALOG)
    seconds, chosen = attack(Router(catalog, predictor), catalog, hostile_messages(1_000))
    assert sum(chosen.values()) == 1_000
    assert set(chosen) <= {model.id for model in catalog.models}
    assert seconds.max() < 5.0


def test_messages_are_the_same_each_time_and_cover_every_trick():
    first = list(hostile_messages(300, seed=4))
    assert first == list(hostile_messages(300, seed=4))
    assert set(MARKUP) <= set(first)
    assert max(map(len, first)) > 900_000
