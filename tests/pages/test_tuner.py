"""Tuner from app.py: a search runs, is stopped, goes on, and its result reaches Tune."""

from __future__ import annotations

import time

import pytest

from hydra_core.evaluation.tuning import Tuning
from hydra_core.ui import cache_evaluate

PAGE = "pages/evaluate/tuner.py"
PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}
PATIENCE_S = 240


def only_task():
    (task,) = cache_evaluate.tasks()._tasks.values()
    return task


def wait():
    began = time.monotonic()
    while only_task().running:
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.1)


@pytest.fixture
def page(open_page):
    app = open_page(PAGE, **PAPER)
    assert not app.exception
    app.segmented_control(key="tuner.trials").set_value(300).run()
    app.number_input(key="tuner.qr").set_value(85.0).run()
    return app


@pytest.fixture
def done(page):
    page.button(key="tuner.start").click().run()
    assert not page.exception
    wait()
    return page.run()


def test_the_result_says_what_was_promised_and_what_was_kept(done):
    assert not done.exception
    labels = {metric.label for metric in done.metric}
    assert {"QR kept", "Optimism", "Over τ alone"} <= labels
    table = done.dataframe[0].value
    assert table["promised"].notna().sum() == 3
    assert table["kept"].notna().all()
    assert isinstance(only_task().result, Tuning)


def test_one_click_opens_it_in_tune(done):
    setting = only_task().result.setting
    done.button(key="tuner.open").click().run()
    assert not done.exception
    done.switch_page("pages/evaluate/tune.py").run()
    assert done.number_input(key="tune.tau").value == pytest.approx(setting.tau)
    assert done.number_input(key="tune.w.reasoning").value == pytest.approx(setting.weights[0])


def test_one_click_pins_it_for_compare(done):
    done.button(key="tuner.pin").click().run()
    done.switch_page("pages/evaluate/compare.py").run()
    assert any("Pinned on" in option for option in done.selectbox(key="compare.a").options)


def test_one_click_brings_it_into_the_catalog_draft(done):
    done.button(key="tuner.draft").click().run()
    assert not done.exception
    assert not done.error
    assert any("draft of the catalog" in caption.value for caption in done.caption)


def test_a_stopped_search_goes_on_to_the_same_result(page, done):
    whole = only_task().result
    key = next(iter(cache_evaluate.tasks()._tasks))
    cache_evaluate.tasks()._tasks.clear()
    page.run()
    page.button(key="tuner.start").click().run()
    only_task().cancel.set()
    wait()
    page.run()
    if only_task().result is None:
        assert "Resume" in [button.label for button in page.button]
        page.button(key="tuner.start").click().run()
        wait()
    assert next(iter(cache_evaluate.tasks()._tasks)) == key
    assert only_task().result.setting == whole.setting


def test_an_aim_out_of_reach_says_what_can_be_reached(page):
    page.number_input(key="tuner.qr").set_value(100.0).run()
    page.button(key="tuner.start").click().run()
    wait()
    page.run()
    assert any("cannot be met" in str(told.proto.title) for told in page.warning)
    assert any("at most" in caption.value for caption in page.caption)


def test_set_and_catalog_that_do_not_fit_say_so(open_page):
    app = open_page(PAGE, set="paper_swebench", catalog="paper_five")
    assert not app.exception
    assert app.warning
