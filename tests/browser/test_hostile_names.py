"""Names from outside are shown as they stand: no link, no image, no request, in a real browser."""

import pytest

from hydra_core.evalsets.scores import score_evalset
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.store import Actor, Role, open_store
from tests.browser.conftest import PATIENCE_MS, at_rest
from tests.console.consoles import console as running
from tests.evalsets.sets import saved
from tests.pages.store_steps import FILE, NAME

pytestmark = pytest.mark.browser

HOSTILE = (
    "![x](http://evil.example/x.png) http://evil.example/y www.evil.example [z](//evil.example) "
    "<img src=http://evil.example/i.png> <https://evil.example> mal@evil.example :red[a] $x^2$ `rm`"
)
PAGES = ["overview", "inspect", "conversation", "catalog", "profiles", "tune"]
PAGES += ["tuner", "eval_sets", "explore", "compare", "export"]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    evalset = saved(
        folder / "evalsets" / "mine",
        name=HOSTILE,
        origin=HOSTILE,
        licence=HOSTILE,
        price_notes=HOSTILE,
        cost_estimated=True,
        synthetic=True,
    )
    score_evalset(evalset, default_predictor())
    store, ana = open_store(folder), Actor("Ana http://evil.example", Role.PUBLISHER)
    store.publish(NAME, FILE, actor=ana, base_revision=0, note=HOSTILE)
    store.close()
    with running(folder, HYDRA_OPERATOR="www.evil.example") as (_, port):
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("path", PAGES)
def test_no_name_becomes_a_link_an_image_or_a_request(chromium, hostile, path):
    context = chromium.new_context(viewport={"width": 1280, "height": 1600})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{hostile}/{path}?catalog={NAME}&set=my/mine")
    page.get_by_role("heading", level=1).or_(page.locator("h2")).first.wait_for()
    at_rest(page)
    if path == "eval_sets":
        page.get_by_test_id("stRadio").get_by_text("evil.example").first.click()
        page.wait_for_function(
            "() => [...document.querySelectorAll('[data-testid=stHeading]')].at(-1)"
            ".innerText.includes('http')"
        )
        at_rest(page)
    page.wait_for_load_state("networkidle")  # an image is asked for after it is drawn
    strangers = [url for url in asked if not url.startswith((hostile, "data:", "blob:", "ws"))]
    assert strangers == []
    found = page.eval_on_selector_all("a[href], img[src]", "all => all.map(e => e.href || e.src)")
    assert [address for address in found if "evil" in address] == []
    context.close()
