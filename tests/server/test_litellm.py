"""The plugins inside the real LiteLLM proxy, in an environment of its own, and without it."""

import asyncio
import contextlib
import os
import re
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import yaml

from hydra_core.base.errors import HydraError
from hydra_core.catalog import load_catalog, parse_catalog
from hydra_core.export.litellm import litellm_config
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.server import litellm_plugins
from hydra_core.server.live import FileSource, LiveCatalog
from tests.console.consoles import free_port
from tests.server.conftest import CATALOG, EASY, HARD, MODELS, asked

LITELLM = Path(os.environ.get("HYDRA_LITELLM", ".venv-litellm")) / "bin" / "litellm"
needs_litellm = pytest.mark.skipif(
    not LITELLM.exists(), reason="LiteLLM is not installed; `make litellm-test` does it"
)


@pytest.fixture
def choosing():
    live = LiveCatalog(FileSource(CATALOG), lambda catalog: Router(catalog, default_predictor()))
    return litellm_plugins.Choosing(live)


def context(text, candidates):
    messages = [{"role": "user", "content": text}]
    return SimpleNamespace(
        structured_messages=messages, candidate_models=list(candidates), metadata={}, signals={}
    )


def routed(text):
    return Router(load_catalog(CATALOG), default_predictor()).route(Query(text)).model


@pytest.mark.parametrize("text", [EASY, HARD])
def test_the_plugin_leaves_what_the_router_chooses(choosing, text):
    found = context(text, [f"openai/{model}" for model in MODELS])
    asyncio.run(litellm_plugins.Routing(choosing).run(found))
    assert found.candidate_models == [f"openai/{routed(text)}"]


def test_the_plugin_lets_foreign_groups_pass(choosing):
    for candidates in (["openai/embedding-1", *MODELS], [MODELS[0]], []):
        found = context(HARD, candidates)
        asyncio.run(litellm_plugins.Routing(choosing).run(found))
        assert found.candidate_models == candidates


def test_the_loop_goes_on_while_the_plugin_chooses(choosing):
    async def both():
        chosen = asyncio.create_task(
            litellm_plugins.Classifier(choosing).classify(context(HARD * 50, MODELS))
        )
        beats = 0
        while not chosen.done():
            await asyncio.sleep(0)
            beats += 1
        return chosen.result(), beats

    model, beats = asyncio.run(both())
    assert model in MODELS
    assert beats > 10


def test_what_cannot_be_served_is_declined_by_the_classifier_and_refused_by_the_plugin(choosing):
    empty = SimpleNamespace(
        structured_messages=[], candidate_models=list(MODELS), metadata={}, signals={}
    )
    assert asyncio.run(litellm_plugins.Classifier(choosing).classify(empty)) is None
    with pytest.raises(Exception, match="no user message"):
        asyncio.run(litellm_plugins.Routing(choosing).run(empty))


def test_without_a_catalog_the_configuration_is_refused(monkeypatch):
    monkeypatch.delenv("HYDRA_CATALOG", raising=False)
    litellm_plugins._choosing.cache_clear()
    with pytest.raises(HydraError, match="HYDRA_CATALOG"):
        _ = litellm_plugins.routing


