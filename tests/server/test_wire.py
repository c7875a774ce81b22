"""The Messages and Responses forms, asked by their official clients."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hydra_core.base.tokens import BYTES_PER_TOKEN
from hydra_core.catalog.schema import load_catalog
from hydra_core.decision_log.reading import read_log
from hydra_core.server.callers import new_token
from hydra_core.server.chat import read_chat
from hydra_core.server.upstream.file import UpstreamsError, parse_upstreams
from hydra_core.server.upstream.reading import Event, Seen, Usage, usage_of
from hydra_core.server.wire import Form, counts_of
from hydra_core.store.roles import Role
from tests.server.conftest import CATALOG, EASY, HARD, MODELS, asked, upstreams_text, wait_for
from tests.server.fake_upstream import PIECES

TEXT = "".join(PIECES)
PAGE = Path("docs/guide/forms.md").read_text()
ALL = ["chat", "messages", "responses"]
FORMS = pytest.mark.parametrize("form", ["messages", "responses"])


@pytest.fixture
def speaking(make, tmp_path, upstream):
    """A service in front of an upstream that speaks what it is told; models may differ."""

    def start(speaks=ALL, silent=(), apart=(), **changes):
        file = yaml.safe_load(upstreams_text(upstream.url))
        (server,) = file["upstreams"]
        chat = {**server, "name": "chat", "models": {m: server["models"].pop(m) for m in silent}}
        other = {**server, "name": "other", "models": {m: server["models"].pop(m) for m in apart}}
        server["speaks"], other["speaks"] = speaks, [*speaks]
        file["upstreams"] += [one for one in (chat, other) if one["models"]]
        del other["key_env"]
        path = tmp_path / "speaking.yaml"
        path.write_text(yaml.safe_dump(file))
        return make(upstreams=str(path), **changes)

    return start


OPENED = []


@pytest.fixture(autouse=True)
def closed():
    """Closes what a test has opened."""
    yield
    while OPENED:
        OPENED.pop().client.close()


class Talk:
    """Asks in one form by its official client, which is slow to import: not while collecting."""

    def __init__(self, form, client, key="unused"):
        OPENED.append(self)
        self.form, url = form, str(client.base_url).rstrip("/")
        if form == "messages":
            import anthropic

            self.error = anthropic.APIStatusError
            self.client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
            self.raw = self.client.messages.with_raw_response
        else:
            import openai

            self.error = openai.APIStatusError
            self.client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
            self.raw = self.client.responses.with_raw_response

    def request(self, text=HARD, **more):
        if self.form == "messages":
            said = [{"role": "user", "content": text}]
            return {"model": "auto", "max_tokens": 1_000, "messages": said, **more}
        return {"model": "auto", "input": text, **more}

    def ask(self, text=HARD, **more):
        """The answer's text, and its headers."""
        found = self.raw.create(**self.request(text, **more))
        answer = found.parse()
        said = answer.content[0].text if self.form == "messages" else answer.output_text
        return said, found.headers

    def stream(self, text=HARD, **more):
        """The text of a streamed answer, by the client's own reading of its events."""
        if self.form == "messages":
            with self.client.messages.stream(**self.request(text, **more)) as stream:
                return "".join(stream.text_stream)
        with self.client.responses.create(**self.request(text, **more), stream=True) as stream:
            found = list(stream)
        assert not [event.message for event in found if event.type == "error"]
        return "".join(one.delta for one in found if one.type == "response.output_text.delta")


@FORMS
def test_an_official_client_is_answered_whole_and_in_a_stream(speaking, upstream, form, tmp_path):
    client = speaking(log=str(tmp_path / "log"))
    talk = Talk(form, client)
    said, headers = talk.ask()
    assert said == talk.stream() == TEXT
    assert headers["x-hydra-model"] in MODELS
    assert len(headers["x-hydra-decision-id"]) == 24
    assert {one["path"] for one in upstream.seen} == {f"/v1/{form}"}
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 2)
    rows = read_log(tmp_path / "log").decisions
    assert (
        rows[["input_tokens", "cached_tokens", "output_tokens"]].to_numpy().tolist()
        == [[100, 40, 20]] * 2
    )
    assert list(rows["usage"]) == ["counted"] * 2
    assert rows["cost_usd"].min() > 0


