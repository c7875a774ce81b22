"""Tables without ids, nested records, shares such as 3/5 and check marks."""

import contextlib
import json

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.mapping import parse_map
from hydra_core.evalsets.importers.reading.json_document import value_at
from hydra_core.evalsets.importers.table import model_names, raw_rows, read_table

OUTCOMES = {"q0": {"a": (1, 0.02), "b": (0, 0.01)}, "q1": {"a": (0.5, 0.03), "b": (1, 0.04)}}
WIDE = "prompt,a,b,a USD,b USD\nHi,✅,❌,.02,.01\nHo,✅,✅,.03,.04\n"
LONG = "question,llm,passed,price\nHi,a,yes,.02\nHi,b,no,.01\nHo,a,yes,.03\nHo,b,yes,.04\n"


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text", "ids", "says"),
    [("w.csv", WIDE, ["2", "3"], "its line"), ("l.csv", LONG, ["Hi", "Ho"], "its text (question)")],
)
def test_a_single_table_without_ids_is_read_and_says_so(tmp_path, name, text, ids, says):
    draft = read_table([write(tmp_path, name, text)])
    assert list(draft.queries["query_id"]) == ids
    np.testing.assert_array_equal(draft.quality, [[1, 0], [1, 1]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.02, 0.01], [0.03, 0.04]])
    assert any(
        f"no column has ids of queries: each query has {says}" in w for w in draft.report.warnings
    )


def test_equal_texts_of_a_wide_table_stay_two_queries(tmp_path):
    draft = read_table([write(tmp_path, "w.csv", WIDE.replace("Ho", "Hi"))])
    assert list(draft.queries["text"]) == ["Hi", "Hi"]


def test_a_text_answered_twice_by_a_model_is_not_guessed_apart(tmp_path):
    again = LONG + "Hi,a,no,.05\n"
    with pytest.raises(EvalSetError, match=r"line 6 \(before: l.csv line 2\)"):
        read_table([write(tmp_path, "l.csv", again)])


def test_an_id_of_each_answer_is_none_of_queries(tmp_path):
    head = "id,prompt,model,score,cost\n"
    rows = "1,Hi,a,1,.1\n2,Hi,b,0,.2\n3,Ho,a,1,.1\n4,Ho,b,1,.2\n"
    path = write(tmp_path, "x.csv", head + rows)
    draft = read_table([path])
    assert draft.queries["query_id"].tolist() == ["Hi", "Ho"]
    np.testing.assert_array_equal(draft.quality, [[1, 0], [1, 1]])
    assert draft.report.unread == ("id",)
    assert len(read_table([path], parse_map(["query_id=id"])).queries) == 4  # as it was said
    many = [f"{m}{i},Text {i},{m},1,.1\n" for m in "ab" for i in range(1_200)]  # model by model
    assert len(read_table([write(tmp_path, "z.csv", head + "".join(many))]).queries) == 1_200
    for more in ("5,Hu,a,1,.1\n", "5,Hi,a,0,.1\n", "4,Hu,a,1,.1\n4,Hu,b,1,.1\n"):
        path = write(tmp_path, "y.csv", head + rows.replace("4,Ho,b", "4,Hu,b") + more)
        with contextlib.suppress(EvalSetError):  # of an id with two texts
            assert read_table([path]).queries["query_id"].tolist()[0] == "1"


