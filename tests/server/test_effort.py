"""Effort levels: what an upstream gets for one, what a client may change, what is never said."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hydra_core.server.upstream.file import UpstreamsError, parse_upstreams
from hydra_core.server.wire import Form
from tests.server.conftest import CATALOG, HARD, MODELS, asked, upstreams_text

PAGE = Path("docs/guide/effort.md").read_text()
LEVEL, SERVED = (yaml.safe_load(b) for b in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
HEAD = "schema: hydra.upstreams/v1\nupstreams:\n  - name: a\n    base_url: http://x\n    models:\n"


@pytest.fixture
def levelled(make, tmp_path, upstream):
    """A service whose catalog has the page's effort level, served as the page says."""
    pool = tmp_path / "pool.yaml"
    level = yaml.safe_dump(LEVEL["models"], default_flow_style=None)
    pool.write_text(CATALOG.read_text() + "".join(f"  {one}\n" for one in level.splitlines()))

    def start(served=SERVED["upstreams"][0]["models"], **changes):
        server = yaml.safe_load(upstreams_text(upstream.url, (*MODELS, "gpt-5.4-high")))
        server["upstreams"][0]["models"] |= served
        path = tmp_path / "levels.yaml"
        path.write_text(yaml.safe_dump(server))
        return make(catalog=pool, upstreams=str(path), **changes)

    return start


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_pages_example_is_answered_by_the_model_with_its_effort(levelled, upstream):
    client = levelled()
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    script = block.replace("http://127.0.0.1:8600", str(client.base_url).rstrip("/"))
    done = subprocess.run(["bash", "-ec", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (seen,) = upstream.seen
    assert (seen["body"]["model"], seen["body"]["reasoning_effort"]) == ("gpt-5.4", "high")


def test_a_clients_own_effort_wins_only_where_the_entry_allows_it(levelled, upstream):
    body = asked(model="gpt-5.4-high", reasoning_effort="low", seed=3)
    levelled().post("/v1/chat/completions", json=body)
    entry = {"model": "gpt-5.4", "body": {"reasoning_effort": "high", "verbosity": "low"}}
    opened = {**entry, "client_may_set": ["reasoning_effort"]}
    levelled({"gpt-5.4-high": opened}).post("/v1/chat/completions", json=body)
    efforts = [(one["body"]["reasoning_effort"], one["body"]["seed"]) for one in upstream.seen]
    assert efforts == [("high", 3), ("low", 3)]
    assert upstream.seen[1]["body"]["verbosity"] == "low"


def test_an_entrys_values_are_in_no_receipt_log_or_metric(levelled, tmp_path):
    entry = {"model": "gpt-5.4", "body": {"reasoning_effort": "much-effort"}}
    log = tmp_path / "log"
    client = levelled({"gpt-5.4-high": entry}, log=str(log), log_text=True)
    told = client.post("/v1/decision", json=asked(HARD, hydra={"receipt": True})).text
    client.post("/v1/chat/completions", json=asked(HARD, model="gpt-5.4-high"))
    told += client.get("/metrics").text + client.get("/health/ready").text
    kept = b"".join(path.read_bytes() for path in log.rglob("*") if path.is_file())
    assert "much-effort" not in told
    assert b"much-effort" not in kept


def test_a_receipt_names_what_a_level_belongs_to(levelled):
    asked_for = asked(hydra={"receipt": True})
    rows = levelled().post("/v1/decision", json=asked_for).json()["receipt"]["candidates"]
    assert {row["model"]: row.get("variant_of") for row in rows if "variant_of" in row} == {
        "gpt-5.4-high": "gpt-5.4"
    }


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("{model: m, body: {messages: []}}", "messages (line 6): is the request's own"),
        ("{model: m, body: {max_tokens: 9}}", "max_tokens (line 6): is the request's own"),
        ("{model: m, body: {api_key: sk-1}}", "looks like a secret"),
        ("{model: m}", "body (line 6): is missing"),
        ("{body: {effort: high}}", "model (line 6): is missing"),
        ("{model: m, body: high}", "must be a mapping"),
        ("{model: m, body: {chat: {stream: true}}}", "stream (line 6): is the request's own"),
        ("{model: m, body: {responses: {}}}", "body.chat (line 6): is missing"),
        ("{model: m, body: {a: 1}, client_may_set: [b]}", "is no parameter of body"),
        ("{model: m, body: {a: 1}, clients: [a]}", "is not a known key"),
    ],
)
def test_a_bad_entry_says_what_is_wrong_and_no_value(entry, told):
    with pytest.raises(UpstreamsError) as caught:
        parse_upstreams(f"{HEAD}      big: {entry}")
    assert told in str(caught.value)
    assert "sk-1" not in str(caught.value)


def test_what_is_sent_is_json_as_written():
    body = '{effort: high, limits: {tokens: [1, 2.5]}, on: true, off: null, "1": one}'
    found = parse_upstreams(f"{HEAD}      big: {{model: m, body: {body}}}")
    sent = found.by_model["big"].models["big"].asked({"model": "auto", "messages": []}, Form.CHAT)
    assert json.loads(json.dumps(sent)) == {
        "model": "m", "messages": [], "effort": "high", "limits": {"tokens": [1, 2.5]},
        "on": True, "off": None, "1": "one",
    }  # fmt: skip
