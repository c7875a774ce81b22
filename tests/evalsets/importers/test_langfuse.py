"""Langfuse: which generation a score judges, and which of several scores counts."""

import json

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse
from tests.evalsets.importers.test_traffic import generation, jsonl, outcomes, skipped


def score(value, **changes):
    one = {"name": "verdict", "trace_id": "t1", "observation_id": "o1", "value": value}
    return one | changes


def read(folder, observations, scores, **given):
    files = [jsonl(folder / "o.jsonl", observations)]
    return read_langfuse(files, Given([jsonl(folder / "s.jsonl", scores)], **given))


def qualities(draft):
    return {query: quality for (query, _), (quality, _) in outcomes(draft).items()}


def test_the_last_generation_of_a_trace_is_the_one_that_began_last(tmp_path):
    """The API lists the newest first."""
    times = {2: "2026-04-10T12:00:05Z", 1: "2026-04-10T12:00:00Z"}
    rows = [generation(n, trace_id="t", start_time=start) for n, start in times.items()]
    draft = read(tmp_path, rows, [score(1, trace_id="t", observation_id=None)])
    assert qualities(draft) == {"o2": 1}
    assert skipped(draft) == {"not the last generation of its trace": 1}


def test_a_score_of_a_span_is_that_of_its_last_generation(tmp_path):
    rows = [
        generation(9, type="AGENT"),
        generation(8, type="SPAN", parent_observation_id="o9"),
        generation(1, parent_observation_id="o8"),
        generation(2, parent_observation_id="o8"),
        generation(3, parent_observation_id="o9"),
        generation(7, type="TOOL"),
    ]
    scores = [score(0, observation_id="o9"), score(1, observation_id="o8")]
    scores += [score(0.5, observation_id="o7")]
    draft = read(tmp_path, rows, scores)
    assert qualities(draft) == {"o2": 1, "o3": 0}
    assert skipped(draft) == {
        "no generation (a span or an event)": 3,
        "not the last generation of its span": 1,
        "score of an observation without a generation in these files": 1,
    }


def test_of_several_scores_of_one_generation_the_newest_counts(tmp_path):
    scores = [score(1, updatedAt="2026-05-02"), score(0, updatedAt="2026-05-01")]
    draft = read(tmp_path, [generation(1)], scores)
    assert qualities(draft) == {"o1": 1}
    assert any("the newest counts" in warning for warning in draft.report.warnings)


@pytest.mark.parametrize("subject", [
    {"kind": "observation", "id": "o1", "traceId": "t1"}, {"kind": "trace", "id": "t1"}
])  # fmt: skip
@pytest.mark.parametrize(("kind", "value"), [("BOOLEAN", True), ("NUMERIC", 1)])
def test_scores_of_version_3_say_in_an_object_what_they_judge(tmp_path, subject, kind, value):
    one = {"name": "verdict", "dataType": kind, "value": value, "subject": subject}
    draft = read(tmp_path, [generation(1)], [one])
    assert qualities(draft) == {"o1": 1}


def test_a_label_that_stands_as_the_value_is_to_be_given_its_worth(tmp_path):
    scores = [
        score(value, observation_id=f"o{n}", dataType="CATEGORICAL")
        for n, value in ((1, "good"), (2, "bad"))
    ]
    rows = [generation(1), generation(2)]
    with pytest.raises(EvalSetError, match="--label good=1 --label bad=0|--label bad=0"):
        read(tmp_path, rows, scores)
    draft = read(tmp_path, rows, scores, labels={"good": 1, "bad": 0})
    assert qualities(draft) == {"o1": 1, "o2": 0}


def test_a_label_that_was_not_exported_is_no_label_that_all_of_them_share(tmp_path):
    scores = [score(n, observation_id=f"o{n}", dataType="CATEGORICAL") for n in (0, 1)]
    with pytest.raises(EvalSetError) as refused:
        read(tmp_path, [generation(0), generation(1)], scores)
    assert "2 x no feedback" in str(refused.value)
    assert "--label" not in str(refused.value)


def test_what_somebody_would_have_answered_is_no_score(tmp_path):
    correction = score(0, dataType="CORRECTION", stringValue="the right answer")
    draft = read(tmp_path, [generation(1)], [score(1), correction | {"name": "output"}])
    assert qualities(draft) == {"o1": 1}


def test_traces_that_hold_their_observations_and_scores_need_no_other_file(tmp_path):
    """As the API gives one trace."""
    inner = [
        {k: v for k, v in generation(n, startTime=f"2026-04-10T12:00:0{n}Z").items()
         if k not in ("trace_id", "session_id")}
        for n in (1, 2)
    ]  # fmt: skip
    trace = {"id": "t1", "sessionId": "s1", "observations": inner, "input": "?", "totalCost": 1}
    trace["scores"] = [{"name": "verdict", "traceId": "t1", "dataType": "NUMERIC", "value": 0.5}]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trace, indent=2))
    assert qualities(read_langfuse([path])) == {"o2": 0.5}
    draft = read_langfuse([jsonl(tmp_path / "t.jsonl", [trace])])
    assert qualities(draft) == {"o2": 0.5}
    assert draft.queries["conversation_id"].tolist() == ["s1"]
    assert draft.cost_usd.tolist() == [[0.5]]


def test_a_json_list_of_a_log_may_be_as_large_as_an_import(tmp_path):
    path = tmp_path / "o.json"
    path.write_text(json.dumps([generation(1)]) + " " * (101 << 20))
    scores = jsonl(tmp_path / "s.jsonl", [score(1)])
    assert qualities(read_langfuse([path], Given([scores]))) == {"o1": 1}


def test_characters_are_no_tokens_and_a_masked_message_is_none(tmp_path):
    rows = [
        generation(1, usage_details={"input": 2000, "output": 300, "unit": "CHARACTERS"}),
        generation(2, input="<fully masked due to failed mask function>"),
        generation(3, usage_details={"input": 20, "output": 3, "unit": "TOKENS"}),
    ]
    draft = read(tmp_path, rows, [score(1, observation_id=f"o{n}") for n in (1, 2, 3)])
    assert draft.queries["query_id"].tolist() == ["o1", "o3"]
    np.testing.assert_array_equal(draft.extras["input_tokens"].ravel(), [np.nan, 20])
    assert skipped(draft) == {"the message was redacted when it was stored": 1}


def test_missing_scores_and_rows_of_traces_are_named(tmp_path):
    path = jsonl(tmp_path / "o.jsonl", [generation(1)])
    with pytest.raises(EvalSetError, match=r"has no scores .*--scores FILE"):
        read_langfuse([path])
    trace = {k: v for k, v in generation(1).items() if k != "type"}
    with pytest.raises(EvalSetError, match="give these, not the traces"):
        read(tmp_path, [trace], [score(1)])


def test_tokens_of_a_table_from_langfuses_pages_are_read(tmp_path):
    row = generation(1, usage_details="", inputTokens=2000, outputTokens=300, totalTokens=2300)
    draft = read(tmp_path, [row], [score(1)])
    assert draft.extras["input_tokens"].tolist() == [[2000]]
    assert json.dumps(draft.extras["output_tokens"].tolist()) == "[[300.0]]"
