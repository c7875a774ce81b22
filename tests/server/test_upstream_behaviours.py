"""Every way in which an upstream may answer: what client, log, health and metrics make of it."""

import contextlib
import functools
import json
import math
from dataclasses import dataclass

import httpx
import pytest
import yaml

from hydra_core.server import run
from hydra_core.server.answers import ClientGoneError, StreamedAnswer
from hydra_core.server.settings import Settings
from hydra_core.server.upstream.failures import OF_REQUESTS, Health
from tests.server.behaviours import TOO_LONG, breaks, cases, hidden, late, streams
from tests.server.conftest import CATALOG, HARD, MODELS, asked, running, upstreams_text, wait_for
from tests.server.raw_upstream import OK_TEXT, chunked, event, http, raw_upstream
from tests.server.wires import CHAT, MESSAGES, RESPONSES, events_of

KEY = "sk-secret-of-ours"


@pytest.fixture(scope="module")
def upstream():
    with raw_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def services(upstream, tmp_path_factory):
    """Starts a service of so much patience in front of the raw upstream, once for all tests."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("FAKE_KEY", KEY)

        @functools.cache
        def started(patience):
            folder, health = tmp_path_factory.mktemp("service"), Health()
            times = {"first_byte_s": patience, "idle_s": patience}
            path = folder / "upstreams.yaml"
            file = yaml.safe_load(upstreams_text(upstream.url, **times))
            file["upstreams"][0]["speaks"] = ["chat", "messages", "responses"]
            path.write_text(yaml.safe_dump(file))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(run, "Health", lambda: health)
                settings = Settings(str(CATALOG), upstreams=str(path), log=str(folder / "log"))
                url = stack.enter_context(running(run.build(settings)))
            client = stack.enter_context(httpx.Client(base_url=url, timeout=60, verify=False))
            return Started(client, health, Written(folder / "log"))

        yield started


@dataclass
class Started:
    """A running service: a client of it, its models' health, its log, its metrics so far or ''."""

    client: httpx.Client
    health: Health
    written: "Written"
    metrics: str = ""


class Written:
    """The records of requests that were passed on, as they are appended to a log."""

    def __init__(self, folder):
        self.folder, self._rows, self._read = folder, [], 0

    def rows(self):
        """All so far, oldest first; each line is read once."""
        (segment,) = self.folder.glob("*.jsonl")
        fresh = segment.read_bytes()[self._read :]
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read += len(whole)
        found = map(json.loads, whole.splitlines())
        passed_on = (one for one in found if one.get("status", "decided") != "decided")
        self._rows += [{"cost_usd": math.nan, "about_usd": math.nan} | one for one in passed_on]
        return self._rows


@pytest.fixture
def service(services, upstream, w, what):
    """The service that this behaviour needs, as if nobody had asked it anything yet."""
    upstream.scripts.clear()
    upstream.seen.clear()
    good = {False: [http(200, w.whole())], True: chunked(w.opening, w.said(OK_TEXT), *w.end())}
    upstream.usual = good.__getitem__
    found = services(0.3 if what.hasty else 60)  # an endless body is read up to its bound
    found.health.__init__()
    found.metrics = found.metrics or found.client.get("/metrics").text
    return found


def ask(client, w, stream):
    answer = client.post(f"/v1{w.form.path}", json=w.asks(HARD, stream))
    assert KEY not in answer.text + str(answer.headers)
    return answer


def levels(client):
    """Model -> health."""
    receipt = client.post("/v1/decision", json=asked(hydra={"receipt": True})).json()["receipt"]
    return {row["model"]: row["health"] for row in receipt["candidates"]}


def counted(metrics, name, **labels):
    """By how much it grew between the two."""
    text = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    line = f"hydra_{name}_total{{{text}}} "
    found = ([one for one in page.splitlines() if one.startswith(line)] for page in metrics)
    before, after = (float(one[0].removeprefix(line)) if one else 0.0 for one in found)
    return after - before


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
        assert row["status"] == ("rejected" if what.kind in OF_REQUESTS else "failed")
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


def check_late(client, w, first, answer):
    """The client has the beginning, and the upstream's own words; the model is well."""
    assert text_of(answer, w, True) == ("All ", True)
    error = events_of(answer.text)[-1]
    assert error.get("error", error)["message"] in ("no", TOO_LONG["message"])
    assert levels(client)[first] == 1.0

    def afterwards(row, metrics):
        assert (row["status"], row["served"], row["usage"]) == ("rejected", first, "estimated")
        assert (row["upstream_status"], list(row["attempts"])) == (400, [])
        assert row["cost_usd"] == row["about_usd"] > 0
        assert counted(metrics, "upstream_failures", model=first, kind="broke_off") == 0

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
    assert answer.headers["content-type"] == ("text/event-stream" if stream else "application/json")
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
FORMS = ["chat", "messages", "responses"]
ECHO = {"code": 400, "message": "cannot read 'What is invalid_api_key?'"}


