"""Import from app.py: any format, a wrong one named, and the doors of a first run."""

from __future__ import annotations

import json

from tests.evalsets.importers.test_recognise import ARENA
from tests.pages.store_steps import shown

PAGE = "pages/configure/eval_sets.py?part=sets"


def importing(open_page):
    app = open_page(PAGE)
    app.session_state["eval_sets.view"] = "Import"
    return app.run()


def test_a_file_of_another_format_is_named_and_read_with_its_importer(open_page, workspace):
    app = importing(open_page)
    lines = "\n".join(
        json.dumps({**ARENA, "global_index": f"a_{i}", "question": f"what is {i}?"})
        for i in range(3)
    )
    app.file_uploader(key="eval_sets.files").set_value(
        ("arena.jsonl", lines.encode(), "application/json")
    ).run()
    assert "looks like **RouterArena**" in shown(app)
    app.button(key="eval_sets.fitting").click().run()
    assert not app.exception
    assert app.selectbox(key="eval_sets.format").value == "routerarena"
    assert app.data_editor[0].value["id"].tolist() == ["gpt-5"]
    app.button(key="eval_sets.import").click().run()
    assert "Kept 3 queries with 3 outcomes of 1 models" in shown(app)


def test_a_first_run_has_three_ways_in(open_page):
    app = open_page("pages/operate/home.py")
    ways = [button.key for button in app.button if str(button.key).startswith("home.way.")]
    assert len(ways) == 3
    app.button(key="home.way.spend-logs").click().run()
    assert not app.exception


def uploaded(app, text):
    app.file_uploader(key="eval_sets.files").set_value(("mine.csv", text.encode(), "text/csv"))
    return app.run()


def test_a_column_that_is_needed_and_not_found_is_asked_for_before_the_import(open_page):
    app = uploaded(importing(open_page), "Task #,What was asked,Pass?\n1,Fix it,1\n")
    assert "Choose a column for: Query id, Message text, Model" in shown(app)
    assert not [button for button in app.button if button.key == "eval_sets.import"]


def test_decimal_commas_of_the_first_rows_are_seen_and_read(open_page):
    lines = "".join(f"q{i};Fix {i};small;0,5;0,01\n" for i in range(3))
    app = uploaded(importing(open_page), "query_id;text;model;quality;cost_usd\n" + lines)
    assert [box.value for box in app.selectbox if box.label == "Numbers are written"] == [","]
    app.button(key="eval_sets.import").click().run()
    assert "Kept 3 queries with 3 outcomes of 1 models" in shown(app)


HEADER = "query_id,text,model,quality,cost_usd\n"


def test_words_for_quality_are_proposed_shown_and_read(open_page):
    lines = "".join(f"q{i};Fix {i};small;{'pass' if i else 'fail'};1\n" for i in range(3))
    app = uploaded(importing(open_page), (HEADER + lines).replace(";", ","))
    given = next(box for box in app.selectbox if box.label == "Quality is given as")
    assert given.value.startswith("Words")
    app.button(key="eval_sets.import").click().run()
    assert "quality was read from words, 1 or 0: pass (2), fail (1)" in shown(app)


def test_percentages_are_sent_to_the_list_on_the_page(open_page):
    app = uploaded(importing(open_page), HEADER + "q1,Fix,small,83,1\n")
    app.button(key="eval_sets.import").click().run()
    told = app.error[0].value.replace("\\", "")
    assert "Quality is given as: 0 to 100" in told
    assert "--" not in told
