"""What an upstream asks for is obeyed, and what it must not say does not reach the client."""

import time

import httpx
import pytest

from hydra_core.decision_log.reading import read_log
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from tests.server.conftest import CATALOG, MODELS, asked, running, upstreams_text, wait_for
from tests.server.raw_upstream import chunked, finish, http, raw_upstream, said, whole

KEY = 'sk-"secret"'
WAIT = {"error": {"message": "slow down"}}


@pytest.fixture
def upstream():
    with raw_upstream() as server:
        yield server


@pytest.fixture
def client(upstream, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_KEY", KEY)
    path = tmp_path / "upstreams.yaml"
    path.write_text(upstreams_text(upstream.url))
    settings = Settings(str(CATALOG), upstreams=str(path), log=str(tmp_path / "log"))
    with running(build(settings)) as url, httpx.Client(base_url=url, timeout=60) as found:
        yield found


def chat(client, **changes):
    return client.post("/v1/chat/completions", json=asked(**changes))


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "error"),
    [
        (["retry-after: 600"], {"message": "x"}),
        (["retry-after: Wed, 25 Nov 2099 12:00:00 GMT"], {"message": "x"}),
        ([], {"message": "Please try again in 10m0s."}),
        ([], {"message": "x", "metadata": {"retry_after": 600}}),
    ],
)
def test_a_model_is_left_alone_for_as_long_as_its_upstream_asks(
    client, upstream, status, headers, error
):
    first = client.post("/v1/decision", json=asked()).json()["model"]
    upstream.scripts[f"up-{first}"] = [http(status, {"error": error}, *headers)]
    assert chat(client).headers["x-hydra-model"] != first
    upstream.seen.clear()
    for _ in range(4):
        assert chat(client).headers["x-hydra-model"] != first
    assert f"up-{first}" not in upstream.seen
    upstream.seen.clear()
    refused = chat(client, model=first)
    assert refused.status_code == 429
    assert 500 < int(refused.headers["retry-after"]) <= 3_600
    assert "retry_later" in refused.json()["error"]["message"]
    assert upstream.seen == []


def test_a_model_is_asked_again_when_the_wait_is_over(client, upstream):
    first = client.post("/v1/decision", json=asked()).json()["model"]
    upstream.scripts[f"up-{first}"] = [http(429, WAIT, "retry-after-ms: 200")]
    assert chat(client).headers["x-hydra-model"] != first
    upstream.scripts.clear()
    time.sleep(0.25)
    assert chat(client).headers["x-hydra-model"] == first


def test_when_every_model_is_to_be_left_alone_nobody_is_asked(client, upstream):
    upstream.scripts["*"] = [http(429, WAIT, "retry-after: 60")]
    first = chat(client)
    assert (first.status_code, first.headers["retry-after"]) == (429, "60")
    assert len(upstream.seen) == len(MODELS)
    again = chat(client)
    assert again.status_code == 429
    assert 1 <= int(again.headers["retry-after"]) <= 60
    assert len(upstream.seen) == len(MODELS)


def test_a_client_is_told_the_shortest_of_the_waits(client, upstream):
    upstream.scripts["*"] = [http(429, WAIT, "retry-after: 600")]
    upstream.scripts[f"up-{MODELS[2]}"] = [http(429, WAIT, "retry-after: 30")]
    for _ in range(2):
        answer = chat(client)
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 30


def test_the_tokens_of_an_image_are_believed(client, upstream, tmp_path):
    usage = {"prompt_tokens": 48_169, "completion_tokens": 5}  # of one image, with some models
    upstream.scripts["*"] = [http(200, whole(usage=usage))]
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert chat(client, messages=[{"role": "user", "content": [image]}]).status_code == 200
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert read_log(tmp_path / "log").decisions["input_tokens"].tolist() == [48_169]


@pytest.mark.parametrize("status", [400, 422, 429, 500])
def test_our_key_in_an_error_is_masked(client, upstream, status):
    error = {"error": {"message": f"bad header 'Bearer {KEY}'", "param": KEY}}
    upstream.scripts["*"] = [http(status, error, "x-request-id: " + KEY)]
    answer = chat(client)
    assert answer.status_code == status
    assert "secret" not in answer.text + str(answer.headers)
    assert "***" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("usage", "more", "known"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 90}, {"max_tokens": 100}, True),
        ({"prompt_tokens": 100, "completion_tokens": 5_000}, {"max_tokens": 100}, False),
        ({"prompt_tokens": 100, "completion_tokens": 300}, {"max_tokens": 100, "n": 4}, True),
        ({"prompt_tokens": 90_000, "completion_tokens": 5}, {}, False),
        ({"prompt_tokens": 90_000, "completion_tokens": 5}, {"web_search_options": {}}, True),
        ({"prompt_tokens": 100.0, "completion_tokens": 5.0}, {}, True),
        ({"prompt_tokens": 100, "completion_tokens": True}, {}, False),
        ({"prompt_tokens": float("inf"), "completion_tokens": 1}, {}, False),
        ({"prompt_tokens": 10**400, "completion_tokens": 1}, {}, False),
        ({"prompt_tokens": 100, "completion_tokens": 0}, {}, True),
    ],
)
def test_tokens_beyond_what_was_asked_are_not_believed(
    client, upstream, tmp_path, usage, more, known
):
    upstream.scripts["*"] = [http(200, whole(usage=usage))]
    assert chat(client, **more).status_code == 200
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert row["usage"] == ("counted" if known else "unknown")
    assert (row["cost_usd"] > 0) == known


def test_a_cancelled_stream_is_estimated_and_marked(client, upstream, tmp_path):
    upstream.scripts["*"] = chunked(said("x" * 400), 30.0, finish())
    with client.stream("POST", "/v1/chat/completions", json=asked(stream=True)) as answer:
        next(answer.iter_bytes())
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert (row["status"], row["usage"], row["output_tokens"]) == ("cancelled", "estimated", 100)
    assert row["cost_usd"] == row["about_usd"] > 0
    metrics = client.get("/metrics").text
    model = row["served"]
    assert f'hydra_usage_uncounted_total{{kind="estimated",model="{model}"}} 1.0' in metrics


def test_a_client_that_leaves_before_the_first_byte_leaves_an_estimate(client, upstream, tmp_path):
    upstream.scripts["*"] = [30.0]
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/chat/completions", json=asked(), timeout=0.5)
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    row = read_log(tmp_path / "log").decisions.iloc[0]
    assert (row["status"], row["served"], row["usage"]) == ("cancelled", "", "estimated")
    assert row["cost_usd"] == row["about_usd"] > 0
    assert row["output_tokens"] == 0
