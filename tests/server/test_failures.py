"""What an upstream's refusal means: whose fault it is, and how long it asks to be left alone."""

import json
from datetime import UTC, datetime

import pytest

from hydra_core.server.upstream.calls import as_events
from hydra_core.server.upstream.failures import error_in, refusal_of, wait_of
from hydra_core.server.upstream.reading import EventReader
from hydra_core.server.wire import Form
from tests.server.raw_upstream import DONE, PING, ROLE, event, finish, said

NOW = datetime(2026, 11, 25, 12, 0, 0, tzinfo=UTC)


def body(**error):
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("headers", "raw", "seconds"),
    [
        ({"retry-after": "7"}, b"", 7),
        ({"retry-after": "0.5"}, b"", 0.5),
        ({"retry-after": "Wed, 25 Nov 2026 12:00:30 GMT"}, b"", 30),
        ({"retry-after": "Wed, 25 Nov 2026 11:00:00 GMT"}, b"", 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, b"", 1.5),
        ({"retry-after": "soon"}, b"", 0),
        ({"retry-after": "-3"}, b"", 0),
        ({"retry-after": "1e300"}, b"", 0),
        ({"retry-after": "99999999"}, b"", 3600),
        ({}, body(message="Rate limit reached. Please try again in 20s."), 20),
        ({}, body(message="Please try again in 6m0s."), 360),
        ({}, body(message="Please try again in 1h2m3.5s. Visit us"), 3_600),
        ({}, body(message="Retry after 2 hours"), 3_600),
        ({}, body(message="Please try again in 1 minute and 30 seconds."), 90),
        ({}, body(message="Please try again in 350ms."), 0.35),
        ({}, body(message="Please retry after 26 seconds."), 26),
        ({}, body(message="Please try again in a few minutes"), 0),
        ({}, body(details=[{"@type": "RetryInfo", "retryDelay": "30s"}]), 30),
        ({}, body(metadata={"retry_after": 12}), 12),
        ({}, b"not JSON, try again in 5s", 0),
        ({}, b"", 0),
    ],
)
def test_how_long_an_upstream_asks_to_be_left_alone(headers, raw, seconds):
    assert wait_of(headers, raw, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("status", "raw", "kind"),
    [
        (400, body(code="context_length_exceeded"), "too_long"),
        (400, body(message="This model's maximum context length is 8192 tokens."), "too_long"),
        (400, body(message="prompt is too long: 210000 tokens > 200000 maximum"), "too_long"),
        (400, body(message="The input token count exceeds the maximum"), "too_long"),
        (400, body(message="Your credit balance is too low"), "no_credit"),
        (400, body(message="Unsupported parameter: temperature"), None),
        (400, body(message="Image of model T is not supported"), None),
        (400, body(message="temperature does not support 0.2 with this model"), "unsupported"),
        (
            400,
            body(message="64000 > 8192, the maximum allowed number of output tokens"),
            "unsupported",
        ),
        (400, body(message="content.0: Invalid `signature` in `thinking` block"), "unsupported"),
        (400, body(message="content.0.thinking.signature: Field required"), "unsupported"),
        (400, body(code="invalid_encrypted_content"), "unsupported"),
        (400, b"", None),
        (403, b"", "forbidden"),
        (404, b"", "unknown_model"),
        (422, body(message="messages: field required"), None),
        (429, body(code="insufficient_quota"), "no_credit"),
        (429, body(message="reduce the length of your prompt or wait"), "rate_limited"),
        (498, b"", "rate_limited"),
        (500, b"", "server_error"),
        (503, b"<html>", "server_error"),
        (304, b"", "bad_answer"),
        (999, b"", "bad_answer"),
    ],
)
def test_whose_fault_a_refusal_is(status, raw, kind):
    assert refusal_of(status, raw) == kind


