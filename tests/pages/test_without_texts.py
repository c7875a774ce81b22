"""The real set opens first and has no texts: both sources are said, and what is missing."""

import pytest

from hydra_core.console import cache
from tests.pages.finishing import finished

REAL = {"set": "mixed_2024", "catalog": "mixed_2024"}


def said(app):
    found = [*app.markdown, *app.caption, *app.success, *app.info, *app.warning]
    return " ".join(element.value for element in found).replace("\\", "")


def opened(open_page, page):
    app = open_page(page)
    assert not app.exception
    assert not app.error
    return app


def test_real_sets_come_before_synthetic_ones(workspace):
    kinds = [entry.info.synthetic for entry in cache.evalsets()]
    assert kinds == sorted(kinds)
    assert not kinds[0]


def test_overview_opens_on_profiles_that_win_and_says_what_heads_add(open_page):
    app = opened(open_page, "pages/operate/home.py")
    told = said(app)
    assert "Public benchmark questions of 2024, real outcomes" in told
    assert not app.warning
    assert [box.proto.title for box in app.success] == ["The router does better here"] * 2
    assert "Route by what was learned" in told
    assert told.index("success profiles in the catalog") < told.index("success heads learned")


def test_learn_shows_what_the_catalog_has_learned_already(open_page):
    app = finished(opened(open_page, "pages/decide/tune.py?part=learned"))
    assert "over success profiles" in app.success[0].value
    assert "+3.0 pp" in app.success[1].value.replace("\\", "")
    assert app.button(key="learn.start").disabled
    app.button(key="ladder.take.heads").click().run()
    assert not app.error
    assert "in your draft" in said(app)
    assert "Review and publish" in [link.proto.label for link in app.get("page_link")]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            "pages/configure/eval_sets.py?part=routing-help",
            "This set has no texts; see Learned.",
        ),
        ("pages/configure/eval_sets.py?part=label-quality&view=samples", "This set has no texts"),
    ],
)
def test_a_page_that_reads_texts_says_that_there_are_none(open_page, page, text):
    assert text in said(opened(open_page, page))


def test_checks_queries_and_the_picker_say_so_too(open_page):
    app = opened(open_page, "pages/configure/eval_sets.py?part=routing-help")
    app.segmented_control(key="explore.view").set_value("Data checks").run()
    assert "This set has no texts to compare" in said(app)
    app = opened(open_page, "pages/configure/eval_sets.py?part=sets")
    app.segmented_control(key="eval_sets.detail").set_value("Queries").run()
    assert "This set has no texts" in said(app)
    assert "text" not in app.dataframe[0].value.columns


def test_compare_lists_queries_by_id_and_leaves_learned_routers_out(open_page):
    app = open_page("pages/decide/compare.py", **REAL)
    assert not app.exception
    assert not app.error
    sides = app.selectbox(key="compare.a").options
    assert sides
    assert not [name for name in sides if "Learned" in name]
