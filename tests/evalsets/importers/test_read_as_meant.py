"""Files of forms met in the wild: each number as it was meant, or the row named and left out."""

import json
import math

import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.harness.adapters import read_harness
from hydra_core.evalsets.importers.headers import unit_of
from hydra_core.evalsets.importers.mapping import parse_map
from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.notation import Measure, parse_notations
from hydra_core.evalsets.importers.table import read_table
from hydra_core.evalsets.importers.traffic import rows as log_rows
from hydra_core.evalsets.importers.traffic.gateways import read_spend_logs
from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse
from hydra_core.evalsets.importers.traffic.rows import rows_of
from hydra_core.evalsets.importers.traffic.spans import read_spans


def write(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def jsonl(folder, name, rows):
    return write(folder, name, "".join(json.dumps(row) + "\n" for row in rows))


def skipped(draft):
    return {one.reason: one.count for one in draft.report.dropped if one.count}


def table(folder, content, *mapped):
    return read_table([write(folder, "a.csv", content)], parse_map(mapped))


@pytest.mark.parametrize(
    ("column", "divisor"),
    [
        ("cost_micro_usd", 1e6),
        ("cost_microusd", 1e6),
        ("cost_micros", 1e6),
        ("usd_micros", 1e6),
        ("cost (nUSD)", 1e9),
        ("cost_nano_usd", 1e9),
        ("cost_milli_usd", 1e3),
        ("cost (mUSD)", 1e3),
        ("cost_millicents", 1e5),
        ("cost (US cents)", 100),
        ("costUsdCents", 100),
    ],
)
def test_parts_of_a_dollar_in_a_header_are_read(tmp_path, column, divisor):
    assert unit_of(column).measure in (None, Measure.COST)
    rows = f"id,prompt,model,score,{column}\n1,hi,a,1,300\n"
    assert table(tmp_path, rows, f"cost_usd={column}").cost_usd[0, 0] == 300 / divisor


@pytest.mark.parametrize(
    ("column", "seconds"),
    [("latency_msec", 0.3), ("latency (usec)", 3e-4), ("latency (hrs)", 1.08e6)],
)
def test_parts_of_a_second_in_a_header_are_read(tmp_path, column, seconds):
    rows = f"id,prompt,model,score,cost,{column}\n1,hi,a,1,0.1,300\n"
    draft = table(tmp_path, rows, f"latency_s={column}")
    assert draft.extras["latency_s"][0, 0] == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("cell", "tokens"), [("1.2k", 1200), ("12K", 12000), ("1.5M", 1_500_000), ("1,5k", 1500)]
)
def test_thousands_of_tokens_are_read_by_their_sign(tmp_path, cell, tokens):
    rows = f"id;prompt;model;score;cost;input_tokens\n1;hi;a;1;0.1;{cell}\n2;ho;a;1;0.1;800\n"
    draft = table(tmp_path, rows)
    assert draft.extras["input_tokens"][:, 0].tolist() == [tokens, 800]
    assert any(f"such as {cell}" in one for one in draft.report.warnings)
    with pytest.raises(EvalSetError, match="are not numbers"):
        table(tmp_path, f"id,prompt,model,score,cost\n1,hi,a,1,{cell}\n".replace("1,5", "15"))


def test_tokens_beside_those_of_input_and_output_are_named(tmp_path):
    head = "id,prompt,model,score,cost,input_tokens,output_tokens,reasoning_tokens,total_tokens\n"
    for total, named in ((610, True), (110, False)):
        draft = table(tmp_path, f"{head}1,hi,a,1,0.001,100,10,500,{total}\n2,ho,a,1,0.001,,,,50\n")
        text = "1 outcome has more tokens in all (610) than input and output tokens together (110)"
        assert any(text in one for one in draft.report.warnings) is named


def test_the_output_of_openhands_is_read_by_itself(tmp_path):
    row = {"instance_id": "a-1", "instruction": "fix it", "metrics": {"accumulated_cost": 0.5},
           "metadata": {"llm_config": {"model": "m"}},
           "test_result": {"report": {"resolved": True}}}  # fmt: skip
    draft = read_table([jsonl(tmp_path, "output.jsonl", [row])])
    assert (draft.models, draft.quality.tolist(), draft.cost_usd.tolist()) == (
        ("m",), [[1]], [[0.5]]
    )  # fmt: skip


