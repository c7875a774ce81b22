"""Logs of live traffic become eval sets of one outcome a query; what is skipped is counted."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import psycopg
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.cli.main import main
from hydra_core.decision_log.records import OutcomeRecord
from hydra_core.decision_log.writer import LogWriter
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.formats import Kind, read
from hydra_core.evalsets.importers.given import AskNames, Given, NamesKnown, parse_prices
from hydra_core.evalsets.importers.traffic.gateways import (
    read_decision_log,
    read_spend_logs,
    spend_log_rows,
)
from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse
from hydra_core.evalsets.importers.traffic.messages import asked_in
from hydra_core.evalsets.importers.traffic.rows import seconds_between
from hydra_core.evalsets.importers.traffic.spans import read_spans
from tests.decision_log.test_log import AT, record
from tests.store.servers import postgres, postgres_bin


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def skipped(draft):
    return {entry.reason: entry.count for entry in draft.report.dropped}


def outcomes(draft):
    """(query id, model) -> (quality, cost)."""
    return {
        (query, draft.models[j]): (draft.quality[i, j], draft.cost_usd[i, j])
        for i, query in enumerate(draft.queries["query_id"])
        for j in range(len(draft.models))
        if not np.isnan(draft.quality[i, j])
    }


def test_our_own_log_gives_rated_answers_with_text(tmp_path):
    log = LogWriter(tmp_path / "log")
    log.add(record(1, text="one", cost_usd=0.25, conversation_id="c", turn=2))
    log.add(record(2, text="two"))
    log.add(record(3))
    log.add(record(4, text="four", served="", status="failed"))
    log.add(record(5, text=""))  # an image alone
    for number in (1, 3, 4, 5):
        log.add(OutcomeRecord(f"d{number}", AT, 0.5))
    log.close()
    draft = read_decision_log(tmp_path / "log")
    assert outcomes(draft) == {("d1", "x"): (0.5, 0.25)}
    assert draft.queries["conversation_id"].tolist() == ["c"]
    assert skipped(draft) == {
        "no feedback": 1,
        "no message was stored (serve with --log-text)": 1,
        "the message has no text": 1,
        "no model answered": 1,
    }


def test_the_gates_of_a_logged_request_are_kept(tmp_path):
    log = LogWriter(tmp_path / "log")
    said = {"needs": ("audio", "pdf"), "require": ("eu",), "allow": ("x", "y"), "deny": ("z",)}
    log.add(record(1, text="one", has_image=True, needs_tools=True, context_tokens=9_000, **said))
    log.add(record(2, text="two"))
    log.add(record(3, text="three", rule="named", allow=("x",)))
    for number in (1, 2, 3):
        log.add(OutcomeRecord(f"d{number}", AT, 0.5))
    log.close()
    queries = read_decision_log(tmp_path / "log", {"renamed": "x"}).queries
    assert queries["has_image"].tolist() == [True, False, False]
    assert queries["needs_tools"].tolist() == [True, False, False]
    assert queries["context_tokens"].fillna(0).tolist() == [9_000, 0, 0]
    assert queries["needs"].tolist() == ["audio, pdf", "", ""]
    assert queries["require"].tolist() == ["eu", "", ""]
    assert queries["allow"].tolist() == ["renamed, y", "", ""]
    assert queries["deny"].tolist() == ["z", "", ""]


def test_a_log_without_text_says_why_nothing_is_left(tmp_path):
    log = LogWriter(tmp_path / "log")
    log.add(record(1))
    log.close()
    with pytest.raises(EvalSetError, match="no message was stored"):
        read_decision_log(tmp_path / "log")
    with pytest.raises(EvalSetError, match="has no decision of that time"):
        read_decision_log(tmp_path / "log", since=AT + timedelta(days=1))


def spend(number, **changes):
    row = {
        "request_id": f"r{number}",
        "session_id": "s",
        "model": "openai/gpt-5",
        "messages": [{"role": "user", "content": f"question {number}"}],
        "proxy_server_request": {},
        "spend": 0.01 * number,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "status": "success",
        "cache_hit": "False",
        "startTime": "2026-11-22T10:00:00+00:00",
        "endTime": "2026-11-22T10:00:02.500000+00:00",
    }
    return row | changes


def spend_rows():
    request = {"messages": [{"role": "user", "content": "from the request"}]}
    return [
        spend(1),
        spend(2, messages={}, proxy_server_request=request),
        spend(3, messages={}),
        spend(4, status="failure"),
        spend(5, cache_hit="True"),
        spend(6),
    ]


def nested_as_text(rows):
    return [
        {
            key: json.dumps(cell) if isinstance(cell, list | dict) else cell
            for key, cell in row.items()
        }
        for row in rows
    ]


def test_a_spend_of_zero_is_not_known_as_litellm_writes_it_without_a_price_too(tmp_path):
    rows = [spend(1), spend(2, spend=0), spend(3, spend=0, model="meta/llama-3.3:free")]
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\nr2,0\nr3,1\n")
    path = jsonl(tmp_path / "spend.jsonl", rows)
    draft = read_spend_logs([path], Given([votes]))
    cost = {model: draft.cost_usd[:, at] for at, model in enumerate(draft.models)}
    np.testing.assert_array_equal(cost["openai/gpt-5"], [0.01, np.nan, np.nan])
    assert cost["meta/llama-3.3:free"][2] == 0
    assert "1 request has a cost of 0" in " ".join(draft.report.warnings)


def test_what_litellms_callbacks_write_is_read_as_its_spend_logs(tmp_path):
    row = spend(1, response_cost=0.25, startTime=1_765_000_000.1, endTime=1_765_000_002.6)
    row = {"id": row.pop("request_id"), **{k: v for k, v in row.items() if k != "spend"}}
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\n")
    draft = read_spend_logs([jsonl(tmp_path / "payloads.jsonl", [row])], Given([votes]))
    assert outcomes(draft) == {("r1", "openai/gpt-5"): (1.0, 0.25)}
    assert draft.extras["latency_s"].tolist() == [[pytest.approx(2.5)]]


def test_a_model_that_is_said_to_be_free_costs_nothing_in_spend_logs(tmp_path):
    """Also where no tokens were counted; a price computes the cost of the others."""
    rows = [spend(1, spend=0, prompt_tokens=0), spend(2, spend=0, model="ollama/llama3"),
            spend(3, spend=0, model="ollama/llama3", prompt_tokens=0)]  # fmt: skip
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\nr2,0\nr3,1\n")
    command = ["import", "spend-logs", str(jsonl(tmp_path / "spend.jsonl", rows))]
    command += ["--feedback", str(votes), "--out", str(tmp_path / "set")]
    prices = ["--price", "ollama/llama3=free", "--price", "openai/gpt-5=1,2"]
    assert main([*command, *prices]) == 0
    evalset = load_evalset(tmp_path / "set")
    assert evalset.models == ("ollama/llama3", "openai/gpt-5")
    np.testing.assert_array_equal(evalset.cost_usd[:, 0], [np.nan, 0, 0])
    assert np.isnan(evalset.cost_usd[:, 1]).all()
    assert evalset.prices == {"ollama/llama3": FREE, "openai/gpt-5": ListPrice(1, 2)}


def test_of_two_rows_of_a_request_the_one_with_a_cost_counts(tmp_path):
    rows = [spend(1, spend=0, prompt_tokens=0, completion_tokens=0), spend(1), spend(1, spend=9)]
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\n")
    draft = read_spend_logs([jsonl(tmp_path / "spend.jsonl", rows)], Given([votes]))
    assert outcomes(draft) == {("r1", "openai/gpt-5"): (1.0, 0.01)}
    assert draft.extras["input_tokens"].tolist() == [[10]]
    assert skipped(draft) == {"id of an earlier row": 2}


@pytest.mark.parametrize(
    "cut",
    ['[{"role": "user", "content": "Tell me a lo', '{"model": "x", "messages": [{"role": "us',
     "[{'content': 'Hi', 'role': 'user'}\n {'content'"],
)  # fmt: skip
def test_a_request_that_was_cut_off_is_no_message(tmp_path, cut):
    """A spreadsheet's cell holds 32,767 characters."""
    rows = [spend(1), spend(2, messages={}, proxy_server_request=cut), spend(3, messages=cut)]
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\nr2,1\nr3,1\n")
    draft = read_spend_logs([jsonl(tmp_path / "spend.jsonl", rows)], Given([votes]))
    assert draft.queries["text"].tolist() == ["question 1"]
    assert skipped(draft) == {"the message is in a form that is not read": 2}


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv", "parquet", "pandas.csv"])
def test_spend_logs_in_every_form_give_the_same_set(tmp_path, kind):
    path = tmp_path / f"spend.{kind}"
    rows = spend_rows()
    if kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "jsonl":
        jsonl(path, rows)
    elif kind == "csv":
        pd.DataFrame(nested_as_text(rows)).to_csv(path, index=False)
    elif kind == "parquet":
        pd.DataFrame(nested_as_text(rows)).to_parquet(path)
    else:  # nested values stand there as Python writes them
        pd.DataFrame(rows).to_csv(path, index=False)
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\nr2,0\nr3,1\nr4,1\nr5,1\n")
    draft = read_spend_logs([path], Given([votes], {"gpt-5": "openai/gpt-5"}))
    assert outcomes(draft) == {("r1", "gpt-5"): (1.0, 0.01), ("r2", "gpt-5"): (0.0, 0.02)}
    assert draft.queries["text"].tolist() == ["question 1", "from the request"]
    assert draft.extras["latency_s"].ravel().tolist() == [2.5, 2.5]
    assert skipped(draft) == {
        "no message was stored": 1,
        "the request failed": 1,
        "answered from a cache": 1,
        "no feedback": 1,
    }


