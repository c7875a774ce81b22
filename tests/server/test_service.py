"""The router in front of an upstream: what a client sends, gets back, and what is passed on."""

import gzip
import json
import threading
import time
from datetime import UTC
from types import SimpleNamespace
from urllib.parse import unquote

import httpx
import pytest
import yaml

from hydra_core.server.answers import our_headers
from tests.server.conftest import CATALOG, EASY, HARD, MODELS, asked, wait_for
from tests.server.fake_upstream import PIECES


def test_a_routed_request_is_answered_and_says_who_answered_and_why(make, upstream):
    answer = make().post("/v1/chat/completions", json=asked())
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "".join(PIECES)
    model = answer.headers["x-hydra-model"]
    assert upstream.seen[0]["body"]["model"] == f"up-{model}"
    assert upstream.seen[0]["headers"]["authorization"] == "Bearer secret-key"
    assert len(answer.headers["x-hydra-decision-id"]) == 24
    assert "shortfall" in answer.headers["x-hydra-reason"]
    assert answer.headers["x-hydra-rule"] == "shortfall"


def test_tools_images_and_unknown_settings_go_on_untouched(make, upstream):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "Was ist das? ä 😀"}, image]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    sent = {"messages": [{"role": "user", "content": content}], "tools": tools, "seed": 7, "x": 0.1}
    own = {"conversation_id": "c"}
    answer = make().post("/v1/chat/completions", json={"model": "auto", "hydra": own, **sent})
    assert answer.status_code == 200
    passed = upstream.seen[0]["body"]
    assert {key: passed[key] for key in sent} == sent
    assert set(passed) == {*sent, "model"}


def test_a_stream_comes_as_events_without_the_usage_nobody_asked_for(make, upstream):
    with make().stream("POST", "/v1/chat/completions", json=asked(stream=True)) as answer:
        text = "".join(answer.iter_text())
    assert upstream.seen[0]["body"]["stream_options"] == {"include_usage": True}
    assert text.endswith("data: [DONE]\n\n")
    assert text.count("data: ") == len(PIECES) + 1
    assert "usage" not in text


def test_a_connection_is_used_again_after_a_stream_as_well(make, upstream):
    client = make()
    for stream in (True, False, True, True):
        client.post("/v1/chat/completions", json=asked(stream=stream)).read()
    assert len({one["client"] for one in upstream.seen}) == 1


def test_a_client_that_asks_for_usage_gets_it(make):
    body = asked(stream=True, stream_options={"include_usage": True})
    with make().stream("POST", "/v1/chat/completions", json=body) as answer:
        text = "".join(answer.iter_text())
    assert '"usage"' in text


@pytest.mark.parametrize("how", ["429", "500", "503", "drop", "hang", "401"])
@pytest.mark.parametrize("stream", [False, True])
def test_another_model_answers_when_the_first_does_not(make, upstream, how, stream):
    client = make(timeouts={"first_byte_s": 1.0} if how == "hang" else None)
    first = client.post("/v1/decision", json=asked()).json()
    upstream.behaviour[f"up-{first['model']}"] = how
    answer = client.post("/v1/chat/completions", json=asked(stream=stream))
    assert answer.status_code == 200
    assert answer.headers["x-hydra-model"] == first["fallbacks"][0]
    assert first["model"] in answer.headers["x-hydra-reason"]


def test_a_clients_own_mistake_is_passed_on_and_not_tried_elsewhere(make, upstream):
    upstream.behaviour["*"] = "422"
    answer = make().post("/v1/chat/completions", json=asked())
    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == "told to say 422"
    assert len(upstream.seen) == 1


def test_when_nobody_answers_the_last_word_of_an_upstream_comes_through(make, upstream):
    upstream.behaviour["*"] = "429"
    answer = make().post("/v1/chat/completions", json=asked())
    assert answer.status_code == 429
    assert len(upstream.seen) == len(MODELS)


def test_a_broken_connection_everywhere_is_a_502_that_names_the_attempts(make, upstream):
    upstream.behaviour["*"] = "drop"
    answer = make().post("/v1/chat/completions", json=asked())
    assert answer.status_code == 502
    assert answer.json()["error"]["message"].count("connection") == len(MODELS)


def test_a_model_that_fails_is_vetoed_and_comes_back(make, upstream):
    client = make()
    model = client.post("/v1/decision", json=asked()).json()["model"]
    upstream.behaviour[f"up-{model}"] = "500"
    for _ in range(3):
        client.post("/v1/chat/completions", json=asked())
    vetoed = client.post("/v1/decision", json=asked(hydra={"receipt": True})).json()
    assert vetoed["model"] != model
    fates = {row["model"]: row["fate"] for row in vetoed["receipt"]["candidates"]}
    assert fates[model] == "unhealthy"
    upstream.behaviour.clear()
    deadline = time.monotonic() + 10
    while client.post("/v1/decision", json=asked()).json()["model"] != model:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_stream_that_breaks_off_ends_with_an_error_and_without_done(make, upstream):
    upstream.behaviour["*"] = "break"
    with make().stream("POST", "/v1/chat/completions", json=asked(stream=True)) as answer:
        events = [line for line in answer.iter_lines() if line]
    assert "broke off" in json.loads(events[-1].removeprefix("data: "))["error"]["message"]


