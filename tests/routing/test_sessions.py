"""Stickiness: when the router is asked again, and what a store must hold to."""

import shutil
import socket
import subprocess
import time
from dataclasses import replace

import pytest

from hydra_core.base.types import LEVEL_DIMENSION, Band, StickyMode
from hydra_core.routing.decision import Cause, redecide
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions, RedisSessions, missing_prefix
from tests.console.consoles import free_port
from tests.routing.conftest import Scores, make_catalog, spec

REDIS_SERVER = shutil.which("redis-server")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def turns(router, scores, levels, **changes):
    """Models of a conversation whose turns need `levels`; `changes` apply to the last turn."""
    models, said = [], []
    for number, level in enumerate(levels, start=1):
        scores.level = level
        extra = changes if number == len(levels) else {}
        query = Query(f"turn {number}", number, "c1", tuple(said), **extra)
        said.append(query.text)
        models.append(router.route(query).model)
    return models


@pytest.fixture
def scores():
    return Scores()


def test_per_session_keeps_the_first_model(scores):
    router = Router(make_catalog(), scores, sessions=MemorySessions())
    assert turns(router, scores, [0.4, 0.9, 0.1]) == ["mid"] * 3
    assert scores.asked == ["turn 1"]


def test_per_request_routes_every_turn(scores):
    catalog = make_catalog(mode=StickyMode.PER_REQUEST)
    router = Router(catalog, scores, sessions=MemorySessions())
    assert turns(router, scores, [0.4, 0.9, 0.1]) == ["mid", "strong", "cheap"]


def test_per_content_routes_an_edited_history_anew(scores):
    catalog = make_catalog(mode=StickyMode.PER_CONTENT)
    router = Router(catalog, scores, sessions=MemorySessions())
    assert turns(router, scores, [0.4, 0.9]) == ["mid", "mid"]
    scores.level = 0.9
    edited = router.route(Query("turn 2", 2, "c1", ("another first turn",)))
    assert edited.model == "strong"


def test_compaction_asks_again(scores):
    router = Router(make_catalog(), scores, sessions=MemorySessions())
    assert turns(router, scores, [0.4, 0.9, 0.9], compacted=True) == ["mid", "mid", "strong"]


def test_conversations_are_apart(scores):
    router = Router(make_catalog(), scores, sessions=MemorySessions())
    scores.level = 0.9
    assert router.route(Query("a", 1, "c1")).model == "strong"
    scores.level = 0.1
    assert router.route(Query("a", 1, "c2")).model == "cheap"
    assert router.route(Query("b", 2, "c1")).model == "strong"


def test_a_kept_model_that_cannot_serve_is_left(scores):
    catalog = make_catalog(spec("cheap", 1, 0.2), spec("eyes", 5, 0.9, vision=True))
    router = Router(catalog, scores, sessions=MemorySessions())
    assert turns(router, scores, [0.1, 0.1], has_image=True) == ["cheap", "eyes"]
    sick = Router(catalog, scores, sessions=MemorySessions())
    sick.route(Query("a", 1, "c"))
    assert sick.route(Query("b", 2, "c"), health={"cheap": 0.0}).model == "eyes"


def test_a_retired_model_is_left(scores):
    current = [make_catalog()]
    router = Router(lambda: current[0], scores, sessions=MemorySessions())
    scores.level = 0.4
    assert router.route(Query("a", 1, "c")).model == "mid"
    current[0] = make_catalog(spec("cheap", 1, 0.2), spec("strong", 9, 0.9))
    assert router.route(Query("b", 2, "c")).model == "strong"


def with_level(catalog):
    """The catalog with the dimension that fitted profiles add: every query requires it in full."""
    dimensions = (*catalog.dimensions, LEVEL_DIMENSION)
    models = tuple(
        replace(one, overrides={**one.overrides, LEVEL_DIMENSION: 1.0}) for one in catalog.models
    )
    policy = replace(catalog.policy, weights=(*catalog.policy.weights, 1.0))
    bands = (*catalog.bands, Band(0.0, 1.0))
    return replace(catalog, dimensions=dimensions, models=models, policy=policy, bands=bands)


@pytest.mark.parametrize("made", [make_catalog, lambda **more: with_level(make_catalog(**more))])
def test_below_the_sticky_threshold_the_current_model_stays(scores, made):
    router = Router(made(threshold=0.3), scores, sessions=MemorySessions())
    scores.level = 0.9
    router.route(Query("a", 1, "c"))
    scores.level = 0.1
    kept = router.route(Query("b", 2, "c", compacted=True))
    assert (kept.model, kept.cause) == ("strong", Cause.KEPT_BELOW_THRESHOLD)
    assert redecide(kept.receipt()) == "strong"


def test_a_kept_turn_has_a_receipt_too(scores):
    router = Router(make_catalog(), scores, sessions=MemorySessions())
    router.route(Query("a", 1, "c"))
    receipt = router.route(Query("b", 2, "c")).receipt()
    assert receipt["cause"] == "kept_by_session"
    assert redecide(receipt) == "cheap"