@pytest.mark.skipif(postgres_bin() is None, reason="PostgreSQL is not installed")
def test_spend_logs_are_read_from_postgresql_itself(tmp_path):
    with postgres() as url:
        with psycopg.connect(url) as connection:
            columns = ", ".join(
                f'"{name}" {"double precision" if name == "spend" else "text"}' for name in spend(1)
            )
            connection.execute(f'create table "LiteLLM_SpendLogs" ({columns})')
            for row in nested_as_text(spend_rows()):
                names = ", ".join(f'"{name}"' for name in row)
                marks = ", ".join(["%s"] * len(row))
                values = [cell if name == "spend" else str(cell) for name, cell in row.items()]
                connection.execute(
                    f'insert into "LiteLLM_SpendLogs" ({names}) values ({marks})', values
                )
        votes = jsonl(tmp_path / "votes.jsonl", [{"request_id": "r1", "quality": 1}])
        draft = read_spend_logs([], Given([votes]), list(spend_log_rows(url)))
    assert outcomes(draft) == {("r1", "openai/gpt-5"): (1.0, 0.01)}
    with pytest.raises(EvalSetError, match="cannot be read"):
        list(spend_log_rows(url))


def generation(number, **changes):
    row = {
        "id": f"o{number}",
        "trace_id": f"t{number}",
        "type": "GENERATION",
        "input": json.dumps([{"role": "user", "content": f"question {number}"}]),
        "provided_model_name": "gpt-5",
        "usage_details": json.dumps({"input": 10, "output": 5}),
        "total_cost": 0.5,
        "latency": 1.5,
        "session_id": "s",
    }
    return row | changes


