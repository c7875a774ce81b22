"""Learn, the rule toggle on Tune and the value rule's receipt on Inspect, in a real Chromium."""

import re

import pytest

from tests.browser.conftest import at_rest

pytestmark = pytest.mark.browser

#: The set that opens first, and its catalog: it names an outcome model and routes by shortfall.
REAL = "set=mixed_2024&catalog=mixed_2024"
PLOT = "[data-testid=stPlotlyChart] .js-plotly-plot"


def tile(page, label):
    found = page.locator("[data-testid=stMetric]").filter(has_text=label)
    return found.locator("[data-testid=stMetricValue]")


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_outcomes_are_learned_and_taken_into_the_draft(page):
    page.goto("/learn?set=console_demo&catalog=paper_five")
    page.get_by_text("Learn what each model achieves on which message").wait_for()
    for model in ("claude-haiku-4.5", "gpt-5.3-codex", "claude-sonnet-4.6"):  # two learn quickly
        page.get_by_role("checkbox", name=model).or_(button(page, model)).first.click()
        at_rest(page)
    page.locator(".st-key-learn-start button").click()
    first = tile(page, "At 25 % of the cost range")
    first.wait_for(timeout=180_000)
    assert first.inner_text().endswith("pp")
    said = page.get_by_test_id("stAlert").get_by_text(re.compile("Use it|Keep the"))
    assert said.last.is_visible()  # the comparison above it says the same, once it is done
    page.locator(".st-key-ladder-take-heads button").first.click()
    page.get_by_text("in your draft").wait_for()
    page.get_by_role("link", name="Review and publish").click()
    page.get_by_role("heading", name="Releases").wait_for()


def test_the_toggle_on_tune_changes_the_rule_and_both_curves_stay(page):
    page.goto(f"/tune?{REAL}&rule=shortfall")
    page.get_by_role("spinbutton", name="Threshold τ").wait_for()
    page.wait_for_selector(PLOT)
    page.get_by_text("A fixed mix does better here").wait_for()
    page.get_by_role("radio", name="Value", exact=True).click()
    page.get_by_role("spinbutton", name="V: one more resolved query").wait_for()
    page.get_by_text("The router does better here").wait_for()
    at_rest(page)  # the plot with its band takes the place of the curve alone
    page.wait_for_selector(f"{PLOT} .legendtext")
    legend = page.locator(f"{PLOT} .legendtext").all_text_contents()
    assert {"Success profiles, every V", "Shortfall rule, every τ"} <= set(legend)
    page.wait_for_url("**rule=value**")
    page.go_back()
    page.get_by_role("spinbutton", name="Threshold τ").wait_for()


def test_inspect_gives_the_receipt_of_both_rules(page):
    page.goto("/inspect?catalog=mixed_2024&rule=value&text=Prove%20that%20e%20is%20irrational")
    page.get_by_text("Which model for every V").wait_for()
    page.get_by_text("for one more resolved query").first.wait_for()
    page.get_by_text("Both rules choose").or_(page.get_by_text("The rules choose")).first.wait_for()
    page.get_by_text("Success profiles read the requirements alone").first.wait_for()
    page.get_by_role("radio", name="Shortfall", exact=True).click()
    page.get_by_text("Which model for every τ").wait_for()
    page.wait_for_url("**rule=shortfall**")
