"""Tune, Compare, Tuner, Overview and Ship where the catalog routes by value: V is the knob."""

import json
import shutil
import time
from datetime import date

import pytest

from hydra_core.base.types import Rule, Selection
from hydra_core.catalog import load_catalog
from hydra_core.catalog.chosen_and_promised import not_covered
from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.sources.promise import promise_on
from hydra_core.console import cache, replays
from hydra_core.console.access import identity
from hydra_core.console.view_frontier import Axes, XAxis, YAxis, frontier_view
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_by_value, sweep_catalog
from hydra_core.store import open_store
from tests.console.valued import LINK, VALUE_USD, valued
from tests.made_once import made_once
from tests.pages.moving import to

TUNE = "pages/decide/tune.py?part=by-hand"


@pytest.fixture(scope="session")
def learned():
    return made_once("valued", lambda folder: valued(folder, 200))


@pytest.fixture
def opened(learned, workspace, open_page):
    """Opens a page of a console whose catalog routes by value."""
    shutil.copytree(learned, workspace, dirs_exist_ok=True)

    def go(page, **params):
        app = open_page(page, **(LINK | params))
        assert not app.exception
        assert not app.error
        return app

    return go


@pytest.fixture
def sweeps(learned, monkeypatch):
    """The set under both rules."""
    evalset = load_evalset(learned / "evalsets" / "traffic")
    catalog = load_catalog(learned / "catalogs" / "valued.yaml")
    today, scores = date(2026, 6, 1), catalog_scores(evalset, catalog)
    with monkeypatch.context() as there:  # what a page writes must not go into this folder
        there.setenv("HYDRA_WORKSPACE", str(learned))
        model = catalog_outcome_model(catalog)
    return {
        Rule.SHORTFALL: sweep_catalog(evalset, catalog, scores, today=today),
        Rule.VALUE: sweep_by_value(evalset, catalog, model, cross_fitted=True, today=today),
    }