def test_langfuse_scores_bind_to_the_generation_else_to_the_last_of_its_trace(tmp_path):
    observations = jsonl(
        tmp_path / "observations.jsonl",
        [
            generation(1),
            generation(2, type="SPAN"),
            generation(3, trace_id="t"),
            generation(4, trace_id="t", input="plain text"),
            generation(5),
        ],
    )
    rated = [
        {"name": "helpful", "observation_id": "o1", "trace_id": "t1", "value": 4},
        {"name": "helpful", "observation_id": None, "trace_id": "t", "value": 1},
    ]
    scores = jsonl(tmp_path / "scores.jsonl", rated)
    draft = read_langfuse([observations], Given([scores], scale=4))
    assert outcomes(draft) == {("o1", "gpt-5"): (1.0, 0.5), ("o4", "gpt-5"): (0.25, 0.5)}
    assert skipped(draft) == {
        "no generation (a span or an event)": 1,
        "not the last generation of its trace": 1,
        "no feedback": 1,
    }


def test_of_several_langfuse_scores_one_must_be_chosen(tmp_path):
    observations = jsonl(tmp_path / "observations.jsonl", [generation(1)])
    rated = [
        {"name": name, "observation_id": "o1", "trace_id": "t1", "value": value}
        for name, value in (("helpful", 1), ("toxic", 0))
    ]
    scores = jsonl(tmp_path / "scores.jsonl", rated)
    with pytest.raises(EvalSetError, match="--score"):
        read_langfuse([observations], Given([scores]))
    with pytest.raises(EvalSetError, match="does not occur"):
        read_langfuse([observations], Given([scores], score="nice"))
    assert len(outcomes(read_langfuse([observations], Given([scores], score="toxic")))) == 1


