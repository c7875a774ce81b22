"""Algorithms 2 and 4 as one pipeline, and the receipt that retells it."""

import json
import threading
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra_core.base.errors import RoutingError
from hydra_core.base.types import ModelStatus
from hydra_core.predictor.onnx_predictor import Prediction
from hydra_core.routing.decision import Cause, Fate, redecide
from hydra_core.routing.matcher import choose, shortfall
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.routing.conftest import Scores, make_catalog, spec

NAMES = ("cheap", "mid", "strong")


def need(level):
    return np.full(4, level)


@pytest.mark.parametrize(
    ("level", "model"), [(0.1, "cheap"), (0.22, "cheap"), (0.4, "mid"), (0.8, "strong")]
)
def test_the_cheapest_within_tau(catalog, level, model):
    decision = Router(catalog).decide(need(level))
    assert (decision.model, decision.cause) == (model, Cause.CHEAPEST_ELIGIBLE)


def test_nobody_within_tau_takes_the_least_shortfall(catalog):
    decision = Router(catalog).decide(need(1.0))
    assert (decision.model, decision.cause) == ("strong", Cause.FAIL_OPEN)


def test_the_veto_removes_and_never_reorders(catalog):
    router = Router(catalog)
    for gone in NAMES:
        left = [name for name in NAMES if name != gone]
        for level in np.linspace(0, 1, 21):
            with_veto = router.decide(need(level), health={gone: 0.09}).model
            smaller = make_catalog(*(catalog.model(name) for name in left))
            assert with_veto == Router(smaller).decide(need(level)).model


def test_health_at_the_floor_is_healthy(catalog):
    assert Router(catalog).decide(need(0.1), health={"cheap": 0.10}).model == "cheap"
    assert Router(catalog).decide(need(0.1), health={"cheap": 0.0999}).model == "mid"


def test_all_eligible_unhealthy_is_a_flagged_fallback(catalog):
    decision = Router(catalog).decide(need(0.8), health={"strong": 0.0})
    assert (decision.model, decision.cause) == ("mid", Cause.GATEWAY_FALLBACK)


def test_all_unhealthy_takes_the_healthiest(catalog):
    health = {"cheap": 0.01, "mid": 0.05, "strong": 0.02}
    decision = Router(catalog).decide(need(0.1), health=health)
    assert (decision.model, decision.cause) == ("mid", Cause.GATEWAY_FALLBACK)


def test_an_image_without_a_vision_model_is_a_400(catalog):
    with pytest.raises(RoutingError, match="no routable model has vision") as caught:
        Router(catalog).decide(need(0.1), Query("what is this?", has_image=True))
    assert caught.value.http_status == 400


def test_an_image_goes_to_vision_models_only():
    catalog = make_catalog(spec("cheap", 1, 0.2), spec("eyes", 5, 0.1, vision=True))
    decision = Router(catalog).decide(need(0.2), Query("look", has_image=True))
    assert decision.model == "eyes"
    fates = {c.model: (c.fate, c.reason) for c in decision.candidates()}
    assert fates["cheap"] == (Fate.GATED, "Has no vision, and an image is attached.")


@pytest.mark.parametrize(
    ("query", "model"),
    [
        (Query("x", deny=frozenset({"cheap"})), "mid"),
        (Query("x", allow=frozenset({"strong"})), "strong"),
        (Query("x", needs_tools=True), "mid"),
        (Query("x", context_tokens=50_000), "mid"),
    ],
)
def test_operator_tools_and_context_gates(query, model):
    catalog = make_catalog(
        spec("cheap", 1, 0.2, tools=False, context_window=32_000),
        spec("mid", 3, 0.5),
        spec("strong", 9, 0.9),
    )
    assert Router(catalog).decide(need(0.1), query).model == model


def test_too_long_for_every_model_is_a_413(catalog):
    with pytest.raises(RoutingError, match="Context window 100,000") as caught:
        Router(catalog).decide(need(0.1), Query("x", context_tokens=200_000))
    assert caught.value.http_status == 413


def test_an_image_counts_against_the_window_where_nothing_else_is_known():
    pool = make_catalog(
        spec("small", 1, 0.9, vision=True, context_window=1_000), spec("large", 3, 0.9, vision=True)
    )
    router, easy = Router(pool), need(0.1)
    assert router.decide(easy, Query("x" * 4_000)).model == "small"
    assert router.decide(easy, Query("x", has_image=True, context_tokens=900)).model == "small"
    assert router.decide(easy, Query("x" * 8, has_image=True)).model == "large"


