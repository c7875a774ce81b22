"""Signing in at a real identity provider, with the real button, in a real browser."""

import re

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hydra_core.store import open_store
from tests.browser.conftest import PATIENCE_MS
from tests.browser.provider import provider, secrets_toml
from tests.console.consoles import console, free_port

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

PEOPLE = {
    "ana": {"email": "ana@example.org", "email_verified": True},
    "mallory": {"email": "ana@example.org", "email_verified": False},
    "nemo": {"email": "ana@example.org"},
    "eve": {"email": "eve@example.org", "email_verified": True, "sub": "ana@example.org"},
}


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """Address and workspace of a console that asks who somebody is."""
    folder, port = tmp_path_factory.mktemp("workspace"), free_port()
    (folder / "roles.yaml").write_text("users: {ana@example.org: publisher}\n")
    with provider(free_port(), PEOPLE) as made:
        secrets = folder / "secrets.toml"
        secrets.write_text(secrets_toml(made, port))
        with console(folder, "--secrets.files", str(secrets), port=port):
            yield f"http://127.0.0.1:{port}", folder


@pytest.fixture
def visit(chromium, signed):
    """Pages of fresh browsers, one a call, signed in as somebody."""
    contexts = []

    def visited(who, path):
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{signed[0]}/{path}")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name=who, exact=True).click()
        page.wait_for_url(re.compile(re.escape(signed[0])))
        page.goto(f"{signed[0]}/{path}")
        return page

    yield visited
    for context in contexts:
        context.close()


def publish_button(page):
    return page.get_by_role("button", name=re.compile("Publish revision"))


def test_sign_in_publish_and_sign_out(visit, signed):
    page = visit("ana", "export?catalog=paper_five_published")
    publish_button(page).click()
    expect(page.get_by_text("Revision 1 is published")).to_be_visible()
    revision = open_store(signed[1]).newest("paper_five_published")
    assert revision.author == "ana@example.org"
    page.get_by_test_id("stSidebar").get_by_role("button", name="ana").click()
    expect(page.get_by_text("publisher", exact=False).first).to_be_visible()
    assert page.locator("a[href^=mailto]").count() == 0
    with page.expect_event("load"):  # else the way out may overtake what is opened next
        page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    page.goto(f"{signed[0]}/export?catalog=paper_five_published")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert publish_button(page).count() == 0


@pytest.mark.parametrize("who", ["mallory", "nemo", "eve"])
def test_whoever_only_claims_a_publishers_address_looks_on(visit, who):
    page = visit(who, "export?catalog=paper_five")
    expect(publish_button(page)).to_be_disabled()


def test_nobody_sees_a_page_without_signing_in(chromium, signed):
    context = chromium.new_context()
    page = context.new_page()
    for path in ("", "export", "catalog?catalog=paper_five", "eval_sets"):
        page.goto(f"{signed[0]}/{path}")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        assert page.get_by_test_id("stSidebarNav").count() == 0
        assert page.get_by_role("heading", level=1).count() == 0
    metrics = context.request.get(f"{signed[0]}/_stcore/metrics").text()
    assert "cache_memory_bytes" not in metrics
    assert "# EOF" not in metrics
    context.close()


def upload(page, address):
    """Status of a file sent past the page, with all that this browser was told."""
    sessions = []

    def read(payload):
        if isinstance(payload, bytes):
            message = ForwardMsg.FromString(payload)
            if message.WhichOneof("type") == "new_session":
                sessions.append(message.new_session.initialize.session_id)

    page.on("websocket", lambda line: line.on("framereceived", read))
    page.goto(f"{address}/eval_sets")
    page.get_by_text("HyDRA console").or_(page.get_by_role("heading", level=1)).first.wait_for()
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    answer = page.context.request.put(
        f"{address}/_stcore/upload_file/{sessions[-1]}/one",
        multipart={"file": {"name": "x.csv", "mimeType": "text/csv", "buffer": b"a,b"}},
        headers={"X-Xsrftoken": cookies["_streamlit_xsrf"]},
    )
    return answer.status


def test_a_stranger_uploads_nothing(chromium, signed, visit):
    context = chromium.new_context()
    assert upload(context.new_page(), signed[0]) == 400
    context.close()
    assert upload(visit("ana", "eval_sets"), signed[0]) == 204