GENAI = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "auto",
    "gen_ai.response.model": "gpt-5",
    "gen_ai.conversation.id": "c",
    "gen_ai.usage.input_tokens": 1_000_000,
    "gen_ai.usage.output_tokens": 500_000,
    "gen_ai.usage.cache_read.input_tokens": 200_000,
    "gen_ai.input.messages": json.dumps(
        [{"role": "user", "parts": [{"type": "text", "content": "genai question"}]}]
    ),
}
OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-5-mini",
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "be kind",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": "inference question",
    "llm.cost.total": 0.75,
    "annotations.0.annotation.name": "correct",
    "annotations.0.annotation.score": 1,
}


def otlp(attributes, events):
    def typed(value):
        return {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}

    def listed(facts):
        return [{"key": key, "value": typed(value)} for key, value in facts.items()]

    told = [{"name": name, "attributes": listed(facts)} for name, facts in events]
    times = {"startTimeUnixNano": "1000000000", "endTimeUnixNano": "3000000000"}
    span = {"spanId": "otlp", "attributes": listed(attributes), "events": told, **times}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


def test_spans_of_both_conventions_are_read(tmp_path):
    rated = [("gen_ai.evaluation.result", {"gen_ai.evaluation.score.value": 1})]
    lines = [
        otlp(GENAI, rated),
        {"span_id": "flat", "attributes": OPENINFERENCE},
        {"span_id": "tool", "attributes": {"gen_ai.operation.name": "execute_tool"}},
        {"span_id": "unrated", "attributes": GENAI},
    ]
    path = jsonl(tmp_path / "spans.jsonl", lines)
    draft = read_spans([path], Given(prices=parse_prices(["gpt-5=2,4"])))
    assert outcomes(draft) == {("otlp", "gpt-5"): (1.0, 4.0), ("flat", "gpt-5-mini"): (1.0, 0.75)}
    assert skipped(draft) == {"not a model call": 1, "no feedback": 1}
    assert draft.cost_estimated
    assert "estimated from prices, not billed" in draft.report.warnings[-1]
    assert draft.prices["gpt-5"].output_usd_per_mtok == 4
    row, column = draft.queries["query_id"].tolist().index("otlp"), draft.models.index("gpt-5")
    found = {name: draft.extras[name][row, column] for name in draft.extras if "tokens" in name}
    assert found == {
        "input_tokens": 1_000_000, "output_tokens": 500_000, "cached_input_tokens": 200_000
    }  # fmt: skip


def test_the_command_writes_an_eval_set_and_tells_what_it_skipped(tmp_path, capsys):
    log = LogWriter(tmp_path / "log")
    for number in range(3):
        log.add(replace(record(number, text=f"message {number}", cost_usd=0.1)))
        log.add(OutcomeRecord(f"d{number}", AT, 1.0))
    log.add(record(9, text="not rated"))
    log.close()
    out = tmp_path / "set"
    assert main(["import", "log", str(tmp_path / "log"), "--out", str(out)]) == 0
    assert "1 x no feedback" in capsys.readouterr().out
    assert load_evalset(out).n == 3


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ([{"role": "user", "content": "plain"}], "plain"),
        ({"messages": [{"role": "human", "content": "as an object"}]}, "as an object"),
        ({"input": "one text"}, "one text"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "asked"}]},
                    {"type": "function_call", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "output": "done"}]}, "asked"),
        ({"contents": [{"role": "user", "parts": [{"text": "of Gemini"}]},
                       {"role": "model", "parts": [{"text": "yes"}]}]}, "of Gemini"),
        ([{"role": "user", "content": "of Anthropic"},
          {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]},
          {"role": "user", "content": [{"type": "tool_result", "content": "3"}]}], "of Anthropic"),
        ([{"role": "user", "content": [{"type": "text", "text": "read it"},
                                       {"type": "document", "source": {}}]}], "read it"),
        ("just words", "just words"),
        ({"input": [{"type": "message", "role": "user", "content": "reasoned"},
                    {"type": "reasoning", "summary": []}]}, "reasoned"),
        ({"contents": [{"parts": [{"text": "without a role"}]}]}, "without a role"),
        ({"contents": ["of two", "texts"]}, "of two\ntexts"),
        ({"messages": [{"type": "system", "content": "s"}, {"type": "human", "content": "graph"}]},
         "graph"),
        ([[{"type": "human", "data": {"content": "a batch"}}, {"type": "ai", "data": {}}]],
         "a batch"),
        ([{"lc": 1, "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "dump"}}],
         "dump"),
        ([{"from": "human", "value": "shared"}, {"from": "gpt", "value": "yes"}], "shared"),
        ({"question": "of a chain", "user": "u1"}, "of a chain"),
    ],
)  # fmt: skip
def test_messages_are_read_in_every_form_that_logs_store(stored, text):
    asked = asked_in(stored)
    assert (asked.text, asked.turn, asked.problem) == (text, 1, "")
    assert asked_in(json.dumps(stored)) == asked


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (None, "no message was stored"),
        ("{}", "no message was stored"),
        ({"messages": []}, "no message was stored"),
        ({"topic": "what?"}, "the message is in a form that is not read"),
        ([{"role": "assistant", "content": "hi"}], "no user message"),
        ([{"role": "user", "content": [{"type": "image"}]}], "the message has no text"),
        ("AAA... (litellm_truncated skipped 9 chars) ...BBB", "cut off when it was stored"),
        ([{"role": "user", "content": "redacted-by-litellm"}], "redacted when it was stored"),
    ],
)
def test_why_there_is_no_message_is_said_as_it_is(stored, problem):
    asked = asked_in(stored)
    assert asked.text == ""
    assert problem in asked.problem


