"""Spans of model calls, and the feedback and messages that other rows hold of them."""

import json

import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.traffic.spans import read_spans
from tests.evalsets.importers.test_traffic import jsonl, outcomes, skipped

MODEL = "gpt-5.4-mini"
GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": MODEL,
    "gen_ai.usage.input_tokens": 50000,
    "gen_ai.usage.output_tokens": 300,
}
PHOENIX = {
    "context.span_id": "a",
    "span_kind": "LLM",
    "attributes.llm.model_name": MODEL,
    "attributes.llm.token_count.prompt": 50000,
    "attributes.llm.token_count.completion": 300,
    "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Why?"}],
}


def typed(facts):
    """Attributes as OTLP writes them."""
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [{"key": name, "value": {kinds[type(value)]: value}} for name, value in facts.items()]


def asked(text):
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])


def judged(worth, **facts):
    named = {"gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": worth}
    return {"name": "gen_ai.evaluation.result", "attributes": {**named, **facts}}


def span(name="a", events=(), **facts):
    return {"spanId": name, "attributes": {**GENAI, **facts}, "events": list(events)}


def logs(*records):
    """An export request of log records: (event, span id, attributes, body)."""
    listed = [
        {"eventName": event, "spanId": name, "attributes": typed(facts)}
        | ({"body": {"kvlistValue": {"values": typed(body)}}} if body else {})
        for event, name, facts, body in records
    ]
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": listed}]}]}


@pytest.mark.parametrize("logs_first", [True, False])
def test_log_records_give_spans_their_feedback_and_their_messages(tmp_path, logs_first):
    """By the id of the span, or of the answer where no span is named."""
    records = logs(
        ("gen_ai.evaluation.result", "a", judged(0.5)["attributes"], {}),
        ("gen_ai.client.inference.operation.details", "a",
         {"gen_ai.input.messages": asked("From a log")}, {}),
        ("gen_ai.evaluation.result", "",
         judged(1.0, **{"gen_ai.response.id": "r2"})["attributes"], {}),
        ("gen_ai.user.message", "b", {}, {"content": "From a body"}),
    )  # fmt: skip
    rows = [span("a"), span("b", **{"gen_ai.response.id": "r2"})]
    spans, beside = jsonl(tmp_path / "s.jsonl", rows), jsonl(tmp_path / "l.jsonl", [records])
    draft = read_spans([beside, spans] if logs_first else [spans, beside])
    assert draft.queries["text"].tolist() == ["From a log", "From a body"]
    assert draft.quality.tolist() == [[0.5], [1.0]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps({"data": [
            {"span_id": "a", "name": "correct", "result": {"label": "no", "score": 0.25}}
        ]})),
        ("a.csv", "span_id,annotation_name,label,score\na,correct,no,0.25\n"),
    ],
)  # fmt: skip
def test_annotations_of_phoenix_stand_in_a_file_beside_its_spans(tmp_path, name, content):
    path = jsonl(tmp_path / "spans.jsonl", [PHOENIX])
    with pytest.raises(EvalSetError, match=r"no model call has feedback .*span_id in a file"):
        read_spans([path])
    beside = tmp_path / name
    beside.write_text(content)
    assert read_spans([path, beside]).quality.tolist() == [[0.25]]


def test_a_table_of_spans_has_a_column_for_each_evaluation(tmp_path):
    row = PHOENIX | {"eval.correct.score": 0.75, "eval.correct.label": "mostly"}
    assert read_spans([jsonl(tmp_path / "s.jsonl", [row])]).quality.tolist() == [[0.75]]


@pytest.mark.parametrize(
    ("facts", "column", "expected"),
    [
        ({"llm.token_count.prompt_details.cache_input": 48000}, "cached_input_tokens", 48000),
        ({"ai.usage.inputTokenDetails.cacheReadTokens": 48000}, "cached_input_tokens", 48000),
        ({"ai.usage.outputTokenDetails.reasoningTokens": 900}, "output_tokens", 1200),
        ({"gen_ai.usage.reasoning_tokens": 100, "llm.usage.total_tokens": 50400},
         "output_tokens", 400),
        ({"gen_ai.cost.total_cost": 0.0249}, "cost_usd", 0.0249),
        ({"litellm.cost.total": 0.0249}, "cost_usd", 0.0249),
        ({"gen_ai.usage.total_cost": 0.0249}, "cost_usd", 0.0249),
    ],
)  # fmt: skip
def test_counts_and_costs_are_read_under_the_names_of_each_writer(
    tmp_path, facts, column, expected
):
    row = span(events=[judged(1)], **{"gen_ai.input.messages": asked("Why?")}, **facts)
    draft = read_spans([jsonl(tmp_path / "s.jsonl", [row])])
    found = draft.cost_usd if column == "cost_usd" else draft.extras[column]
    assert found.tolist() == [[expected]]


@pytest.mark.parametrize(
    "facts",
    [
        {"llm.prompts": ["Why?"]},
        {"llm.prompts.0.prompt.text": "Why?"},
        {"gen_ai.prompt.0.user": "Why?"},
        {"events": json.dumps([{"event.name": "gen_ai.user.message", "role": "user",
                                "content": "Why?"}, {"event.name": "gen_ai.choice"}])},
        {"request_data": json.dumps({"messages": [{"role": "user", "content": "Why?"}]})},
    ],
)  # fmt: skip
def test_messages_are_read_where_each_writer_keeps_them(tmp_path, facts):
    row = span(events=[judged(1)])
    row["attributes"] |= facts
    draft = read_spans([jsonl(tmp_path / "s.jsonl", [row])])
    assert draft.queries["text"].tolist() == ["Why?"]


def test_scores_that_differ_or_judge_no_span_of_the_files_are_named(tmp_path):
    """Also those that name neither a span nor an answer, which are no other span's."""
    message = {"gen_ai.input.messages": asked("Why?")}
    rows = [span("a", events=[judged(0), judged(1)], **message), span("b", **message)]
    records = logs(
        ("gen_ai.evaluation.result", "c", judged(0.5)["attributes"], {}),
        ("gen_ai.evaluation.result", "", judged(0.5)["attributes"], {}),
    )
    files = [jsonl(tmp_path / "s.jsonl", rows), jsonl(tmp_path / "l.jsonl", [records])]
    draft = read_spans(files)
    assert {query: quality for (query, _), (quality, _) in outcomes(draft).items()} == {"a": 1}
    assert "1 score differs from an earlier one" in " ".join(draft.report.warnings)
    assert skipped(draft) == {
        "feedback of a model call that these files do not hold": 2,
        "no feedback": 1,
    }


def test_a_prompt_in_an_event_and_names_with_underscores_are_read(tmp_path):
    prompt = {"gen_ai.prompt": json.dumps([{"role": "user", "content": "In an event"}])}
    one = {
        "span_id": "a", "attributes": typed(GENAI),
        "start_time_unix_nano": 1_760_000_000_000_000_000,
        "end_time_unix_nano": 1_760_000_002_400_000_000,
        "events": [judged(1), {"name": "gen_ai.content.prompt", "attributes": prompt}],
    }  # fmt: skip
    row = {"resource_spans": [{"scope_spans": [{"spans": [one]}]}]}
    draft = read_spans([jsonl(tmp_path / "s.jsonl", [row])])
    assert outcomes(draft).keys() == {("a", MODEL)}
    assert draft.queries["text"].tolist() == ["In an event"]
    assert draft.extras["latency_s"].tolist() == [[2.4]]
