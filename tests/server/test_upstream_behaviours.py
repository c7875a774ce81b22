"""Every way in which an upstream may answer: what client, log, health and metrics make of it."""

import json

import httpx
import pytest

from hydra_core.decision_log.reading import read_log
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from tests.server.behaviours import BEHAVIOURS
from tests.server.conftest import CATALOG, MODELS, asked, running, upstreams_text, wait_for
from tests.server.raw_upstream import OK_TEXT, raw_upstream

KEY = "sk-secret-of-ours"


@pytest.fixture(scope="module")
def upstream():
    with raw_upstream() as server:
        yield server


@pytest.fixture
def service(upstream, tmp_path, monkeypatch, what):
    """A client of a service in front of the raw upstream, and the log folder."""
    monkeypatch.setenv("FAKE_KEY", KEY)
    upstream.scripts.clear()
    upstream.seen.clear()
    times = {"first_byte_s": 0.3, "idle_s": 0.3} if what.hasty else {}
    path = tmp_path / "upstreams.yaml"
    path.write_text(upstreams_text(upstream.url, **times))
    app = build(Settings(str(CATALOG), upstreams=str(path), log=str(tmp_path / "log")))
    with running(app) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client, tmp_path / "log"


def chat(client, stream):
    answer = client.post("/v1/chat/completions", json=asked(stream=stream))
    assert KEY not in answer.text + str(answer.headers)
    return answer


def logged(folder, count):
    """The newest of so many records of requests that were passed on."""
    rows = None

    def there():
        nonlocal rows
        rows = read_log(folder).decisions
        rows = rows[rows["status"] != "decided"]
        return len(rows) == count

    wait_for(there)
    return rows.iloc[-1]


def levels(client):
    """Model -> health."""
    receipt = client.post("/v1/decision", json=asked(hydra={"receipt": True})).json()["receipt"]
    return {row["model"]: row["health"] for row in receipt["candidates"]}


def counted(client, name, **labels):
    text = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    line = f"hydra_{name}_total{{{text}}} "
    found = [one for one in client.get("/metrics").text.splitlines() if one.startswith(line)]
    return float(found[0].removeprefix(line)) if found else 0.0


def text_of(answer, stream):
    """What the model said, and whether an error event came."""
    if not stream:
        return answer.json()["choices"][0]["message"].get("content") or "", False
    lines = [one[5:].strip() for one in answer.text.splitlines() if one.startswith("data:")]
    found = [json.loads(one) for one in lines if one != "[DONE]"]
    deltas = [c.get("delta", {}) for one in found for c in one.get("choices", ())]
    text = "".join(delta.get("content") or "" for delta in deltas)
    return text, any("error" in one and one["error"] for one in found)


def check_fallback(client, folder, what, first, then, answer, stream):
    """Another model answered: nothing of the first one's answer is left."""
    assert answer.status_code == 200
    assert answer.headers["x-hydra-model"] == then
    assert text_of(answer, stream) == (OK_TEXT, False)
    row = logged(folder, 1)
    assert (row["status"], row["served"], row["usage"]) == ("answered", then, "counted")
    assert list(row["attempts"]) == [f"{first}:{what.kind}"]
    assert counted(client, "upstream_failures", model=first, kind=what.kind) == 1
    assert counted(client, "requests", model=then, status="answered") == 1
    assert (levels(client)[first] < 1.0) == what.ill


def check_nobody(client, folder, what, first, answer, asked_models):
    """Every model failed so."""
    assert answer.status_code == what.last
    assert answer.json()["error"]
    row = logged(folder, 2)
    assert row["status"] == ("rejected" if what.kind == "too_long" else "failed")
    kinds = [one.partition(":")[2] for one in row["attempts"]]
    assert kinds == [what.kind] * len(asked_models)
    assert len(kinds) == (what.asked or len(MODELS))
    assert row["served"] == ""
    assert counted(client, "upstream_failures", model=first, kind=what.kind) == 2
    assert (min(levels(client).values()) < 1.0) == what.ill


def check_broken(client, folder, first, answer, count):
    """The client has the beginning and an error; nothing else was asked."""
    assert answer.status_code == 200
    assert text_of(answer, True) == ("All ", True)
    assert "[DONE]" not in answer.text
    row = logged(folder, count)
    assert (row["status"], row["served"], row["usage"]) == ("failed", first, "estimated")
    assert list(row["attempts"]) == [f"{first}:broke_off"]
    assert row["cost_usd"] == row["about_usd"] > 0
    assert row["output_tokens"] >= 1
    assert levels(client)[first] < 1.0
    assert counted(client, "requests", model=first, status="failed") == count


def check_rejected(client, folder, what, first, answer, count):
    """The client is told of its own mistake, once."""
    assert answer.status_code == what.rejected
    assert answer.json()["error"]
    row = logged(folder, count)
    assert (row["status"], row["served"]) == ("rejected", first)
    assert row["upstream_status"] == what.rejected
    assert list(row["attempts"]) == []
    assert levels(client)[first] == 1.0
    assert counted(client, "requests", model=first, status="rejected") == count


def check_answered(client, folder, what, first, answer, stream, count):
    """It is an answer, and its tokens are counted or unknown, never 0."""
    assert answer.status_code == 200
    assert answer.headers["x-hydra-model"] == first
    assert not text_of(answer, stream)[1]
    row = logged(folder, count)
    assert (row["status"], row["served"], row["usage"]) == ("answered", first, what.usage)
    assert list(row["attempts"]) == []
    known = what.usage == "counted"
    assert (row["cost_usd"] > 0) == known
    assert (row["about_usd"] > 0) != known
    assert levels(client)[first] == 1.0
    unknown = counted(client, "usage_uncounted", model=first, kind="unknown")
    assert unknown == (0 if known else count)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("what", BEHAVIOURS.values(), ids=BEHAVIOURS)
def test_an_upstream_answers_so_for_the_first_model_then_for_all(service, upstream, what, stream):
    client, folder = service
    first = client.post("/v1/decision", json=asked()).json()["model"]
    script = what.stream if stream else what.whole
    for count, place in ((1, f"up-{first}"), (2, "*")):
        upstream.scripts[place] = script
        answer = chat(client, stream)
        models = [one.removeprefix("up-") for one in upstream.seen]
        assert models[0] == first
        if what.broken and stream:
            check_broken(client, folder, first, answer, count)
        elif what.rejected:
            check_rejected(client, folder, what, first, answer, count)
        elif not what.kind:
            check_answered(client, folder, what, first, answer, stream, count)
        elif count == 1:
            check_fallback(client, folder, what, first, models[-1], answer, stream)
        else:
            check_nobody(client, folder, what, first, answer, models)
            continue
        assert len(models) == (2 if what.kind and not (what.broken and stream) else 1)
        upstream.seen.clear()
