"""Inspect from app.py: what it says is what the router says, and nothing hostile gets through."""

import json
from dataclasses import replace

import pytest
import streamlit as st

from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.shipped import CATALOGS
from hydra_core.base.spelling import usd
from hydra_core.base.types import Policy, Rule
from hydra_core.catalog import load_catalog
from hydra_core.console.inspect import state as inspect_state
from hydra_core.console.inspect.value_rule import valuation
from hydra_core.console.inspect.view import examples, predicted_costs
from hydra_core.console.widgets import literal
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.routing.decision import redecide
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.store import open_store
from tests.hostile_messages import MARKUP, hostile_messages
from tests.pages.moving import to

PAGE = "pages/operate/inspect.py?part=message"
CATALOG = CATALOGS / "paper_five.yaml"
EASY = "Rename the variable tmp to total."


def said(app):
    return " ".join(element.value for element in [*app.markdown, *app.caption])


def type_in(app, text, field="text"):
    app.text_area(key=f"inspect.{field}").set_value(text).run()
    assert not app.exception
    return app


def receipt(app):
    return json.loads(next(block.value for block in app.code if block.language == "json"))


@pytest.fixture
def page(open_page):
    app = open_page(PAGE, catalog="paper_five")
    assert not app.exception
    assert not app.error
    return app


def test_a_fresh_page_explains_an_example(page):
    assert page.text_area(key="inspect.text").value == examples()[1].text
    assert "What would change it" in said(page)


@pytest.mark.parametrize("text", [EASY, examples()[1].text, "証明してください"])
def test_the_page_says_what_the_router_says(page, text):
    decision = Router(load_catalog(CATALOG), default_predictor()).route(Query(text))
    app = type_in(page, text)
    assert f"# {literal(decision.model)}" in [element.value for element in app.markdown]
    assert receipt(app)["model"] == decision.model
    assert redecide(receipt(app)) == decision.model
    reasons = [row.reason for row in decision.candidates()]
    assert all(literal(reason) in app.table[0].value["Why"].tolist() for reason in reasons)


def test_the_receipt_does_not_hold_the_text(page):
    app = type_in(page, "a very private sentence")
    assert "private" not in json.dumps(receipt(app))


def test_tau_changes_the_choice_here_and_not_on_tune(page):
    app = type_in(page, examples()[2].text)
    app.number_input(key="inspect.tau").set_value(0.0).run()
    before = receipt(app)["model"]
    app.number_input(key="inspect.tau").set_value(50.0).run()
    assert receipt(app)["model"] != before
    assert app.session_state["tuning"].tau is None


@pytest.mark.parametrize(("tau", "told"), [(150.0, "τ 150"), (0.00001, "τ 0.00001")])
def test_any_tau_of_a_catalog_is_shown_and_has_no_exponent(page, tau, told):
    type_in(page, examples()[2].text)
    app = page.number_input(key="inspect.tau").set_value(tau).run()
    assert told in said(app)
    typed = app.number_input(key="inspect.tau")
    assert typed.value == tau
    assert typed.max is None or typed.max > tau  # the browser shows 0 for a value above it


def test_flags_and_cuts_are_told(page):
    app = type_in(page, "Traceback (most recent call last): see src/a.py " + "and so on " * 3_000)
    told = said(app)
    assert "Characters" in told
    assert "were not" in told
    assert ":blue-badge[Error]" in told


def test_a_picked_example_is_taken(page):
    wanted = examples()[5]
    page.selectbox(key="inspect.text.pick").set_value(wanted.label).run()
    assert page.text_area(key="inspect.text").value == wanted.text


def test_a_query_of_an_eval_set_is_found_and_taken(page):
    page.selectbox(key="inspect.text.from").set_value("console_demo").run()
    page.text_input(key="inspect.text.find").set_value("python").run()
    options = page.selectbox(key="inspect.text.pick").options
    assert 0 < len(options) <= 100
    page.selectbox(key="inspect.text.pick").set_value(options[0]).run()
    assert not page.exception
    assert "python" in page.text_area(key="inspect.text").value.lower()


