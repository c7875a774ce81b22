"""Valid requests are served: what routing does not understand goes on, and gates see it all."""

import json

import pytest

from hydra_core.decision_log.reading import read_log
from hydra_core.server.chat import read_chat
from hydra_core.server.wire import Form, form_of_path
from tests.server.conftest import CATALOG, HARD, asked, wait_for

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
TEXT = {"type": "text", "text": "Summarise"}
USER = {"role": "user", "content": HARD}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [CALL]}


def parts(*more):
    return {"messages": [{"role": "user", "content": [TEXT, *more]}]}


def named(kind, **value):
    return {"type": kind, kind: value}


REQUESTS = {
    "a file": parts(named("file", filename="a.pdf", file_data="data:application/pdf;base64,JV")),
    "audio": parts(named("input_audio", data="AAAA", format="wav")),
    "a video": parts(named("video_url", url="http://127.0.0.1/x.mp4")),
    "what comes next": parts({"type": "hologram", "hologram": [1, {"x": None}]}),
    "a part that is no object": parts("text"),
    "thinking": {
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, TEXT]},
            USER,
        ]
    },
    "a refusal": {
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            USER,
        ]
    },
    "a developer turn alone": {"messages": [{"role": "developer", "content": "Answer tersely."}]},
    "a system turn alone": {"messages": [{"role": "system", "content": HARD}]},
    "an assistant turn alone": {"messages": [{"role": "assistant", "content": "Well,"}]},
    "content of null": {"messages": [USER, {"role": "tool", "tool_call_id": "x", "content": None}]},
    "a role to come": {"messages": [{"role": "critic", "content": "x"}, USER]},
    "1,500 messages": {"messages": [USER, {"role": "assistant", "content": "ok"}] * 750},
    "a long cache key": {"messages": [USER], "prompt_cache_key": "x" * 5_000},
}


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("model", ["auto", "gpt-5.4"])
def test_a_valid_request_is_served_and_goes_on_unchanged(make, upstream, sent, model):
    answer = make().post("/v1/chat/completions", json={"model": model, **sent})
    assert answer.status_code == 200, answer.text
    passed = upstream.seen[0]["body"]
    assert {key: passed[key] for key in sent} == sent


@pytest.mark.parametrize("messages", [None, [], "hi", [5], [{"role": 7, "content": 7}]])
def test_with_a_named_model_its_upstream_is_the_judge(make, upstream, messages):
    body = {"model": "gpt-5.4", "messages": messages}
    assert make().post("/v1/chat/completions", json=body).status_code == 200
    assert upstream.seen[0]["body"]["messages"] == messages


def test_a_named_model_is_not_held_to_the_catalogs_gates(make, upstream, catalog_of):
    blind = catalog_of(vision="false", context_window="1000")
    body = {"model": "gpt-5.4", **parts(IMAGE), "max_completion_tokens": 5_000}
    client = make(catalog=blind)
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert client.post("/v1/chat/completions", json={**body, "model": "auto"}).status_code >= 400


@pytest.fixture
def catalog_of(tmp_path):
    """Makes a catalog in which one or every model has other values."""

    def changed(only="", **values):
        lines, inside = [], not only
        for line in CATALOG.read_text().splitlines():
            if line.strip().startswith("- id:"):
                inside = not only or line.split(":")[1].strip().strip("\"'") == only
            key = line.strip().partition(":")[0].removeprefix("- ")
            if inside and key in values:
                line = line.partition(key)[0] + f"{key}: {values[key]}"
            lines.append(line)
        path = tmp_path / "changed.yaml"
        path.write_text("\n".join(lines))
        return path

    return changed


SEEN = {
    "the last turn": parts(IMAGE),
    "an earlier turn": {
        "messages": [
            {"role": "user", "content": [TEXT, IMAGE]},
            {"role": "assistant", "content": "A cat."},
            USER,
        ]
    },
    "a tool's result": {
        "messages": [USER, ASSISTANT, {"role": "tool", "tool_call_id": "c1", "content": [IMAGE]}]
    },
    "a nested result": parts({"type": "tool_result", "content": [IMAGE]}),
    "the system turn": {"messages": [{"role": "system", "content": [IMAGE]}, USER]},
    "a file": parts(named("file", file_data="data:image/png;base64,AAAA")),
}


@pytest.mark.parametrize("sent", SEEN.values(), ids=SEEN)
def test_an_image_anywhere_goes_to_a_model_that_sees(make, catalog_of, sent):
    client = make()
    route = client.post("/v1/decision", json={"model": "auto", **sent}).json()["model"]
    blind = make(catalog=catalog_of(only=route, vision="false"))
    decision = blind.post("/v1/decision", json={"model": "auto", **sent}).json()
    assert route not in (decision["model"], *decision["fallbacks"])


SCHEMA = {"type": "object", "properties": {f"key{i}": {"type": "string"} for i in range(10_000)}}
LARGE = {
    "schemas": {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]},
    "a response schema": {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
    "a long answer": {"max_completion_tokens": 8_000},
    "a long answer, the old key": {"max_tokens": 8_000},
    "a long answer, the new key empty": {"max_completion_tokens": None, "max_tokens": 8_000},
}


@pytest.mark.parametrize("more", LARGE.values(), ids=LARGE)
def test_schemas_and_the_answer_count_against_the_window(make, catalog_of, more):
    text = "word " * 12_000  # 15,000 tokens
    client = make()
    body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
    small = make(catalog=catalog_of(context_window="16000"))
    assert small.post("/v1/decision", json=body).status_code == 200
    refused = small.post("/v1/decision", json={**body, **more})
    assert refused.status_code == 413
    assert "tokens needed" in refused.json()["error"]["message"]
    assert client.post("/v1/decision", json={**body, **more}).status_code == 200