def test_parts_of_a_cost_are_named_where_no_column_has_the_whole(tmp_path):
    with pytest.raises(EvalSetError, match="'input_cost' and 'output_cost' look like parts of it"):
        table(tmp_path, "id,prompt,model,score,input_cost,output_cost\n1,hi,a,1,0.1,0.2\n")


def test_a_unit_of_tokens_that_is_not_known_is_named(tmp_path):
    rows = "id,prompt,model,score,cost,tokens (blocks)\n1,hi,a,1,0.1,300\n"
    warnings = " ".join(table(tmp_path, rows).report.warnings)
    assert "read as a number of tokens: (blocks) is no known unit" in warnings


@pytest.mark.parametrize(
    ("column", "cell", "currency"),
    [("cost_cad", "0.02", "CAD"), ("cost (R$)", "0.02", "BRL"), ("cost", "CA$0.02", "CAD")],
)
def test_every_currency_is_asked_for_its_rate(tmp_path, column, cell, currency):
    rows = f"id,prompt,model,score,{column}\n1,hi,a,1,{cell}\n"
    with pytest.raises(EvalSetError, match=f"are in {currency}.*--rate {currency}=USD"):
        table(tmp_path, rows, f"cost_usd={column}")
    draft = read_table(
        [tmp_path / "a.csv"], parse_map([f"cost_usd={column}"]), rates={currency: 0.5}
    )
    assert draft.cost_usd[0, 0] == 0.01


def test_a_row_at_the_end_that_sums_up_is_no_query(tmp_path):
    head = "prompt,gpt-4o score,gpt-4o cost,mini score,mini cost\n"
    draft = table(
        tmp_path, head + "hi,1,.1,0,.2\nho,1,.1,1,.2\nAverage,1,.1,.5,.2\nTotal:,2,.2,1,.4\n"
    )
    assert draft.queries["text"].tolist() == ["hi", "ho"]
    assert "line 4, 5 was left out: it sums up the rows above it" in draft.report.warnings
    asked = table(tmp_path, head + "Total,1,.1,0,.2\nho,1,.1,1,.2\n")
    assert asked.queries["text"].tolist() == ["Total", "ho"]


@pytest.mark.parametrize(
    "content",
    [
        "id,prompt,model,score,cost,,\n1,hi,a,1,0.1,,\n,,,,,,\n , ,,,,,\n",
        "id|prompt|model|score|cost\n1|hi, you; there|a|1|0.1\n",
        "id,prompt,model,score,cost\n1,hi,a,👍,0.1\n",
    ],
)
def test_what_spreadsheets_write_goes_in(tmp_path, content):
    draft = table(tmp_path, content)
    assert (draft.quality.tolist(), draft.cost_usd.tolist()) == ([[1.0]], [[0.1]])


def test_messages_and_the_counts_of_openrouter_are_found(tmp_path):
    row = {
        "id": "gen-1", "model": "a", "messages": [{"role": "user", "content": "hi"}], "score": 1,
        "total_cost": 0.01, "tokens_prompt": 9, "native_tokens_prompt": 1000,
        "native_tokens_completion": 30, "native_tokens_cached": 600,
    }  # fmt: skip
    draft = read_table([jsonl(tmp_path, "a.jsonl", [row])])
    assert draft.queries["text"].tolist() == ["hi"]
    tokens = {name: values[0, 0] for name, values in draft.extras.items()}
    assert tokens == {"input_tokens": 1000, "output_tokens": 30, "cached_input_tokens": 600}


def test_the_offered_renames_make_one_model_of_three_names(tmp_path, capsys):
    rows = ["1,hi,openai/gpt-4o,1,.1", "2,ho,gpt-4o,0,.2", "3,he,GPT-4o,1,.1"]
    path = write(tmp_path, "a.csv", "\n".join(["id,prompt,model,score,cost", *rows, ""]))
    assert main(["import", "table", str(path), "--dry-run"]) == 0
    offered = capsys.readouterr().out.partition("as one model: ")[2].splitlines()[0].split()
    assert main(["import", "table", str(path), "--dry-run", *offered]) == 0
    assert "kept 3 queries, 3 outcomes of 1 model" in capsys.readouterr().out


def spend(number, **changes):
    asked = json.dumps([{"role": "user", "content": f"Question {number}"}])
    row = {
        "request_id": f"r{number}",
        "spend": 0.01,
        "prompt_tokens": 1000,
        "completion_tokens": 100,
    }
    times = {"startTime": "2026-06-08 12:00:35", "endTime": "2026-06-08 12:00:37"}
    return {**row, **times, "model": "gpt-4o", "status": "success", "messages": asked, **changes}