def test_rows_that_cannot_be_read_are_skipped_and_counted(tmp_path):
    lines = [json.dumps(spend(1)), "{", json.dumps(spend(2, prompt_tokens=-1))]
    lines += [json.dumps(spend(3, prompt_tokens=1.5)), json.dumps(spend(4, request_id="\ud800"))]
    path = tmp_path / "spend.jsonl"
    path.write_text("\n".join(lines) + "\n")
    votes = tmp_path / "votes.csv"
    votes.write_text("request_id,quality\nr1,1\nr2,1\nr3,1,torn\nr3,1\n")
    draft = read_spend_logs([path], Given([votes]))
    assert list(outcomes(draft)) == [("r1", "openai/gpt-5")]
    assert skipped(draft) == {
        "row that is not a JSON object": 1,
        "row that has 3 cells instead of 2": 1,
        "a negative number of tokens": 1,
        "a number of tokens that is not whole": 1,
        "holds half a character (lone surrogate)": 1,
    }


def test_votes_in_words_are_read_by_what_each_is_worth(tmp_path):
    path = jsonl(tmp_path / "spend.jsonl", [spend(1), spend(2), spend(3)])
    votes = jsonl(
        tmp_path / "votes.jsonl",
        [{"request_id": f"r{n}", "quality": q} for n, q in ((1, "great"), (2, "bad"), (3, 1))],
    )
    draft = read_spend_logs([path], Given([votes], labels={"great": 0.75}))
    assert [quality for quality, _ in outcomes(draft).values()] == [0.75, 1.0]
    assert skipped(draft) == {"the label 'bad' has no quality": 1}
    assert any("--label bad=0" in warning for warning in draft.report.warnings)


def test_a_langfuse_latency_in_milliseconds_is_known_by_the_times_beside_it(tmp_path):
    times = {"start_time": "2026-03-01 12:00:00.000", "end_time": "2026-03-01 12:00:02.500"}
    rows = [generation(n, latency=2500, **times) for n in (1, 2)]
    rated = [{"name": "a", "observation_id": f"o{n}", "trace_id": "", "value": 1} for n in (1, 2)]
    draft = read_langfuse(
        [jsonl(tmp_path / "o.jsonl", rows)], Given([jsonl(tmp_path / "s.jsonl", rated)])
    )
    assert draft.extras["latency_s"].ravel().tolist() == [2.5, 2.5]
    assert "milliseconds" in draft.report.warnings[0]


def test_an_export_of_langfuses_api_is_read_by_its_own_names(tmp_path):
    row = {
        "id": "o1", "traceId": "t", "type": "GENERATION", "model": "gpt-5", "input": "hi",
        "usageDetails": {"input": 2, "input_cached_tokens": 3, "output": 1, "total": 6},
        "calculatedTotalCost": 0.5, "latency": 1.0,
    }  # fmt: skip
    score = {"name": "a", "observationId": "o1", "dataType": "NUMERIC", "value": 0.5}
    draft = read_langfuse(
        [jsonl(tmp_path / "o.jsonl", [row])], Given([jsonl(tmp_path / "s.jsonl", [score])])
    )
    assert outcomes(draft) == {("o1", "gpt-5"): (0.5, 0.5)}
    assert draft.extras["input_tokens"][0, 0] == 5


