"""Every page from app.py: it renders, and what is changed on it changes what it shows."""

import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog import parse_catalog
from hydra_core.console.catalog.policy import with_field
from tests.pages import live
from tests.pages.moving import to

TUNE = "pages/decide/tune.py?part=by-hand"
PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}


def values(app):
    """Label -> text of the figures at the operating point: on Tune the live knob shows them."""
    if live.knobs(app):
        return live.shown(app)
    return {metric.label: metric.value.replace("\\", "") for metric in app.metric}


@pytest.mark.parametrize(
    "page", ["pages/operate/home.py", TUNE, "pages/configure/eval_sets.py?part=sets"]
)
def test_page_renders_without_exception(open_page, page):
    app = open_page(page)
    assert not app.exception
    assert not app.error
    assert app.title


def test_tune_shows_the_operating_point_of_the_link(open_page):
    app = open_page(TUNE, **PAPER, tau="0.64")
    assert not app.exception
    assert app.number_input(key="tune.tau").value == 0.64
    assert (
        values(app)["Cost per query"]
        != values(open_page(TUNE, **PAPER, tau="0.01"))["Cost per query"]
    )


def test_changing_tau_changes_every_figure_and_the_link(open_page):
    app = open_page(TUNE, **PAPER, tau="0.24")
    before = values(app)
    app.number_input(key="tune.tau").set_value(0.9).run()
    after = values(app)
    assert before.keys() == after.keys()
    assert before["Cost per query"] != after["Cost per query"]
    assert before["Quality retention"] != after["Quality retention"]
    assert app.query_params["tau"] == "0.9"


def test_a_weight_beyond_the_usual_ones_is_shown_and_kept(open_page):
    app = open_page(TUNE, **PAPER, w="0.01,1.0,20.0,1.0")
    assert app.number_input(key="tune.w.reasoning").value == 0.01
    assert app.number_input(key="tune.w.debugging").value == 20.0
    app.number_input(key="tune.w.tool_use").set_value(3.0).run()
    assert app.query_params["w"] == "0.01,1.0,20.0,3.0"


def test_a_budget_is_shown_among_the_models_of_its_team(open_page, workspace):
    text = (CATALOGS / "paper_five_published.yaml").read_text(encoding="utf-8")
    models = [model.id for model in parse_catalog(text).models]
    (workspace / "catalogs").mkdir()
    team = {"models": models[1:3], "budget": {"usd": 5.0}}
    path = workspace / "catalogs" / "mine.yaml"
    path.write_text(with_field(text, "teams.build", team), encoding="utf-8")
    app = open_page(TUNE, set="paper_swebench", catalog="my/mine", view="Budgets")
    assert not app.exception
    (frame,) = [one.value for one in app.dataframe if "setting" in one.value]
    assert frame["setting"].iloc[-1] in {f"only {model}" for model in models[1:3]}


def test_a_small_cost_to_aim_at_is_written_with_its_digits(open_page):
    app = open_page(TUNE, **PAPER, aim="best_with_cost:0.000012")
    goal = app.number_input(key="tune.goal_cost")
    assert (goal.value, goal.proto.format) == (0.000012, "%.4g")


def test_weights_move_the_policy_and_can_be_taken_back(open_page):
    app = open_page(TUNE, **PAPER, tau="0.24")
    before = values(app)
    app.number_input(key="tune.w.reasoning").set_value(3.0).run()
    assert values(app) != before
    assert app.query_params["w"].startswith("3.0,")
    next(b for b in app.button if b.label.startswith("Back to")).click().run()
    assert values(app) == before


def test_solver_finds_the_cheapest_tau_that_keeps_the_quality(open_page):
    app = open_page(TUNE, **PAPER, tau="0.9")
    app.number_input(key="tune.goal_qr").set_value(85.0).run()
    app.button(key="tune.find").click().run()
    assert float(values(app)["Quality retention"].rstrip(" %")) >= 85.0
    assert any("not tuned on" in caption.value for caption in app.caption)


def test_unreachable_aim_says_what_can_be_reached(open_page):
    app = open_page(TUNE, **PAPER, tau="0.9")
    app.number_input(key="tune.goal_qr").set_value(100.0).run()
    app.button(key="tune.find").click().run()
    assert any("No τ reaches" in caption.value for caption in app.caption)
    assert app.number_input(key="tune.tau").value == 0.9


def test_pin_stays_while_tau_moves(open_page):
    app = open_page(TUNE, **PAPER, tau="0.24")
    app.button(key="tune.pin").click().run()
    app.number_input(key="tune.tau").set_value(0.5).run()
    assert app.query_params["pin"] == "0.24"


@pytest.mark.parametrize("part", ["Traffic", "Languages", "Numbers"])
def test_details(open_page, part):
    app = open_page(TUNE, **PAPER)
    app.segmented_control(key="tune.details").set_value(part).run()
    assert not app.exception


def test_state_survives_page_changes(open_page):
    app = open_page(TUNE, **PAPER, tau="0.24")
    app.number_input(key="tune.tau").set_value(0.5).run()
    here = values(app)
    to(app, "pages/operate/home.py").run()
    assert values(app) == here
    to(app, TUNE).run()
    assert values(app) == here


@pytest.mark.parametrize("page", ["pages/operate/home.py", TUNE])
def test_synthetic_data_is_marked(open_page, page):
    app = open_page(page, **PAPER)
    assert any("Synthetic" in badge.value for badge in app.markdown)


def test_nonsense_in_a_link_is_ignored(open_page):
    app = open_page(TUNE, set="../../etc", catalog="<b>", tau="nan", w="1,x", x="?", pin="-1")
    assert not app.exception
    assert values(app)


def test_a_link_to_what_is_not_here_says_what_is_shown(open_page):
    app = open_page(TUNE, set="gone", catalog="mixed_2024")
    said = "There is no eval set gone here. mixed_2024 is shown instead."
    assert [toast.value.replace("\\", "") for toast in app.toast] == [said]
    assert not app.run().toast


def test_set_and_catalog_that_do_not_fit_say_so(open_page):
    app = open_page(TUNE, set="paper_swebench", catalog="paper_five")
    assert not app.exception
    assert any("not scored by" in told.value.replace("\\", "") for told in app.warning)