def test_decimal_commas_of_a_log_are_read_where_the_file_proves_them(tmp_path):
    head = "request_id;spend;prompt_tokens;completion_tokens;startTime;endTime;model;messages\n"
    times = "2026-06-08 12:00:35;2026-06-08 12:00:37;gpt-4o"
    rows = [f"00{n};0,01{n};1.00{n};100;{times};Question {n}\n" for n in (1, 2)]
    votes = write(tmp_path, "votes.csv", "request_id;quality\n001;0,5\n002;1\n")
    log = write(tmp_path, "spend.csv", head + "".join(rows))
    draft = read_spend_logs([log], Given([votes]))
    assert draft.queries["query_id"].tolist() == ["001", "002"]
    assert draft.quality[:, 0].tolist() == [0.5, 1.0]
    assert draft.cost_usd[:, 0].tolist() == [0.011, 0.012]
    assert draft.extras["input_tokens"][:, 0].tolist() == [1001, 1002]
    said = {one for one in draft.report.warnings if " was read with " in one}
    assert said == {
        "quality was read with a decimal comma, such as 0,5",
        "spend was read with a decimal comma, such as 0,011",
        "prompt_tokens was read with a point between thousands, such as 1.001",
    }


def test_points_of_a_log_stay_points(tmp_path):
    log = write(tmp_path, "spend.csv", "request_id,spend,prompt_tokens\n1,0.01,1.000\n")
    assert [row for _, row in rows_of([log], Budget(), Issues())] == [
        {"request_id": "1", "spend": "0.01", "prompt_tokens": "1.000"}
    ]


def test_percentages_of_feedback_are_shares(tmp_path):
    votes = write(tmp_path, "votes.csv", "request_id,quality\nr0,50%\nr1,100 %\n")
    draft = read_spend_logs([], Given([votes]), ((("f", n), spend(n)) for n in (0, 1)))
    assert draft.quality[:, 0].tolist() == [0.5, 1.0]


@pytest.mark.parametrize("header", ["id,score", "id,rating", "request_id,score", "id,quality"])
def test_feedback_under_another_name_is_read_where_one_column_fits(tmp_path, header):
    votes = write(tmp_path, "votes.csv", f"{header}\nr0,1\nr1,0\n")
    draft = read_spend_logs([], Given([votes]), ((("f", n), spend(n)) for n in (0, 1)))
    assert draft.quality[:, 0].tolist() == [1, 0]
    names = dict(zip(header.split(","), ("request_id", "quality"), strict=True))
    said = {one for one in draft.report.warnings if " was read as " in one}
    assert said == {f"{name} was read as {wanted}" for name, wanted in names.items()
                    if name != wanted}  # fmt: skip


@pytest.mark.parametrize("header", ["request_id,score,rating", "request_id,stars,note"])
def test_feedback_without_one_column_that_fits_is_named_with_its_columns(tmp_path, header):
    votes = write(tmp_path, "votes.csv", f"{header}\nr0,1,1\n")
    listed = header.replace(",", ", ")
    with pytest.raises(EvalSetError, match=f"column 'quality': is missing.*columns: {listed}"):
        read_spend_logs([], Given([votes]), [(("f", 1), spend(0))])


def test_a_spend_log_may_call_its_request_id_id(tmp_path):
    votes = write(tmp_path, "votes.csv", "request_id,quality\nr0,1\n")
    row = spend(0)
    row["id"] = row.pop("request_id")
    draft = read_spend_logs([], Given([votes]), [(("f", 1), row)])
    assert (draft.queries["query_id"].tolist(), draft.quality[0, 0]) == (["r0"], 1)


def generation(number, **changes):
    asked = json.dumps([{"role": "user", "content": f"Ticket {number}"}])
    row = {"id": f"o{number}", "trace_id": f"t{number}", "type": "GENERATION", "input": asked}
    return {**row, "provided_model_name": "gpt-5.4", "total_cost": 0.02, "latency": 2.4, **changes}


def scores(folder, count):
    one = {"name": "ok", "data_type": "NUMERIC", "value": 1}
    return jsonl(
        folder, "s.jsonl", [{**one, "id": f"s{n}", "observation_id": f"o{n}"} for n in range(count)]
    )


