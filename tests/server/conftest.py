"""A router service with a small catalog in front of a fake upstream, both real servers."""

import asyncio
import contextlib
import threading
import time
from pathlib import Path

import httpx
import pytest
import uvicorn
import yaml

from hydra_core.server.run import GuardedProtocol
from tests.console.consoles import free_port
from tests.server.fake_upstream import FakeUpstream

CATALOG = Path("catalog/paper_five.yaml")
MODELS = ("gpt-5.4-mini", "claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6", "gpt-5.4")
HARD = "Fix the deadlock in this lock-free queue and prove that the memory order is right"
EASY = "hi"


class _Server(uvicorn.Server):
    """Sees at once that it is to stop and that it may end, not ten times a second."""

    async def main_loop(self):
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)

    async def shutdown(self, sockets=None):
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(0.01)
        await self.lifespan.shutdown()


@contextlib.contextmanager
def running(app, *, wait=True, http=GuardedProtocol):
    """The address of an ASGI application served by a thread for as long as the block.

    Args:
        wait: For its end: what it writes then is asked for.
        http: Reads the connections.
    """
    port = free_port()
    config = uvicorn.Config(
        app,
        port=port,
        log_level="critical",
        access_log=False,
        http=http,
        ws="none",
        proxy_headers=False,
    )
    server = _Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.01)
        assert thread.is_alive()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        if wait:
            thread.join(timeout=20)


@pytest.fixture
def upstream():
    """A fake upstream: `upstream.app` tells it how to behave, `upstream.url` is its address."""
    app = FakeUpstream()
    with running(app, wait=False) as url:
        app.url = url
        yield app


def upstreams_text(url, models=MODELS, **timeouts):
    names = {model: f"up-{model}" for model in models}
    server = {"name": "fake", "base_url": f"{url}/v1", "key_env": "FAKE_KEY", "models": names}
    times = {"connect_s": 1, "first_byte_s": 5, "idle_s": 5, **timeouts}
    content = {"schema": "hydra.upstreams/v1", "upstreams": [server], "timeouts": times}
    return yaml.safe_dump(content)


@pytest.fixture
def budgets():
    """Opens ledgers of teams' budgets as TeamBudgets does, and closes them."""
    from hydra_core.server.teams import TeamBudgets

    with contextlib.ExitStack() as stack:

        def opened(*where, **options):
            return stack.enter_context(contextlib.closing(TeamBudgets(*where, **options)))

        yield opened


@pytest.fixture
def make(tmp_path, upstream, monkeypatch):
    """Starts a service: `make(log=..., ...)` gives a client of it."""
    from hydra_core.server.run import build
    from hydra_core.server.settings import Settings

    monkeypatch.setenv("FAKE_KEY", "secret-key")
    with contextlib.ExitStack() as stack:

        def start(catalog=CATALOG, timeouts=None, headers=None, **changes):
            path = tmp_path / "upstreams.yaml"
            path.write_text(upstreams_text(upstream.url, **(timeouts or {})))
            values = {"catalog": str(catalog), "upstreams": str(path), "reload_s": 0.05}
            app = build(Settings(**(values | changes)))
            url = stack.enter_context(running(app))
            client = httpx.Client(base_url=url, timeout=20, headers=headers)
            return stack.enter_context(client)

        yield start


def wait_for(condition):
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(text=HARD, **changes):
    """A chat request of one message."""
    return {"model": "auto", "messages": [{"role": "user", "content": text}], **changes}