def test_a_denied_model_is_ruled_out(page):
    app = type_in(page, EASY)
    chosen = receipt(app)["model"]
    app.multiselect(key="inspect.deny").set_value([chosen]).run()
    assert receipt(app)["model"] != chosen
    assert "Ruled out" in app.table[0].value[""].tolist()


def test_two_messages_side_by_side(page):
    app = type_in(page, EASY)
    app.segmented_control(key="inspect.mode").set_value("Compare two").run()
    type_in(app, examples()[2].text, "other")
    assert "What differs" in said(app)
    assert "Fate B" in app.dataframe[0].value.columns


def test_a_suffix_can_be_appended_to_compare(page):
    app = type_in(page, EASY)
    app.segmented_control(key="inspect.mode").set_value("Compare two").run()
    app.button(key="inspect.suffix.keywords").click().run()
    assert app.text_area(key="inspect.other").value.startswith(EASY + "\n\n")


def test_the_link_reopens_the_decision_without_the_text(page, open_page):
    app = type_in(page, "a very private sentence about a deadlock")
    link = dict(app.query_params)
    assert "private" not in json.dumps(link)
    again = open_page(PAGE, **link)
    assert not again.exception
    assert again.text_area(key="inspect.text").value == ""
    assert receipt(again)["model"] == receipt(app)["model"]
    assert receipt(again)["requirements"] == receipt(app)["requirements"]


def test_the_link_carries_the_text_when_asked(page, open_page):
    app = type_in(page, EASY)
    app.toggle(key="inspect.share").set_value(True).run()
    assert app.query_params["text"] == EASY
    again = open_page(PAGE, **dict(app.query_params))
    assert again.text_area(key="inspect.text").value == EASY


@pytest.mark.parametrize(
    "params",
    [
        {"r": "nan,1,1,1"},
        {"r": "1,2"},
        {"r": "0.1"},
        {"tau": "inf", "turn": "-3"},
        {"catalog": "../../etc/passwd"},
        {"w": "0,0,0,0"},
        {"deny": "<b>x</b>"},
        {"text": "<script>alert(1)</script>"},
    ],
)
def test_a_broken_link_opens_the_page(open_page, params):
    assert not open_page(PAGE, **params).exception


def test_links_are_read_back_as_written():
    now = inspect_state.Inspecting(text="a", other="b", compare=True, share_text=True, turn=3)
    policy = Policy(tau=0.25, weights=(1.0, 2.0), rule=Rule.VALUE, value_usd=0.02)
    link = inspect_state.to_link(now, "paper_five", policy, (0.1, 0.2))
    read = inspect_state.from_link(link)
    assert (read.text, read.other, read.compare, read.turn) == ("a", "b", True, 3)
    assert (read.tau, read.weights) == (0.25, (1.0, 2.0))
    assert (read.rule, read.value_usd) == (Rule.VALUE, 0.02)


def test_a_link_without_the_text_keeps_how_long_it_is():
    long = inspect_state.Inspecting(text="word " * 8_000)
    link = inspect_state.to_link(long, "paper_five", Policy(0.25, (1.0,) * 2), (0.1, 0.2))
    read = inspect_state.from_link(link)
    assert "text" not in link
    assert read.query("").window_tokens == long.query(long.text).window_tokens == 10_000
    again = inspect_state.to_link(read, "paper_five", Policy(0.25, (1.0,) * 2), (0.1, 0.2))
    assert again == link
    more = replace(read, context_tokens=500)
    assert (
        more.query("").window_tokens
        == replace(long, context_tokens=500).query(long.text).window_tokens
    )


def test_a_catalog_of_another_predictor_is_refused_with_the_remedy(open_page):
    app = open_page(PAGE, catalog="paper_five_published")
    assert not app.exception
    assert "another predictor" in app.warning[0].proto.title
    assert app.button(key="bundle.rebind")


def test_without_a_bundle_the_page_says_so(open_page, monkeypatch, tmp_path):
    monkeypatch.setattr("hydra_core.predictor.bundle.SHIPPED", tmp_path / "gone")
    st.cache_resource.clear()
    app = open_page(PAGE)
    assert not app.exception
    assert "there is no such file" in app.error[0].value.replace("\\", "")
    assert "No predictor" in said(app)