def test_tokens_are_counted_by_the_model_that_would_answer(speaking, upstream, tmp_path):
    """As Claude Code asks before each turn; nothing is decided, logged or billed."""
    client = speaking(log=str(tmp_path / "log"), silent=MODELS[1:])
    said, talk = [{"role": "user", "content": HARD}], Talk("messages", client)
    count = talk.client.messages.count_tokens
    assert count(model="auto", messages=said).input_tokens == 42
    (seen,) = upstream.seen
    assert seen["body"] == {"model": f"up-{MODELS[0]}", "messages": said}
    assert (seen["path"], seen["headers"]["x-api-key"]) == (
        "/v1/messages/count_tokens",
        "secret-key",
    )
    for how, status in (("404", 404), ("500", 404), ("400", 400)):
        upstream.behaviour["*"] = how
        with pytest.raises(talk.error) as caught:
            count(model="auto", messages=said)
        assert caught.value.status_code == status
        assert caught.value.response.json()["type"] == "error"
    decisions = re.findall(r"hydra_decisions_total{.*} (\S+)", client.get("/metrics").text)
    assert set(decisions) <= {"0.0"}
    upstream.behaviour["*"] = "ok"
    talk.ask()
    wait_for(lambda: len(read_log(tmp_path / "log").decisions))
    assert list(read_log(tmp_path / "log").decisions["status"]) == ["answered"]


@FORMS
def test_the_same_message_goes_where_chat_would_send_it(speaking, form):
    client = speaking()
    for text in (HARD, EASY):
        by_chat = client.post("/v1/chat/completions", json=asked(text)).headers["x-hydra-model"]
        assert Talk(form, client).ask(text)[1]["x-hydra-model"] == by_chat


def test_a_request_goes_on_as_it_came_with_the_key_where_its_form_has_it(speaking, upstream):
    client = speaking()
    content = [
        {"type": "text", "text": "What is wrong here? ä 😀"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]
    tool = {"name": "read", "description": "reads", "input_schema": {"type": "object"}}
    used = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "1 = 2"}
    body = {
        "max_tokens": 500, "system": [{"type": "text", "text": "Be short."}], "tools": [tool],
        "messages": [{"role": "user", "content": content}, {"role": "assistant", "content": [used]},
                     {"role": "user", "content": [result]}],
        "thinking": {"type": "enabled", "budget_tokens": 1_024}, "x": 0.1,
    }  # fmt: skip
    sent = {"model": "auto", "hydra": {"conversation_id": "c"}, **body}
    headers = {"anthropic-version": "2024-01-01", "anthropic-beta": "b-1"}
    answer = client.post("/v1/messages", json=sent, headers=headers)
    assert answer.status_code == 200
    (seen,) = upstream.seen
    assert seen["body"] == {**body, "model": f"up-{answer.headers['x-hydra-model']}"}
    assert seen["headers"]["x-api-key"] == "secret-key"
    assert "authorization" not in seen["headers"]
    assert {name: seen["headers"][name] for name in headers} == headers
    given = [{"role": "user", "content": [{"type": "input_text", "text": HARD}]},
             {"type": "function_call", "name": "read", "arguments": "{}", "call_id": "1"},
             {"type": "function_call_output", "call_id": "1", "output": "1 = 2"}]  # fmt: skip
    body = {"input": given, "instructions": "Be short.", "reasoning": {"effort": "high"}}
    assert client.post("/v1/responses", json={"model": "auto", **body}).status_code == 200
    seen = upstream.seen[1]
    assert {key: seen["body"][key] for key in body} == body
    assert seen["headers"]["authorization"] == "Bearer secret-key"


