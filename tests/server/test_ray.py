"""The service on a local Ray: replicas answer, stream, and share conversations through Redis."""

import importlib.util
import time

import httpx
import pytest

from hydra_core.server.settings import VARIABLE, Settings, to_text
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, HARD, asked, upstreams_text
from tests.server.test_workers import redis_url  # noqa: F401 (a fixture)

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed; `make ray-test` does it",
    ),
    pytest.mark.filterwarnings("default"),  # Ray's own
]


#: What Ray gives up on after some seconds; a busy machine may need more.
PATIENT = (
    "RAY_raylet_start_wait_time_s",
    "RAY_worker_register_timeout_seconds",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S",
)


@pytest.fixture
def replicas(tmp_path, upstream, redis_url, monkeypatch):  # noqa: F811
    """The address of two replicas."""
    upstreams = tmp_path / "u.yaml"
    upstreams.write_text(upstreams_text(upstream.url, connect_s=60, first_byte_s=60))
    settings = Settings(str(CATALOG.resolve()), str(upstreams), redis=redis_url)
    monkeypatch.setenv(VARIABLE, to_text(settings))
    monkeypatch.setenv("FAKE_KEY", "k")
    for name in PATIENT:
        monkeypatch.setenv(name, "600")
    import ray
    from ray import serve

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    port = free_port()
    try:
        from hydra_core.server import ray_app

        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(ray_app.app)
        url = f"http://127.0.0.1:{port}"
        while httpx.get(f"{url}/health/ready", timeout=600).status_code != 200:
            time.sleep(0.1)  # running, but not yet known to Ray's proxy
        yield url
    finally:
        serve.shutdown()
        ray.shutdown()


def test_replicas_route_stream_and_keep_a_conversations_model(replicas):
    with httpx.Client(base_url=replicas, timeout=600) as client:
        headers = {"x-hydra-conversation-id": "c-1"}
        first = client.post("/v1/chat/completions", json=asked(HARD), headers=headers)
        assert first.status_code == 200
        turns = [{"role": "user", "content": HARD}, {"role": "user", "content": "hi"}]
        turns.insert(1, {"role": "assistant", "content": "ok"})
        body = {"model": "auto", "messages": turns}
        later = [client.post("/v1/chat/completions", json=body, headers=headers) for _ in range(10)]
        models = {one.headers["x-hydra-model"] for one in later}
        assert models == {first.headers["x-hydra-model"]}
        with client.stream("POST", "/v1/chat/completions", json=asked(stream=True)) as answer:
            assert answer.read().endswith(b"data: [DONE]\n\n")