@pytest.mark.slow
def test_fifty_hostile_messages(page):
    """No crash, and no markup of a message reaches an element that would render it."""
    texts = [text for text in hostile_messages(80, seed=9) if len(text) < 10_000][:50]
    for text in texts:
        app = put_in(page, text)
        blocks = [element.proto.body for element in app.get("html")]
        assert not any(trick in block for trick in MARKUP[:7] for block in blocks)
        assert not any(element.allow_html for element in app.markdown)
    assert len(texts) == 50


def put_in(app, text):
    """Half characters cannot be typed, but an imported eval set may hold them."""
    if text.isprintable() or text == text.encode("utf-8", "replace").decode():
        return type_in(app, text)
    app.session_state["inspect"] = replace(app.session_state["inspect"], text=text)
    app.run()
    assert not app.exception
    return app


def test_a_catalog_of_another_predictor_says_why_and_is_rebound_in_one_click(open_page, workspace):
    app = open_page(PAGE, catalog="paper_five_published")
    assert not app.exception
    told = " ".join(element.value for element in app.warning).replace("\\", "")
    assert "No bundle here has its fingerprint" in told
    app.button(key="bundle.rebind").click().run()
    assert not app.exception
    assert "Rebound to" in said(app)
    assert receipt(app)["model"]
    app.button(key="bundle.keep").click().run()
    assert not app.exception
    draft = open_store(workspace).drafts.all("paper_five_published")[0]
    assert default_predictor().bundle.fingerprint in draft.text


def test_another_bundle_can_be_chosen_and_scores_the_message(open_page):
    app = open_page("pages/operate/home.py")
    app.segmented_control(key="bundle.choice").set_value("modernbert").run()
    assert not app.exception
    assert "modernbert" in app.session_state["bundle.folder"]
    to(app, PAGE).run()
    assert not app.exception
    said = [one.value for one in app.caption if one.value.startswith("It cannot be rebound")]
    assert said
    assert "Choose that bundle on Home, or make" in said[0]
    assert "bundle.rebind" not in {one.key for one in app.button}
    app.selectbox(key="data.catalog").set_value("paper_five").run()
    app.button(key="bundle.rebind").click().run()
    assert not app.exception
    assert receipt(app)["model"]


def words(app):
    """What the words of the message raised; found at once, or on a button where that is slow."""
    for button in (one for one in app.button if "Find the words" in one.label):
        button.click().run()
    return app.session_state["inspect.words.found"][1]


def test_words_are_those_of_the_bundle_in_use(page):
    type_in(page, EASY)
    before = words(page)
    to(page, "pages/operate/home.py").run()
    page.segmented_control(key="bundle.choice").set_value("modernbert").run()
    to(page, PAGE).run()
    page.button(key="bundle.rebind").click().run()
    assert not page.exception
    assert words(page) is not before


def test_an_image_and_a_long_context_say_what_they_cost_and_survive_in_the_link(page):
    type_in(page, EASY)
    page.number_input(key="inspect.context_tokens").set_value(100_000).run()
    page.toggle(key="inspect.has_image").set_value(True).run()
    assert not page.exception
    told = said(page).replace("\\", "")
    assert "Reads 101,000 more tokens, 1,000 for the image (estimated)" in told
    assert "The message alone would go" in told
    assert page.query_params["context"] in ("100000", ["100000"])


def test_the_link_keeps_whose_words_are_looked_at(page, open_page):
    app = page
    app.toggle(key="inspect.share").set_value(True).run()
    names = app.segmented_control(key="inspect.words.dimension").options
    app.segmented_control(key="inspect.words.dimension").set_value(names[2]).run()
    again = open_page(PAGE, **dict(app.query_params))
    assert again.segmented_control(key="inspect.words.dimension").value == names[2]