@FORMS
def test_a_model_whose_upstream_does_not_speak_the_form_is_gated_with_that_reason(speaking, form):
    client = speaking(silent=MODELS[1:])
    assert Talk(form, client).ask()[1]["x-hydra-model"] == MODELS[0]
    with pytest.raises(Talk(form, client).error) as caught:
        Talk(form, client).ask(model="gpt-5.4")
    assert caught.value.status_code == 400
    assert "gpt-5.4: Its upstream does not speak the form" in str(caught.value)
    chat = client.post("/v1/chat/completions", json=asked())
    assert chat.headers["x-hydra-model"] != MODELS[0]
    assert f'vetoes_total{{model="{MODELS[1]}",reason="form"}}' in client.get("/metrics").text


@FORMS
def test_without_any_upstream_of_the_form_the_client_is_told_in_its_form(speaking, form):
    talk = Talk(form, speaking(speaks=["chat"]))
    with pytest.raises(talk.error) as caught:
        talk.ask()
    body = caught.value.response.json()
    assert caught.value.status_code == 400
    assert body["error"]["type"] == "invalid_request_error"
    assert ("type" in body) == (form == "messages")


@FORMS
@pytest.mark.parametrize("how", ["429", "500", "529", "401"])
def test_another_model_answers_when_the_first_does_not(speaking, upstream, form, how):
    client = speaking()
    first = client.post("/v1/decision", json=asked()).json()
    upstream.behaviour[f"up-{first['model']}"] = how
    said, headers = Talk(form, client).ask()
    assert (said, headers["x-hydra-model"]) == (TEXT, first["fallbacks"][0])
    assert Talk(form, client).stream() == TEXT


@FORMS
@pytest.mark.parametrize("how", ["overloaded", "whole"])
def test_a_stream_that_fails_before_content_is_answered_by_another_model(
    speaking, upstream, form, how, tmp_path
):
    client = speaking(log=str(tmp_path / "log"))
    first = client.post("/v1/decision", json=asked()).json()["model"]
    upstream.behaviour[f"up-{first}"] = how
    assert Talk(form, client).stream() == TEXT
    assert len(upstream.seen) == 2
    kind = "bad_answer" if how == "whole" else "server_error"
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 2)
    assert list(read_log(tmp_path / "log").decisions["attempts"].iloc[-1]) == [f"{first}:{kind}"]


@FORMS
def test_a_stream_that_breaks_off_is_an_error_of_the_form(speaking, upstream, form):
    upstream.behaviour["*"] = "break"
    talk = Talk(form, speaking())
    with pytest.raises((talk.error, AssertionError), match="broke off"):
        talk.stream()


@FORMS
def test_what_a_broken_off_answer_wrote_is_estimated(speaking, upstream, form, tmp_path):
    """The Messages form says at the start what was read, and 1 token of answer."""
    client, upstream.behaviour["*"] = speaking(log=str(tmp_path / "log")), "break"
    content = "All " * 400
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.server.fake_upstream.PIECES", (content, "is ", "well."))
        talk = Talk(form, client)
        with pytest.raises((talk.error, AssertionError), match="broke off"):
            talk.stream()
    wait_for(lambda: len(read_log(tmp_path / "log").decisions) == 1)
    (row,) = read_log(tmp_path / "log").decisions.to_dict("records")
    assert (row["status"], row["usage"]) == ("failed", "estimated")
    assert row["output_tokens"] == round(len(content) / BYTES_PER_TOKEN)
    assert row["cost_usd"] == row["about_usd"] > 0
    if form == "messages":
        assert (row["input_tokens"], row["cached_tokens"]) == (100, 40)


@FORMS
def test_the_last_upstreams_own_error_comes_through_and_a_mistake_is_not_tried_elsewhere(
    speaking, upstream, form
):
    talk = Talk(form, speaking())
    upstream.behaviour["*"] = "422"
    with pytest.raises(talk.error, match="told to say 422"):
        talk.ask()
    assert len(upstream.seen) == 1
    upstream.behaviour["*"] = "529"
    with pytest.raises(talk.error) as caught:
        talk.ask()
    assert caught.value.status_code == 529


