"""What the decision log of a running service holds."""

from datetime import date
from functools import partial
from random import Random

import numpy as np
import pytest

from hydra_core.console.live.view_traffic import reasons
from hydra_core.decision_log.reading import read_log
from hydra_core.live.traffic import traffic_of
from hydra_core.routing.router import Router
from hydra_core.server.exploration import Exploration
from tests.routing.conftest import Scores, make_catalog
from tests.server.conftest import EASY, HARD, asked, wait_for


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "log"


def logged(folder):
    return read_log(folder).decisions


def test_every_request_is_logged_once_with_what_became_of_it(make, upstream, folder):
    client = make(log=str(folder))
    chosen = client.post("/v1/decision", json=asked()).json()
    upstream.behaviour[f"up-{chosen['model']}"] = "500"
    fell = client.post("/v1/chat/completions", json=asked()).headers
    upstream.behaviour["*"] = "429"
    client.post("/v1/chat/completions", json=asked())
    upstream.behaviour.clear()
    with client.stream("POST", "/v1/chat/completions", json=asked(EASY, stream=True)) as answer:
        answer.read()
    client.get("/health/live")
    make_time_for_flush(folder, 4)
    rows = logged(folder)
    assert list(rows["status"]) == ["decided", "answered", "failed", "answered"]
    second, last = rows.iloc[1], rows.iloc[3]
    assert second["chosen"] == chosen["model"]
    assert second["served"] == fell["x-hydra-model"]
    assert list(second["attempts"]) == [f"{chosen['model']}:server_error"]
    assert np.isnan(second["propensity"])  # after a fallback it is not known
    assert last["propensity"] == 1.0
    assert (last["input_tokens"], last["cached_tokens"], last["output_tokens"]) == (100, 40, 20)
    assert last["cost_usd"] > 0
    assert rows["text"].isna().all()
    assert rows["text_sha256"].str.len().eq(64).all()


def test_a_message_unlike_training_is_told_by_its_distance(make, folder):
    client = make(log=str(folder), upstreams="")
    for text in ("xqzv jkwp " * 30, HARD):
        client.post("/v1/decision", json=asked(text))
    make_time_for_flush(folder, 2)
    strange, plain = logged(folder)["distance"]
    assert strange > 1.0 > plain > 0.0


def make_time_for_flush(folder, count):
    wait_for(lambda: len(logged(folder)) >= count)


def test_text_is_logged_only_when_opted_in(make, folder):
    client = make(log=str(folder), log_text=True)
    client.post("/v1/decision", json=asked())
    make_time_for_flush(folder, 1)
    assert list(logged(folder)["text"]) == [HARD]


def test_feedback_is_bound_to_its_decision(make, folder):
    client = make(log=str(folder))
    decision = client.post("/v1/decision", json=asked()).json()["decision_id"]
    told = {"decision_id": decision, "quality": 0.5, "source": "tests"}
    assert client.post("/v1/outcomes", json=told).status_code == 202
    bad = client.post("/v1/outcomes", json={"decision_id": decision, "quality": 2})
    assert bad.status_code == 400
    wait_for(lambda: list(logged(folder)["quality"]) == [0.5])


def test_without_a_log_feedback_is_refused(make):
    answer = make().post("/v1/outcomes", json={"decision_id": "x", "quality": 1})
    assert answer.status_code == 409


def test_exploration_serves_each_model_as_often_as_it_says():
    decision = Router(make_catalog(), Scores(0.0)).decide(np.full(4, 0.45))
    exploration = Exploration(0.3, 0.5, 1.0, Random(0))
    draws = [exploration.draw(decision) for _ in range(20_000)]
    assert draws[0].propensities == pytest.approx((0.0, 0.85, 0.15))
    names = decision.pool.ids
    shares = [sum(draw.model == name for draw in draws) / len(draws) for name in names]
    assert shares == pytest.approx(draws[0].propensities, abs=0.01)


def test_exploration_among_all_keeps_every_model_possible():
    decision = Router(make_catalog(), Scores(0.0)).decide(np.full(4, 0.45))
    exploration = Exploration(0.3, 0.5, 1.0, Random(0), every=0.06)
    draws = [exploration.draw(decision) for _ in range(20_000)]
    least = 0.06 / 3
    wanted = (least, least + 0.94 * 0.85, least + 0.94 * 0.15)
    assert draws[0].propensities == pytest.approx(wanted)
    names = decision.pool.ids
    shares = [sum(draw.model == name for draw in draws) / len(draws) for name in names]
    assert shares == pytest.approx(draws[0].propensities, abs=0.01)


def test_what_chance_chose_is_logged_as_explored_and_live_says_so(make, folder):
    client = make(log=str(folder), upstreams="", explore_all=1.0)
    told = [client.post("/v1/decision", json=asked(EASY)).json() for _ in range(30)]
    make_time_for_flush(folder, 30)
    rows = logged(folder)
    assert list(rows["cause"]) == [one["cause"] for one in told]
    assert set(rows["cause"]) == {"cheapest_eligible", "explored"}
    by_rule = set(rows["chosen"][rows["cause"] == "cheapest_eligible"])
    assert len(by_rule) == 1
    assert not by_rule & set(rows["chosen"][rows["cause"] == "explored"])
    assert set(reasons(traffic_of(read_log(folder)))) == {
        "Cheapest model within τ",
        "Tried at random",
    }


def test_exploration_ends_for_the_day_when_its_budget_is_spent():
    decision = Router(make_catalog(), Scores(0.0)).decide(np.full(4, 0.1))
    day = [1]
    exploration = Exploration(1.0, 0.5, 2.0, Random(0), today=lambda: date(2026, 11, day[0]))
    assert max(exploration.draw(decision).propensities) < 1.0
    exploration.spent(2.5)
    assert exploration.draw(decision).propensities == (1.0, 0.0, 0.0)
    day[0] = 2
    assert max(exploration.draw(decision).propensities) < 1.0


def test_the_budget_is_one_over_workers_and_restarts(tmp_path):
    decision = Router(make_catalog(), Scores(0.0)).decide(np.full(4, 0.1))
    day = [1]

    def worker():
        now = partial(date, 2026, 11)
        return Exploration(1.0, 0.5, 2.0, Random(0), lambda: now(day[0]), tmp_path)

    first, other = worker(), worker()
    first.spent(1.5)
    assert max(other.draw(decision).propensities) < 1.0
    other.spent(1.0)
    for one in (first, other, worker()):
        assert one.draw(decision).propensities == (1.0, 0.0, 0.0)
    day[0] = 2
    assert max(worker().draw(decision).propensities) < 1.0
    worker().spent(2.5)
    day[0] = 1  # the clock goes back: what was spent meanwhile still counts
    assert worker().draw(decision).propensities == (1.0, 0.0, 0.0)
    worker().spent(0.5)
    day[0] = 3
    assert max(worker().draw(decision).propensities) < 1.0
    (kept,) = tmp_path.iterdir()
    kept.write_text("nonsense")
    assert max(worker().draw(decision).propensities) < 1.0


def test_without_a_share_nothing_is_tried(make, folder):
    client = make(log=str(folder))
    for _ in range(5):
        client.post("/v1/decision", json=asked(EASY))
    make_time_for_flush(folder, 5)
    assert set(logged(folder)["propensity"]) == {1.0}