def test_a_generation_that_failed_is_no_answer(tmp_path):
    rows = [generation(0), generation(1, level="ERROR"), generation(2, level="WARNING")]
    draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([scores(tmp_path, 3)]))
    assert draft.queries["query_id"].tolist() == ["o0", "o2"]
    assert skipped(draft) == {"the request failed": 1}


@pytest.mark.parametrize(
    "usage",
    [
        {
            "prompt_tokens": 50000,
            "completion_tokens": 300,
            "prompt_tokens_details": {"cached_tokens": 48000},
        },
        {
            "input_tokens": 50000,
            "output_tokens": 300,
            "input_tokens_details": {"cached_tokens": 48000},
        },
        {
            "input_tokens": 1000,
            "output_tokens": 300,
            "cache_read_input_tokens": 48000,
            "cache_creation_input_tokens": 1000,
        },
        {"input": 50000, "output": 300, "cache_read_input_tokens": 48000, "total": 50300},
        {  # only what was read is taken out of the input: the total says so
            "input": 2000,
            "output": 300,
            "total": 50300,
            "cache_read_input_tokens": 48000,
            "cache_creation_input_tokens": 1500,
        },
        {
            "input": 2000,
            "output": 100,
            "input_cached_tokens": 48000,
            "output_reasoning_tokens": 200,
        },
    ],
)
def test_cached_tokens_are_found_in_every_form_of_usage(tmp_path, usage):
    rows = [generation(0, usage_details=json.dumps(usage))]
    draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([scores(tmp_path, 1)]))
    tokens = [draft.extras[f"{name}_tokens"][0, 0] for name in ("input", "output", "cached_input")]
    assert tokens == [50000, 300, 48000]


def test_of_several_versions_of_a_generation_the_newest_counts(tmp_path):
    whole = {"total_cost": None, "cost_details": {"input": 0.01, "output": 0.02}}
    rows = [
        generation(0, updated_at="2026-01-02T00:00:00Z", **whole),
        generation(0, updated_at="2026-01-01T00:00:00Z", total_cost=None, usage_details={}),
    ]
    session = {"id": "s9", "name": "ok", "session_id": "x", "data_type": "NUMERIC", "value": 1}
    file = scores(tmp_path, 1)
    file.write_text(file.read_text() + json.dumps(session) + "\n")
    draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([file]))
    assert draft.cost_usd.tolist() == [[0.03]]
    assert skipped(draft) == {
        "an older version of the same observation": 1,
        "score of no generation or trace, such as a session's": 1,
    }


def test_cached_tokens_that_may_count_twice_are_named(tmp_path):
    twice = {"input": 17903, "input_cached_tokens": 17817, "output": 100, "total": 35820}
    once = {"input": 86, "input_cached_tokens": 17817, "output": 100, "total": 18003}
    for usages, named in (([twice, {"input": 5}], True), ([twice, once], False)):
        rows = [generation(n, usage_details=usage) for n, usage in enumerate(usages)]
        draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([scores(tmp_path, 2)]))
        warnings = " ".join(draft.report.warnings)
        assert ("(35,720 instead of 17,903 in o0); check that the" in warnings) is named


def test_the_parts_of_a_spans_cost_are_added(tmp_path):
    facts = {"gen_ai.operation.name": "responses", "gen_ai.request.model": "m",
             "gen_ai.prompt": "Q", "llm.cost.prompt": 0.1, "llm.cost.completion": 0.25}  # fmt: skip
    row = {"span_id": "s", "attributes": facts, "annotations": [{"name": "ok", "score": 1}]}
    assert read_spans([jsonl(tmp_path, "s.jsonl", [row])]).cost_usd.tolist() == [[0.35]]


@pytest.mark.parametrize("latency", [None, 2.4, 2400])
def test_the_times_of_langfuses_api_are_the_latency_where_none_is_written(tmp_path, latency):
    times = {"startTime": "2026-06-08T12:00:35.000Z", "endTime": "2026-06-08T12:00:37.400Z"}
    rows = [generation(0, latency=latency, **times), generation(1, latency=None, **times)]
    draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([scores(tmp_path, 2)]))
    assert draft.extras["latency_s"][:, 0].tolist() == [2.4, 2.4]