@FORMS
def test_a_token_is_the_clients_key(speaking, form, tmp_path):
    token, line = new_token("ana", Role.EDITOR)
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(f"tokens:\n{line}\n")
    client = speaking(tokens=str(tokens))
    assert Talk(form, client, token).ask()[0] == TEXT
    with pytest.raises(Talk(form, client).error) as caught:
        Talk(form, client).ask()
    assert caught.value.status_code == 401
    assert caught.value.response.json()["error"]["type"] == "authentication_error"


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("messages", {"messages": []}, "no user message"),
        ("responses", {"input": []}, "input: is missing or empty"),
    ],
)
def test_a_request_without_a_message_is_told_why(speaking, path, body, told):
    answer = speaking().post(f"/v1/{path}", json={"model": "auto", **body})
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


def test_what_one_of_several_upstreams_stores_is_not_routed(speaking, upstream):
    """Models of one server and key know what it stores."""
    item = {"type": "item_reference", "id": "m"}
    body = {"input": [{"role": "user", "content": HARD}, item], "prompt": {"id": "p"}}
    several = speaking(apart=MODELS[:1])
    assert several.post("/v1/responses", json=body).status_code == 400
    assert several.post("/v1/responses", json=body | {"model": "gpt-5.4"}).status_code == 200
    alone = speaking(silent=MODELS[:1])
    assert alone.post("/v1/responses", json=body).status_code == 200
    assert [body.items() <= one["body"].items() for one in upstream.seen] == [True] * 2
    assert alone.post("/v1/responses", json=body | {"background": True}).status_code == 400


def items(*parts):
    return [{"role": "user", "content": list(parts)}]


ITEMS = items({"type": "input_text", "text": HARD})


def logged_reading(tokens, body, speaking, monkeypatch, log):
    """The log's row of a request whose upstream says that it read so many tokens."""
    usage = {"input_tokens": tokens, "output_tokens": 20, "total_tokens": tokens + 20}
    monkeypatch.setattr("tests.server.fake_upstream.RESPONSES_USAGE", usage)
    client = speaking(log=str(log))
    sent = {"model": "gpt-5.4", "input": HARD, **body}
    assert client.post("/v1/responses", json=sent).status_code == 200
    wait_for(lambda: len(read_log(log).decisions) == 1)
    (row,) = read_log(log).decisions.to_dict("records")
    return row


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ({"previous_response_id": "r"}, "counted"),
        ({"tools": [{"type": "web_search"}]}, "counted"),
        ({"prompt": {"id": "pmpt_1"}}, "counted"),
        ({"input": [*ITEMS, {"type": "item_reference", "id": "msg_1"}]}, "counted"),
        ({"input": [*ITEMS, *items({"type": "input_file", "file_id": "file-1"})]}, "counted"),
        ({"input": [*ITEMS, *items({"type": "input_text", "text": "file_id"})]}, "unknown"),
        ({"tools": [{"type": "function", "name": "f"}]}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_a_request_that_names_what_the_upstream_reads_may_be_longer_than_it_is(
    speaking, upstream, monkeypatch, tmp_path, body, counts
):
    row = logged_reading(90_000, body, speaking, monkeypatch, tmp_path / "log")
    assert row["usage"] == counts


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ({"tools": [{"type": "web_search"}]}, "counted"),
        ({"tools": [{"type": "function", "name": "f"}]}, "unknown"),
        ({"previous_response_id": "r"}, "unknown"),
    ],
)
def test_tools_of_the_upstream_may_read_more_than_a_window_in_all(
    speaking, upstream, monkeypatch, tmp_path, body, counts
):
    row = logged_reading(3_000_000, body, speaking, monkeypatch, tmp_path / "log")
    assert row["usage"] == counts
    assert (row["cost_usd"] > 4) == (counts == "counted")


