"""Compare from app.py: what it says is what the core says, and triage notes are kept."""

import csv
import io
import time

import numpy as np
import pytest

from hydra_core.console import cache, replays
from hydra_core.console.compare.queries import Which
from hydra_core.console.widgets import literal

PAGE = "pages/decide/compare.py"
PAPER = {"set": "paper_swebench", "catalog": "paper_five_published"}
STRONG = "always:gpt-5.4"


def values(app):
    return {metric.label: metric.value.replace("\\", "") for metric in app.metric}


def said(app):
    return " ".join(e.value for e in [*app.markdown, *app.caption, *app.success, *app.info,
                                      *app.warning]).replace("\\", "")  # fmt: skip


@pytest.fixture
def page(open_page):
    app = open_page(PAGE, **PAPER)
    assert not app.exception
    assert not app.error
    return app


def part(app, name):
    app.segmented_control(key="compare.view").set_value(name).run()
    assert not app.exception
    return app


def test_a_fresh_page_sets_the_catalog_against_a_constant(page):
    assert page.selectbox(key="compare.a").value.startswith("always:")
    assert page.selectbox(key="compare.b").value == "catalog:paper_five_published"
    assert set(values(page)) >= {"Quality", "Cost saved", "Resolved by one only"}
    assert "per query" in said(page)


def test_the_same_policy_on_both_sides_differs_in_nothing(page):
    page.selectbox(key="compare.a").set_value("catalog:paper_five_published").run()
    assert values(page)["Quality"] == "0.0 pp"
    assert values(page)["Resolved by one only"] == "0 : 0"
    assert "to the same model" in said(page)


def test_swapping_turns_the_sign(page):
    before = values(page)["Resolved by one only"].split(" : ")
    page.button(key="compare.swap").click().run()
    assert values(page)["Resolved by one only"].split(" : ") == before[::-1]


def test_a_tau_of_one_side_changes_that_side_and_the_link(page):
    before = values(page)
    page.number_input(key="compare.tau_b").set_value(0.9).run()
    assert values(page) != before
    assert page.query_params["b_at"] == "0.9"
    assert page.query_params["a"].startswith("always:")


def test_a_link_restores_both_sides(open_page):
    app = open_page(PAGE, **PAPER, a="oracle", b="mix")
    assert app.selectbox(key="compare.a").value == "oracle"
    assert app.selectbox(key="compare.b").value == "mix"
    assert values(app)["Quality"].startswith("−")  # nothing is above the oracle


@pytest.mark.parametrize("name", ["Languages and groups", "Queries", "Who moved"])
def test_every_part_opens(page, name):
    part(page, name)


@pytest.mark.parametrize("which", list(Which))
def test_every_list_opens(page, which):
    part(page, "Queries")
    page.segmented_control(key="compare.which").set_value(which).run()
    assert not page.exception
    assert "found" in said(page)


def test_filters_leave_only_what_was_asked_for(page):
    part(page, "Queries")
    model = page.selectbox(key="compare.after").options[1]
    page.selectbox(key="compare.after").set_value(model).run()
    table = page.dataframe[0].value
    assert set(table["model_b"]) <= {model}


def test_a_note_is_kept_and_found_by_the_filter(page, open_page):
    from hydra_core.store.roles import Actor, Role

    part(page, "Queries")
    query = str(page.dataframe[0].value["query_id"].iloc[0])
    entry = next(one for one in cache.evalsets() if one.key == "paper_swebench")
    me = Actor("a colleague", Role.EDITOR, proven=False)
    cache.store().notes.add(entry.info.digest, query, "Router wrong: too short", actor=me)
    page.selectbox(key="compare.noted").set_value("with a note").run()
    assert page.dataframe[0].value["query_id"].tolist() == [query]


def test_the_flipped_queries_are_those_that_changed_model(page):
    from hydra_core.console.compare.queries import whole_table
    from hydra_core.console.compare.view import Kind, Side
    from tests.pages.pairs import paper_pair, paper_sweep

    both, _ = paper_pair()
    sides = (
        (Side("a", "A", Kind.ALWAYS), paper_sweep()),
        (Side("b", "B", Kind.ROUTER), paper_sweep()),
    )
    at = np.flatnonzero(both.a.models != both.b.models)
    rows = list(csv.DictReader(io.StringIO(whole_table(both, sides, at).to_csv(index=False))))
    data = sides[0][1].data
    first = data.requirements[np.searchsorted(data.rows, both.found.rows[at[0]])]
    assert float(rows[0]["needs_reasoning"]) == pytest.approx(first[0])
    assert len(rows) == both.found.flipped.size
    assert all(row["model_a"] != row["model_b"] for row in rows)