@pytest.mark.parametrize(("how", "stream"), [("hang", False), ("hang", True), ("slow", True)])
def test_a_client_that_goes_away_cancels_the_upstream_call(make, upstream, how, stream):
    client = make()
    upstream.behaviour["*"] = how
    with pytest.raises(httpx.ReadTimeout):
        client.post("/v1/chat/completions", json=asked(stream=stream), timeout=0.5)
    deadline = time.monotonic() + 3
    while not upstream.cancelled:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(upstream.seen) == 1


def test_a_model_may_be_asked_for_by_name(make, upstream):
    client = make()
    answer = client.post("/v1/chat/completions", json=asked(EASY, model="gpt-5.4"))
    assert answer.headers["x-hydra-model"] == "gpt-5.4"
    assert answer.headers["x-hydra-rule"] == "named"
    missing = client.post("/v1/chat/completions", json=asked(model="gpt-9"))
    assert missing.status_code == 404
    assert "gpt-5.4" in missing.json()["error"]["message"]


def test_models_are_listed_with_auto_first(make):
    client = make()
    listed = client.get("/v1/models").json()["data"]
    assert [one["id"] for one in listed] == ["auto", *MODELS]
    assert [client.get(f"/v1/models/{one['id']}").json() for one in listed] == listed


def test_a_model_is_found_by_official_clients_also_with_a_slash(make, tmp_path):
    import anthropic
    import openai

    text = CATALOG.read_text().replace("gpt-5.4\n", "openai/gpt-5.4\n")
    (tmp_path / "pool.yaml").write_text(text)
    client = make(catalog=tmp_path / "pool.yaml", upstreams=None)
    with openai.OpenAI(base_url=f"{client.base_url}/v1", api_key="x", max_retries=0) as asking:
        assert asking.models.retrieve("openai/gpt-5.4").id == "openai/gpt-5.4"
        with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-9'; there are auto"):
            asking.models.retrieve("gpt-9")
    with anthropic.Anthropic(base_url=str(client.base_url), api_key="x", max_retries=0) as asking:
        listed = list(asking.models.list())
        assert [one.display_name for one in listed] == ["auto", *MODELS[:-1], "openai/gpt-5.4"]
        assert asking.models.retrieve("openai/gpt-5.4") == listed[-1]
        assert (listed[0].type, listed[0].created_at.tzinfo) == ("model", UTC)


def test_a_model_that_is_not_routable_is_not_offered_and_says_why(make, tmp_path):
    found = yaml.safe_load(CATALOG.read_text())
    for model in found["models"]:
        model["tags"] = ["eu"]
    found["models"][0]["status"], found["models"][1]["tags"] = "retired", ["us"]
    found["policy"]["require"] = ["eu"]
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    client = make(catalog=tmp_path / "pool.yaml")
    listed = client.get("/v1/models").json()["data"]
    assert [one["id"] for one in listed] == ["auto", *MODELS[2:]]
    for model, why in ((MODELS[0], "is retired"), (MODELS[1], "lacks the tags eu")):
        answer = client.post("/v1/chat/completions", json=asked(model=model))
        assert answer.status_code == 404
        assert f"the model '{model}' is not served: it {why}" in answer.json()["error"]["message"]
    client.post("/v1/decision", json=asked(hydra={"deny": list(MODELS)}))
    lines = client.get("/metrics").text.splitlines()
    vetoes = [line for line in lines if line.startswith("hydra_vetoes_total{")]
    denied = {f'hydra_vetoes_total{{model="{name}",reason="denied"}} 1.0' for name in MODELS[2:]}
    assert {line for line in vetoes if not line.endswith(" 0.0")} == denied


