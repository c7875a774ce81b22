"""Explore from app.py: what it says of an eval set is what the core says."""

import time

import pytest

from hydra_core.console import cache, replays
from hydra_core.console.eval_sets import routing_help
from hydra_core.console.tasks import Task
from tests.pages.pairs import paper_sweep

PAGE = "pages/configure/eval_sets.py?part=routing-help"
PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}
PATIENCE_S = 240


def said(app):
    found = [*app.markdown, *app.caption, *app.success, *app.info, *app.warning]
    return " ".join(element.value for element in found).replace("\\", "")


def wait():
    began = time.monotonic()
    while any(task.running for task in replays.tasks()._tasks.values()):
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.1)


@pytest.fixture
def page(open_page):
    app = open_page(PAGE, **PAPER)
    assert not app.exception
    assert not app.error
    return app


def test_the_bounds_are_there_at_once_and_the_sentence_when_it_is_measured(page):
    assert "A perfect router would gain" in said(page)
    wait()
    page.run()
    sweep = paper_sweep()
    texts = sweep.evalset.queries["text"].iloc[sweep.data.rows].tolist()
    assert routing_help.routability(sweep.data, texts).text in said(page)


def test_a_running_measurement_says_how_far_it_is(open_page):
    entry = next(one for one in cache.evalsets() if one.key == PAPER["set"])
    catalog = next(one.catalog for one in cache.catalogs() if one.key == PAPER["catalog"])
    key = cache.sweep_key(cache.sweep(entry, catalog, catalog.policy.weights))
    replays.tasks()._tasks["routability", key] = Task(done=3, total=8)
    (bar,) = open_page(PAGE, **PAPER).get("progress")
    assert bar.proto.value == 37
    assert "Measuring how well success is predicted" in bar.proto.text


@pytest.mark.parametrize(
    "part",
    [
        "Who solves what",
        "Costs",
        "Difficulty",
        "Can it be predicted?",
        "What reading adds",
        "Data checks",
    ],
)
def test_every_part_opens(page, part):
    page.segmented_control(key="explore.view").set_value(part).run()
    assert not page.exception
    wait()
    page.run()
    assert not page.exception
    assert not page.error


def test_checks_say_that_nothing_is_missing(page):
    page.segmented_control(key="explore.view").set_value("Data checks").run()
    assert "Every model has an outcome" in said(page)


def test_a_set_without_scores_still_shows_what_is_in_it(open_page):
    app = open_page(PAGE, set="paper_swebench", catalog="paper_five")
    assert not app.exception
    assert "not scored by" in said(app)
    assert "Can it be predicted?" not in app.segmented_control(key="explore.view").options


def test_the_diagram_can_be_split_by_where_the_router_sends_a_query(page):
    picker = page.selectbox(key="explore.sent")
    models = [option for option in picker.options if not option.startswith("any model")]
    assert models
    picker.select_index(1).run()
    assert not page.exception
    assert not page.error


def test_ablations_are_offered_and_not_begun(open_page):
    app = open_page(PAGE, **PAPER)
    app.session_state["explore.view"] = "What reading adds"
    app.run()
    assert not app.exception
    assert app.button(key="explore.ablate").label == "Measure"


@pytest.mark.parametrize(
    ("page", "key", "view"),
    [
        (PAGE, "explore", "Costs"),
        ("pages/decide/tune.py?part=learned", "learn", "More outcomes"),
        ("pages/decide/tune.py?part=search", "", ""),
    ],
)
def test_the_address_names_the_set_and_the_view_and_restores_them(open_page, page, key, view):
    file, _, part = page.partition("?part=")
    address = {"set": "mixed_2024", "catalog": "mixed_2024", "part": part}
    app = open_page(page)
    if view:
        app.segmented_control(key=f"{key}.view").set_value(view).run()
        address["view"] = view
    link = {name: "".join(value) for name, value in app.query_params.items()}
    assert link == address
    again = open_page(file, **link)
    assert not again.exception
    assert not view or again.segmented_control(key=f"{key}.view").value == view


def test_an_address_with_an_unknown_part_opens_the_first(open_page):
    app = open_page(PAGE, **PAPER, view="rubbish")
    assert not app.exception
    assert app.segmented_control(key="explore.view").value == "Who solves what"


def test_a_set_picked_under_sets_is_the_one_that_the_other_parts_use(open_page):
    app = open_page("pages/configure/eval_sets.py?part=sets")
    app.radio(key="eval_sets.chosen").set_value("console_demo").run()
    for part in ("routing-help", "label-quality"):
        app.segmented_control(key="eval_sets.part").set_value(part).run()
        assert not app.exception
    app.segmented_control(key="label_quality.view").set_value("samples").run()
    assert app.selectbox(key="data.evalset").value == "console_demo"
    app.segmented_control(key="eval_sets.part").set_value("routing-help").run()
    assert app.selectbox(key="data.evalset").value == "console_demo"
    app.selectbox(key="data.evalset").set_value("mixed_2024").run()
    app.segmented_control(key="eval_sets.part").set_value("sets").run()
    assert app.radio(key="eval_sets.chosen").value == "mixed_2024"


def test_possible_gain_is_never_green(page):
    wait()
    page.run()
    assert not page.success