@pytest.mark.parametrize("rule", list(Rule))
def test_the_plot_shows_policy_and_pin_where_their_evaluations_stand(sweeps, rule):
    sweep, baseline = sweeps[rule], sweeps[rule].baselines[0]
    for pin in sweeps.values():
        for place in (1, len(sweep.steps) // 2, -1):
            at, pinned = (sweep, sweep.steps[place]), (pin, pin.steps[place])
            here, there = (
                evaluate(*one, baseline, selection=Selection.FIXED).router for one in (at, pinned)
            )
            view = frontier_view(*at, Axes(XAxis.COST, YAxis.QR, baseline), pinned=pinned)
            for spot, told in ((view.selected, here), (view.pinned, there)):
                expected = (told.mean_cost_usd.value, 100 * told.qr.value)
                assert (spot.x, spot.y) == pytest.approx(expected)
            view = frontier_view(*at, Axes(XAxis.SAVINGS, YAxis.RESOLVED, baseline))
            expected = (100 * here.cs.value, 100 * here.quality.value)
            assert (view.selected.x, view.selected.y) == pytest.approx(expected)


def told(app):
    boxes = [*app.success, *app.info, *app.warning, *app.caption, *app.markdown]
    return "\n".join(one.value for one in boxes).replace("\\", "")


def test_v_is_the_knob_and_the_link_carries_it(opened):
    app = opened(TUNE)
    assert app.number_input(key="tune.value").value == VALUE_USD
    assert "cross-fitted" in told(app)  # the set is the one that was learned on
    app.number_input(key="tune.value").set_value(0.006).run()
    assert "picked on these queries" in told(app)
    assert app.query_params["v"] == "0.006"


def test_the_toggle_changes_the_rule_and_the_link_keeps_it(opened):
    app = opened(TUNE)
    app.segmented_control(key="tune.rule").set_value(Rule.SHORTFALL).run()
    assert app.number_input(key="tune.tau").value == 0.24
    assert app.query_params["rule"] == "shortfall"
    again = opened(TUNE, rule="shortfall", tau="0.1", v="0.5")
    assert again.number_input(key="tune.tau").value == 0.1
    again.segmented_control(key="tune.rule").set_value(Rule.VALUE).run()
    assert again.number_input(key="tune.value").value == 0.5


def test_find_a_pin_and_the_details_work_under_value(opened):
    app = opened(TUNE)
    app.button(key="tune.pin").click().run()
    app.number_input(key="tune.value").set_value(0.05).run()
    assert "Pinned V $0.01" in told(app)
    assert app.query_params["pin_rule"] == "value"
    app.button(key="tune.find").click().run()
    assert "On queries it was not tuned on (cross-fitted)" in told(app)
    for part in ("Languages", "Numbers"):
        app.segmented_control(key="tune.details").set_value(part).run()
        assert not app.exception


def test_where_no_outcome_model_is_named_there_is_a_way_to_learn(open_page):
    app = open_page(TUNE, set="console_demo", catalog="paper_five")
    assert "tune.rule" not in {one.key for one in app.segmented_control}
    assert "outcomes learned" in told(app)


def test_a_missing_outcome_model_leaves_the_other_rule_in_reach(learned, workspace, open_page):
    shutil.copytree(learned, workspace, dirs_exist_ok=True)
    shutil.rmtree(workspace / "outcome_models")
    app = open_page(TUNE, **LINK)
    assert "is not there" in app.error[0].value.replace("\\", "")
    app.segmented_control(key="tune.rule").set_value(Rule.SHORTFALL).run()
    assert not app.error
    assert "fixed beforehand" in told(app)


def test_compare_sets_the_rules_side_by_side(opened):
    app = opened("pages/decide/compare.py", b="catalog:my/valued")
    assert app.number_input(key="compare.value_b").value == VALUE_USD
    app.segmented_control(key="compare.view").set_value("Queries").run()
    assert not app.exception


def test_the_tuner_says_that_v_alone_is_to_be_tuned(opened):
    assert "V alone" in told(opened("pages/decide/tune.py?part=search"))


@pytest.mark.parametrize(
    "page",
    ["operate/home.py", "operate/inspect.py?part=conversation", "configure/catalog.py?part=models"],
)
def test_other_pages_say_which_rule_is_active(opened, page):
    assert "alue rule" in told(opened(f"pages/{page}"))


def test_the_v_found_on_tune_goes_into_the_draft(opened, workspace):
    app = opened(TUNE)
    app.number_input(key="tune.value").set_value(0.03).run()
    to(app, "pages/decide/releases.py?part=publish").run()
    app.button(key="ship.take_tuned").click().run()
    draft = open_store(workspace).drafts.find("my/valued", identity.actor())
    assert "value_usd: 0.03" in draft.text
    assert "rule: value" in draft.text


def test_inspect_gives_the_receipt_of_the_value_rule(opened):
    app = opened("pages/operate/inspect.py?part=message")
    words = told(app)
    assert "Predicted success" in words
    assert "one more resolved query" in words or "no cheaper" in words
    assert "value rule)" in words
    assert "shortfall rule)" in words  # the other rule stands beside
    assert "Which model for every V" in words
    assert "learned queries most like this" in words
    flips = ("Worth of one more resolved query", "Price of", "Predicted success of")
    assert any(flip in words for flip in flips)
    app.segmented_control(key="inspect.rule").set_value(Rule.SHORTFALL).run()
    assert not app.exception
    assert "Which model for every τ" in told(app)
    assert app.query_params["rule"] == "shortfall"


def test_two_messages_are_compared_under_the_value_rule(opened):
    app = opened(
        "pages/operate/inspect.py?part=message", compare="1", text="Fix it", other="Write a parser"
    )
    assert "What differs" in told(app)


def test_a_link_without_the_text_reopens_the_decision_by_value(opened):
    shown = opened("pages/operate/inspect.py?part=message", text="Prove that 17 is prime.")
    shown.toggle(key="inspect.share").set_value(False).run()
    link = dict(shown.query_params)
    assert "text" not in link
    again = opened("pages/operate/inspect.py?part=message", **link)
    receipts = [
        json.loads(next(block.value for block in one.code if block.language == "json"))
        for one in (shown, again)
    ]
    assert [one["rule"] for one in receipts] == ["value", "value"]
    assert receipts[0]["model"] == receipts[1]["model"]
    assert {"p", "c"} <= set(again.query_params)
    assert again.table[0].value.equals(shown.table[0].value)


def test_a_promise_sets_the_knob_and_goes_into_the_draft(opened, learned, sweeps):
    made = promise_on(sweeps[Rule.VALUE], within=0.3, confidence=0.9)
    assert made.kept
    app = opened(TUNE)
    app.number_input(key="tune.promise_within").set_value(30.0).run()
    app.selectbox(key="tune.promise_confidence").set_value(0.9).run()
    app.button(key="tune.promise_find").click().run()
    knob = made.knob(Rule.VALUE)
    assert app.number_input(key="tune.value").value == pytest.approx(knob)
    said = f"{100 * made.saving:.0f} % cheaper than it"
    assert any(said in one.value for one in app.success)
    assert any("Calibrated on" in one.value for one in app.caption)
    app.button(key="tune.promise_take").click().run()
    assert any("Your draft makes this promise" in one.value for one in app.caption)
    text = open_store().drafts.all(LINK["catalog"])[0].text
    catalog = parse_catalog(text)
    assert not_covered(catalog) == ""
    assert (catalog.policy.value_usd, catalog.policy.promise.baseline) == (knob, made.baseline)


@pytest.mark.slow
def test_a_model_without_outcomes_joins_by_its_rate(opened):
    app = opened("pages/decide/tune.py?part=learned")
    field = next(one for one in app.number_input if one.label.endswith("% solved"))
    field.set_value(62.0).run()
    app.button(key="learn.start").click().run()
    for _ in range(600):
        if not any(task.running for task in replays.tasks()._tasks.values()):
            break
        time.sleep(0.2)
    app = app.run()
    assert not app.exception
    said = [one.value for one in (*app.success, *app.info)]
    assert any("joins by its rate of 62 %" in one for one in said), said


def test_routing_help_counts_the_queries_that_the_value_rule_sends(opened):
    app = opened("pages/configure/eval_sets.py?part=routing-help")
    entry = next(one for one in cache.evalsets() if one.key == LINK["set"])
    catalog = next(one.catalog for one in cache.catalogs() if one.key == LINK["catalog"])
    found = replays.replayed(entry, catalog)
    (sent,) = (one for one in app.selectbox if one.label == "The router sends them to")
    for i, name in enumerate(found.data.pool.ids):
        count = int((found.choice == i).sum())
        assert (f"{name} ({count:,})" in sent.options) is (count > 0)


def test_sensitivity_says_that_its_figures_are_those_of_the_other_rule(opened):
    app = opened("pages/configure/catalog.py?part=profiles")
    app.session_state["profiles.view"] = "Sensitivity"
    app.run()
    assert not app.exception
    assert any("routes by the value rule" in one.value for one in app.info)
