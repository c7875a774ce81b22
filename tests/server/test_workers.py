"""Several worker processes behind one port, sharing conversations through Redis."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from hydra_core.decision_log.reading import read_log
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, HARD, asked, upstreams_text, wait_for


@pytest.fixture
def redis_url():
    """A private Redis."""
    if not shutil.which("redis-server"):
        pytest.skip("redis-server is not installed")
    port = free_port()
    words = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    while True:
        assert server.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.01)
    # a router gives Redis 50 ms, then goes on without; a busy machine may need more
    yield f"redis://127.0.0.1:{port}/0?socket_timeout=60&socket_connect_timeout=60"
    server.terminate()
    server.wait(timeout=10)


@pytest.fixture
def two_workers(tmp_path, upstream, redis_url):
    """The address of a service of two processes, and its log folder."""
    port, log = free_port(), tmp_path / "log"
    upstreams = tmp_path / "u.yaml"
    upstreams.write_text(upstreams_text(upstream.url, connect_s=60, first_byte_s=60))
    words = ["serve", "--catalog", str(CATALOG), "--upstreams", str(upstreams), "--workers", "2"]
    words += ["--port", str(port), "--redis", redis_url, "--log", str(log)]
    command = [sys.executable, "-m", "hydra_core", *words]
    environ = {**os.environ, "FAKE_KEY": "k"}
    process = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    wait_for_server(url, process)
    yield url, log
    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)


def wait_for_server(url, process):
    """Until the service answers, or its process has ended."""
    while True:
        assert process.poll() is None
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/health/ready", timeout=60).status_code == 200:
                return
        time.sleep(0.1)


@pytest.mark.slow
def test_workers_agree_on_a_conversations_model_and_count_together(two_workers, upstream):
    url, log = two_workers
    headers = {"x-hydra-conversation-id": "c-9"}
    post = f"{url}/v1/chat/completions"
    first = httpx.post(post, json=asked(HARD), headers=headers, timeout=60).headers["x-hydra-model"]
    turns = [{"role": "user", "content": HARD}, {"role": "user", "content": "hi"}]
    turns.insert(1, {"role": "assistant", "content": "ok"})
    body = {"model": "auto", "messages": turns}
    served = []

    def both_answered():  # one writer a process; the second may still be starting
        later = [httpx.post(post, json=body, headers=headers, timeout=60) for _ in range(24)]
        served.extend(one.headers["x-hydra-model"] for one in later)
        return len(list(log.glob("*.jsonl"))) == 2

    wait_for(both_answered)
    assert set(served) == {first}
    counted = f'hydra_requests_total{{model="{first}",status="answered"}} {len(served) + 1}.0'
    wait_for(lambda: counted in httpx.get(f"{url}/metrics").text.splitlines())
    wait_for(lambda: len(read_log(log).decisions) == len(served) + 1)
    assert len(list(log.glob("*.jsonl"))) == 2


@pytest.mark.slow
def test_a_worker_that_says_nothing_for_a_while_is_not_killed(two_workers):
    _, log = two_workers
    worker = int(next(log.glob("*.jsonl")).stem.rpartition("-")[2])
    os.kill(worker, signal.SIGSTOP)  # as a busy machine may
    time.sleep(7)
    os.kill(worker, signal.SIGCONT)
    time.sleep(1)
    os.kill(worker, 0)
