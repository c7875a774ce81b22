"""Time in the choice: limits of a request, the price of a second, and what a service has seen."""

import math

import numpy as np
import pytest
import yaml

from hydra_core.catalog import load_catalog, parse_catalog
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.decision import redecide
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.server.deciding import Expected
from tests.server.conftest import CATALOG, HARD, MODELS, asked
from tests.server.valued import value_catalog


def timed(path, seconds, **policy):
    """The catalog with each model's seconds, in the order of the pool."""
    found = yaml.safe_load(path.read_text())
    for one in found["models"]:
        if one["id"] in seconds:
            one |= {"latency_s": seconds[one["id"]], "ttft_s": seconds[one["id"]] / 4}
    found["policy"] |= policy
    new = path.with_name(f"timed-{path.name}") if path != CATALOG else None
    return found if new is None else (new.write_text(yaml.safe_dump(found)), new)[1]


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "timed.yaml"
    path.write_text(yaml.safe_dump(timed(CATALOG, dict.fromkeys(MODELS, 8.0) | {MODELS[1]: 1.0})))
    return path


def test_a_request_limits_the_time_and_the_receipt_says_who_is_late(make, catalog):
    client = make(catalog=catalog)
    own = {"max_s": 5, "receipt": True}
    answer = client.post("/v1/decision", json=asked(HARD, hydra=own)).json()
    assert (answer["model"], answer["fallbacks"]) == (MODELS[1], [])
    late = [one for one in answer["receipt"]["candidates"] if one["model"] != MODELS[1]]
    assert {one["gate"] for one in late} == {"Takes 8 s as expected, and the request allows 5 s."}
    refused = client.post("/v1/decision", json=asked(HARD, hydra={"max_ttft_s": 0.1}))
    assert refused.status_code == 400
    assert "Takes 2 s to its first token" in refused.json()["error"]["message"]
    bad = client.post("/v1/decision", json=asked(HARD, hydra={"max_s": 0}))
    assert bad.status_code == 400


def test_what_the_service_has_seen_replaces_what_the_catalog_says(catalog):
    loaded, seen, name = load_catalog(catalog), Expected(), MODELS[0]
    assert seen.times(loaded, 0)[name] == (2.0, 8.0)
    for _ in range(5):
        seen.answered(name, 0.5, 50)
        seen.answered(name, 6.0, 2_000)
        seen.began(name, 0.2)
    assert seen.times(loaded, 40)[name] == (pytest.approx(0.2), pytest.approx(0.5))
    plain = seen.times(load_catalog(CATALOG), 0)
    assert math.isnan(plain[MODELS[1]][1])


def test_a_live_service_learns_that_a_model_is_fast_enough(make, catalog):
    client = make(catalog=catalog)
    limited = asked(HARD, hydra={"max_s": 5}, max_tokens=50)
    slow = MODELS[0]
    named = {**asked(HARD), "model": slow}
    assert slow not in (body := client.post("/v1/decision", json=limited).json())["fallbacks"]
    assert body["model"] == MODELS[1]
    for _ in range(6):
        client.post("/v1/chat/completions", json=named)
    after = client.post("/v1/decision", json=limited).json()
    assert slow in (after["model"], *after["fallbacks"])


@pytest.mark.parametrize("stream", [True, False])
def test_what_another_model_took_in_vain_is_not_the_answering_ones_time(
    make, upstream, tmp_path, stream
):
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(timed(CATALOG, dict.fromkeys(MODELS, 8.0))))
    client = make(catalog=path, timeouts={"first_byte_s": 1.5})
    first = client.post("/v1/decision", json=asked(HARD)).json()
    upstream.behaviour[f"up-{first['model']}"] = "hang"
    body = asked(HARD, stream=stream, hydra={"health": {first["model"]: 1.0}})
    for _ in range(5):
        answer = client.post("/v1/chat/completions", json=body)
        assert answer.headers["x-hydra-model"] == first["fallbacks"][0]
    limit = {"max_ttft_s": 1.4} if stream else {"max_s": 1.4}
    found = client.post("/v1/decision", json=asked(HARD, hydra=limit)).json()
    assert found["model"] == first["fallbacks"][0]


def test_the_price_of_a_second_is_weighed_and_the_receipt_decides_alone(tmp_path):
    plain = value_catalog(tmp_path, value_usd=0.05)
    predictor = default_predictor()
    first = Router(load_catalog(plain), predictor).route(Query(HARD))
    seconds = dict.fromkeys(MODELS, 1.0) | {first.model: 60.0}
    path = timed(plain, seconds, second_usd=0.01)
    found = Router(load_catalog(path), predictor).route(Query(HARD))
    assert found.model != first.model
    assert redecide(found.receipt()) == found.model
    valued = found.valuation
    expected = valued.cost_usd + 0.01 * np.array([seconds[name] for name in found.pool.ids])
    assert np.allclose(valued.weighed_usd, expected)
    text = plain.read_text().replace("value_usd: 0.05", "value_usd: 0.05\n  second_usd: 0.01")
    with pytest.raises(Exception, match="needs latency_s of every model"):
        parse_catalog(text)
