"""A console of its own on a free port, and a real Chromium; skipped where there is none."""

import shutil

import pytest

from tests.console import consoles

#: How long to wait for what a page shows: a busy machine is slow.
PATIENCE_MS = 60_000
CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    # answers that a test adds headers to count as those of a public site
    "--disable-features=LocalNetworkAccessChecks",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: From the next click until the page is whole: milliseconds, and painted frames in which the card
#: with the chosen model was blank.
FRAMES = """() => {
  window.__frames = new Promise(resolve => {
    addEventListener('click', () => {
      const start = performance.now();
      let blank = 0, ran = false;
      const look = () => {
        const card = document.querySelector('.st-key-inspect-decision h1');
        if (!card?.innerText.trim()) blank += 1;
        const app = document.querySelector('[data-testid=stApp]');
        const done = app.dataset.testScriptState === 'notRunning';
        ran ||= !done;
        const took = performance.now() - start;
        if (done && (ran || took > 2000) && !document.querySelector('[data-stale=true]')) {
          resolve([took, blank]);
        } else {
          requestAnimationFrame(look);
        }
      };
      requestAnimationFrame(look);
    }, {once: true, capture: true});
  });
}"""


@pytest.fixture(scope="session")
def console(tmp_path_factory):
    """Address of a running console with an empty workspace."""
    with consoles.console(tmp_path_factory.mktemp("workspace")) as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium on the PATH")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, console):
    """A fresh page; the test fails if the browser's console shows an error."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, base_url=console)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    errors = []
    page.on("console", lambda message: errors.append(message) if faulty(message) else None)
    page.on("pageerror", lambda error: errors.append(error))
    yield page
    context.close()
    assert not [getattr(error, "text", str(error)) for error in errors]


def at_rest(page):
    """Wait until the page's script has run and nothing that it showed before is left."""
    page.wait_for_timeout(200)  # a click is on its way to the console
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    page.wait_for_selector("[data-stale=true]", state="detached")


def upload(page, file, at=0):
    """Give the page's file field number `at` a file, as soon as the page is at rest.

    A script that still runs mounts the field anew: what was given to the old one is lost. On a busy
    machine a second run may begin some time after the first has ended.
    """
    at_rest(page)
    page.wait_for_timeout(500)
    at_rest(page)
    page.locator("input[type=file]").nth(at).set_input_files(file)


def faulty(message):
    """Streamlit looks for its server under every part of a deep link's path: no fault of ours."""
    probe = "/_stcore/" in message.location.get("url", "") and "404" in message.text
    return message.type == "error" and not probe
