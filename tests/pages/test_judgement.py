"""Tune says how its point was chosen, and Eval sets asks about dependent queries."""

import shutil

import pytest

from hydra_core.evalsets.evalset import load_evalset, save_evalset
from tests.pages import live
from tests.pages.conftest import ROOT

TUNE = "pages/decide/tune.py?part=by-hand"
HERE = {"set": "paper_swebench", "catalog": "paper_five_published"}


def verdict(app):
    """The first result box, and what stands behind its Details."""
    box = next(text for text in boxes(app) if "interval" in text or "per query" in text)
    details = next(one.value for one in app.markdown if "so the interval" in one.value)
    return f"{box} {details}".replace("\\", "")


def boxes(app):
    return [box.value.replace("\\", "") for box in [*app.success, *app.info, *app.warning]]


def test_the_catalogs_own_policy_is_fixed_and_a_moved_tau_was_looked_at(open_page):
    app = open_page(TUNE, **HERE)
    assert "fixed beforehand" in verdict(app)
    app.number_input(key="tune.tau").set_value(0.2).run()
    assert "picked on these queries" in verdict(app)


def test_what_find_chose_is_measured_on_queries_it_was_not_chosen_on(open_page):
    app = open_page(TUNE, **HERE)
    app.button(key="tune.find").click().run()
    assert any("not tuned on (cross" in one.value.replace("\\", "") for one in app.caption)
    app.number_input(key="tune.tau").set_value(0.2).run()
    assert "picked on these queries" in verdict(app)


def test_edited_weights_are_cautioned_and_checked_in_one_click(open_page):
    app = open_page(TUNE, **HERE)
    assert not [b for b in app.button if b.key == "tune.check"]
    app.number_input(key="tune.w.reasoning").set_value(2.5).run()
    assert any("does not cover weights" in caption.value for caption in app.caption)
    app.button(key="tune.find").click().run()
    assert "picked on these queries" in verdict(app)  # the weights were not chosen on a half
    app.button(key="tune.check").click().run()
    assert any("cross-fitted" in one.value.replace("\\", "") for one in app.markdown)
    assert not app.exception


def test_tiles_and_result_show_the_same_figures_after_find(open_page):
    app = open_page(TUNE, set="console_demo", catalog="paper_five")
    app.button(key="tune.find").click().run()
    shown = live.shown(app)
    quality, cost = shown["Resolved"], shown["Cost per query"]
    assert quality in boxes(app)[0]
    assert f"Cost: {cost} per query" in verdict(app)


def imported(workspace, name="mine"):
    """The shipped demo set as an imported one that declares no clusters and was never asked."""
    folder = workspace / "evalsets" / name
    demo = load_evalset(ROOT / "sample_data" / "console_demo")
    save_evalset(
        folder,
        name=name,
        queries=demo.queries.drop(columns="cluster"),
        models=demo.models,
        quality=demo.quality,
        cost_usd=demo.cost_usd,
    )
    shutil.copytree(demo.path / "scores", folder / "scores")
    return folder


@pytest.mark.parametrize(("key", "said"), [("True", "accepted"), ("False", "declined")])
def test_undeclared_translations_are_offered_as_clusters(open_page, workspace, key, said):
    folder = imported(workspace)
    app = open_page("pages/configure/eval_sets.py?part=sets")
    app.radio(key="eval_sets.chosen").set_value("my/mine").run()
    app.button(key="eval_sets.look").click().run()
    assert any("640 queries look like 40 groups" in text.value for text in app.markdown)
    app.button(key=f"eval_sets.answer.{key}").click().run()
    assert not app.exception
    kept = load_evalset(folder)
    assert (kept.dependence.answer, kept.dependence.groups) == (said, 40)
    assert ("cluster" in kept.queries.columns) is (said == "accepted")


def test_a_set_without_conversations_is_said_to_be_replayed_per_query(open_page):
    app = open_page(TUNE, **HERE)
    app.segmented_control(key="tune.details").set_value("Numbers").run()
    assert not app.exception
    assert any("Replayed per query" in caption.value for caption in app.caption)


def test_find_warns_where_the_held_out_queries_miss_the_aim(open_page):
    app = open_page(TUNE, set="console_demo", catalog="paper_five")
    app.number_input(key="tune.goal_qr").set_value(80.0).run()
    app.button(key="tune.find").click().run()
    told = next(text for text in boxes(app) if "not tuned on" in text)
    assert "QR 79." in told
    assert "misses the aim of QR 80.0 %" in told


def test_a_copied_link_keeps_the_aim_the_held_out_line_and_the_details(open_page):
    app = open_page(TUNE, **HERE)
    app.number_input(key="tune.goal_qr").set_value(70.0).run()
    app.button(key="tune.find").click().run()
    app.segmented_control(key="tune.details").set_value("Numbers").run()
    again = open_page(TUNE, **{name: app.query_params[name] for name in app.query_params})
    assert again.number_input(key="tune.goal_qr").value == 70.0
    assert again.segmented_control(key="tune.details").value == "Numbers"
    assert verdict(again) == verdict(app)
    held_out = [[c.value for c in one.caption if "not tuned on" in c.value] for one in (app, again)]
    assert held_out[0] == held_out[1] != []


def test_the_address_of_eval_sets_names_the_set_on_screen_and_opens_it(open_page):
    page = "pages/configure/eval_sets.py?part=sets"
    app = open_page(page, set="paper_swebench")
    assert app.radio(key="eval_sets.chosen").value == "paper_swebench"
    app.radio(key="eval_sets.chosen").set_value("console_demo").run()
    assert app.radio(key="eval_sets.chosen").value == "console_demo"
    assert app.query_params["set"] == "console_demo"


def test_the_query_list_shows_requirements_and_its_files_are_offered(open_page):
    app = open_page("pages/configure/eval_sets.py?part=sets", set="console_demo")
    app.segmented_control(key="eval_sets.detail").set_value("Queries").run()
    assert not app.exception
    shown = next(one.value for one in app.dataframe if "resolved by" in one.value)
    assert shown[["reasoning", "code generation"]].map(lambda r: 0 <= r <= 1).all(axis=None)
    files = {one.proto.label for one in app.get("download_button")}
    assert {"CSV", "Parquet", "LaTeX"} <= files
