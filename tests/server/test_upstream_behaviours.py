"""Every way in which an upstream may answer: what client, log, health and metrics make of it."""

import json

import httpx
import pytest
import yaml

from hydra_core.decision_log.reading import read_log
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from tests.server.behaviours import cases, streams
from tests.server.conftest import CATALOG, HARD, MODELS, asked, running, upstreams_text, wait_for
from tests.server.raw_upstream import OK_TEXT, chunked, http, raw_upstream
from tests.server.wires import CHAT, MESSAGES, RESPONSES, events_of

KEY = "sk-secret-of-ours"


@pytest.fixture(scope="module")
def upstream():
    with raw_upstream() as server:
        yield server


@pytest.fixture
def service(upstream, tmp_path, monkeypatch, w, what):
    """A client of a service in front of the raw upstream, and the log folder."""
    monkeypatch.setenv("FAKE_KEY", KEY)
    upstream.scripts.clear()
    upstream.seen.clear()
    good = {False: [http(200, w.whole())], True: chunked(w.opening, w.said(OK_TEXT), *w.end())}
    upstream.usual = good.__getitem__
    patience = 0.3 if what.hasty else 60  # an endless body is read up to its bound
    times = {"first_byte_s": patience, "idle_s": patience}
    path = tmp_path / "upstreams.yaml"
    file = yaml.safe_load(upstreams_text(upstream.url, **times))
    file["upstreams"][0]["speaks"] = ["chat", "messages", "responses"]
    path.write_text(yaml.safe_dump(file))
    app = build(Settings(str(CATALOG), upstreams=str(path), log=str(tmp_path / "log")))
    with running(app) as url, httpx.Client(base_url=url, timeout=60, verify=False) as client:
        yield client, tmp_path / "log"


def ask(client, w, stream):
    answer = client.post(f"/v1{w.form.path}", json=w.asks(HARD, stream))
    assert KEY not in answer.text + str(answer.headers)
    return answer


def logged(folder, count):
    """The records of so many requests that were passed on, oldest first."""

    def there():  # in the bytes: tables are read once, when they are whole
        written = b"".join(path.read_bytes() for path in folder.glob("*.jsonl"))
        lines = map(json.loads, written[: written.rfind(b"\n") + 1].splitlines())
        return sum(one.get("status", "decided") != "decided" for one in lines) == count

    wait_for(there)
    rows = read_log(folder).decisions
    return rows[rows["status"] != "decided"].to_dict("records")


def levels(client):
    """Model -> health."""
    receipt = client.post("/v1/decision", json=asked(hydra={"receipt": True})).json()["receipt"]
    return {row["model"]: row["health"] for row in receipt["candidates"]}


def counted(metrics, name, **labels):
    text = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    line = f"hydra_{name}_total{{{text}}} "
    found = [one for one in metrics.splitlines() if one.startswith(line)]
    return float(found[0].removeprefix(line)) if found else 0.0


def text_of(answer, w, stream):
    """What the model said, and whether an error event came."""
    if not stream:
        return w.text_of(answer.json()), False
    found = events_of(answer.text)
    failed = any(one.get("error") or one.get("type") == "error" for one in found)
    return "".join(map(w.delta_of, found)), failed


# A check looks at the answer and the health at once; it gives what looks at the record of the log,
# and at the metrics after two requests.


def check_fallback(client, w, what, first, then, answer, stream):
    """Another model answered: nothing of the first one's answer is left."""
    assert answer.status_code == 200
    assert answer.headers["x-hydra-model"] == then
    assert text_of(answer, w, stream) == (OK_TEXT, False)
    assert (levels(client)[first] < 1.0) == what.ill

    def afterwards(row, metrics):
        assert (row["status"], row["served"], row["usage"]) == ("answered", then, "counted")
        assert list(row["attempts"]) == [f"{first}:{what.kind}"]
        assert counted(metrics, "requests", model=then, status="answered") == 1

    return afterwards


def check_nobody(client, what, first, answer, asked_models):
    """Every model failed so."""
    assert answer.status_code == what.last
    assert answer.json()["error"]
    assert (min(levels(client).values()) < 1.0) == what.ill

    def afterwards(row, metrics):
        assert row["status"] == ("rejected" if what.kind == "too_long" else "failed")
        kinds = [one.partition(":")[2] for one in row["attempts"]]
        assert kinds == [what.kind] * len(asked_models)
        assert len(kinds) == (what.asked or len(MODELS))
        assert row["served"] == ""
        assert counted(metrics, "upstream_failures", model=first, kind=what.kind) == 2

    return afterwards


