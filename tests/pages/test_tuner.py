"""Tuner from app.py: a search runs, is stopped, goes on, and its result reaches Tune."""

import time
from dataclasses import replace

import pytest

from hydra_core.catalog.schema import parse_catalog
from hydra_core.choosing.policy_search import SearchedPolicy
from hydra_core.console import cache, replays
from hydra_core.replay.operating_point import Aim, AimKind
from hydra_core.replay.significance import Interval
from tests.pages.moving import to

pytestmark = pytest.mark.slow

PAGE = "pages/decide/tune.py?part=search"
PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}
PATIENCE_S = 240


def only_task():
    (task,) = replays.tasks()._tasks.values()
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
    assert {"QR kept", "Promised − kept", "Gain at equal cost"} <= labels
    table = done.dataframe[0].value
    assert table["promised"].notna().sum() == 3
    assert table["kept"].notna().all()
    assert isinstance(only_task().result, SearchedPolicy)


def with_result(app, **changed):
    """The page again, as if the search had come to this."""
    task = only_task()
    task.result = replace(task.result, **changed)
    app.run()
    assert not app.exception
    return [f"{box.proto.title} {box.value}".replace("\\", "") for box in (*app.warning, *app.info)]


def test_an_aim_that_is_missed_is_the_headline(done):
    found = only_task().result
    least = max(found.metrics.qr.value, found.tau_only.qr.value)
    said = with_result(done, aim=Aim(AimKind.CHEAPEST_WITH_QR, least + 0.01))
    assert said[0].startswith(f"The aim of QR {100 * (least + 0.01):.1f} % is missed")
    assert f"QR {100 * found.metrics.qr.value:.1f} %" in said[0]


def test_tau_alone_is_offered_where_it_meets_an_aim_that_the_search_misses(done):
    found = only_task().result
    aim = Aim(AimKind.CHEAPEST_WITH_QR, found.metrics.qr.value + 0.005)
    better = replace(found.tau_only, qr=Interval(aim.value + 0.005, 0.5, 1.0))
    said = with_result(done, aim=aim, tau_only=better)
    assert "use it" in said[0]
    done.button(key="tuner.tau_alone").click().run()
    to(done, "pages/decide/tune.py?part=by-hand").run()
    assert done.number_input(key="tune.w.reasoning").value == 1.0
    assert done.number_input(key="tune.goal_qr").value == pytest.approx(100 * aim.value)


def test_one_click_opens_it_in_tune(done):
    setting = only_task().result.setting
    done.button(key="tuner.open").click().run()
    assert not done.exception
    to(done, "pages/decide/tune.py?part=by-hand").run()
    assert done.number_input(key="tune.tau").value == pytest.approx(setting.tau)
    assert done.number_input(key="tune.w.reasoning").value == pytest.approx(setting.weights[0])


def test_one_click_pins_it_for_compare(done):
    done.button(key="tuner.pin").click().run()
    to(done, "pages/decide/compare.py").run()
    assert any("Pinned on" in option for option in done.selectbox(key="compare.a").options)


def test_one_click_brings_it_into_the_catalog_draft(done):
    done.button(key="tuner.draft").click().run()
    assert not done.exception
    assert not done.error
    assert any("draft of the catalog" in caption.value for caption in done.caption)


def test_a_stopped_search_goes_on_to_the_same_result(page, done):
    whole = only_task().result
    key = next(iter(replays.tasks()._tasks))
    replays.tasks()._tasks.clear()
    page.run()
    page.button(key="tuner.start").click().run()
    only_task().cancel.set()
    wait()
    page.run()
    if only_task().result is None:
        assert "Resume" in [button.label for button in page.button]
        page.button(key="tuner.start").click().run()
        wait()
    assert next(iter(replays.tasks()._tasks)) == key
    assert only_task().result.setting == whole.setting


CELLS = "tuner.cells.models", "tuner.cells.dimensions"


@pytest.fixture
def with_cells(page):
    page.multiselect(key=CELLS[0]).set_value(["gpt-5.4-mini", "claude-haiku-4.5"]).run()
    assert any("until then no cell moves" in caption.value for caption in page.caption)
    page.multiselect(key=CELLS[1]).set_value(["tool_use", "debugging"]).run()
    assert any(
        "4 cells, 4 weights and τ: 9 numbers" in told.value
        for told in [*page.caption, *page.warning]
    )
    page.number_input(key="tuner.cells.reach").set_value(0.2).run()
    page.button(key="tuner.start").click().run()
    assert not page.exception
    wait()
    return page.run()


def test_cells_are_off_until_models_and_dimensions_are_picked(page):
    page.multiselect(key=CELLS[0]).set_value(["gpt-5.4-mini"]).run()
    page.button(key="tuner.start").click().run()
    wait()
    page.run()
    ((*_, want),) = replays.tasks()._tasks
    assert (want.cells, want.reach) == ((), 0.0)
    assert not any("Profile cells" in text.value for text in page.markdown)


def test_cells_are_shown_before_and_after_and_sent_to_the_draft(with_cells):
    assert not with_cells.exception
    result = only_task().result
    assert result.setting.cells
    table = with_cells.dataframe[2].value
    assert len(table) == 4
    moved = table.dropna(subset="Tuned")
    assert sorted(moved["Tuned"]) == sorted(result.setting.cells.values())
    assert ((moved["Tuned"] - moved["Catalog"]).abs() <= 0.2 + 1e-9).all()
    assert any(f"{len(moved)} of 4 cells moved" in caption.value for caption in with_cells.caption)
    keys = {button.key for button in with_cells.button}
    assert "tuner.draft" in keys
    assert not keys & {"tuner.open", "tuner.pin"}, "they would lose the cells"
    with_cells.button(key="tuner.draft").click().run()
    assert not with_cells.error
    told = f"the tuned τ, weights and {len(moved)} profile"
    assert any(told in caption.value for caption in with_cells.caption)
    assert drafted(result) == pytest.approx(result.promised.qr)


def drafted(result):
    """QR that the drafted catalog itself reaches, read and replayed like any other."""
    (entry,) = (one for one in cache.evalsets() if one.key.endswith(PAPER["set"]))
    (text,) = (draft.text for draft in cache.store().drafts.all())
    catalog = parse_catalog(text)
    for (model, k), value in result.setting.cells.items():
        assert catalog.model(model).overrides[catalog.dimensions[k]] == value
    sweep = cache.sweep(entry, catalog, catalog.policy.weights)
    return sweep.curve.at(catalog.policy.tau).quality / sweep.oracle.quality.value


def test_a_search_without_cells_stands_beside_the_one_with_them(with_cells):
    assert any("Search once without cells" in caption.value for caption in with_cells.caption)
    for key in CELLS:
        with_cells.multiselect(key=key).set_value([])
    with_cells.run()
    with_cells.button(key="tuner.start").click().run()
    began = time.monotonic()
    while any(task.running for task in replays.tasks()._tasks.values()):
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.1)
    with_cells.multiselect(key=CELLS[0]).set_value(["gpt-5.4-mini", "claude-haiku-4.5"])
    with_cells.multiselect(key=CELLS[1]).set_value(["tool_use", "debugging"]).run()
    assert "Without cells, together" in with_cells.dataframe[0].value["part"].tolist()


def test_another_catalog_forgets_models_it_does_not_have(with_cells):
    with_cells.session_state[CELLS[0]] = ["gpt-5.4-mini", "nobody"]
    with_cells.run()
    assert not with_cells.exception
    assert with_cells.multiselect(key=CELLS[0]).value == ["gpt-5.4-mini"]


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