def test_the_reason_is_readable_in_ascii(make):
    reason = make().post("/v1/decision", json=asked("hi")).headers["x-hydra-reason"]
    assert reason.startswith("Cheapest model within tau: shortfall ")
    assert " <= 0.24" in reason
    assert "?" not in reason


def test_a_refusal_is_counted_and_logged(make, catalog_of, tmp_path):
    client = make(catalog=catalog_of(vision="false"), log=str(tmp_path / "log"))
    assert client.post("/v1/chat/completions", json=asked([IMAGE])).status_code == 400
    assert client.post("/v1/decision", json=asked(model="gpt-9")).status_code == 404
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 2)
    rows = read_log(tmp_path / "log").decisions
    assert list(rows["status"]) == ["refused", "refused"]
    assert "no routable model has vision" in rows.iloc[0]["refusal"]
    metrics = client.get("/metrics").text
    assert 'hydra_requests_total{model="other",status="refused"} 2.0' in metrics
    assert 'hydra_vetoes_total{model="gpt-5.4",reason="vision"} 1.0' in metrics


@pytest.mark.parametrize("depth", [150, 250, 900, 965, 967, 969, 980, 5_000, 100_000])
def test_a_body_nested_beyond_reason_is_the_clients_mistake(make, depth):
    nested = b"[" * depth + b"]" * depth
    body = (
        b'{"model": "auto", "x": ' + nested + b', "messages": ' + json.dumps([USER]).encode() + b"}"
    )
    answer = make().post("/v1/chat/completions", content=body)
    assert answer.status_code == (200 if depth < 200 else 400)


LONG = "word " * 8_000  # 10,000 tokens
ASKS = {"role": "user", "content": "hi"}


def with_part(**part):
    return {"messages": [{"role": "user", "content": [TEXT, part]}]}


def replied(**part):
    return {"messages": [ASKS, {"role": "assistant", "content": [part]}, ASKS]}


def source(**held):
    return {"type": "document", "source": held}


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("messages", with_part(**source(type="text", data=LONG))),
        ("messages", with_part(**source(type="content", content=LONG))),
        ("messages", with_part(**source(type="content", content=[{"type": "text", "text": LONG}]))),
        (
            "messages",
            replied(
                type="web_fetch_tool_result",
                content={"type": "web_fetch_result", "content": source(type="text", data=LONG)},
            ),
        ),
        (
            "messages",
            replied(
                type="bash_code_execution_tool_result",
                content={"type": "bash_code_execution_result", "stdout": LONG, "content": []},
            ),
        ),
        ("messages", {"messages": [ASKS], "mcp_servers": [{"url": "u", "name": LONG}]}),
        ("responses", {"input": [ASKS, {"type": "mcp_call", "output": LONG, "arguments": ""}]}),
        (
            "responses",
            {"input": [ASKS, {"type": "shell_call_output", "output": [{"stdout": LONG}]}]},
        ),
        ("responses", {"input": [ASKS, {"type": "apply_patch_call", "operation": {"diff": LONG}}]}),
        ("responses", {"input": [ASKS, {"type": "additional_tools", "tools": [{"name": LONG}]}]}),
        (
            "chat",
            with_part(**named("file", file_data="data:text/plain;base64," + "QUJD" * 13_333)),
        ),
        (
            "chat",
            {"messages": [ASKS, {"role": "assistant", "function_call": {"arguments": LONG}}]},
        ),
        (
            "chat",
            {
                "messages": [
                    ASKS,
                    {"role": "assistant", "tool_calls": [named("custom", input=LONG)]},
                ]
            },
        ),
    ],
)
def test_what_a_request_holds_in_any_place_counts_against_windows(form, found):
    assert 10_000 <= read_chat(found, form=Form(form)).query.context_tokens <= 10_100


@pytest.mark.parametrize(("diffs", "stalled"), [("xy", 0), ("xx", 2)])
def test_patches_are_the_same_call_where_they_change_the_same(diffs, stalled):
    patches = [{"type": "apply_patch_call", "operation": {"diff": one}} for one in diffs]
    found = {"input": [ASKS, *patches]}
    assert read_chat(found, form=Form.RESPONSES).query.stalled == stalled


def test_what_is_below_a_forms_address_has_its_errors(make):
    answer = make().post("/v1/messages/batches", json={})
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")
    assert form_of_path("/v1/responses/resp_1/cancel") == Form.RESPONSES
    assert form_of_path("/v1/models/messages-1") == Form.CHAT


def test_a_screenshot_needs_vision_and_a_spoken_answer_audio():
    shot = {"type": "computer_call_output", "output": {"type": "computer_screenshot"}}
    assert read_chat({"input": [ASKS, shot]}, form=Form.RESPONSES).query.has_image
    spoken = {"messages": [ASKS], "modalities": ["text", "audio"]}
    assert read_chat(spoken).query.needs == {"audio"}
    assert not read_chat(spoken | {"modalities": ["text"]}).query.needs


@pytest.mark.parametrize(
    ("form", "found"),
    [
        (Form.MESSAGES, {"messages": [ASKS], "mcp_servers": [{"url": "u"}]}),
        (Form.RESPONSES, {"input": [ASKS, {"type": "additional_tools", "tools": [{"name": "f"}]}]}),
    ],
)
def test_tools_are_declared_in_other_places_too(form, found):
    assert read_chat(found, form=form).query.needs_tools
