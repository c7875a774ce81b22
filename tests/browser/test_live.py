"""Live in a real Chromium while a client sends requests to a real service."""

import threading

import httpx
import pytest
from playwright.sync_api import expect

from hydra_core.decision_log.reading import read_log
from hydra_core.server.run import build
from hydra_core.server.settings import Settings
from tests.browser.conftest import PATIENCE_MS, at_rest, faulty
from tests.console import consoles
from tests.server.conftest import CATALOG, asked, running, upstreams_text, wait_for
from tests.server.fake_upstream import FakeUpstream

pytestmark = pytest.mark.browser
TEXTS = ("hi", "Fix the deadlock in this lock-free queue", "Prove that the primes do not end")


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Address of a service that logs into tmp_path/log."""
    monkeypatch.setenv("FAKE_KEY", "secret")
    upstreams = tmp_path / "upstreams.yaml"
    upstream = FakeUpstream()
    with running(upstream) as url:
        upstreams.write_text(upstreams_text(url))
        settings = Settings(str(CATALOG), str(upstreams), log=str(tmp_path / "log"))
        with running(build(settings)) as address:
            yield address


@pytest.fixture
def client(service):
    """Sends requests, some rated, until the test ends; `client(n)` waits until n were answered."""
    stop, reached, sent = threading.Event(), threading.Condition(), [0]

    def send():
        with httpx.Client(base_url=service, timeout=20) as http:
            while not stop.is_set():
                own = {"conversation_id": f"c{sent[0]}"}
                body = asked(TEXTS[sent[0] % 3], hydra=own)
                answer = http.post("/v1/chat/completions", json=body)
                rating = {"decision_id": answer.headers["x-hydra-decision-id"], "quality": 1.0}
                http.post("/v1/outcomes", json=rating)
                with reached:
                    sent[0] += 1
                    reached.notify_all()

    def wait(count):
        with reached:
            assert reached.wait_for(lambda: sent[0] >= count, timeout=60)

    thread = threading.Thread(target=send)
    thread.start()
    yield wait
    stop.set()
    thread.join()


@pytest.fixture
def page(chromium, tmp_path, monkeypatch):
    """A page of a console that looks at the log."""
    monkeypatch.setenv("HYDRA_LOG", str(tmp_path / "log"))
    own = tmp_path / "workspace" / "catalogs"
    own.mkdir(parents=True)
    (own / "candidate.yaml").write_text(CATALOG.read_text().replace("tau: 0.24", "tau: 0.05"))
    with consoles.console(tmp_path / "workspace") as (_, port):
        context = chromium.new_context(
            viewport={"width": 1280, "height": 800}, base_url=f"http://127.0.0.1:{port}"
        )
        page, errors = context.new_page(), []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: errors.append(message) if faulty(message) else None)
        yield page
        context.close()
    assert not [error.text for error in errors]


def decisions(page):
    """The figure at the head of the page."""
    text = page.get_by_test_id("stMetricValue").first.inner_text()
    return int(text.replace(",", ""))


def test_the_page_follows_traffic_and_answers_every_question(client, page):
    client(20)
    page.goto("/live")
    expect(page.get_by_test_id("stMetric")).to_have_count(5)
    before = decisions(page)
    client(before + 20)
    page.wait_for_function(
        "n => +document.querySelector('[data-testid=stMetricValue]').innerText"
        ".replaceAll(',', '') > n",
        arg=before,
    )
    assert decisions(page) > before
    page.get_by_text("Reason", exact=True).click()
    expect(page.get_by_text("Cheapest model within").first).to_be_visible()
    page.get_by_text("Cost", exact=True).last.click()
    expect(page.get_by_text("Against always-strong")).to_be_visible()
    page.get_by_text("Shadow", exact=True).click()
    expect(page.get_by_text("Its quality cannot be estimated")).to_be_visible()
    page.get_by_text("Drift", exact=True).click()
    expect(page.get_by_text("Eval set it was tuned on")).to_be_visible()
    page.get_by_text("Unknown", exact=True).click()
    expect(page.get_by_text("Decisions are grouped by what they require")).to_be_visible()
    page.get_by_text("Feedback", exact=True).click()
    expect(page.get_by_text("decisions were rated")).to_be_visible()


def test_a_canary_runs_after_five_clicks_and_is_changed_stopped_and_ended(client, page, tmp_path):
    client(20)
    page.goto("/")
    page.get_by_text("What to do next").wait_for()
    page.get_by_role("link", name="Live", exact=True).first.click()
    page.get_by_role("radio", name="Canary", exact=True).click()
    page.get_by_role("combobox", name="Second catalog").click()
    page.get_by_role("option", name="my/candidate").click()
    page.get_by_role("button", name="Begin the canary").click()
    expect(page.get_by_text("on 10 % of the conversations")).to_be_visible()
    at_rest(page)  # a run of the page that still goes on would close what a click opens
    page.get_by_role("button", name="Change").click()
    share = page.get_by_role("spinbutton", name="Share of the conversations, %")
    share.fill("50")
    share.press("Enter")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("on 50 % of the conversations")).to_be_visible()
    wait_for(lambda: "canary" in set(read_log(tmp_path / "log").decisions["arm"]))
    page.get_by_role("button", name="Stop the canary").click()
    expect(page.get_by_text("stopped by hand")).to_be_visible()
    page.get_by_role("button", name="Resume the canary").click()
    page.get_by_role("button", name="Stop the canary").click()
    page.get_by_role("button", name="End the canary").click()
    expect(page.get_by_role("button", name="Begin the canary")).to_be_visible()