@pytest.mark.parametrize("column", ["trial", "Attempt", "epoch", "run_id", "sample_index", "seed"])
def test_attempts_that_a_column_counts_are_averaged(tmp_path, column):
    head = f"id,prompt,model,{column},score,cost,output_tokens\n"
    rows = ["q,Hi,a,1,1,.1,10", "q,Hi,a,2,0,.3,30", "q,Hi,a,3,0,.2,", "q,Hi,a,4,,.2,5"]
    rows += ["q,Hi,b,1,1,.2,7", "r,Ho,a,1,1,.1,9", "r,Ho,a,2,1,.1,9"]
    draft = read_table([write(tmp_path, "x.csv", head + "\n".join(rows) + "\n")])
    np.testing.assert_allclose(draft.quality, [[1 / 3, 1], [1, np.nan]])
    np.testing.assert_allclose(draft.cost_usd, [[0.2, 0.2], [0.1, np.nan]])
    np.testing.assert_array_equal(draft.extras["output_tokens"], [[np.nan, 7], [9, np.nan]])
    assert "2 outcomes are the mean of several attempts (up to 3)" in draft.report.warnings
    assert draft.report.unread == ()
    twice = head + "\n".join([*rows, "q,Hi,a,2,1,.3,30"]) + "\n"
    with pytest.raises(EvalSetError, match="repeated attempts are averaged by a column"):
        read_table([write(tmp_path, "y.csv", twice)])


def test_attempts_of_a_wide_table_are_averaged_too(tmp_path):
    rows = "id,prompt,trial,a score,a cost,b score,b cost\nq,Hi,1,1,.1,0,.2\nq,Hi,2,0,.1,0,.4\n"
    draft = read_table([write(tmp_path, "x.csv", rows)])
    np.testing.assert_allclose(draft.quality, [[0.5, 0]])
    np.testing.assert_allclose(draft.cost_usd, [[0.1, 0.3]])


def test_files_that_are_joined_need_ids(tmp_path):
    files = [write(tmp_path, "a.csv", WIDE), write(tmp_path, "b.csv", WIDE)]
    with pytest.raises(EvalSetError, match="--map query_id=COLUMN"):
        read_table(files)


def nested(form):
    for query, models in OUTCOMES.items():
        cells = {m: {"score": q, "cost": c} for m, (q, c) in models.items()}
        listed = [{"model": m, **cell} for m, cell in cells.items()]
        yield {
            "id": query,
            "input": f"Text {query}",
            "results": cells if form == "wide" else listed,
        }


@pytest.mark.parametrize("form", ["wide", "list"])
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_nested_records_name_models_without_what_holds_them(tmp_path, form, ending):
    rows = list(nested(form))
    text = json.dumps(rows) if ending == "json" else "".join(json.dumps(r) + "\n" for r in rows)
    draft = read_table([write(tmp_path, f"x.{ending}", text)])
    assert draft.models == ("a", "b")
    np.testing.assert_array_equal(draft.quality, [[1, 0], [0.5, 1]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.02, 0.01], [0.03, 0.04]])


def test_a_row_of_objects_is_a_query_and_a_model(tmp_path):
    """Facts in objects of their own: neither `usage` nor `metrics` is a model."""
    rows = [
        {
            "sample": {"id": query, "input": [{"role": "user", "content": f"Text {query}"}]},
            "model": model,
            "answer": {"id": f"a-{model}", "text": "An answer"},
            "metrics": {"pass": quality > 0.5, "judge": {"confidence": 0.3}},
            "usage": {"prompt_tokens": 7, "completion_tokens": 9, "cost": cost},
        }
        for query, models in OUTCOMES.items()
        for model, (quality, cost) in models.items()
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    draft = read_table([write(tmp_path, "x.jsonl", text)])
    assert draft.models == ("a", "b")
    assert draft.queries["query_id"].tolist() == ["q0", "q1"]
    assert draft.queries["text"].tolist() == ["Text q0", "Text q1"]
    np.testing.assert_array_equal(draft.quality, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.02, 0.01], [0.03, 0.04]])
    np.testing.assert_array_equal(draft.extras["output_tokens"], [[9, 9], [9, 9]])


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_objects_in_cells_are_read_by_their_paths_and_shown_before(tmp_path, ending):
    """As Braintrust, LangSmith and others export them: JSON in the cells of a CSV."""
    rows = [
        {"query": query, "input": {"question": f"Text {query}"}, "metadata": {"model": model},
         "scores": {"Fact": quality}, "metrics": {"estimated_cost": cost}, "tags": ["x"]}
        for query, models in OUTCOMES.items()
        for model, (quality, cost) in models.items()
    ]  # fmt: skip
    path = tmp_path / f"x.{ending}"
    if ending == "json":
        path.write_text(json.dumps(rows))
    else:
        frame = pd.DataFrame(rows)
        if ending == "csv":
            frame.map(lambda cell: cell if isinstance(cell, str) else json.dumps(cell)).to_csv(
                path, index=False
            )
        else:
            frame.to_parquet(path, index=False)
    said = parse_map(["query_id=query", "text=input.question", "quality=scores.Fact"])
    draft = read_table([path], said)
    assert draft.models == model_names([path], said) == ("a", "b")
    assert draft.queries["text"].tolist() == ["Text q0", "Text q1"]
    np.testing.assert_array_equal(draft.quality, [[1, 0], [0.5, 1]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.02, 0.01], [0.03, 0.04]])
    head = raw_rows(path, 2)
    assert head["metrics.estimated_cost"].tolist() == ["0.02", "0.01"]
    with pytest.raises(EvalSetError, match=r"'scores.Fac'.*did you mean 'scores.Fact'"):
        read_table([path], parse_map(["quality=scores.Fac"]))