OPENAI = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 15}}


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        (OPENAI, (100, 0, 20)),
        (OPENAI | {"prompt_tokens_details": {"cached_tokens": 40}}, (100, 40, 20)),
        (OPENAI | {"prompt_cache_hit_tokens": 40, "prompt_cache_miss_tokens": 60}, (100, 40, 20)),
        (OPENAI | {"prompt_tokens_details": None, "cached_tokens": 40}, (100, 40, 20)),
        (OPENAI | THOUGHT, (100, 0, 20)),
        (OPENAI | THOUGHT | {"total_tokens": 135}, (100, 0, 35)),
        (OPENAI | {"total_tokens": 223}, (100, 0, 123)),
        (
            OPENAI | {"prompt_tokens_details": {"cached_tokens": 40}, "total_tokens": 160},
            (100, 40, 20),
        ),
    ],
    ids=[
        "plain",
        "OpenAI",
        "DeepSeek",
        "Moonshot",
        "reasoning within",
        "xAI",
        "Gemini",
        "cached beside",
    ],
)
def test_cached_and_reasoning_tokens_are_read_where_providers_say_them(said, counts):
    assert counts_of(said, Form.CHAT) == counts


def test_a_count_that_is_null_later_stays_as_it_was():
    seen = Seen()
    start = {"input_tokens": 100, "cache_read_input_tokens": 700, "output_tokens": 1}
    seen.note(Event(b"", usage=start))
    seen.note(Event(b"", usage=dict.fromkeys(start, None) | {"output_tokens": 33}))
    assert counts_of(seen.usage, Form.MESSAGES) == (800, 700, 33)


def test_what_summing_up_a_conversation_took_counts_beside_the_answer():
    spec = load_catalog(CATALOG).model("claude-haiku-4.5")
    found = {"messages": [{"role": "user", "content": HARD}], "max_tokens": 2_000}
    chat = read_chat(found, form=Form.MESSAGES, size=750_000)
    last = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
    first = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    said = {**last, "iterations": [first, last]}
    assert usage_of(said, chat, spec) == Usage(203_000, 0, 4_500, 180_000)
    assert usage_of({**last, "iterations": [{**first, "input_tokens": -1}]}, chat, spec) is None
    assert usage_of({**last, "iterations": None}, chat, spec) == Usage(23_000, 0, 1_000, 23_000)


def test_a_coding_agents_session_is_its_conversation(speaking):
    client = speaking()

    def model(text, before=()):
        said = [*before, {"role": "user", "content": text}]
        session = {"user_id": "user_1_account__session_0f3e-11aa-22bb"}
        body = {"model": "auto", "max_tokens": 9, "messages": said, "metadata": session}
        return client.post("/v1/messages", json=body).headers["x-hydra-model"]

    first = model(HARD)
    before = [{"role": "user", "content": HARD}, {"role": "assistant", "content": "Done."}]
    assert model(EASY, before) == first


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("speaks: [chat, smoke]", "is no form"),
        ("speaks: []", "names no form"),
        ("key_header: cookie", "must be authorization or x-api-key"),
        (
            "speaks: [chat, messages]\n    models: {m: {model: m, body: {effort: high}}}",
            "does not say for which form",
        ),
        (
            "speaks: [chat, messages]\n    models: {m: {model: m, body: {chat: {effort: high}}}}",
            "body.messages (line 6): is missing",
        ),
    ],
)
def test_an_upstream_says_what_it_speaks(entry, told):
    models = "" if "models" in entry else "\n    models: {m: m}"
    text = f"  - name: a\n    base_url: http://x\n    {entry}{models}\n"
    with pytest.raises(UpstreamsError) as caught:
        parse_upstreams(f"schema: hydra.upstreams/v1\nupstreams:\n{text}")
    assert told in str(caught.value)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_pages_examples_are_answered(speaking):
    url = str(speaking().base_url).rstrip("/")
    blocks = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        script = block.replace("http://127.0.0.1:8600", url)
        done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False)
        assert done.returncode == 0, (block, done.stderr)
        assert json.loads(done.stdout)["model"].startswith("up-")


def test_the_pages_upstreams_are_valid():
    (file,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    found = parse_upstreams(file).by_model
    assert {m: list(one.speaks) for m, one in found.items()}["claude-sonnet-4.6"] == ["messages"]
