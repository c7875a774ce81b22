"""More requests than can be decided: so many wait, the rest is refused at once."""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from hydra_core.server.admission import Admission, OverloadedError
from hydra_core.server.answers import ClientGoneError
from hydra_core.server.telemetry import Metrics
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, asked, wait_for
from tests.server.test_workers import wait_for_server


async def stays():
    await asyncio.Event().wait()


async def leaves():
    return {"type": "http.disconnect"}


def value(metrics, name):
    lines = metrics.text(problem=False).decode().splitlines()
    return next(float(one.split()[-1]) for one in lines if one.startswith(f"{name} "))


def dropped(metrics, reason):
    return value(metrics, f'hydra_queue_dropped_total{{reason="{reason}"}}')


def busy(test, **limits):
    """Run a test of an admission whose one thread is at work until `go` is set."""

    async def run():
        metrics, go = Metrics(), threading.Event()
        admission = Admission(1, metrics, **limits)
        first = asyncio.ensure_future(admission.run(lambda: go.wait(60), stays))
        await asyncio.sleep(0)
        try:
            await test(admission, metrics, go)
        finally:
            go.set()
            await first
            admission.pool.shutdown()

    asyncio.run(run())


def test_beyond_the_queue_a_request_is_refused_at_once():
    async def test(admission, metrics, go):
        waits = [asyncio.ensure_future(admission.run(lambda: 1, stays)) for _ in range(2)]
        await asyncio.sleep(0)
        assert (admission.waiting, admission.full) == (2, True)
        assert value(metrics, "hydra_queue_depth") == 2
        with pytest.raises(OverloadedError) as refused:
            await admission.run(lambda: 1, stays)
        assert refused.value.wait_s >= 1
        assert dropped(metrics, "full") == 1
        go.set()
        assert [(await one)[0] for one in waits] == [1, 1]
        assert (admission.waiting, admission.full) == (0, False)
        assert value(metrics, "hydra_queue_depth") == 0
        assert value(metrics, "hydra_queue_wait_seconds_count") == 3

    busy(test, most_waiting=2, most_wait_s=60)


def test_what_waits_too_long_is_dropped_before_it_is_decided():
    async def test(admission, metrics, go):
        decided = []
        with pytest.raises(OverloadedError):
            await admission.run(lambda: decided.append(1), stays)
        assert dropped(metrics, "late") == 1
        go.set()
        assert (await admission.run(lambda: 2, stays))[0] == 2
        assert decided == []

    busy(test, most_waiting=2, most_wait_s=0.05)


def test_a_request_whose_client_left_is_dropped_before_it_is_decided():
    async def test(admission, metrics, go):
        decided = []
        with pytest.raises(ClientGoneError):
            await admission.run(lambda: decided.append(1), leaves)
        assert (admission.waiting, dropped(metrics, "gone")) == (0, 1)
        go.set()
        assert (await admission.run(lambda: 2, stays))[0] == 2
        assert decided == []

    busy(test, most_waiting=2, most_wait_s=60)


def test_a_burst_is_answered_or_refused_and_the_service_is_well_after_it(make):
    client = make(queue=4, upstreams="")
    body = asked("word " * 4_000)

    async def burst():
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(base_url=client.base_url, limits=limits, timeout=60) as many:
            asks = (many.post("/v1/decision", json=body) for _ in range(150))
            return await asyncio.gather(*asks)

    answers = asyncio.run(burst())
    assert {one.status_code for one in answers} == {200, 503}
    refused = [one for one in answers if one.status_code == 503]
    assert all(int(one.headers["retry-after"]) >= 1 for one in refused)
    lines = client.get("/metrics").text.splitlines()
    counts = [
        float(one.split()[-1]) for one in lines if one.startswith("hydra_queue_dropped_total")
    ]
    assert sum(counts) == len(refused)
    assert "hydra_queue_depth 0.0" in lines
    assert client.get("/health/ready").status_code == 200
    assert client.post("/v1/decision", json=body).status_code == 200


def test_a_full_queue_refuses_before_anything_is_read(make, monkeypatch):
    client = make(log="")
    monkeypatch.setattr(Admission, "full", property(lambda self: True))
    for path, kind in {
        "/v1/chat/completions": "api_error",
        "/v1/messages": "overloaded_error",
    }.items():
        refused = client.post(path, content=b"not JSON", headers={"host": "elsewhere.example"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["error"]["type"] == kind
    assert client.get("/health/live").status_code == 200
    assert 'hydra_queue_dropped_total{reason="full"} 2.0' in client.get("/metrics").text
    monkeypatch.undo()


def test_a_stopping_service_is_not_ready_first_and_still_answers(tmp_path):
    port = free_port()
    words = ["serve", "--catalog", str(CATALOG), "--port", str(port), "--not-ready", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hydra_core", *words], env=os.environ, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            wait_for_server(client.base_url, process)
            process.send_signal(signal.SIGTERM)
            wait_for(lambda: client.get("/health/ready").status_code == 503)
            assert client.get("/health/ready").json()["status"] == "stopping"
            assert client.post("/v1/decision", json=asked()).status_code == 200
            process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