def test_a_text_alone_must_fit_the_window_where_nothing_else_is_known():
    pool = make_catalog(spec("small", 1, 0.9, context_window=2_000), spec("large", 3, 0.9))
    long = "word " * 3_000
    assert Router(pool).decide(need(0.1), Query(long)).model == "large"
    assert Router(pool).decide(need(0.1), Query(long, context_tokens=1_900)).model == "small"
    assert Router(pool).decide(need(0.1), Query("x", harness_tokens=3_000)).model == "large"


def test_a_retiring_model_routes_until_its_day():
    catalog = make_catalog(
        spec("old", 1, 0.5, status=ModelStatus.RETIRING, retire_on=date(2026, 6, 1)),
        spec("new", 2, 0.5),
    )
    days = iter([date(2026, 5, 31), date(2026, 5, 31), date(2026, 6, 1)])
    router = Router(catalog, today=lambda: next(days))
    assert [router.decide(need(0.1)).model for _ in range(2)] == ["old", "new"]


@settings(deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.lists(st.sampled_from([0.0, 0.05, 0.5, 1.0]), min_size=3, max_size=3),
    st.sets(st.sampled_from(NAMES), max_size=2),
    st.floats(0, 1.5),
)
def test_the_receipt_alone_recomputes_the_decision(requirements, health, deny, tau):
    decision = Router(make_catalog(tau=tau)).decide(
        np.array(requirements),
        Query("x", deny=frozenset(deny)),
        health=dict(zip(NAMES, health, strict=True)),
    )
    receipt = json.loads(json.dumps(decision.receipt()))
    assert redecide(receipt) == decision.model
    assert [row["fate"] for row in receipt["candidates"]].count("chosen") == 1
    assert all(row["reason"].endswith(".") for row in receipt["candidates"])


def test_replay_equals_route_on_1000_random_cases():
    rng = np.random.default_rng(42)
    catalog = make_catalog(*(spec(f"m{i}", rng.integers(1, 6), rng.random()) for i in range(8)))
    router = Router(catalog)
    pool = router.decide(need(0.5)).pool
    requirements = rng.random((1000, 4))
    s = shortfall(requirements, pool.capabilities, pool.weights)
    replayed = [pool.ids[i] for i in choose(s, pool.cost, catalog.policy.tau)]
    assert replayed == [router.decide(row).model for row in requirements]


def test_a_receipt_of_another_schema_is_refused():
    with pytest.raises(ValueError, match="not a hydra.receipt/v1"):
        redecide({"schema": "other/v2"})


def test_route_scores_the_message_and_tells_the_signals(catalog):
    scores = Scores(0.4)
    decision = Router(catalog, scores).route(Query("Traceback (most recent call last):", turn=3))
    assert decision.model == "mid"
    assert scores.asked == ["Traceback (most recent call last):"]
    assert decision.receipt()["signals"]["err"] is True


@pytest.mark.parametrize("level", [-0.1, 1.1, float("nan")])
def test_health_outside_its_range_is_refused(catalog, level):
    with pytest.raises(RoutingError, match=r"health must lie in \[0, 1\]"):
        Router(catalog).decide(need(0.1), health={"cheap": level})


def test_threads_share_one_router_while_the_catalog_changes():
    first, second = make_catalog(tau=0.1), make_catalog(tau=5.0)
    current = [first]
    router = Router(lambda: current[0])
    seen, wrong = set(), []

    def work():
        for _ in range(400):
            decision = router.decide(need(0.8))
            seen.add((decision.tau, decision.model))
            if decision.model != {0.1: "strong", 5.0: "cheap"}[decision.tau]:
                wrong.append(decision)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    current[0] = second
    for thread in threads:
        thread.join()
    assert not wrong
    assert router.decide(need(0.8)).model == "cheap"


class Far:
    """Every message is 1.3 times as far from training as nearly all ordinary ones."""

    def predict(self, texts, turns=None, contexts=None):
        n = len(texts)
        found = Prediction(np.full((n, 4), 0.2), np.full(n, 7), np.zeros(n, dtype=bool))
        return replace(found, distances=np.full(n, 1.3))


def test_an_unusual_message_is_flagged_in_the_receipt_and_routed_as_ever(catalog):
    flagged = Router(catalog, Far()).route(Query("x"))
    plain = Router(catalog, Scores(0.2)).route(Query("x"))
    assert flagged.model == plain.model
    receipt = json.loads(json.dumps(flagged.receipt()))
    assert (receipt["distance"], receipt["unusual"]) == (1.3, True)
    assert redecide(receipt) == flagged.model
    assert not {"distance", "unusual"} & plain.receipt().keys()