def test_a_decision_spends_nothing_and_gives_order_and_reason(make, upstream):
    body = asked(hydra={"deny": ["gpt-5.4"], "receipt": True})
    decision = make(upstreams="").post("/v1/decision", json=body).json()
    assert upstream.seen == []
    assert set(decision["fallbacks"]) == set(MODELS) - {"gpt-5.4", decision["model"]}
    assert decision["receipt"]["schema"].startswith("hydra.receipt/")
    assert decision["reason"].count(".") >= 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (json.dumps({"messages": []}).encode(), "no user message"),
        (json.dumps(asked(hydra={"denny": []})).encode(), 'did you mean "deny"'),
        (json.dumps(asked(hydra={"turn": 0})).encode(), "whole number from 1"),
        (json.dumps(asked(model=7)).encode(), "must be text"),
        (json.dumps(asked(stream=1)).encode(), "stream: must be true or false, got 1"),
        (gzip.compress(json.dumps(asked()).encode()), "is compressed (send it without"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(make, body, told):
    answer = make().post("/v1/decision", content=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


def test_an_image_without_a_model_for_it_is_refused(make, tmp_path):
    text = CATALOG.read_text().replace("vision: true", "vision: false")
    blind = tmp_path / "blind.yaml"
    blind.write_text(text)
    parts = [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]
    answer = make(catalog=blind).post("/v1/decision", json=asked(parts))
    assert answer.status_code == 400
    assert "vision" in answer.json()["error"]["message"]


def test_a_body_over_the_limit_is_refused(make):
    answer = make(max_body_mb=0.001).post("/v1/decision", json=asked("x" * 2_000))
    assert answer.status_code == 413


def test_a_caller_over_its_rate_is_told_when_to_come_back(make):
    client = make(rate=0.45)
    answers = [client.post("/v1/decision", json=asked(EASY)) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 429]
    said = answers[-1].json()["error"]["message"].removesuffix(" s").rpartition(" ")[2]
    assert 0 < float(said) <= int(answers[-1].headers["retry-after"])  # 2.2 s are 3


def test_conversations_keep_their_model_and_move_with_a_fallback(make, upstream):
    client = make()

    def turn(number):
        messages = [{"role": "user", "content": HARD}]
        for _ in range(number - 1):
            messages += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "hi"}]
        headers = {"x-hydra-conversation-id": "c-1"}
        body = {"model": "auto", "messages": messages}
        return client.post("/v1/chat/completions", json=body, headers=headers).headers

    first = turn(1)["x-hydra-model"]
    assert turn(2)["x-hydra-model"] == first
    upstream.behaviour[f"up-{first}"] = "500"
    second = turn(3)["x-hydra-model"]
    assert second != first
    upstream.behaviour.clear()
    assert turn(4)["x-hydra-model"] == second


def test_metrics_begin_at_zero_and_count(make, upstream):
    client = make()
    before = client.get("/metrics").text
    assert 'hydra_requests_total{model="gpt-5.4",status="answered"} 0.0' in before
    model = client.post("/v1/chat/completions", json=asked()).headers["x-hydra-model"]
    counted = f'hydra_requests_total{{model="{model}",status="answered"}} 1.0'
    wait_for(lambda: counted in client.get("/metrics").text)  # told when the answer is out already
    after = client.get("/metrics").text
    assert f'hydra_tokens_total{{kind="output",model="{model}"}} 20.0' in after
    assert f'hydra_tokens_total{{kind="cached",model="{model}"}} 40.0' in after


def test_no_request_fails_while_the_catalog_is_reloaded_and_broken(make, tmp_path):
    pool = tmp_path / "pool.yaml"
    text = CATALOG.read_text()
    pool.write_text(text)
    client = make(catalog=pool)
    stop = threading.Event()

    def edit():
        for number in range(1_000):
            if stop.wait(0.03):
                return
            new = text.replace("tau: 0.24", f"tau: 0.{20 + number % 9}")
            pool.write_text("broken: [" if number % 3 == 2 else new)

    editor = threading.Thread(target=edit)
    editor.start()
    try:
        answers = [client.post("/v1/chat/completions", json=asked(EASY)) for _ in range(60)]
    finally:
        stop.set()
        editor.join()
    assert {one.status_code for one in answers} == {200}
    assert len({one.headers["x-hydra-catalog-revision"] for one in answers}) > 1


def test_a_broken_revision_is_named_and_the_last_good_one_stays(make, tmp_path):
    pool = tmp_path / "pool.yaml"
    pool.write_text(CATALOG.read_text())
    client = make(catalog=pool)
    before = client.get("/health/ready").json()
    pool.write_text("broken: [")
    deadline = time.monotonic() + 5
    while not (ready := client.get("/health/ready").json())["notes"]:
        assert time.monotonic() < deadline
    assert ready["revision"] == before["revision"]
    assert "hydra_catalog_problem 1.0" in client.get("/metrics").text


def test_a_dry_run_says_whether_a_catalog_would_be_taken(make):
    client = make()
    text = CATALOG.read_text()
    assert client.post("/v1/dry-run", json={"catalog": text}).json()["valid"]
    bad = client.post("/v1/dry-run", json={"catalog": text.replace("tau: 0.24", "tau: -1")}).json()
    assert not bad["valid"]
    assert "tau" in bad["problems"][0]
    lacking = {"catalog": text, "upstreams": "schema: hydra.upstreams/v1\nupstreams: []\n"}
    assert "has no upstream" in client.post("/v1/dry-run", json=lacking).json()["problems"][0]
    grown = {"catalog": text.replace("id: gpt-5.4-mini", "id: gpt-6-mini")}  # with those in use
    told = client.post("/v1/dry-run", json=grown).json()["problems"]
    assert "gpt-6-mini: has no upstream" in told[0]
    teams = {"catalog": text.replace("policy:", "policy:\n  teams: {search: {tau: 1}}")}
    assert "need --tokens" in client.post("/v1/dry-run", json=teams).json()["problems"][0]


@pytest.mark.parametrize("model", ["Grün-7b", "通义/qwen 3%", "gpt-5.4 100%"])
def test_the_header_of_the_model_leads_back_to_its_id(model):
    serving = SimpleNamespace(label="pool 3")
    decided = SimpleNamespace(model=model, reason="τ", id="d", rule="value", serving=serving)
    value = our_headers(decided, model)["x-hydra-model"]
    assert value.isascii()
    assert (value if model.isascii() else unquote(value)) == model
