"""The content security policy of docs/security.md: the console works under it, and others cannot
frame it or be sent anything."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "security.md"
#: Documents of the console; what they load is governed by their policy.
DOCUMENTS = re.compile(r"http://127\.0\.0\.1:\d+/[a-z_]*(\?.*)?$")


def behind_a_proxy(page):
    """The page's documents carry the policy, as behind the proxy of the guide."""
    said = re.search(r'add_header Content-Security-Policy "([^"]+)" always;', GUIDE.read_text())
    policy = said.group(1)

    def add(route):
        answer = route.fetch()
        headers = {**answer.headers, "content-security-policy": policy}
        route.fulfill(response=answer, headers=headers)

    page.route(DOCUMENTS, add)


def test_under_the_policy_pages_work_and_nothing_reaches_another_host(chromium, console):
    page, told = chromium.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    behind_a_proxy(page)
    page.goto(f"{console}/tune")
    page.locator("[data-testid=stPlotlyChart] .js-plotly-plot").first.wait_for(timeout=60_000)
    assert not [text for text in told if "Content Security Policy" in text]
    refused = page.evaluate(
        """async () => {
          const seen = [];
          const note = event => seen.push(event.effectiveDirective);
          document.addEventListener("securitypolicyviolation", note);
          new Image().src = "https://example.invalid/pixel.png";
          await fetch("https://example.invalid/").catch(() => {});
          for (let i = 0; seen.length < 2 && i < 100; i++)
            await new Promise(done => setTimeout(done, 100));
          return seen.sort();
        }"""
    )
    page.close()
    assert refused == ["connect-src", "img-src"]


def test_under_the_policy_no_other_site_can_frame_the_console(chromium, console):
    page, told = chromium.new_page(), []
    page.on("console", lambda message: told.append(message.text))
    behind_a_proxy(page)
    site = f"<iframe src='{console}/overview'></iframe>"
    page.route(
        "http://site.example/", lambda route: route.fulfill(body=site, content_type="text/html")
    )
    with page.expect_event("console", lambda m: "frame-ancestors" in m.text, timeout=30_000):
        page.goto("http://site.example/")
    page.close()


def html(text):
    return {"body": text, "content_type": "text/html"}