def test_nonsense_in_a_link_is_ignored(open_page):
    app = open_page(PAGE, **PAPER, a="<b>", b="../../etc", a_at="nan", b_at="-1")
    assert not app.exception
    assert values(app)


def test_set_and_catalog_that_do_not_fit_say_so(open_page):
    app = open_page(PAGE, set="paper_swebench", catalog="paper_five")
    assert not app.exception
    assert any("not scored by" in literal(told.value).replace("\\", "") for told in app.warning)


def test_a_learned_router_is_fitted_and_compared_at_the_same_cost(open_page):
    app = open_page(PAGE, **PAPER, a="learned:kNN", b="catalog:paper_five_published")
    began = time.monotonic()
    while any(task.running for task in replays.tasks()._tasks.values()):
        assert time.monotonic() - began < 240
        time.sleep(0.1)
    app.run()
    assert not app.exception
    assert "needs retraining when the pool changes" in said(app)
    assert abs(float(values(app)["Cost saved"].split()[0])) < 15


def test_any_number_of_policies_stand_in_one_significance_table(page):
    part(page, "Significance")
    picked = page.multiselect(key="compare.table").value
    assert STRONG not in picked
    page.multiselect(key="compare.table").set_value([*picked, STRONG, "oracle"]).run()
    assert not page.exception
    table = page.dataframe[0].value
    assert len(table) == len(picked) + 2
    assert page.dataframe[1].value.shape == (len(table), len(table))
    assert "delta method" in said(page)
    assert "10,000-fold bootstrap" in said(page)


def test_a_link_restores_the_list_its_filters_and_the_query_looked_at(page, open_page):
    part(page, "Queries")
    page.segmented_control(key="compare.which").set_value(Which.LOSSES).run()
    model = page.selectbox(key="compare.after").options[1]
    page.selectbox(key="compare.after").set_value(model).run()
    query = str(page.dataframe[0].value["query_id"].iloc[0])
    link = dict(page.query_params) | {"query": query}
    assert link["view"] == "Queries"

    fresh = open_page(PAGE, **link)
    assert not fresh.exception
    assert fresh.segmented_control(key="compare.which").value == Which.LOSSES
    assert fresh.selectbox(key="compare.after").value == model
    assert (
        fresh.dataframe[0].value["query_id"].tolist()
        == page.dataframe[0].value["query_id"].tolist()
    )
    assert f"**{query}**" in said(fresh).replace("\\", "")
    assert dict(fresh.query_params) == link


def test_a_link_with_nonsense_opens_the_default_view(open_page):
    app = open_page(PAGE, **PAPER, view="Nothing", to="no such model", query="none")
    assert not app.exception
    assert app.segmented_control(key="compare.view").value == "Who moved"
    part(app, "Queries")
    assert not app.exception


def test_a_link_carries_a_policy_that_was_tuned_here_only(open_page):
    app = open_page(PAGE, **PAPER, tau="0.1", a="oracle", b="tuned")
    assert app.number_input(key="compare.tau_b").value == 0.1
    assert app.query_params["tau"] == "0.1"


def test_a_small_p_value_of_a_slice_is_never_called_nothing(open_page):
    link = {"set": "mixed_2024", "catalog": "mixed_2024", "view": "Languages and groups"}
    app = open_page("pages/decide/compare.py", **link)
    assert app.dataframe[0].value["p"].tolist() == ["< 0.001"]


def test_a_checked_cascade_stands_on_a_side_with_its_checker(page):
    page.selectbox(key="compare.a").set_value("cascade").run()
    assert not page.exception
    before = values(page)["Quality"]
    assert "% go on to " in said(page)
    page.number_input(key="compare.checker.a.passes_wrong").set_value(60.0).run()
    assert values(page)["Quality"] != before
    part(page, "Cost and quality")
    assert "per resolved query" in said(page)