def test_catalog_and_knob_are_one_choice_on_every_part_and_page(page):
    app = page
    app.number_input(key="inspect.tau").set_value(0.125).run()
    for part in ("conversation", "robustness"):
        app.segmented_control(key="inspect.part").set_value(part).run()
        assert not app.exception
        assert app.selectbox(key="data.catalog").value == "paper_five"
    assert "".join(app.query_params["tau"]) == "0.125"
    app.selectbox(key="data.catalog").set_value("mixed_2024").run()
    app.segmented_control(key="inspect.part").set_value("message").run()
    assert app.selectbox(key="data.catalog").value == "mixed_2024"
    assert (
        app.number_input(key="inspect.value").value
        == load_catalog(CATALOGS / "mixed_2024.yaml").policy.value_usd
    )
    to(app, "pages/decide/tune.py?part=by-hand").run()
    assert app.selectbox(key="data.catalog").value == "mixed_2024"


def test_a_catalog_chosen_where_no_set_is_shown_brings_a_set_that_fits_it(open_page):
    app = open_page(PAGE)
    app.selectbox(key="data.catalog").set_value("paper_five").run()
    to(app, "pages/decide/tune.py?part=by-hand").run()
    assert not app.error
    assert app.selectbox(key="data.catalog").value == "paper_five"
    assert app.selectbox(key="data.evalset").value == "console_demo"


@pytest.mark.parametrize("catalog", ["paper_five", "mixed_2024"])
def test_a_long_message_costs_more_than_a_short_one_on_every_model(open_page, catalog):
    app = open_page(PAGE, catalog=catalog, text="hi")
    short = app.table[0].value.set_index("Model")["This message"]
    type_in(app, "Explain what happens here and why it happens. " * 130)
    long = app.table[0].value.set_index("Model")["This message"]
    assert (long > short).all()


def test_a_message_has_one_cost_under_both_rules(open_page):
    app = open_page(PAGE, catalog="mixed_2024", text=EASY)
    by_value = app.table[0].value.set_index("Model")["This message"]
    chosen = receipt(app)["model"]
    assert by_value[literal(chosen)] in said(app)
    app.segmented_control(key="inspect.rule").set_value(Rule.SHORTFALL).run()
    by_shortfall = app.table[0].value.set_index("Model")["This message"]
    assert {model: literal(usd(cost)) for model, cost in by_shortfall.items()} == dict(by_value)


def test_the_cost_says_where_its_tokens_come_from(open_page):
    assert "counted with the predictor's tokenizer, with each model's mean answer in Console" in (
        said(open_page(PAGE, catalog="paper_five", text=EASY)).replace("\\", "")
    )
    assert "tokens predicted by the " in said(open_page(PAGE, catalog="mixed_2024", text=EASY))


@pytest.mark.parametrize("catalog", ["mixed_2024", "paper_five"])
def test_the_first_example_is_one_that_the_pool_can_route(open_page, catalog):
    app = open_page(PAGE, catalog=catalog)
    assert not app.exception
    assert "No model" not in said(app)
    assert receipt(app)["cause"] in ("cheapest_eligible", "highest_value")
    costs = {one["model"]: one["cost"] for one in receipt(app)["candidates"]}
    assert costs[receipt(app)["model"]] > min(costs.values())


def test_earlier_context_is_charged_at_the_price_of_a_long_request(workspace):
    catalog = load_catalog(CATALOGS / "mixed_2024.yaml")
    dear = [
        replace(
            one,
            long_prompts=(
                LongPromptPrice(1_000, 10 * one.input_usd_per_mtok, one.output_usd_per_mtok),
            ),
        )
        for one in catalog.models
    ]
    catalog = replace(catalog, models=tuple(dear))
    query = Query(EASY, context_tokens=5_000)
    valued = valuation(catalog, default_predictor(), query)
    alone = predicted_costs(catalog, valued, 0, 5_000)
    both = predicted_costs(catalog, valued, 4_000, 5_000)
    for one in catalog.models:
        if one.id in both.usd:
            more = both.usd[one.id] - alone.usd[one.id]
            assert more == pytest.approx(4_000 * 10 * one.input_usd_per_mtok / 1e6)
