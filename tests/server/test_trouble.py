"""What may go wrong around a request: clients leave, upstreams stall, input is odd, stops."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from hydra_core.base.errors import StoreError
from hydra_core.decision_log.reading import read_log
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from hydra_core.server.answers import ClientGoneError, StreamedAnswer, WholeAnswer, until_gone
from hydra_core.server.live import FileSource, LiveCatalog
from hydra_core.server.upstream.calls import Caller
from hydra_core.server.upstream.file import UpstreamsError, parse_upstreams
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, EASY, asked, upstreams_text, wait_for
from tests.server.test_workers import wait_for_server


def sent(answer, send, receive=None):
    """Give an answer to a client that stays, unless `receive` says something else."""

    async def stays():
        await asyncio.Event().wait()

    asyncio.run(answer({"type": "http"}, receive or stays, send))


def test_log_and_metrics_are_told_once_the_client_has_the_answer():
    order = []

    async def send(message):
        order.append(message["type"])

    sent(WholeAnswer(b"x", 200, {}, lambda gone: order.append(gone)), send)
    assert order == ["http.response.start", "http.response.body", False]


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_cannot_be_sent_was_to_a_client_that_is_gone(stream):
    told, ended = [], []

    async def send(message):
        raise OSError

    async def pieces():
        try:
            yield b"x"
        finally:
            ended.append(True)

    kind = StreamedAnswer(200, {}, pieces(), told.append)
    sent(kind if stream else WholeAnswer(b"x", 200, {}, told.append), send)
    assert told == [True]


def test_a_stream_is_stopped_where_it_is_when_its_client_leaves():
    told, ended, came = [], [], asyncio.Event()

    async def pieces():
        try:
            yield b"x"
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def send(message):
        if message.get("body"):
            came.set()

    async def receive():
        await came.wait()
        return {"type": "http.disconnect"}

    sent(StreamedAnswer(200, {}, pieces(), told.append), send, receive)
    assert (told, ended) == ([True], [True])


def test_a_stop_from_outside_is_not_taken_for_a_client_that_left():
    async def receive():
        await asyncio.Event().wait()

    async def work():
        task = asyncio.ensure_future(until_gone(receive, asyncio.Event().wait()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = asyncio.ensure_future(until_gone(leave, asyncio.Event().wait()))
        with pytest.raises(ClientGoneError):
            await left
        assert await until_gone(receive, asyncio.sleep(0, "done")) == "done"

    async def leave():
        return {"type": "http.disconnect"}

    asyncio.run(work())


def test_a_stream_that_stalls_ends_with_an_error(make, upstream, tmp_path):
    upstream.behaviour["*"] = "slow"
    client = make(timeouts={"first_byte_s": 30, "idle_s": 0.3}, log=str(tmp_path / "log"))
    with client.stream("POST", "/v1/chat/completions", json=asked(stream=True)) as answer:
        text = answer.read()
    assert b"broke off" in text
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert row["status"] == "failed"
    assert [one.partition(":")[2] for one in row["attempts"]] == ["broke_off"]


def test_an_answer_that_an_upstream_packs_comes_through(make, upstream):
    upstream.behaviour["*"] = "zip"
    answer = make().post("/v1/chat/completions", json=asked())
    assert answer.json()["choices"][0]["message"]["content"] == "All is well."


@pytest.mark.parametrize("how", ["strict", "strict: not supported with this model"])
def test_an_upstream_that_may_not_be_asked_for_tokens_is_asked_without(make, upstream, how):
    upstream.behaviour["*"] = how
    client = make()
    for model in ("gpt-5.4", "gpt-5.4", "gpt-5.4-mini"):  # one server may pass on to several
        answer = client.post("/v1/chat/completions", json=asked(stream=True, model=model))
        assert (answer.status_code, "data: [DONE]" in answer.text) == (200, True)
    wanted = ["stream_options" in one["body"] for one in upstream.seen]
    assert wanted == [True, False, False, True, False]
    options = {"include_usage": True}  # of the client: not ours to take out
    own = client.post("/v1/chat/completions", json=asked(stream=True, stream_options=options))
    assert own.status_code == 422


def test_odd_stream_options_are_the_upstreams_to_refuse(make, upstream):
    answer = make().post("/v1/chat/completions", json=asked(stream=True, stream_options="x"))
    assert answer.status_code == 200
    assert upstream.seen[0]["body"]["stream_options"] == "x"


def test_whatever_fails_the_decision_is_in_the_log(make, monkeypatch, tmp_path):
    async def fail(*given):
        raise LookupError("not foreseen")

    monkeypatch.setattr(Caller, "call", fail)
    client = make(log=str(tmp_path / "log"))
    assert client.post("/v1/chat/completions", json=asked()).status_code == 500
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert list(read_log(tmp_path / "log").decisions["status"]) == ["failed"]


@pytest.mark.parametrize("key", ["half \ud800", "x" * 1001])
def test_a_conversation_id_that_is_no_key_is_refused(make, key):
    body = json.dumps(asked(hydra={"conversation_id": key}))
    own = make().post("/v1/decision", content=body)
    assert own.status_code == 400
    assert "conversation_id" in own.json()["error"]["message"]


def test_half_characters_do_not_spoil_the_log(make, tmp_path):
    client = make(log=str(tmp_path / "log"), log_text=True)
    body = asked("half \ud800 a letter", hydra={"deny": ["\ud800"]})
    body["hydra"]["receipt"] = True
    assert client.post("/v1/decision", content=json.dumps(body)).status_code == 200
    odd = client.post("/v1/outcomes", content=json.dumps({"\ud800": 1}))
    assert odd.status_code == 400
    told = json.dumps({"decision_id": "\ud800", "quality": 1})
    assert client.post("/v1/outcomes", content=told).status_code == 404
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert list(read_log(tmp_path / "log").decisions["text"]) == ["half ? a letter"]


@pytest.mark.parametrize("quality", [10**400, -1, True, None, "1"])
def test_a_quality_out_of_range_is_refused(make, tmp_path, quality):
    client = make(log=str(tmp_path / "log"))
    answer = client.post("/v1/outcomes", json={"decision_id": "d", "quality": quality})
    assert answer.status_code == 400


def test_a_key_with_a_line_break_is_refused_at_the_start():
    upstreams = parse_upstreams(upstreams_text("http://x", models=("a",)))
    with pytest.raises(UpstreamsError, match="line break"):
        upstreams.require(["a"], {"FAKE_KEY": "secret\n"})


def test_after_a_fallback_the_session_is_told_beside_the_event_loop(make, upstream, monkeypatch):
    threads = []

    class Watched(MemorySessions):
        def put(self, key, model, ttl_s):
            threads.append((threading.current_thread().name, model))
            super().put(key, model, ttl_s)

    monkeypatch.setattr("hydra_core.server.run._sessions", lambda settings: Watched())
    client = make()
    own = {"conversation_id": "c"}
    chosen = client.post("/v1/decision", json=asked(hydra=own)).json()["model"]
    upstream.behaviour[f"up-{chosen}"] = "500"
    answer = client.post("/v1/chat/completions", json=asked(hydra=own))
    wait_for(lambda: threads[-1][1] == answer.headers["x-hydra-model"])
    assert all(name.startswith("decide") for name, _ in threads)


def edited(tmp_path):
    pool = tmp_path / "pool.yaml"
    pool.write_text(CATALOG.read_text())
    return pool, LiveCatalog(FileSource(pool), Router)


def test_a_catalog_file_that_went_and_came_back_is_no_trouble_any_more(tmp_path):
    pool, live = edited(tmp_path)
    pool.rename(tmp_path / "away")
    live.look()
    assert "cannot be looked at" in live.problem
    (tmp_path / "away").rename(pool)
    live.look()
    assert live.problem == ""


def test_a_revision_that_could_not_be_read_is_tried_again(tmp_path, monkeypatch, caplog):
    pool, live = edited(tmp_path)
    pool.write_text(CATALOG.read_text().replace("tau: 0.24", "tau: 0.3"))
    with monkeypatch.context() as broken:

        def away(self):
            raise StoreError("the database is away")

        broken.setattr(FileSource, "load", away)
        live.look()
        live.look()
        assert "the database is away" in live.problem
        assert len(caplog.records) == 1
    live.look()
    assert (live.problem, live.now.catalog.policy.tau) == ("", 0.3)


def test_a_revision_that_fails_unforeseen_does_not_end_the_watch(tmp_path, monkeypatch):
    pool, live = edited(tmp_path)
    monkeypatch.setattr(FileSource, "stamp", lambda self: 1 / 0)
    live.look()
    assert "division" in live.problem
    assert live.now.catalog.policy.tau == 0.24


@pytest.mark.slow
def test_a_service_told_to_stop_waits_only_so_long_and_loses_no_record(tmp_path, upstream):
    upstream.behaviour["*"] = "slow"
    upstreams, log, port = tmp_path / "u.yaml", tmp_path / "log", free_port()
    upstreams.write_text(upstreams_text(upstream.url, idle_s=60))
    code = (
        "from hydra_core.server.run import serve; from hydra_core.server.settings import Settings; "
        f"serve(Settings({str(CATALOG)!r}, {str(upstreams)!r}, port={port}, log={str(log)!r}, "
        "stop_s=1), print)"
    )
    environ = {**os.environ, "FAKE_KEY": "k"}
    process = subprocess.Popen([sys.executable, "-c", code], env=environ, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_for_server(client.base_url, process)
            body = asked(EASY, stream=True)
            with client.stream("POST", "/v1/chat/completions", json=body) as answer:
                next(answer.iter_bytes())
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=120)
    finally:
        process.kill()
    assert list(read_log(log).decisions["status"]) == ["cancelled"]
    left = sorted(path.suffix for path in log.glob("[!.]*"))
    assert left == [".parquet", ".sqlite"]  # no journal of the teams' ledger