def test_an_object_is_no_quality_of_a_model(tmp_path):
    costs = {"gpt-5": {"prompt_tokens_total_cost": 0.001}}
    row = {"id": "q", "inputs": {"prompt": "Hi"}, "output": {"correct": True},
           "summary": {"weave": {"costs": costs}}}  # fmt: skip
    path = write(tmp_path, "x.jsonl", json.dumps(row) + "\n")
    with pytest.raises(EvalSetError, match=r"cost_usd: the column is missing"):
        read_table([path])


def test_dots_of_model_names_are_no_paths(tmp_path):
    text = "id,prompt,gpt-4.1 score,gpt-4.1 cost,gpt-4.5 score,gpt-4.5 cost\nq,Hi,1,.1,0,.2\n"
    assert read_table([write(tmp_path, "x.csv", text)]).models == ("gpt-4.1", "gpt-4.5")


def test_values_under_names_with_dots_are_read(tmp_path):
    results = {m: {"score": s, "cost": 0.1} for m, s in (("gpt-4", 0), ("gpt-4.1", 1), ("o3", 1))}
    (tmp_path / "x.json").write_text(json.dumps([{"id": "q", "prompt": "p", "results": results}]))
    draft = read_table([tmp_path / "x.json"])
    assert dict(zip(draft.models, draft.quality[0], strict=True)) == {
        "gpt-4": 0, "gpt-4.1": 1, "o3": 1
    }  # fmt: skip
    row = {"a.b": {"c": [{"d.e": 1}, 2]}, "a": {"x": 3}}
    found = [value_at(row, path) for path in ("a.b.c.0.d.e", "a.b.c.1", "a.x", "a.b.c.2", "a.y")]
    assert found == [1, 2, 3, None, None]


def test_objects_of_two_lists_are_refused(tmp_path):
    row = {"id": "q", "text": "Hi", "a": [{"model": "m", "score": 1}], "b": [{"cost": 1.0}]}
    path = write(tmp_path, "x.jsonl", json.dumps(row) + "\n")
    with pytest.raises(EvalSetError, match="map values of one list"):
        read_table([path], parse_map(["cost_usd=b[].cost"]))


def test_shares_are_divided_and_too_large_ones_refused(tmp_path):
    text = "id,prompt,a passed,b passed\nq0,Hi,3/5,0/5\nq1,Ho,5/5,1/4\n"
    draft = read_table([write(tmp_path, "x.csv", text)], need_cost=False)
    np.testing.assert_array_equal(draft.quality, [[0.6, 0], [1, 0.25]])
    assert "a passed was read as shares, such as 3/5" in draft.report.warnings
    with pytest.raises(EvalSetError, match="not from 0 to 1"):
        read_table([write(tmp_path, "y.csv", text.replace("3/5", "6/5"))], need_cost=False)
