"""Import from app.py: any format, a wrong one named, and the doors of a first run."""

import json
import time

from hydra_core.console import replays
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.formats import Kind
from tests.evalsets.importers.test_harness import sample
from tests.evalsets.importers.test_recognise import ARENA
from tests.evalsets.importers.test_traffic import generation
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
    assert "Kept 3 queries with 3 outcomes of 1 model" in shown(app)


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
    assert "Choose a column for: Message text, Model" in shown(app)
    assert not [button for button in app.button if button.key == "eval_sets.import"]


def test_only_what_is_needed_is_asked_for(open_page):
    app = uploaded(importing(open_page), "Frage,A\nFix it,1\n")
    assert "Choose a column for: Model, Quality." in shown(app)
    rows = next(one for one in app.segmented_control if one.label == "Each row is")
    rows.set_value("A query, with columns for each model").run()
    said = shown(app)
    assert "Choose a column" not in said
    assert "Add a row for each model" in said


def test_decimal_commas_are_seen_shown_and_read(open_page):
    lines = "".join(f"q{i};Fix {i};small;0,5;0,01\n" for i in range(3))
    app = uploaded(importing(open_page), "query_id;text;model;quality;cost_usd\n" + lines)
    assert app.dataframe[0].value["cost_usd"].tolist() == ["0.01"] * 3
    app.button(key="eval_sets.import").click().run()
    assert "Kept 3 queries with 3 outcomes of 1 model" in shown(app)


def test_euros_are_asked_for_their_rate_and_converted(open_page, workspace):
    lines = "".join(f"q{i},Fix {i},small,1,€ 0.5\n" for i in range(3))
    app = uploaded(importing(open_page), HEADER + lines)
    assert "Say how many USD one EUR was" in shown(app)
    assert not [button for button in app.button if button.key == "eval_sets.import"]
    rate = next(box for box in app.number_input if box.label == "USD per EUR")
    rate.set_value(1.5).run()
    assert app.dataframe[0].value["cost_usd"].tolist() == ["0.75"] * 3
    app.button(key="eval_sets.import").click().run()
    evalset = load_evalset(workspace / "evalsets" / "mine")
    assert evalset.cost_usd.ravel().tolist() == [0.75] * 3
    assert evalset.price_notes == "Costs were converted at 1 EUR = 1.5 USD"


def test_a_wide_table_is_proposed_as_a_grid_and_its_message_by_its_texts(open_page):
    content = (
        "Case no.,What was wanted,GPT 4o (May) right,GPT 4o (May) correct,GPT 4o (May) $\n"
        "1,Please fix the build,x,yes,$0.02\n2,Please write a test,,no,$0.03\n"
    )
    app = uploaded(importing(open_page), content)
    assert app.selectbox(key=next(k for k in keys(app) if "map.text" in k)).value
    grid = next(one.value for one in app.data_editor if "quality" in one.value)
    assert grid["id"].tolist() == ["gpt-4o-may"]
    assert grid["cost_usd"].tolist() == ["GPT 4o (May) $"]
    app.button(key="eval_sets.import").click().run()
    assert "Kept 2 queries with 2 outcomes of 1 model" in shown(app)


def keys(app):
    return [str(box.key) for box in app.selectbox]


HEADER = "query_id,text,model,quality,cost_usd\n"


def test_words_for_quality_are_proposed_shown_and_read(open_page):
    lines = "".join(f"q{i};Fix {i};small;{'pass' if i else 'fail'};1\n" for i in range(3))
    app = uploaded(importing(open_page), (HEADER + lines).replace(";", ","))
    written = next(one.value for one in app.data_editor if "written" in one.value)
    assert written["written"].tolist()[0] == "words"
    app.button(key="eval_sets.import").click().run()
    assert "quality was read from words: 2 x pass as 1, 1 x fail as 0" in shown(app)


def test_percentages_are_sent_to_the_grid_on_the_page(open_page):
    app = uploaded(importing(open_page), HEADER + "q1,Fix,small,83,1\n")
    app.button(key="eval_sets.import").click().run()
    told = app.error[0].value.replace("\\", "")
    assert "Written: percent" in told
    assert "--" not in told


def test_a_large_file_is_imported_in_the_background(open_page, workspace):
    row = "q{},{},small,1,0.01\n"
    text = "Please mend the reconnect code. " * 3_000
    app = uploaded(importing(open_page), HEADER + "".join(row.format(i, text) for i in range(60)))
    app.button(key="eval_sets.import").click().run()
    (task,) = [one for one in replays.tasks()._tasks.values() if one.write is not None]
    while task.running:
        time.sleep(0.1)
    assert (task.error, task.done) == ("", task.total)
    assert task.total == 5
    assert "Kept 60 queries with 60 outcomes of 1 model" in shown(app.run())
    assert load_evalset(workspace / "evalsets" / "mine").n == 60


def sent(app, key, *files):
    app.file_uploader(key=key).set_value(
        [(name, content.encode(), "application/json") for name, content in files]
    )
    return app.run()


def test_a_harness_is_recognised_and_asks_for_the_score_and_the_model_of_each_file(
    open_page, workspace
):
    rows = [
        sample(i, filter=name, exact_match=int(name == "strict"), metrics=["exact_match"])
        for i in range(3)
        for name in ("strict", "flexible")
    ]
    files = [
        (f"samples_gsm8k_{m}.jsonl", "\n".join(map(json.dumps, rows)) + "\n") for m in ("a", "b")
    ]
    app = sent(importing(open_page), "eval_sets.files", *files)
    app.button(key="eval_sets.fitting").click().run()
    assert not app.exception
    score = next(box for box in app.selectbox if box.label == "Score that is the quality *")
    assert score.options == ["exact_match,strict", "exact_match,flexible"]
    score.set_value("exact_match,flexible").run()
    ids = next(one.value for one in app.data_editor if "name" in one.value)
    assert ids["name"].tolist() == ["a", "b"]
    app.button(key="eval_sets.import").click().run()
    assert "Kept 3 queries with 6 outcomes of 2 models" in shown(app)
    left_out = app.dataframe[0].value
    assert left_out["count"].tolist() == [6]
    assert left_out["why"][0].startswith("scored as exact_match,strict, not as")


def test_labels_of_feedback_are_proposed_and_mapped(open_page, workspace):
    app = importing(open_page)
    app.selectbox(key="eval_sets.format").set_value(Kind.LANGFUSE).run()
    seen = [generation(i) for i in range(4)]
    votes = [
        {"trace_id": one["trace_id"], "observation_id": one["id"], "name": "verdict",
         "value": 0, "string_value": ("good", "bad")[i % 2], "data_type": "CATEGORICAL"}
        for i, one in enumerate(seen)
    ]  # fmt: skip
    app = sent(app, "eval_sets.files", ("o.jsonl", "\n".join(map(json.dumps, seen))))
    app = sent(app, "eval_sets.more.langfuse", ("s.jsonl", "\n".join(map(json.dumps, votes))))
    assert not app.exception
    labels = next(one.value for one in app.data_editor if "label" in one.value)
    assert labels.to_dict("list") == {
        "label": ["good", "bad"], "count": [2, 2], "quality": ["1", "0"]
    }  # fmt: skip
    app.button(key="eval_sets.import").click().run()
    assert load_evalset(workspace / "evalsets" / "langfuse_export").quality.sum() == 2
