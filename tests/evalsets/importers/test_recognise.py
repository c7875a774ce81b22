"""A file is recognised by what it holds, whatever it is called."""

import json

import pandas as pd
import pytest

from hydra_core.evalsets.importers.formats import FORMATS, Kind, looks_like, read
from hydra_core.evalsets.importers.given import AskNames, Given, NamesKnown

ARENA = {"global_index": "a_1", "question": "q", "llm_selected": "gpt 5", "token_usage": {},
         "evaluation_result": {"score": 1, "inference_cost": 0.1}}  # fmt: skip
BENCH = {"model_name": "m", "dataset_name": "d", "records": [{"index": 0, "score": 1}]}
SPEND = {"request_id": "r", "model": "gpt-5", "spend": 0.1, "messages": "[]"}
FILES = {
    "sheet.csv": ("query_id,text,model,quality\n", Kind.TABLE),
    "arena.jsonl": (json.dumps(ARENA), Kind.ROUTERARENA),
    "bench.json": (json.dumps(BENCH), Kind.LLMROUTERBENCH),
    "spend.jsonl": (json.dumps(SPEND), Kind.SPEND_LOGS),
    "spend.csv": (",".join(SPEND), Kind.SPEND_LOGS),
    "lfuse.jsonl": ('{"id": "o", "provided_model_name": "x"}', Kind.LANGFUSE),
    "api.json": ('{"data": [{"traceId": "t", "usageDetails": {}}]}', Kind.LANGFUSE),
    "scores.json": (
        '{"data": [{"dataType": "NUMERIC", "subject": {"traceId": "t"}}]}',
        Kind.LANGFUSE,
    ),
    "helicone.jsonl": (
        '{"request_id": "r", "response_status": 200, "request_body": {}}',
        Kind.HELICONE,
    ),
    "spans.jsonl": ('{"resourceSpans": []}', Kind.SPANS),
    "logs.jsonl": ('{"resourceLogs": []}', Kind.SPANS),
    "annotations.csv": ("span_id,name,annotator_kind,score\n", Kind.SPANS),
    "phoenix.csv": ("context.span_id,attributes.llm.model_name\n", Kind.SPANS),
    "boards.json": ('{"leaderboards": []}', Kind.SWEBENCH),
    "lcb.json": ('{"performances": [{"pass@1": 1}]}', Kind.LIVECODEBENCH),
    "lm.csv": ("prompt,gpt-4,gpt-4_response\n", Kind.ROUTELLM),
    "log.jsonl": ('{"decision_id": "d", "propensity": 1.0}', Kind.LOG),
    "samples.jsonl": ('{"doc_id": 0, "filtered_resps": []}', Kind.HARNESS),
    "results.json": ('{"provider": {}, "testCase": {}, "promptId": "x"}', Kind.HARNESS),
    "v2.json": ('{"provider": {}, "namedScores": {}}', Kind.HARNESS),
    "results.csv": ("q,[openai:gpt-5] Answer: {{q}}\n", Kind.HARNESS),
    "state.json": ('{"adapter_spec": {}, "request_states": []}', Kind.HARNESS),
    "sheet2.csv": ("sep=;\nquery_id;text;model;quality\n", Kind.TABLE),
    "other.json": ('{"a": 1}', None),
    "odd.txt": ("query_id,text", None),
    "empty.csv": ("", None),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_recognised_by_its_content(tmp_path, name):
    content, kind = FILES[name]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert looks_like(path) is kind


def test_a_parquet_table_is_recognised(tmp_path):
    pd.DataFrame({"query_id": ["a"], "text": ["b"]}).to_parquet(tmp_path / "x.parquet")
    assert looks_like(tmp_path / "x.parquet") is Kind.TABLE


def test_every_format_has_an_example_and_each_is_recognised():
    assert set(FORMATS) == set(Kind)
    assert set(Kind) == {kind for _, kind in FILES.values() if kind is not None}


def test_the_names_of_models_are_asked_for_without_importing(tmp_path):
    path = tmp_path / "arena.jsonl"
    path.write_text(json.dumps(ARENA), encoding="utf-8")
    with pytest.raises(NamesKnown) as found:
        read(Kind.ROUTERARENA, [path], Given(models=AskNames()))
    assert found.value.names == ("gpt 5",)
    draft = read(Kind.ROUTERARENA, [path], Given(models={"gpt-5": "gpt 5"}))
    assert draft.models == ("gpt-5",)
