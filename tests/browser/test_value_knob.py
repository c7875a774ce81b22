"""What-if under the value rule: its knob is V, and the change follows the hand."""

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from tests.browser.test_live_knob import dragged_what_if
from tests.console import consoles
from tests.console.valued import valued

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    valued(folder, 200)
    with consoles.console(folder) as (_, port):
        yield f"http://127.0.0.1:{port}"


def test_what_a_draft_would_change_follows_v(page):
    page.goto("/catalog?set=my/traffic&catalog=my/valued")
    page.get_by_role("radio", name="What-if").click()
    knob = page.get_by_role("slider", name="V along the curve")
    told, changes = dragged_what_if(page, knob)
    assert all(one.startswith(("0", "$0")) for one in changes)  # nothing is edited
    typed = float(page.get_by_role("spinbutton", name="At V").input_value())
    assert told.startswith("V $")
    value = float(told.removeprefix("V $").replace(",", ""))
    assert typed == pytest.approx(value, rel=1e-2)
    bold = page.locator(".st-key-what_if-knob b", has_text="%").first
    share = bold.inner_text().removesuffix(" %")
    drawn = page.locator(".js-plotly-plot", has_text="draft").first
    drawn.get_by_text(share, exact=True).first.wait_for()
