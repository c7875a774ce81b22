"""Figures and tables are saved from the page: the files hold what is shown."""

import csv
import io
import struct
from xml.etree import ElementTree

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

TUNE = "/tune?set=paper_swebench&catalog=paper_five_published"


def saved(page, click):
    """Name and bytes of the file that a click saves."""
    with page.expect_download() as found:
        click()
    return found.value.suggested_filename, found.value.path().read_bytes()


def figure(page, key):
    """Saves the figure with this key as PNG, SVG or CSV."""
    host = page.locator(f".st-key-{key}")
    host.scroll_into_view_if_needed()
    host.hover()
    button = host.get_by_role("button", name="Save this figure")

    def save(kind):
        button.click()
        return saved(page, host.get_by_role("button", name=kind).click)

    return save


def test_a_figure_is_saved_as_picture_drawing_and_numbers(page):
    page.goto(TUNE)
    page.wait_for_selector(".st-key-tune-shares .js-plotly-plot")
    for key in ("tune-plot", "tune-shares"):
        save = figure(page, key)
        name, picture = save("PNG")
        assert (name, picture[:8]) == (f"{key}.png", b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", picture[16:24])
        box = page.locator(f".st-key-{key} .main-svg").first.bounding_box()
        assert (width, height) == pytest.approx((3 * box["width"], 3 * box["height"]), abs=3)
        name, drawing = save("SVG")
        assert name == f"{key}.svg"
        told = "".join(ElementTree.fromstring(drawing).itertext())
        assert "τ 0.24" in told
        name, numbers = save("CSV")
        assert name == f"{key}.csv"
        rows = list(csv.DictReader(io.StringIO(numbers.decode("utf-8-sig"))))
        assert len(rows) > 300
        shown = {row["series"] for row in rows}
        assert shown >= ({"knob", "Mix of single models"} if key == "tune-plot" else {"gpt-5.4"})
        assert "\x00" not in numbers.decode()
    mini = [row for row in rows if row["series"] == "gpt-5.4-mini"]
    assert float(mini[-1]["Traffic"]) == pytest.approx(100, abs=0.5)  # everything is acceptable


def test_the_menu_of_a_figure_answers_to_the_keyboard(page):
    page.goto(TUNE)
    button = page.locator(".st-key-tune-plot").get_by_role("button", name="Save this figure")
    button.focus()
    page.keyboard.press("Enter")
    entry = page.locator(".st-key-tune-plot").get_by_role("button", name="PNG")
    assert entry.is_visible()
    page.keyboard.press("Escape")
    assert not entry.is_visible()
    assert button.evaluate("node => node === document.activeElement")


def test_a_table_is_saved_in_each_form(page):
    page.goto(f"{TUNE}&view=Numbers")
    for name, ending in (("CSV", "csv"), ("Parquet", "parquet"), ("LaTeX", "tex")):
        page.locator(".st-key-tune-table-policies-take button").first.click()
        button = page.get_by_test_id("stPopoverBody").get_by_role("button", name=name)
        told, content = saved(page, button.click)
        assert told == f"tune-table-policies.{ending}"
        page.keyboard.press("Escape")
        if name == "CSV":
            frame = pd.read_csv(io.BytesIO(content))
        elif name == "Parquet":
            assert (
                frame["policy"].tolist() == pd.read_parquet(io.BytesIO(content))["policy"].tolist()
            )
        else:
            assert b"Always gpt-5.4-mini" in content
    assert "Router" in frame["policy"].tolist()