def test_a_cost_of_zero_is_not_known_unless_the_model_is_a_free_one(tmp_path):
    free = "meta/llama-3.3:free"
    rows = [
        generation(0),
        generation(1, total_cost=0),
        generation(2, total_cost=0, provided_model_name=free),
    ]
    draft = read_langfuse([jsonl(tmp_path, "o.jsonl", rows)], Given([scores(tmp_path, 3)]))
    cost = {model: draft.cost_usd[:, at] for at, model in enumerate(draft.models)}
    assert [cost["gpt-5.4"][0], cost[free][2]] == [0.02, 0.0]
    assert math.isnan(cost["gpt-5.4"][1])
    assert "1 request has a cost of 0" in " ".join(draft.report.warnings)


def test_the_columns_of_langfuses_pages_hold_tokens(tmp_path):
    head = "id,traceId,type,model,promptTokens,completionTokens,totalTokens,totalCost,input\n"
    path = write(tmp_path, "o.csv", head + "o0,t0,GENERATION,gpt-4o,100,20,120,0.01,hi\n")
    draft = read_langfuse([path], Given([scores(tmp_path, 1)]))
    tokens = [draft.extras[f"{name}_tokens"][0, 0] for name in ("input", "output")]
    assert (tokens, draft.cost_usd[0, 0]) == ([100, 20], 0.01)


def span(number, attributes, **changes):
    result = {"gen_ai.evaluation.name": "ok", "gen_ai.evaluation.score.value": 1.0}
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Question {number}"}]}]
    usual = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 50000, "gen_ai.usage.output_tokens": 300,
        "gen_ai.input.messages": json.dumps(asked),
    }  # fmt: skip
    events = [{"name": "gen_ai.evaluation.result", "attributes": result}]
    return {"span_id": f"s{number}", "attributes": usual | attributes, "events": events, **changes}


def test_spans_that_failed_are_known_by_status_and_error(tmp_path):
    rows = [
        span(0, {}, status={"status_code": "OK"}),
        span(1, {}, status={"status_code": "ERROR"}),
        span(2, {}, status_code="StatusCode.ERROR"),
        span(3, {"error.type": "timeout"}),
    ]
    draft = read_spans([jsonl(tmp_path, "s.jsonl", rows)])
    assert draft.queries["query_id"].tolist() == ["s0"]
    assert skipped(draft) == {"the request failed": 3}


@pytest.mark.parametrize(
    ("attributes", "tokens"),
    [
        ({"gen_ai.usage.cached_tokens": 48000}, (50000, 48000)),
        ({"gen_ai.usage.details.cache_read_tokens": 48000}, (50000, 48000)),
        (
            {
                "gen_ai.usage.input_tokens": 2000,
                "gen_ai.usage.cache_read_input_tokens": 48000,
                "gen_ai.usage.cache_creation_input_tokens": 500,
            },
            (50500, 48000),
        ),
    ],
)
def test_cached_tokens_of_spans_are_part_of_the_input(tmp_path, attributes, tokens):
    draft = read_spans([jsonl(tmp_path, "s.jsonl", [span(0, attributes)])])
    found = [draft.extras[f"{name}_tokens"][0, 0] for name in ("input", "cached_input")]
    assert tuple(found) == tokens


@pytest.mark.parametrize(
    ("base", "tail"), [("gen_ai.prompt", ""), ("llm.input_messages", ".message")]
)
def test_the_last_message_is_that_of_the_highest_number(tmp_path, base, tail):
    said = [(0, "system", "be brief"), (1, "user", "first"), (10, "user", "last")]
    one = span(0, {})
    del one["attributes"]["gen_ai.input.messages"]
    for number, role, content in said:
        one["attributes"][f"{base}.{number}{tail}.role"] = role
        one["attributes"][f"{base}.{number}{tail}.content"] = content
    queries = read_spans([jsonl(tmp_path, "s.jsonl", [one])]).queries
    assert (queries["text"].tolist(), queries["turn"].tolist()) == (["last"], [2])


def test_every_part_of_a_message_is_read_whatever_its_number(tmp_path):
    base = "llm.input_messages.0.message"
    one = span(0, {f"{base}.role": "user"})
    del one["attributes"]["gen_ai.input.messages"]
    for number in (0, 2):
        part = f"{base}.contents.{number}.message_content"
        one["attributes"] |= {f"{part}.type": "text", f"{part}.text": f"part {number}"}
    (asked,) = read_spans([jsonl(tmp_path, "s.jsonl", [one])]).queries["text"]
    assert asked.split() == ["part", "0", "part", "2"]