def test_cached_input_is_priced_as_such_where_its_price_is_known(tmp_path):
    path = jsonl(tmp_path / "s.jsonl", [{"span_id": "s", "attributes": GENAI | {
        "annotations.0.annotation.name": "ok", "annotations.0.annotation.score": 1}}])  # fmt: skip
    full = read_spans([path], Given(prices=parse_prices(["gpt-5=2,4"])))
    assert any("cached=PRICE" in warning for warning in full.report.warnings)
    assert full.cost_usd[0, 0] == 4.0
    cached = read_spans([path], Given(prices=parse_prices(["gpt-5=2,4,cached=0.5"])))
    assert cached.cost_usd[0, 0] == 4.0 - 0.2 * 1.5
    assert cached.prices["gpt-5"].cached_input_usd_per_mtok == 0.5


def test_nested_columns_of_a_parquet_export_are_read(tmp_path):
    rows = [
        generation(
            n,
            input=[{"role": "user", "content": f"question {n}"}],
            usage_details={"input": 10, "output": 5},
        )
        for n in (1, 2)
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "o.parquet")
    rated = [{"name": "a", "observation_id": "o1", "trace_id": "", "value": 1}]
    draft = read_langfuse([tmp_path / "o.parquet"], Given([jsonl(tmp_path / "s.jsonl", rated)]))
    assert outcomes(draft) == {("o1", "gpt-5"): (1.0, 0.5)}
    assert draft.extras["input_tokens"][0, 0] == 10


@pytest.mark.parametrize(
    ("given", "expected"),
    [((5, 3, 1), [1.0, 0.6, 0.2]), ((1, -1, 1), [1.0, 0.0, 1.0])],
)
def test_the_remedy_for_votes_on_another_scale_gives_the_right_quality(
    tmp_path, capsys, given, expected
):
    path = jsonl(tmp_path / "spend.jsonl", [spend(n) for n in (1, 2, 3)])
    votes = tmp_path / "votes.csv"
    rows = [f"r{n},{value}" for n, value in enumerate(given, 1)]
    votes.write_text("request_id,quality\n" + "\n".join(rows) + "\n")
    command = ["import", "spend-logs", str(path), "--feedback", str(votes)]
    command += ["--out", str(tmp_path / "set")]
    assert main(command) == 2
    problem = capsys.readouterr().err
    remedy = problem[problem.rindex("--", 0, problem.index("--") + 2) :].strip().rstrip(")")
    assert main([*command, *remedy.split()]) == 0
    assert load_evalset(tmp_path / "set").quality.ravel().tolist() == expected


def test_nested_attributes_and_a_column_for_each_are_read_like_dotted_names(tmp_path):
    messages = [{"message": {"role": "user", "content": "nested question"}}]
    nested = {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {
            "model_name": "m",
            "input_messages": messages,
            "token_count": {"prompt": 9, "completion": 2, "prompt_details": {"cache_read": 4}},
        },
        "annotations": [{"annotation": {"name": "ok", "score": 1}}],
    }
    columns = {
        "context.span_id": "s",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.model_name": "m",
        "attributes.llm.input_messages": json.dumps(messages),
        "attributes.llm.token_count.prompt": 9,
        "attributes.llm.token_count.completion": 2,
        "attributes.llm.token_count.prompt_details.cache_read": 4,
        "attributes.annotations": json.dumps(nested["annotations"]),
    }
    pd.DataFrame([columns]).to_csv(tmp_path / "spans.csv", index=False)
    path = jsonl(tmp_path / "spans.jsonl", [{"span_id": "s", "attributes": nested}])
    for file in (path, tmp_path / "spans.csv"):
        draft = read_spans([file])
        assert draft.queries["text"].tolist() == ["nested question"]
        assert list(outcomes(draft)) == [("s", "m")]
        tokens = [draft.extras[name][0, 0] for name in ("input_tokens", "cached_input_tokens")]
        assert tokens == [9, 4]