@pytest.mark.parametrize(
    ("w", "what", "stream"),
    [(w, what, bool(stream)) for w, _, what, stream in CASES],
    ids=[f"{w.form}-{name}-{('whole', 'stream')[stream]}" for w, name, _, stream in CASES],
)
def test_an_upstream_answers_so_for_the_first_model_then_for_all(
    service, upstream, w, what, stream
):
    client, before = service.client, len(service.written.rows())
    known, service.metrics = service.metrics, ""
    first = client.post("/v1/decision", json=asked()).json()["model"]
    script = what.stream if stream else what.whole
    checks = []
    for place in (f"up-{first}", "*"):
        upstream.scripts[place] = script
        answer = ask(client, w, stream)
        models = [one.removeprefix("up-") for one in upstream.seen]
        assert models[0] == first
        if what.broken and what.rejected and stream:
            checks.append(check_late(client, w, first, answer))
        elif what.broken and stream:
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
    wait_for(lambda: len(service.written.rows()) >= before + 2)
    metrics = (known, client.get("/metrics").text)
    service.metrics = metrics[1]
    for afterwards, row in zip(checks, service.written.rows()[before:], strict=True):
        afterwards(row, metrics)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("w", "what"), [(w, hidden(w, ECHO)) for w in (CHAT, MESSAGES, RESPONSES)], ids=FORMS
)
def test_what_a_client_wrote_itself_makes_no_model_ill(service, upstream, w, what, stream):
    before, service.metrics = len(service.written.rows()), ""
    upstream.scripts["*"] = what.stream if stream else what.whole
    asks = w.asks("What is invalid_api_key?", stream)
    answer = service.client.post(f"/v1{w.form.path}", json=asks)
    assert (answer.status_code, len(upstream.seen)) == (400, 1)
    assert set(levels(service.client).values()) == {1.0}
    wait_for(lambda: len(service.written.rows()) > before)


@pytest.mark.parametrize(
    ("w", "what"),
    [(w, streams(w, w.said(OK_TEXT), *w.end(), 5.0)) for w in (CHAT, MESSAGES, RESPONSES)],
    ids=FORMS,
)
def test_a_client_that_hangs_up_after_the_last_event_was_answered(service, upstream, w, what):
    client, before = service.client, len(service.written.rows())
    service.metrics = ""
    upstream.scripts["*"] = what.stream
    with client.stream("POST", f"/v1{w.form.path}", json=w.asks(HARD, stream=True)) as answer:
        pieces = answer.iter_raw()
        seen = b""
        while w.end()[-1] not in seen:
            seen += next(pieces)
    wait_for(lambda: len(service.written.rows()) > before)
    (row,) = service.written.rows()[before:]
    assert (row["status"], row["usage"]) == ("answered", "counted")


class Leaves(StreamedAnswer):
    """A stream whose client hangs up with the last event that comes."""

    async def _deliver(self, scope, receive, send):
        await super()._deliver(scope, receive, send)
        raise ClientGoneError


@pytest.mark.parametrize(
    ("w", "what", "status"),
    [
        (CHAT, breaks(CHAT, CHAT.said("All "), CHAT.error_event({"message": "no"})), "failed"),
        (CHAT, late(CHAT, TOO_LONG), "rejected"),
    ],
    ids=["broken", "rejected"],
)
def test_a_client_that_hangs_up_after_an_error_has_not_cancelled(
    service, upstream, w, what, status, monkeypatch
):
    monkeypatch.setattr("hydra_core.server.service.StreamedAnswer", Leaves)
    before, service.metrics = len(service.written.rows()), ""
    upstream.scripts["*"] = what.stream
    service.client.post(f"/v1{w.form.path}", json=w.asks(HARD, stream=True))
    wait_for(lambda: len(service.written.rows()) > before)
    assert service.written.rows()[-1]["status"] == status


@pytest.mark.parametrize(("w", "what"), [(RESPONSES, streams(RESPONSES))])
def test_the_tokens_of_a_response_that_failed_count_as_it_says(service, upstream, w, what):
    before, service.metrics = len(service.written.rows()), ""
    error = {"error": {"code": "server_error"}, "usage": w.counted(1_000, 300)}
    failed = event({"type": "response.failed", "response": error})
    upstream.scripts["*"] = chunked(w.opening, w.said("All "), failed)
    service.client.post(f"/v1{w.form.path}", json=w.asks(HARD, stream=True))
    wait_for(lambda: len(service.written.rows()) > before)
    row = service.written.rows()[-1]
    assert (row["status"], row["usage"]) == ("failed", "estimated")
    assert (row["input_tokens"], row["output_tokens"]) == (1_000, 300)