@contextlib.contextmanager
def proxy(tmp_path, content, **variables):
    """The address of a LiteLLM proxy with this configuration, given as values or as text."""
    path = tmp_path / "config.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    port = free_port()
    environ = {
        **os.environ,
        "HYDRA_CATALOG": str(CATALOG.resolve()),
        "PYTHONPATH": str(Path.cwd()),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        **variables,
    }
    words = [LITELLM, "--config", path, "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "litellm.log").open("wb") as log:
        server = subprocess.Popen(words, env=environ, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 180
    try:
        while True:
            assert server.poll() is None, (tmp_path / "litellm.log").read_text()[-2_000:]
            assert time.monotonic() < deadline
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/health/liveliness", timeout=2).status_code == 200:
                    break
            time.sleep(0.5)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)


def deployments(url, models, group=None):
    return [
        {
            "model_name": group or model,
            "litellm_params": {"model": f"openai/{model}", "api_base": f"{url}/v1", "api_key": "x"},
        }
        for model in models
    ]


@pytest.mark.slow
@needs_litellm
def test_the_real_proxy_routes_a_pool_by_the_plugin_streams_included(tmp_path, upstream):
    content = {
        "model_list": deployments(upstream.url, MODELS, "auto")
        + deployments(upstream.url, ["other"], "other"),
        "router_settings": {"plugins": ["hydra_core.server.litellm_plugins.routing"]},
    }
    with proxy(tmp_path, content) as url:
        for text in (EASY, HARD):
            for stream in (False, True):
                upstream.seen.clear()
                body = asked(text, stream=stream)
                answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
                assert answer.status_code == 200, answer.text
                assert [one["body"]["model"] for one in upstream.seen] == [routed(text)]
        upstream.seen.clear()
        httpx.post(f"{url}/v1/chat/completions", json=asked(HARD, model="other"), timeout=60)
        assert upstream.seen[0]["body"]["model"] == "other"


def takes_the_tier(tmp_path, upstream, classifier):
    """A proxy whose complexity router asks this classifier sends each message where we would."""
    tiers = [{"name": model, "description": f"routed to {model} by HyDRA"} for model in MODELS]
    router = {
        **classifier,
        "tier_definitions": tiers,
        "tiers": {model: model for model in MODELS},
        "fallback_tier": MODELS[-1],
    }
    auto = {"model": "auto_router/complexity_router", "complexity_router_config": router}
    models = deployments(upstream.url, MODELS)
    content = {"model_list": [*models, {"model_name": "auto", "litellm_params": auto}]}
    with proxy(tmp_path, content) as url:
        for text in (EASY, HARD):
            upstream.seen.clear()
            answer = httpx.post(f"{url}/v1/chat/completions", json=asked(text), timeout=60)
            assert answer.status_code == 200, answer.text
            assert upstream.seen[-1]["body"]["model"] == routed(text)
    return True


@pytest.mark.slow
@needs_litellm
def test_the_real_proxy_takes_the_classifiers_tier(tmp_path, upstream):
    plugin = "hydra_core.server.litellm_plugins.classifier"
    classifier = {"classifier_type": "custom", "classifier_plugin": plugin}
    assert takes_the_tier(tmp_path, upstream, classifier)


@pytest.mark.slow
@needs_litellm
def test_the_real_proxy_asks_the_service_for_a_tier_by_configuration(tmp_path, upstream, make):
    service = {"api_base": str(make(upstreams="").base_url).rstrip("/"), "api_key": "unused"}
    config = {**service, "timeout_ms": 20_000}
    classifier = {"classifier_type": "oss_classifier", "opensource_classifier_config": config}
    assert takes_the_tier(tmp_path, upstream, classifier)


@pytest.mark.slow
@needs_litellm
def test_the_real_proxy_routes_by_the_exported_file_as_it_is(tmp_path, upstream):
    text = re.sub(r"provider: .*", "provider: openai", CATALOG.read_text(encoding="utf-8"))
    (tmp_path / "pool.yaml").write_text(text, encoding="utf-8")
    export = litellm_config(parse_catalog(text)).text
    there = {"OPENAI_API_BASE": f"{upstream.url}/v1", "OPENAI_API_KEY": "x",
             "HYDRA_CATALOG": str(tmp_path / "pool.yaml")}  # fmt: skip
    with proxy(tmp_path, export, **there) as url:
        for message in (EASY, HARD):
            upstream.seen.clear()
            answer = httpx.post(f"{url}/v1/chat/completions", json=asked(message), timeout=60)
            assert answer.status_code == 200, answer.text
            assert [one["body"]["model"] for one in upstream.seen] == [routed(message)]
