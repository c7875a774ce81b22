"""Hostile messages through the API: none may crash it, every score lies in [0, 1]."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import load_catalog
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.decision import redecide
from hydra_core.routing.flips import flips
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.hostile_messages import MARKUP, hostile_messages
from tests.predictor.tiny_bundle import make_bundle


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return Predictor(make_bundle(tmp_path_factory.mktemp("tiny") / "bundle"))


def attack(router, catalog, messages):
    """Route every message and check what comes out; CPU seconds (n,), and model counts."""
    seconds, chosen = [], {}
    for number, text in enumerate(messages):
        start = time.thread_time()
        decision = router.route(Query(text, turn=1 + number % 9))
        seconds.append(time.thread_time() - start)
        needs = decision.requirements
        assert np.isfinite(needs).all(), ascii(text[:80])
        assert (needs >= 0).all(), ascii(text[:80])
        assert (needs <= 1).all(), ascii(text[:80])
        written = json.dumps(decision.receipt(), allow_nan=False)
        assert redecide(json.loads(written)) == decision.model, ascii(text[:80])
        if number % 10 == 0:
            flips(decision, catalog)
        chosen[decision.model] = chosen.get(decision.model, 0) + 1
    return np.asarray(seconds), chosen


@pytest.mark.slow
def test_no_hostile_message_breaks_the_router(predictor):
    catalog = load_catalog(CATALOGS / "paper_eight.yaml")
    wide = tuple(replace(model, context_window=10**8) for model in catalog.models)
    catalog = replace(catalog, models=wide)  # none is refused for its length
    seconds, chosen = attack(Router(catalog, predictor), catalog, hostile_messages(1_000))
    assert sum(chosen.values()) == 1_000
    assert set(chosen) <= {model.id for model in catalog.models}
    assert seconds.max() < 5.0


def test_messages_are_the_same_each_time_and_cover_every_trick():
    first = list(hostile_messages(300, seed=4))
    assert first == list(hostile_messages(300, seed=4))
    assert set(MARKUP) <= set(first)
    assert max(map(len, first)) > 900_000