def test_the_messages_of_the_ai_sdk_are_read(tmp_path):
    asked = json.dumps([{"role": "user", "content": [{"type": "text", "text": "from the SDK"}]}])
    one = span(0, {"ai.prompt.messages": asked})
    del one["attributes"]["gen_ai.input.messages"]
    assert read_spans([jsonl(tmp_path, "s.jsonl", [one])]).queries["text"].tolist() == [
        "from the SDK"
    ]


def test_one_export_request_as_a_json_file_is_read(tmp_path):
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span(0, {}), span(1, {})]}]}]}
    for one in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        one["attributes"] = [
            {"key": key, "value": {"stringValue" if isinstance(value, str) else "intValue": value}}
            for key, value in one["attributes"].items()
        ]
        result = one["events"][0]["attributes"]
        one["events"][0]["attributes"] = [
            {"key": key, "value": {"stringValue": str(value)}} for key, value in result.items()
        ]
    draft = read_spans([write(tmp_path, "s.json", json.dumps(document))])
    assert draft.quality[:, 0].tolist() == [1.0, 1.0]


def answer(test, number, score):
    row = {"testIdx": test, "promptIdx": number, "testCase": {"vars": {}}, "score": score}
    facts = {"provider": {"id": "openai:o3", "label": ""}, "prompt": {"raw": f"Ask {test}"}}
    return {**row, **facts, "response": {"output": "ok"}, "cost": 0.001 * (number + 1)}


def test_one_provider_at_two_efforts_is_two_models(tmp_path):
    rows = [answer(test, number, number) for test in (0, 1) for number in (0, 1)]
    draft = read_harness([jsonl(tmp_path, "r.jsonl", rows)])
    assert draft.models == ("openai:o3:1", "openai:o3:2")
    assert draft.quality.tolist() == [[0, 1], [0, 1]]
    assert any("several settings" in one for one in draft.report.warnings)


def test_a_repeat_of_one_provider_is_a_mean(tmp_path):
    draft = read_harness([jsonl(tmp_path, "r.jsonl", [answer(0, 0, 0), answer(0, 0, 1)])])
    assert (draft.models, draft.quality.tolist()) == (("openai:o3",), [[0.5]])
    assert math.isclose(draft.cost_usd[0, 0], 0.001)


def test_the_remedy_for_points_between_thousands_of_tokens_is_right(tmp_path):
    rows = "id;prompt;model;score;cost;tokens\n1;hi;a;1;0,1;1.234\n2;ho;a;1;0,1;999\n"
    path = write(tmp_path, "a.csv", rows)
    with pytest.raises(EvalSetError, match=r"1.234 has a point between thousands, --read tokens="):
        read_table([path])
    draft = read_table([path], notations=parse_notations(["tokens=comma"]))
    assert draft.extras["tokens"][:, 0].tolist() == [1234, 999]


@pytest.mark.parametrize(
    "header",
    [
        "Nr.;Frage;Antwort;Modell;richtig;Kosten",
        "Nr.;question;réponse;modèle;correct;coût",
        "id;pregunta;respuesta;modelo;correcto;coste",
        "Nr.;Frage;Gruppe;Modell;ok;Kosten",
    ],
)
def test_headers_in_other_languages_are_suggested(tmp_path, header):
    path = write(tmp_path, "a.csv", f"{header}\n7;Hi;Ho;gpt-4o;1;0,25\n8;Ha;He;gpt-4o;0;0,5\n")
    draft = read_table([path])
    assert draft.queries["query_id"].tolist() == ["7", "8"]
    assert draft.queries["text"].tolist() == ["Hi", "Ha"]
    assert draft.models == ("gpt-4o",)
    assert (draft.quality[:, 0].tolist(), draft.cost_usd[:, 0].tolist()) == ([1, 0], [0.25, 0.5])


@pytest.mark.parametrize(
    ("right", "cost"), [("richtig", "Kosten"), ("correct", "coût"), ("ok", "Kosten")]
)
def test_headers_of_models_in_other_languages_are_suggested(tmp_path, right, cost):
    header = f"id,prompt,GPT-4o {right},GPT-4o {cost} ($)"
    draft = read_table([write(tmp_path, "a.csv", f"{header}\n7,Hi,1,0.25\n")], ids={"GPT-4o": "g"})
    assert (draft.models, draft.quality[0, 0], draft.cost_usd[0, 0]) == (("g",), 1, 0.25)


def test_a_number_that_no_float_holds_is_none():
    assert all(math.isnan(log_rows.number(value)) for value in (10**400, "1e999", "many"))