def test_sessions_expire_and_stay_bounded():
    clock = Clock()
    sessions = MemorySessions(max_sessions=100, clock=clock)
    sessions.put("a", "m", ttl_s=10)
    assert sessions.get("a") == "m"
    clock.now = 10.0
    assert sessions.get("a") is None
    for i in range(1000):
        sessions.put(str(i), "m", ttl_s=10)
    assert len(sessions) == 100
    assert sessions.get("999") == "m"


@pytest.fixture
def redis_server(tmp_path):
    """A real redis-server on a free loopback port: (port, start, stop)."""
    if REDIS_SERVER is None:
        pytest.skip("needs redis-server (Debian package redis-server)")
    port = free_port()
    running = []

    def start():
        command = [REDIS_SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--appendonly", "no", "--dir", str(tmp_path), "--logfile", "redis.log"]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        for _ in range(200):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("redis-server did not start")

    def stop():
        process = running.pop()
        process.terminate()
        process.wait(timeout=10)

    start()
    yield port, start, stop
    while running:
        stop()


def test_two_routers_agree_through_redis(redis_server, scores):
    port, _, _ = redis_server
    url = f"redis://127.0.0.1:{port}/0"
    stores = [RedisSessions.from_url(url) for _ in range(2)]
    first, second = (Router(make_catalog(), scores, sessions=store) for store in stores)
    scores.level = 0.9
    assert first.route(Query("a", 1, "c")).model == "strong"
    scores.level = 0.1
    assert second.route(Query("b", 2, "c")).model == "strong"
    for store in stores:
        store.close()


def test_redis_gone_and_back(redis_server, scores):
    port, start, stop = redis_server
    clock = Clock()
    plain = RedisSessions.from_url(f"redis://127.0.0.1:{port}/0", timeout_s=0.5)
    sessions = RedisSessions(plain._client, pause_s=2.0, clock=clock)
    router = Router(make_catalog(), scores, sessions=sessions)
    scores.level = 0.4
    assert "session_store" not in router.route(Query("a", 1, "c")).receipt()
    stop()
    kept = router.route(Query("b", 2, "c"))
    assert kept.model == "mid"
    assert "unreachable" in kept.receipt()["session_store"]
    start()
    clock.now = 3.0
    healed = router.route(Query("c", 3, "c"))
    assert healed.model == "mid"
    assert "session_store" not in healed.receipt()
    plain.close()


@pytest.mark.parametrize(
    "value", [b"\xff\xfe", b"", b"strong", b"1 2", b"x y strong", b"1 2 a b", b"9" * 99 + b" 1 m"]
)
def test_a_damaged_value_is_told_and_routed_afresh(redis_server, scores, caplog, value):
    port, _, _ = redis_server
    sessions = RedisSessions.from_url(f"redis://127.0.0.1:{port}/0", timeout_s=0.5)
    router = Router(make_catalog(), scores, sessions=sessions)
    scores.level = 0.9
    assert router.route(Query("a", 1, "c")).model == "strong"
    sessions._client.set("hydra:session:c", value, keepttl=True)
    scores.level = 0.1
    assert router.route(Query("b", 2, "c")).model == "cheap"
    assert "damaged" in caplog.text
    sessions.close()


def test_after_a_restart_of_redis_the_newer_memory_wins(redis_server, tmp_path):
    port, start, stop = redis_server
    first, second = (
        RedisSessions.from_url(f"redis://127.0.0.1:{port}/0", timeout_s=0.5) for _ in range(2)
    )
    first._pause_s = second._pause_s = 0.0
    first.put("c", "older", 60.0)
    assert second.get("c") == "older"
    old = first._client.get("hydra:c")
    stop()
    second.put("c", "newer", 60.0)
    assert second.get("c") == "newer"
    start()
    first._client.set("hydra:c", old)  # what a Redis that saves to disk comes back with
    assert second.get("c") == "newer"
    assert first.get("c") == "newer"
    stop()
    assert first.get("c") == "newer"  # what it last saw, not what it once wrote
    start()
    for store in (first, second):
        store.close()


def test_what_redis_forgot_is_not_brought_back(redis_server):
    port, start, stop = redis_server
    sessions = RedisSessions.from_url(f"redis://127.0.0.1:{port}/0", timeout_s=0.5)
    sessions._pause_s = 0.0
    sessions.put("c", "m", 60.0)
    stop()
    start()
    assert sessions.get("c") is None  # another process may have remembered another model
    sessions.close()


def test_a_later_turn_without_its_prefix_is_told_under_per_content_alone():
    late = Query("and now?", turn=3, conversation_id="c")
    assert "prefix" in missing_prefix(StickyMode.PER_CONTENT, late)
    assert missing_prefix(StickyMode.PER_SESSION, late) == ""
    assert missing_prefix(StickyMode.PER_CONTENT, replace(late, prefix=("a", "b"))) == ""
    assert missing_prefix(StickyMode.PER_CONTENT, replace(late, turn=1)) == ""
