"""The value rule in the service: what is answered, logged, tried and asked next."""

import random

import numpy as np
import pytest

from hydra_core.catalog import load_catalog
from hydra_core.decision_log.reading import read_log
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.decision import fallbacks
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.server.exploration import Exploration
from hydra_core.server.run import check
from hydra_core.server.settings import Settings
from tests.server.conftest import EASY, HARD, asked
from tests.server.test_logging import make_time_for_flush
from tests.server.valued import value_catalog

WORTH = 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("valued")


@pytest.fixture(scope="module")
def catalog(folder):
    return value_catalog(folder, value_usd=WORTH)


@pytest.fixture(scope="module")
def decision(catalog):
    return Router(load_catalog(catalog), default_predictor()).route(Query(HARD))


def test_a_decision_names_rule_worth_and_predictions(make, catalog, decision):
    answer = make(catalog=catalog).post("/v1/decision", json=asked())
    said = answer.json()
    assert (said["rule"], said["knob"], said["model"]) == ("value", WORTH, decision.model)
    assert answer.headers["x-hydra-rule"] == "value"
    success, cost = said["predicted_success"], said["predicted_cost_usd"]
    best = max(success, key=lambda name: success[name] - cost[name] / WORTH)
    assert said["model"] == best
    assert "predicted success" in said["reason"]


def test_under_the_shortfall_rule_nothing_is_predicted(make):
    said = make().post("/v1/decision", json=asked()).json()
    assert (said["rule"], said["knob"]) == ("shortfall", 0.24)
    assert said["predicted_success"] is None


def test_the_log_holds_predictions_and_the_worth_also_of_kept_turns(make, catalog, tmp_path):
    client = make(catalog=catalog, log=str(tmp_path / "log"))
    for turn in (1, 2):
        client.post(
            "/v1/chat/completions", json=asked(hydra={"conversation_id": "c", "turn": turn})
        )
    make_time_for_flush(tmp_path / "log", 2)
    rows = read_log(tmp_path / "log").decisions
    assert list(rows["cause"]) == ["highest_value", "kept_by_session"]
    assert list(rows["rule"]) == ["value", "value"]
    assert list(rows["knob"]) == [WORTH, WORTH]
    first = rows.iloc[0]
    net = first["predicted_success"] - first["predicted_cost_usd"] / WORTH
    assert first["candidates"][int(np.argmax(net))] == first["chosen"]
    assert rows.iloc[1]["predicted_success"] is None


def test_the_next_model_to_ask_is_the_one_worth_most_of_the_rest(decision):
    order = [decision.model, *fallbacks(decision)]
    worth = dict(zip(decision.pool.ids, decision.valuation.net, strict=True))
    assert order == sorted(decision.pool.ids, key=lambda name: -worth[name])


def test_exploration_tries_only_models_above_the_floor(decision):
    success = dict(zip(decision.pool.ids, decision.valuation.success.tolist(), strict=True))
    floor = sorted(success.values())[2]
    draws = Exploration(0.4, floor, 1.0, random.Random(0)).draw(decision).propensities
    tried = {name for name, p in zip(decision.pool.ids, draws, strict=True) if p > 0}
    assert tried == {name for name in success if success[name] >= floor} | {decision.model}
    assert sum(draws) == pytest.approx(1.0)


def test_a_kept_conversation_is_never_explored(folder):
    sticky = {"mode": "per_session", "threshold": 1.0}
    path = value_catalog(folder, value_usd=0.02, sticky=sticky)
    router = Router(load_catalog(path), default_predictor())
    kept = router.route(Query(EASY, turn=2, current="gpt-5.4"))
    assert kept.cause.keeps
    assert kept.scored
    assert kept.model == "gpt-5.4"
    assert max(Exploration(1.0, 0.0, 1.0).draw(kept).propensities) == 1.0


def test_a_dry_run_names_the_outcome_model_that_is_not_there(make, catalog):
    said = make().post("/v1/dry-run", json={"catalog": catalog.read_text()}).json()
    assert not said["valid"]
    assert "outcome_model" in said["problems"][0]


def test_a_check_names_rule_and_worth(catalog):
    said = check(Settings(catalog=str(catalog)))
    assert (said["rule"], said["knob"]) == ("value", WORTH)