def check_broken(client, w, first, answer):
    """The client has the beginning and an error; nothing else was asked."""
    assert answer.status_code == 200
    assert text_of(answer, w, True) == ("All ", True)
    assert w.over not in answer.content
    assert levels(client)[first] < 1.0

    def afterwards(row, metrics):
        assert (row["status"], row["served"], row["usage"]) == ("failed", first, "estimated")
        assert list(row["attempts"]) == [f"{first}:broke_off"]
        assert row["cost_usd"] == row["about_usd"] > 0
        assert row["output_tokens"] >= 1
        assert counted(metrics, "requests", model=first, status="failed") == 2

    return afterwards


def check_rejected(client, what, first, answer):
    """The client is told of its own mistake, once."""
    assert answer.status_code == what.rejected
    assert answer.json()["error"]
    assert levels(client)[first] == 1.0

    def afterwards(row, metrics):
        assert (row["status"], row["served"]) == ("rejected", first)
        assert row["upstream_status"] == what.rejected
        assert list(row["attempts"]) == []
        assert counted(metrics, "requests", model=first, status="rejected") == 2

    return afterwards


def check_answered(client, w, what, first, answer, stream):
    """It is an answer, and its tokens are counted or unknown, never 0."""
    assert answer.status_code == 200
    assert answer.headers["x-hydra-model"] == first
    assert not text_of(answer, w, stream)[1]
    assert levels(client)[first] == 1.0
    known = what.usage == "counted"

    def afterwards(row, metrics):
        assert (row["status"], row["served"], row["usage"]) == ("answered", first, what.usage)
        assert list(row["attempts"]) == []
        assert (row["cost_usd"] > 0) == known
        assert (row["about_usd"] > 0) != known
        unknown = counted(metrics, "usage_uncounted", model=first, kind="unknown")
        assert unknown == (0 if known else 2)

    return afterwards


CASES = cases()


@pytest.mark.parametrize(
    ("w", "what", "stream"),
    [(w, what, bool(stream)) for w, _, what, stream in CASES],
    ids=[f"{w.form}-{name}-{('whole', 'stream')[stream]}" for w, name, _, stream in CASES],
)
def test_an_upstream_answers_so_for_the_first_model_then_for_all(
    service, upstream, w, what, stream
):
    client, folder = service
    first = client.post("/v1/decision", json=asked()).json()["model"]
    script = what.stream if stream else what.whole
    checks = []
    for place in (f"up-{first}", "*"):
        upstream.scripts[place] = script
        answer = ask(client, w, stream)
        models = [one.removeprefix("up-") for one in upstream.seen]
        assert models[0] == first
        if what.broken and stream:
            checks.append(check_broken(client, w, first, answer))
        elif what.rejected:
            checks.append(check_rejected(client, what, first, answer))
        elif not what.kind:
            checks.append(check_answered(client, w, what, first, answer, stream))
        elif not checks:
            checks.append(check_fallback(client, w, what, first, models[-1], answer, stream))
        else:
            checks.append(check_nobody(client, what, first, answer, models))
            continue
        assert len(models) == (2 if what.kind and not (what.broken and stream) else 1)
        upstream.seen.clear()
    rows = logged(folder, 2)
    metrics = client.get("/metrics").text
    for afterwards, row in zip(checks, rows, strict=True):
        afterwards(row, metrics)


@pytest.mark.parametrize(
    ("w", "what"),
    [(w, streams(w, w.said(OK_TEXT), *w.end(), 5.0)) for w in (CHAT, MESSAGES, RESPONSES)],
    ids=["chat", "messages", "responses"],
)
def test_a_client_that_hangs_up_after_the_last_event_was_answered(service, upstream, w, what):
    client, folder = service
    upstream.scripts["*"] = what.stream
    with client.stream("POST", f"/v1{w.form.path}", json=w.asks(HARD, stream=True)) as answer:
        pieces = answer.iter_raw()
        seen = b""
        while w.end()[-1] not in seen:
            seen += next(pieces)
    row = logged(folder, 1)[0]
    assert (row["status"], row["usage"]) == ("answered", "counted")
