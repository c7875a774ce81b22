"""Upstream files, the store as a source, what --check says, spans."""

import json
import time
from dataclasses import replace

import pytest

from hydra_core.base.errors import StoreError
from hydra_core.cli.main import main
from hydra_core.routing.router import Router
from hydra_core.server.live import LiveCatalog, StoreSource
from hydra_core.server.run import check
from hydra_core.server.settings import Settings
from hydra_core.server.telemetry import spans
from hydra_core.server.upstream.file import UpstreamsError, parse_upstreams
from hydra_core.store.roles import Actor, Role
from hydra_core.store.store import open_store
from tests.server.conftest import CATALOG, EASY, MODELS, asked, upstreams_text, wait_for

HEAD = "schema: hydra.upstreams/v1\nupstreams:\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("upstreams: []", "schema (line 1): is missing"),
        (f"{HEAD}  - {{name: a, base_url: ftp://x, models: {{m: m}}}}", "http"),
        (f"{HEAD}  - {{name: a, base_url: 'http://u:p@x', models: {{m: m}}}}", "password"),
        (f"{HEAD}  - {{name: a, base_url: http://x, key: sk-1, models: {{m: m}}}}", "key_env"),
        (f"{HEAD}  - {{name: a, base_url: http://x, models: {{m: 3}}}}", "must be a name"),
        (
            f"{HEAD}  - {{name: a, base_url: http://x, models: {{m: m}}}}\n"
            "  - {name: b, base_url: http://y, models: {m: m}}",
            "served by 'a' already",
        ),
        (f"{HEAD}  []\ntimeouts: {{connect_s: 0}}", "must be > 0"),
    ],
)
def test_an_upstreams_file_says_what_is_wrong(text, told):
    with pytest.raises(UpstreamsError) as caught:
        parse_upstreams(text)
    assert told in str(caught.value)


def test_every_model_needs_an_upstream_and_its_key():
    upstreams = parse_upstreams(upstreams_text("http://x", models=("a",)))
    with pytest.raises(UpstreamsError, match="FAKE_KEY, which is not set"):
        upstreams.require(["a"], {})
    with pytest.raises(UpstreamsError, match="b: has no upstream"):
        upstreams.require(["a", "b"], {"FAKE_KEY": "k"})
    upstreams.require(["a"], {"FAKE_KEY": "k"})


@pytest.mark.parametrize("name", ["pool", "my/pool"])
def test_the_store_is_followed_from_revision_to_revision(tmp_path, name):
    store = open_store(tmp_path)
    ana = Actor("ana", Role.PUBLISHER)
    text = CATALOG.read_text()
    with pytest.raises(StoreError, match="never published"):
        LiveCatalog(StoreSource(store, "pool"), Router)
    store.publish(name, text, actor=ana, base_revision=0, note="first")
    live = LiveCatalog(StoreSource(store, "pool"), Router)
    first = live.now
    store.publish(
        name, text.replace("tau: 0.24", "tau: 0.3"), actor=ana, base_revision=1, note="second"
    )
    live.look()
    assert (first.label, live.now.label) == ("1", "2")
    assert live.now.policy_digest != first.policy_digest
    assert first.catalog.policy.tau == 0.24  # a request that began with it goes on with it


def test_check_says_what_would_run_and_starts_nothing(tmp_path, monkeypatch, capsys):
    upstreams = tmp_path / "u.yaml"
    upstreams.write_text(upstreams_text("http://127.0.0.1:1"))
    words = ["serve", "--catalog", str(CATALOG), "--upstreams", str(upstreams), "--check", "--json"]
    monkeypatch.delenv("FAKE_KEY", raising=False)
    assert main(words) == 2
    assert "FAKE_KEY" in capsys.readouterr().err
    assert main(words[:-2]) == 2
    said = capsys.readouterr().err
    assert "FAKE_KEY" in said
    assert "starting" not in said  # what is not valid does not start
    monkeypatch.setenv("FAKE_KEY", "k")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["models"] == list(MODELS)
    assert main([*words, "--explore", "2"]) == 2
    assert main([*words, "--host", "0.0.0.0"]) == 1
    assert "--tokens" in capsys.readouterr().err


def test_several_workers_that_do_not_know_each_others_conversations_are_warned_of(
    tmp_path, monkeypatch
):
    upstreams = tmp_path / "u.yaml"
    upstreams.write_text(upstreams_text("http://127.0.0.1:1"))
    monkeypatch.setenv("FAKE_KEY", "k")
    apart = Settings(str(CATALOG), upstreams=str(upstreams), workers=2)
    assert "--redis" in check(apart)["warnings"][0]
    for fine in ({"redis": "redis://127.0.0.1:1"}, {"workers": 1}, {"upstreams": ""}):
        assert "warnings" not in check(replace(apart, **fine))


def test_exploration_that_nobody_can_learn_from_is_warned_of(tmp_path):
    tried = Settings(str(CATALOG), explore_share=0.1)
    assert "give --log" in check(tried)["warnings"][0]
    among_all = replace(tried, explore_share=0.0, explore_all=0.1)
    assert check(among_all)["warnings"][0].startswith("--explore-all without --log:")
    assert "warnings" not in check(replace(tried, log=str(tmp_path)))


def test_upstreams_are_followed_like_the_catalog(make, upstream, tmp_path):
    pool, file = tmp_path / "pool.yaml", tmp_path / "upstreams.yaml"
    text = CATALOG.read_text()
    pool.write_text(text)
    client = make(catalog=pool)
    names = MODELS[:4]
    file.write_text(upstreams_text(upstream.url, models=names))
    remedy = "add it to an upstream's models"  # the file is empty for a moment before it is there
    wait_for(lambda: remedy in " ".join(client.get("/health/ready").json()["notes"]))
    assert client.post("/v1/chat/completions", json=asked(model="gpt-5.4")).status_code == 200
    renamed = upstreams_text(upstream.url).replace("up-gpt-5.4\n", "renamed\n")
    assert "renamed" in renamed
    file.write_text(renamed)
    wait_for(lambda: not client.get("/health/ready").json()["notes"])
    assert client.post("/v1/chat/completions", json=asked(model="gpt-5.4")).status_code == 200
    assert upstream.seen[-1]["body"]["model"] == "renamed"


def test_a_token_is_shown_once_and_only_its_hash_goes_into_the_file(capsys):
    assert main(["token", "--name", "ci", "--role", "editor"]) == 0
    told = capsys.readouterr()
    assert told.out.strip() not in told.err
    assert "sha256" in told.err


def test_spans_carry_the_genai_names(make, monkeypatch):
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter = export.InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    record = spans(provider.get_tracer("test"))

    def after_a_minute(decided, result):
        record(decided, replace(result, latency_ms=60_000.0))

    monkeypatch.setattr("hydra_core.server.run.spans", lambda: after_a_minute)
    answer = make(spans=True).post("/v1/chat/completions", json=asked(EASY))
    wait_for(exporter.get_finished_spans)  # told when the answer is out already
    (span,) = exporter.get_finished_spans()
    assert span.name == "chat auto"
    assert span.end_time - span.start_time == 60_000_000_000
    assert span.end_time <= time.time_ns()  # it began before the decision that it has waited for
    assert span.attributes["gen_ai.request.model"] == "auto"
    assert span.attributes["gen_ai.response.model"] == answer.headers["x-hydra-model"]
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 40