def test_asking_for_models_tells_the_labels_and_scores_that_are_to_be_settled(tmp_path):
    observations = jsonl(tmp_path / "o.jsonl", [generation(1), generation(2)])
    rated = [
        {"name": "verdict", "observation_id": "o1", "data_type": "CATEGORICAL", "value": 0,
         "string_value": "good"},
        {"name": "length", "observation_id": "o2", "data_type": "NUMERIC", "value": 1},
    ]  # fmt: skip
    scores = jsonl(tmp_path / "s.jsonl", rated)
    with pytest.raises(NamesKnown) as known:
        read(Kind.LANGFUSE, [observations], Given([scores], AskNames()))
    assert known.value.names == ("gpt-5",)
    assert known.value.scores == ("length", "verdict")
    assert known.value.labels == {"good": 1}
    given = Given([scores], {"m": "gpt-5"}, score="verdict", labels={"good": 1.0})
    assert read(Kind.LANGFUSE, [observations], given).quality.tolist() == [[1.0]]


def test_feedback_finds_its_request_whatever_spaces_stand_around_its_id(tmp_path):
    rows = jsonl(tmp_path / "s.jsonl", [spend(1)])
    (tmp_path / "v.csv").write_text(f"request_id,quality\n{spend(1)['request_id']} ,1\n")
    models = {"gpt-5": spend(1)["model"]}
    draft = read(Kind.SPEND_LOGS, [rows], Given([tmp_path / "v.csv"], models))
    assert draft.quality.tolist() == [[1.0]]


#: Spans as a table of spans, an object with plain attributes, and one without an operation.
OTHER_SPANS = [
    {
        "span_kind": "LLM", "context.span_id": "a", "attributes.llm.model_name": "gpt-5",
        "attributes.llm.token_count.prompt": 100, "attributes.llm.token_count.completion": 20,
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Hi"}],
        "annotations": [{"name": "helpful", "result": {"label": "bad", "score": 0.25}}],
    },
    {
        "spanId": "b",
        "attributes": {
            "openinference.span.kind": "LLM", "llm.model_name": "gpt-5",
            "llm.token_count.prompt": 100, "llm.token_count.completion": 20,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "Hi",
        },
        "annotations": [{"name": "helpful", "score": 0.25}],
    },
    {
        "span_id": "c",
        "attributes": {
            "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5",
            "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 20,
        },
        "events": [
            {"name": "gen_ai.user.message", "attributes": {"content": "Hi"}},
            {
                "name": "gen_ai.evaluation.result",
                "attributes": {
                    "gen_ai.evaluation.name": "helpful", "gen_ai.evaluation.score.value": 0.25,
                },
            },
        ],
    },
]  # fmt: skip


def test_spans_are_known_by_their_column_and_their_tokens_too(tmp_path):
    other = {"spanId": "d", "attributes": {"gen_ai.operation.name": "embeddings"}}
    draft = read_spans([jsonl(tmp_path / "spans.jsonl", [*OTHER_SPANS, other])])
    assert draft.queries["query_id"].tolist() == ["a", "b", "c"]
    assert draft.queries["text"].tolist() == ["Hi"] * 3
    np.testing.assert_array_equal(draft.quality, [[0.25]] * 3)
    np.testing.assert_array_equal(draft.extras["input_tokens"], [[100]] * 3)
    assert skipped(draft) == {"not a model call": 1}


def test_a_price_of_a_model_that_is_not_there_is_refused(tmp_path):
    spans = jsonl(tmp_path / "spans.jsonl", OTHER_SPANS)
    with pytest.raises(EvalSetError, match=r"--price: gpt5: is no model of these.*gpt-5"):
        read_spans([spans], Given(prices=parse_prices(["gpt5=1,10"])))
    draft = read_spans([spans], Given(prices=parse_prices(["gpt-5=1,10"])))
    np.testing.assert_allclose(draft.cost_usd, [[300e-6]] * 3)


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:02.500Z", 2.5),
        ("20260301T120000Z", "20260301T120002Z", 2.0),
        (1711121230123, 1711121230956, None),
        ("1711121230123", "1711121230956", None),
        ("2026-03-01T12:00:02Z", "2026-03-01T12:00:00Z", None),
        ("2026-03-01T12:00:00", "2026-03-01T12:00:02Z", None),
        ("", "2026-03-01T12:00:02Z", None),
    ],
)
def test_seconds_between_two_moments_are_those_of_dates_and_never_of_counts(start, end, seconds):
    """Milliseconds since 1970 are not the year 1711, where 0.8 s would be eight hours."""
    assert seconds_between(start, end) == (
        pytest.approx(float("nan"), nan_ok=True) if seconds is None else seconds
    )
