"""promptfoo's results: what its assertions judged, whichever version wrote the file."""

import json

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.harness.adapters import read_harness
from tests.evalsets.importers.test_harness import outcomes


def row(test, provider, **changes):
    """One answer as version 3 writes it."""
    question = f"Fix bug {test}"
    one = {
        "testIdx": test, "promptIdx": 0, "testCase": {"vars": {"q": question}},
        "vars": {"q": question}, "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"Answer: {question}", "label": "x"},
        "response": {"output": "ok", "tokenUsage": {"prompt": 40, "completion": 20, "total": 60}},
        "score": 1, "success": True, "latencyMs": 1200, "cost": 0.0012, "namedScores": {},
        "failureReason": 0, "gradingResult": {"pass": True, "score": 1, "reason": "passed"},
    }  # fmt: skip
    return one | changes


def written(path, rows, version=3):
    path.write_text(json.dumps({"results": {"version": version, "results": rows}}))
    return path


UNJUDGED = {"pass": True, "score": 1, "reason": "No assertions"}


def test_answers_that_no_assertion_judged_are_counted_and_not_taken_for_right(tmp_path):
    rows = [row(0, model, gradingResult=UNJUDGED) for model in "ab"]
    path = written(tmp_path / "r.json", [*rows, row(1, "a", score=0)])
    draft = read_harness([path])
    assert outcomes(draft) == {("test-1", "a"): 0}
    assert str(draft.report.dropped[0]).startswith("2 x no assertion judged the answer")
    with pytest.raises(EvalSetError, match="no assertion judged the answer"):
        read_harness([written(tmp_path / "none.json", rows)])


def test_answers_of_a_csv_that_no_assertion_judged_are_no_outcomes(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text(
        "q,[a] Ask {{q}},Status,Score,Named Scores,Grader Reason,Comment\n"
        "one,yes,PASS,1.00,{},No assertions,\ntwo,no,FAIL,0.00,{},x,\n"
    )
    assert outcomes(read_harness([path])) == {("test-1", "a"): 0}


def test_an_empty_answer_that_fails_an_assertion_is_no_error_of_the_provider(tmp_path):
    empty = {"output": "", "tokenUsage": {}}
    failed = {"score": 0, "success": False, "response": empty, "error": "Expected output"}
    rows = [
        row(0, "a", failureReason=1, **failed),
        {k: v for k, v in row(0, "b", **failed).items() if k != "failureReason"},
        row(0, "c", failureReason=2, error="429", response=None, gradingResult=None),
    ]
    draft = read_harness([written(tmp_path / "r.json", rows)])
    assert outcomes(draft) == {("test-0", "a"): 0, ("test-0", "b"): 0}


def test_files_of_version_2_have_a_query_for_each_set_of_variables(tmp_path):
    without = ("testIdx", "promptIdx", "testCase", "failureReason")
    rows = [
        {k: v for k, v in row(test, model, score=score).items() if k not in without}
        for test, model, score in ((0, "a", 1), (1, "a", 0), (1, "b", 1), (0, "b", 0))
    ]
    draft = read_harness([written(tmp_path / "r.json", rows, version=2)])
    assert draft.queries["text"].tolist() == ["Answer: Fix bug 0", "Answer: Fix bug 1"]
    np.testing.assert_array_equal(draft.quality, [[1, 0], [0, 1]])


def test_providers_with_a_prompt_of_their_own_share_the_variables_of_the_test(tmp_path):
    rows = [
        row(test, model, score=test, prompt={"raw": f"{model} style: Fix bug {test}"})
        for test in (0, 1) for model in "ab"
    ]  # fmt: skip
    path = written(tmp_path / "r.json", rows)
    draft = read_harness([path])
    assert draft.queries["text"].tolist() == ["Fix bug 0", "Fix bug 1"]
    assert draft.quality.tolist() == [[0, 0], [1, 1]]
    assert "each provider has a prompt of its own in 2 tests" in draft.report.warnings[0]
    mapped = read_harness([path], Given(text_path="vars.q"))
    assert mapped.queries["text"].tolist() == ["Fix bug 0", "Fix bug 1"]


def test_one_prompt_has_one_id_whichever_providers_were_tried_with_it(tmp_path):
    rows = [row(0, "a", prompt={"raw": f"style {i}"}, promptIdx=i) for i in (0, 1)]
    rows.append(row(0, "b", prompt={"raw": "style 1"}, promptIdx=2, score=0))
    draft = read_harness([written(tmp_path / "r.json", rows)])
    assert outcomes(draft) == {
        ("test-0-prompt-0", "a"): 1, ("test-0-prompt-1", "a"): 1, ("test-0-prompt-1", "b"): 0
    }  # fmt: skip


@pytest.mark.parametrize("without", [(), ("testIdx",)])
def test_tests_of_several_files_are_joined_by_their_variables(tmp_path, without):
    """A run for each model, of which one has tests that the other has not."""
    files = [
        written(tmp_path / f"{model}.json", [
            {k: v for k, v in row(0, model, score=score).items() if k not in without},
            {k: v for k, v in row(
                1, model, prompt={"raw": f"Only {model}"}, testCase={"vars": {"q": model}}
            ).items() if k not in without},
        ])
        for model, score in (("a", 1), ("b", 0))
    ]  # fmt: skip
    draft = read_harness(files)
    found = dict(zip(draft.queries["text"], draft.quality.tolist(), strict=True))
    assert found["Answer: Fix bug 0"] == [1, 0]
    np.testing.assert_array_equal(found["Only a"], [1, np.nan])
    np.testing.assert_array_equal(found["Only b"], [np.nan, 1])


def test_words_of_each_model_own_are_refused_with_the_place_that_all_share(tmp_path):
    files = [
        written(tmp_path / f"{model}.json", [row(0, model, prompt={"raw": f"{model}: Fix bug 0"})])
        for model in "ab"
    ]
    with pytest.raises(EvalSetError, match=r"1 query has other words for each model .*--map text="):
        read_harness(files)
    assert read_harness(files, Given(text_path="vars.q")).queries["text"].tolist() == ["Fix bug 0"]