def test_what_a_client_wrote_itself_is_no_sign_of_a_refused_key():
    raw = body(message="Invalid value: 'invalid_api_key'. Supported values are: 'auto', 'none'.")
    assert refusal_of(400, raw) == "refused_key"
    assert refusal_of(400, raw, {"tool_choice": "Invalid_API_key"}) is None
    assert refusal_of(400, raw, {"tool_choice": "auto"}) == "refused_key"
    assert refusal_of(401, raw, {"tool_choice": "invalid_api_key"}) == "refused_key"


def test_what_a_client_wrote_is_flagged_by_other_words_than_its_own():
    raw = body(message="Your input was flagged", metadata={"flagged_input": "x was flagged"})
    assert refusal_of(403, raw) == refusal_of(403, raw, {"q": "x was flagged"}) == "flagged"
    assert refusal_of(403, body(message="'was flagged'?"), {"q": "was flagged"}) == "forbidden"
    assert refusal_of(403, body(message="no"), {"q": "x"}) == "forbidden"


def test_a_404_of_what_the_client_named_by_its_id_is_the_clients_mistake():
    raw = body(message="No such File object: file-AbC123xyz")
    assert refusal_of(404, raw, {"file": {"file_id": "file-AbC123xyz"}}) is None
    assert refusal_of(404, raw, {"file": {"file_id": "file-other12"}}) == "unknown_model"
    assert refusal_of(404, body(message="no model gpt-9"), {"q": "file-AbC"}) == "unknown_model"


def test_an_error_says_more_than_the_words_that_a_client_wrote_itself():
    raw = body(message="Your input exceeds the context window", code="context_length_exceeded")
    assert refusal_of(400, raw, {"prompt": "What is a context window?"}) == "too_long"


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"type": "invalid_request_error", "code": None}, "rejected", 400),
        ({"code": "image_parse_error"}, "rejected", 400),
        ({"code": 422}, "rejected", 422),
        ({"code": "odd", "status": "409"}, "rejected", 409),
        ({"type": "invalid_request_error", "code": "model_not_found"}, "unknown_model", 400),
        ({"type": "invalid_request_error", "code": "invalid_api_key"}, "refused_key", 400),
        ({"type": "odd", "message": "no"}, "bad_answer", None),
        ("overloaded", "bad_answer", None),
    ],
)
def test_whose_fault_an_error_below_a_success_line_is(error, kind, status):
    found = error_in({"error": error})
    assert (found.kind, found.status) == (kind, status)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 10_000])
def test_events_are_the_same_however_a_stream_is_cut(step):
    parts = [PING, ROLE, said("a", b"\r\n\r\n"), said("ü€", b"\r\r"), b": x\n\r\n", finish(), DONE]
    raw, reader, found = b"".join(parts), EventReader(), []
    for start in range(0, len(raw), step):
        found += reader.feed(raw[start : start + step])
    found += reader.end()
    assert b"".join(one.raw for one in found) == raw
    assert [one.written for one in found if one.data] == [0, 1, 5, 0, 0]
    assert [one.done for one in found][-1]
    assert sum(one.finished for one in found) == 1


@pytest.mark.parametrize(("kind", "content"), [("web_search_call", True), ("reasoning", False)])
def test_a_search_of_the_upstream_is_content_as_in_the_messages_form(kind, content):
    added = event({"type": "response.output_item.added", "item": {"type": kind, "id": "x"}})
    (one,) = EventReader(Form.RESPONSES).feed(added)
    assert one.content == content


def test_tool_calls_of_a_whole_answer_have_numbers_in_a_stream():
    calls = [{"id": name, "type": "function", "function": {"name": name}} for name in "ab"]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"message": message, "logprobs": {"content": []}}
    raw = as_events(json.dumps({"id": "x", "choices": [choice]}).encode(), usage=False)
    sent = json.loads(raw.partition(b"\n\n")[0].removeprefix(b"data: "))
    found = sent["choices"][0]["delta"]["tool_calls"]
    assert found == [{"index": n, **one} for n, one in enumerate(calls)]
    assert sent["choices"][0]["logprobs"] == choice["logprobs"]
