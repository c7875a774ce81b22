"""Imports where a scale, a percent sign or a count of tokens could be taken for another."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.evalsets.importers.given import Given
from hydra_core.evalsets.importers.harness.adapters import read_harness
from hydra_core.evalsets.importers.reading.cells import Form
from hydra_core.evalsets.importers.reading.notation import parse_notations
from hydra_core.evalsets.importers.table import read_table
from hydra_core.evalsets.importers.traffic.gateways import read_spend_logs
from hydra_core.evalsets.importers.traffic.served import whole_tokens
from hydra_core.evalsets.importers.traffic.spans import read_spans

ASKED = [{"role": "user", "content": "Explain the parser"}]


def write(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def ratings(folder, *haiku):
    rows = "".join(
        f"Fix bug {n},{gpt},{own},0.1,0.2\n"
        for n, (gpt, own) in enumerate(zip("54", haiku, strict=True))
    )
    header = "prompt,gpt-4o rating,haiku rating,gpt-4o cost,haiku cost\n"
    return write(folder, "ratings.csv", header + rows)


def refusal(files, **options):
    with pytest.raises(EvalSetError) as caught:
        read_table(files, complete=True, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("haiku", "share"), [((1, 1), " or --read 'haiku rating=share'"), ((3, 1), "")]
)
def test_a_rating_of_one_model_is_not_taken_for_a_share_beside_one_of_five(tmp_path, haiku, share):
    stated = parse_notations(["gpt-4o rating=1/5"])
    text = refusal([ratings(tmp_path, *haiku)], notations=stated)
    assert "column 'haiku rating': 2 of 2 cells are read as shares although" in text
    assert f"(say how it is written: --read 'haiku rating=1/5'{share})" in text


def test_the_remedy_for_a_rating_gives_its_value(tmp_path):
    both = parse_notations(["gpt-4o rating=1/5", "haiku rating=1/5"])
    draft = read_table([ratings(tmp_path, 1, 1)], notations=both)
    np.testing.assert_allclose(draft.quality, [[1, 0.2], [0.8, 0.2]])


def test_a_share_beside_a_rating_is_read_as_it_stands(tmp_path):
    stated = parse_notations(["gpt-4o rating=1/5"])
    draft = read_table([ratings(tmp_path, 0.5, 1)], notations=stated)
    np.testing.assert_allclose(draft.quality, [[1, 0.5], [0.8, 1]])


def test_a_scale_of_all_columns_is_offered_for_the_one_that_it_may_not_fit(tmp_path):
    text = refusal([ratings(tmp_path, 1, 1)], form=Form(scale=5))
    assert "--read 'haiku rating=1/5' or --read 'haiku rating=share'" in text


def test_shares_beside_percentages_are_not_offered_to_be_read_as_percentages(tmp_path):
    rows = "1,Fix it,a,1,0.1\n1,Fix it,b,80%,0.1\n2,Go on,a,0.5,0.1\n2,Go on,b,1%,0.1\n"
    header = "query_id,text,model,quality,cost_usd\n"
    text = refusal([write(tmp_path, "x.csv", header + rows)])
    assert "2 of 4 cells have no % while others have one" in text
    assert "(write all with % or all without)" in text


def test_a_comma_behind_a_zero_parts_no_thousands(tmp_path):
    header = "query_id;text;model;quality;cost_usd\n"
    path = write(tmp_path, "x.csv", header + "1;Fix it;a;1;0,015\n2;Go on;a;1;0.02\n")
    assert "(write 0.5, not 0,5: other cells of the column have a decimal point)" in refusal([path])
    point = parse_notations(["cost_usd=point"])
    assert "first in x.csv line 2 ('0,015')" in refusal([path], notations=point)


def test_a_note_shows_a_cell_that_it_is_about(tmp_path):
    header = "query_id,text,model,quality,cost\n"
    path = write(tmp_path, "x.csv", header + "1,Fix it,a,1,$0.02\n2,Go on,a,1,3¢\n")
    draft = read_table([path])
    assert draft.cost_usd.ravel().tolist() == [0.02, 0.03]
    assert "cost was read in cents, such as 3¢" in draft.report.warnings


def test_the_file_or_address_of_an_image_says_that_there_is_one(tmp_path):
    header = "query_id,text,image,model,quality,cost_usd\n"
    cells = ("a/cat 1.PNG", "https://x.org/1", "data:image/png;base64,AA", "no", "")
    rows = "".join(f'{n},Fix {n},"{cell}",a,1,0.1\n' for n, cell in enumerate(cells))
    found = read_table([write(tmp_path, "x.csv", header + rows)]).queries["has_image"]
    assert found.tolist() == [True, True, True, False, False]
    wrong = write(tmp_path, "y.csv", header + "1,Fix it,maybe,a,1,0.1\n")
    assert "has_image is not true or false ('maybe')" in refusal([wrong])


def test_an_empty_id_of_a_wide_table_is_one_row(tmp_path):
    rows = "query_id,text,a correct,b correct,a $,b $\n1,Fix it,1,0,1,1\n,Go on,1,0,1,1\n"
    text = refusal([write(tmp_path, "x.csv", rows)])
    assert text.count("query_id is empty") == 1
    assert "1 row(s): query_id is empty: x.csv line 3 (give every row one)" in text


def test_a_column_of_units_counts_for_its_row(tmp_path):
    header = "query_id,text,model,quality,cost,currency,latency,latency_unit\n"
    rows = "1,Fix it,a,1,0.5,EUR,250,ms\n2,Go on,a,1,0.5,USD,2,seconds\n3,Hold,a,1,$0.5,EUR,,\n"
    path = write(tmp_path, "x.csv", header + rows)
    assert "1 of 3 cells are in EUR, first in x.csv line 2 ('0.5 EUR')" in refusal([path])
    draft = read_table([path], rates={"EUR": 2.0})
    np.testing.assert_array_equal(draft.cost_usd[:, 0], [1, 0.5, 0.5])
    np.testing.assert_array_equal(draft.extras["latency_s"][:, 0], [0.25, 2, np.nan])
    assert draft.report.unread == ()


def test_a_column_of_units_that_are_not_read_is_refused(tmp_path):
    rows = "query_id,text,model,quality,cost,cost_unit\n1,Fix it,a,1,0.5,millicents\n"
    assert "1 of 1 cells are not numbers, first in x.csv line 2 ('0.5 millicents')" in refusal(
        [write(tmp_path, "x.csv", rows)]
    )


def test_a_cost_in_usd_stays_so_beside_the_currency_of_something_else(tmp_path):
    rows = "query_id,text,model,quality,cost_usd,currency\n1,Fix it,a,1,0.5,EUR\n"
    assert read_table([write(tmp_path, "x.csv", rows)]).cost_usd.tolist() == [[0.5]]


def test_cached_input_beside_the_input_of_a_table_is_refused(tmp_path):
    header = "query_id,text,model,quality,cost_usd,input_tokens,cached_input_tokens,output_tokens\n"
    rows = "1,Fix it,a,1,0.02,2000,48000,300\n1,Fix it,b,0,0.01,2000,500,300\n"
    text = refusal([write(tmp_path, "x.csv", header + rows)])
    assert "1 row(s): cached_input_tokens are a part of input_tokens and more than these" in text
    assert "(48000 of 2000): x.csv line 2" in text


def spend_row(request_id, **changes):
    return {
        "request_id": request_id, "call_type": "acompletion", "model": "claude", "spend": 0.02,
        "prompt_tokens": 2000, "completion_tokens": 300, "status": "success", "messages": ASKED,
    } | changes  # fmt: skip


def test_cached_input_beside_the_input_of_a_spend_log_is_a_part_of_it(tmp_path):
    usage = {"input_tokens": 2000, "cache_read_input_tokens": 48000,
             "cache_creation_input_tokens": 1000}  # fmt: skip
    inside = {"cache_read_input_tokens": 1500, "cache_creation_input_tokens": 300}
    rows = [
        spend_row("own", metadata={"usage_object": usage}),
        spend_row("openai", metadata={"usage_object": {**usage, **inside}}),
        spend_row("failed", status=None, metadata={"status": "failure"}),
    ]
    log = write(tmp_path, "log.jsonl", "\n".join(map(json.dumps, rows)))
    votes = write(tmp_path, "votes.csv", "request_id,quality\nown,1\nopenai,1\nfailed,1\n")
    draft = read_spend_logs([log], Given(more=[votes]))
    assert list(draft.queries["query_id"]) == ["openai", "own"]
    assert draft.extras["input_tokens"].ravel().tolist() == [2000, 51000]
    assert draft.extras["cached_input_tokens"].ravel().tolist() == [1500, 48000]
    assert [(one.reason, one.count) for one in draft.report.dropped if one.count] == [
        ("the request failed", 1)
    ]


def test_cached_tokens_under_one_name_count_beside_a_zero_under_another(tmp_path):
    usage = {"cache_read_input_tokens": 0, "prompt_tokens_details": {"cached_tokens": 40}}
    row = spend_row("a", metadata={"usage_object": usage})
    votes = write(tmp_path, "votes.csv", "request_id,quality\na,1\n")
    draft = read_spend_logs([write(tmp_path, "l.jsonl", json.dumps(row))], Given(more=[votes]))
    assert draft.extras["cached_input_tokens"].tolist() == [[40]]


def test_reasoning_beside_the_answer_counts_as_output_where_the_total_shows_it(tmp_path):
    details = {"completion_tokens_details": {"reasoning_tokens": 200}}
    rows = [
        spend_row(name, total_tokens=total, metadata={"usage_object": details})
        for name, total in (("beside", 2500), ("inside", 2300))
    ]
    log = write(tmp_path, "log.jsonl", "\n".join(map(json.dumps, rows)))
    votes = write(tmp_path, "votes.csv", "request_id,quality\nbeside,1\ninside,1\n")
    draft = read_spend_logs([log], Given(more=[votes]))
    assert draft.extras["output_tokens"].ravel().tolist() == [500, 300]

    thought = {"ai.usage.reasoningTokens": 200, "gen_ai.usage.input_tokens": 100}
    spans = [
        {"span_id": str(total), "annotations": [{"name": "good", "score": 1}],
         "attributes": {"gen_ai.request.model": "m", "gen_ai.prompt": ASKED, **thought,
                        "gen_ai.usage.output_tokens": 250, "ai.usage.totalTokens": total}}
        for total in (350, 550)
    ]  # fmt: skip
    draft = read_spans([write(tmp_path, "spans.jsonl", "\n".join(map(json.dumps, spans)))])
    assert draft.extras["output_tokens"].ravel().tolist() == [250, 450]

    usage = {"prompt": 100, "completion": 250, "completionDetails": {"reasoning": 200}}
    answers = [
        {"testIdx": test, "testCase": {}, "provider": "google:gemini", "prompt": {"raw": "Q"},
         "response": {"output": "A", "tokenUsage": {**usage, "total": total}}, "score": 1}
        for test, total in enumerate((350, 550))
    ]  # fmt: skip
    draft = read_harness([write(tmp_path, "pf.jsonl", "\n".join(map(json.dumps, answers)))])
    assert draft.extras["output_tokens"].ravel().tolist() == [250, 450]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((31, 467, {"cached": 0, "stored": 1253, "total": 498}), (1284, 467)),  # none was read yet
        ((2000, 300, {"cached": 1500, "stored": 300, "total": 2300}), (2000, 300)),
        ((500, 300, {"cached": 1500, "total": 2300}), (2000, 300)),
        ((600, 300, {"cached": 500, "total": 1400}), (1100, 300)),  # the total has them beside
        ((600, 300, {"cached": 500}), (600, 300)),
        ((2835, 31, {"cached": 2816, "thought": 64, "total": 2866}), (2835, 95)),
        ((10120, 1499, {"cached": 128, "thought": 2809, "total": 14428}), (10120, 4308)),
        ((20, 424, {"total": 1016}), (20, 996)),  # nobody counted the thinking but the total
        ((20, 424, {"thought": 24, "total": 1016}), (20, 424)),
        ((9844, 50, {"cached": 9842, "total": 9894, "apart": True}), (9844, 50)),
        ((1144, 50, {"cached": 9000, "stored": 144, "total": 10194, "apart": True}), (10144, 50)),
    ],
)
def test_tokens_are_counted_once_wherever_a_provider_counts_them(counts, expected):
    read, written, more = counts
    assert whole_tokens(read, written, **more) == expected


def lm_eval(folder, **score):
    row = {"doc_id": 0, "doc": {"question": "2 + 2?"}, "target": "4", "arguments": [["Q", {}]],
           "resps": [["4"]], "filtered_resps": ["4"], "doc_hash": "h"} | score  # fmt: skip
    return write(folder, "samples_task.jsonl", json.dumps(row))


def test_costs_are_not_announced_where_no_tokens_are_known(tmp_path):
    report = read_harness([lm_eval(tmp_path, acc=1.0)]).report
    assert "there are no costs: without costs or tokens no router" in " ".join(report.warnings)
    assert report.gaps == []
    assert replace(report, missing={report.models[0]: (1, 0)}).gaps == [
        f"{report.models[0]}: 1 outcome, 0 costs"
    ]


@pytest.mark.parametrize(("highest", "best"), [(36.5, 100), (4.5, 5), (120, 120)])
def test_the_highest_value_is_not_offered_as_the_best(tmp_path, highest, best):
    with pytest.raises(EvalSetError) as caught:
        read_harness([lm_eval(tmp_path, rouge=highest)])
    assert f"where {best} is the best, --quality-scale {best})" in str(caught.value)
