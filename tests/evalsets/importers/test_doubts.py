"""What is valid and yet looks wrong is said: names alike, placeholders, units, rounded ids."""

import json
import re
import shlex

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.mapping import parse_map
from hydra_core.evalsets.importers.reading.notation import parse_notations
from hydra_core.evalsets.importers.table import read_table

HEADER = "query_id,text,model,quality,cost_usd\n"


def table(folder, rows, header=HEADER, name="x.csv"):
    path = folder / name
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def warned(draft, text):
    return [one for one in draft.report.warnings if text in one]


@pytest.mark.parametrize("other", ["GPT-4o", "openai/gpt-4o", "gpt_4o"])
def test_names_spelled_alike_are_named_and_the_remedy_makes_them_one(tmp_path, capsys, other):
    path = table(tmp_path, [f"q{i},Hi {i},{other if i % 2 else 'gpt-4o'},1,0.1" for i in range(6)])
    command = ["import", "table", str(path), "--out", str(tmp_path / "set")]
    assert main([*command, "--dry-run"]) == 0
    report = capsys.readouterr().out
    assert "may be one model under several names" in report
    option = re.search(r"as one model: (--rename .*)", report)[1]
    assert main([*command, *shlex.split(option)]) == 0
    assert load_evalset(tmp_path / "set").models == ("gpt-4o",)


def test_spaces_around_a_models_name_make_no_other_model(tmp_path, capsys):
    path = table(tmp_path, ["p,Hi,gpt-4o ,1,0.1", "q,Ho,gpt-4o,0,0.1", "r,He,\u00a0gpt-4o,0,0.1"])
    command = ["import", "table", str(path), "--out", str(tmp_path / "set")]
    assert main([*command, "--accept-ids"]) == 0
    assert "spaces around 2 names of models were left out" in capsys.readouterr().out
    assert load_evalset(tmp_path / "set").models == ("gpt-4o",)


def test_names_spelled_alike_are_named_also_where_one_is_given_an_id(tmp_path, capsys):
    path = table(tmp_path, ["p,Hi,GPT 4o,1,0.1", "q,Ho,gpt-4o,0,0.1"])
    command = ["import", "table", str(path), "--out", str(tmp_path / "set"), "--accept-ids"]
    assert main([*command, "--dry-run"]) == 0
    option = re.search(r"as one model: (--rename .*)", capsys.readouterr().out)[1]
    assert main([*command, *shlex.split(option)]) == 0
    assert load_evalset(tmp_path / "set").models == ("gpt-4o",)


def test_a_column_of_efforts_makes_a_model_of_each(tmp_path):
    header = HEADER.rstrip("\n") + ",reasoning_effort\n"
    rows = ["p,Hi,a,0,0.1,low", "p,Hi,a,1,0.2,high", "p,Hi,b,1,0.1,low", "q,Ho,b,1,0.1,low"]
    draft = read_table([table(tmp_path, rows, header)])
    assert draft.models == ("a:high", "a:low", "b")
    assert draft.quality[0].tolist() == [1, 0, 1]
    assert warned(draft, "each effort of a model was read as a model of its own: a:high, a:low")
    assert draft.report.unread == ()


def test_a_model_without_any_outcome_is_named(tmp_path):
    draft = read_table([table(tmp_path, ["p,Hi,a,1,0.1", "p,Hi,b,,0.1", "q,Ho,a,0,0.1"])])
    assert draft.models == ("a",)
    assert warned(draft, "b has no outcome on a query that is kept: left out")


def test_another_id_for_a_model_that_is_not_there_is_refused(tmp_path, capsys):
    path = table(tmp_path, ["q,Hi,gpt-4o,1,0.1"])
    assert main(["import", "table", str(path), "--rename", "a=gpt4o", "--dry-run"]) == 2
    assert "'gpt4o': is no model here (models: gpt-4o)" in capsys.readouterr().err


def test_two_providers_of_one_model_are_two_models(tmp_path):
    rows = [f"q{i},Hi {i},{one}/gpt-4o,1,0.1" for i in range(3) for one in ("azure", "openai")]
    assert not warned(read_table([table(tmp_path, rows)]), "one model")


def test_outcomes_of_joined_names_that_disagree_are_refused(tmp_path):
    path = table(tmp_path, ["q,Hi,gpt-4o,1,0.1", "q,Hi,GPT-4o,0,0.1"])
    with pytest.raises(EvalSetError, match="occur before with other values"):
        read_table([path], ids={"GPT-4o": "gpt-4o"})


def test_ids_with_spaces_and_whole_numbers_with_a_point_meet_their_own(tmp_path):
    rows = ["1,Hi,a,1,0.1", "1 ,Hi,b,0,0.1", "2.0,Ho,a,1,0.1", "2,Ho,b,1,0.1"]
    draft = read_table([table(tmp_path, rows)])
    assert draft.queries["query_id"].tolist() == ["1", "2"]
    np.testing.assert_array_equal(draft.quality, [[1, 0], [1, 1]])
    assert warned(draft, "spaces around")
    assert warned(draft, "1 query id was read as whole numbers, such as 2.0")


def test_ids_that_are_no_whole_numbers_stay_as_they_are(tmp_path):
    draft = read_table([table(tmp_path, ["1.0,Hi,a,1,0.1", "1.1,Ho,a,1,0.1"])])
    assert draft.queries["query_id"].tolist() == ["1.0", "1.1"]


def test_rounded_ids_are_refused(tmp_path):
    path = table(tmp_path, ["1.23457E+17,Hi,a,1,0.1"])
    with pytest.raises(EvalSetError, match=r"as 1.23457E\+17.*export the ids as text"):
        read_table([path])
    row = {"query_id": 1.2345678901234568e19, "text": "Hi", "model": "a", "quality": 1}
    path = table(tmp_path, [json.dumps(row)], "", "x.jsonl")
    with pytest.raises(EvalSetError, match="rounded"):
        read_table([path], need_cost=False)


def test_large_whole_ids_keep_every_digit(tmp_path):
    big = 12345678901234567890
    rows = [json.dumps({"query_id": big + i, "text": f"Hi {i}", "model": "a", "quality": 1})
            for i in range(2)]  # fmt: skip
    draft = read_table([table(tmp_path, rows, "", "x.jsonl")], need_cost=False)
    assert draft.queries["query_id"].tolist() == [str(big), str(big + 1)]


def test_placeholders_for_a_text_are_no_message(tmp_path):
    rows = ["a,nan,m,1,0.1", "b,N/A,m,1,0.1", "c,None,m,1,0.1", "d,No,m,1,0.1"]
    draft = read_table([table(tmp_path, rows)])
    assert draft.queries["text"].tolist() == ["No"]
    assert ("query without text", 3) in {(d.reason, d.count) for d in draft.report.dropped}


def test_a_model_that_never_solves_anything_is_named(tmp_path):
    rows = [f"q{i},Hi {i},{m},{int(m == 'a')},0.1" for i in range(5) for m in "ab"]
    assert warned(read_table([table(tmp_path, rows)]), "every outcome of b is 0")


def test_times_that_look_like_milliseconds_are_named(tmp_path):
    header = HEADER.replace("\n", ",latency\n")
    path = table(tmp_path, [f"q{i},Hi {i},m,1,0.1,{800 + i}" for i in range(3)], header)
    assert warned(read_table([path]), "more than 801 s; check that times are seconds")


@pytest.mark.parametrize(
    ("column", "value"),
    [("latency (min)", 90.0), ("duration_ns", 1.5e-9), ("latency (h)", 5400.0),
     ("latency (µs)", 1.5e-6), ("response time (ms)", 0.0015), ("elapsed", 1.5)],
)  # fmt: skip
def test_a_unit_of_time_in_the_header_counts(tmp_path, column, value):
    path = table(tmp_path, ["q,Hi,a,1,0.1,1.5"], f"{HEADER.strip()},{column}\n")
    np.testing.assert_allclose(read_table([path]).extras["latency_s"], [[value]], rtol=1e-12)


@pytest.mark.parametrize(
    ("column", "value"),
    [("cost (mUSD)", 0.0015), ("cost (µ$)", 1.5e-6), ("cost (cents)", 0.015), ("cost (k)", 1.5),
     ("Cost per message", 1.5), ("Cost in $", 1.5)],
)  # fmt: skip
def test_a_unit_of_money_in_the_header_counts(tmp_path, column, value):
    header = HEADER.replace("cost_usd", column)
    draft = read_table([table(tmp_path, ["q,Hi,a,1,1.5"], header)])
    np.testing.assert_allclose(draft.cost_usd, [[value]], rtol=1e-12)


@pytest.mark.parametrize("inside", ["", "data."])
def test_openrouters_latency_is_in_milliseconds(tmp_path, inside):
    head = f"query_id,text,model,quality,cost,{inside}native_tokens_prompt,{inside}latency\n"
    path = tmp_path / "x.csv"
    path.write_text(head + "a,Why?,m,1,0.1,20,812\n")
    mapping = parse_map([f"latency_s={inside}latency"])
    draft = read_table([path], mapping)
    assert draft.extras["latency_s"].tolist() == [[0.812]]


def test_what_is_no_known_unit_is_named_with_the_one_that_was_taken(tmp_path):
    header = HEADER.replace("cost_usd", "cost (EURm),latency (p50)")
    draft = read_table([table(tmp_path, ["q,Hi,a,1,0.1,2"], header)])
    assert warned(draft, "cost (EURm) was read in USD: (EURm) is no known unit")
    assert warned(draft, "latency (p50) was read in seconds: (p50) is no known unit")


@pytest.mark.parametrize("column", ["cost ($/1M tokens)", "cost per 1k tokens", "usd_per_mtok"])
def test_a_price_of_tokens_is_no_cost(tmp_path, column):
    header = HEADER.replace("cost_usd", column)
    path = table(tmp_path, ["q,Hi,a,1,0.1"], header)
    with pytest.raises(EvalSetError, match="is a price of tokens, not what each answer cost"):
        read_table([path], parse_map([f"cost_usd={column}"]))


@pytest.mark.parametrize(
    ("column", "count"),
    [
        *(("cost/1000", 1_000), ("cost per 1000", 1_000), ("cost (per 1k)", 1_000)),
        *(("cost_per_1,000 queries", 1_000), ("cost per 100 calls", 100), ("$/M", 1_000_000)),
    ],
)
def test_a_cost_of_many_answers_is_refused_until_its_number_is_said(tmp_path, column, count):
    header = HEADER.replace("cost_usd", f'"{column}"')
    path, mapping = table(tmp_path, ["q,Hi,a,1,30"], header), parse_map([f"cost_usd={column}"])
    with pytest.raises(EvalSetError) as refused:
        read_table([path], mapping)
    option = f"{column}=1/{count}"
    assert f"is the cost of {count:,}, not of one answer" in str(refused.value)
    assert f"--read {shlex.quote(option)}" in str(refused.value)
    draft = read_table([path], mapping, notations=parse_notations([option]))
    np.testing.assert_allclose(draft.cost_usd, [[30 / count]], rtol=1e-12)


@pytest.mark.parametrize(
    "column", ["cost per query", "cost (per 1)", "cost / 1", "meta/70b cost", "cost/call"]
)
def test_a_cost_of_one_answer_is_no_cost_of_many(tmp_path, column):
    header = HEADER.replace("cost_usd", column)
    path = table(tmp_path, ["q,Hi,a,1,30"], header)
    assert read_table([path], parse_map([f"cost_usd={column}"])).cost_usd[0, 0] == 30


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_an_object_with_a_key_twice_is_refused(tmp_path, name):
    row = '{"id": 1, "prompt": "Hi", "model": "m", "quality": 1, "quality": 0, "cost": 1}'
    path = tmp_path / name
    path.write_text(f"[{row}]" if name == "x.json" else f"{row}\n")
    with pytest.raises(EvalSetError, match=r"the key 'quality' occurs twice.*keep one of them"):
        read_table([path])


def test_a_document_that_holds_one_list_is_that_list(tmp_path):
    row = {"id": 1, "prompt": "Hi", "results": {"a": {"score": 1, "cost": 0.1}}}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"meta": {"page": 1}, "data": [row]}))
    draft = read_table([path])
    assert (draft.models, draft.quality.tolist(), draft.cost_usd.tolist()) == (
        ("a",),
        [[1]],
        [[0.1]],
    )


def test_flags_of_spreadsheets_in_other_languages_are_flags(tmp_path):
    words = ("WAHR", "falsch", "Ja", "nein", "VRAI", "faux", "VERDADERO", "falso", "oui", "non")
    path = table(tmp_path, [f"q{i},Hi {i},a,{word},0.1" for i, word in enumerate(words)])
    np.testing.assert_array_equal(read_table([path]).quality[:, 0], [1, 0] * 5)


def test_shares_among_percentages_are_named(tmp_path):
    path = table(tmp_path, ["a,Hi,m,83,1", "b,Ho,m,0.9,1", "c,Hu,m,100,1"])
    draft = read_table([path], notations=parse_notations(["quality=percent"]))
    assert warned(draft, "1 of 3 percentages are at most 1 %, such as 0.9")


def test_conversations_in_cells_are_read_for_their_last_message(tmp_path):
    talk = [
        {"role": "system", "content": "Be kind"},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"},
                                     {"type": "image_url", "image_url": {"url": "x"}}]},
    ]  # fmt: skip
    cell = json.dumps(json.dumps(talk)).replace("\\", "")[1:-1].replace('"', '""')
    draft = read_table([table(tmp_path, [f'q,"{cell}",m,1,0.1'])])
    assert draft.queries["text"].tolist() == ["What is this?"]
    assert draft.queries["has_image"].tolist() == [True]
    assert warned(draft, "last user message")


def test_conversations_that_pandas_wrote_are_read_and_those_cut_off_have_no_text(tmp_path):
    rows = [
        """a,"[{'role': 'user', 'content': 'Größer?'}]",m,1,0.1""",
        """b,"[{'role': 'user', 'content': ""What's up?""}]",m,1,0.1""",
        """c,"[{'role': 'user', 'content': 'It goes on and",m,1,0.1""",
    ]
    draft = read_table([table(tmp_path, rows)])
    assert draft.queries["text"].tolist() == ["Größer?", "What's up?"]
    assert [str(one) for one in draft.report.dropped] == ["1 x query without text (e.g. c)"]


def test_texts_that_are_data_stay_as_they_are(tmp_path):
    rows = ["""a,"[{'a': 1}]",m,1,0.1""", """b,"{'role' of x} is what?",m,1,0.1"""]
    texts = read_table([table(tmp_path, rows)]).queries["text"].tolist()
    assert texts == ["[{'a': 1}]", "{'role' of x} is what?"]


def test_messages_inside_objects_are_read_by_their_path(tmp_path):
    row = {"id": 1, "request": {"messages": [{"role": "user", "content": "Größer?"}]},
           "model": "m", "quality": 1, "cost": 0.1}  # fmt: skip
    path = table(tmp_path, [json.dumps(row)], "", "x.jsonl")
    draft = read_table([path], parse_map(["text=request.messages"]))
    assert draft.queries["text"].tolist() == ["Größer?"]


def test_a_request_without_input_tokens_was_not_counted(tmp_path):
    header = HEADER.replace("\n", ",input_tokens,output_tokens\n")
    rows = ["a,Hi,m,1,0.1,0,0", "b,Ho,m,1,0.1,40,0", "c,Hu,m,1,0.1,,"]
    draft = read_table([table(tmp_path, rows, header)])
    np.testing.assert_array_equal(draft.extras["input_tokens"][:, 0], [np.nan, 40, np.nan])
    np.testing.assert_array_equal(draft.extras["output_tokens"][:, 0], [np.nan, 0, np.nan])
    assert warned(draft, "1 outcome states 0 input tokens")


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_key_that_says_one_thing_twice_is_read(tmp_path, name):
    row = '{"id": 1, "prompt": "Hi", "model": "m", "quality": 1, "quality": 1, "cost": 1}'
    path = tmp_path / name
    path.write_text(f"[{row}]" if name == "x.json" else f"{row}\n")
    assert read_table([path]).quality.tolist() == [[1]]


@pytest.mark.parametrize(("cell", "seconds"), [("12 min", 720), ("2 sec", 2), ("900ms", 0.9)])
def test_units_of_time_behind_a_number_are_read(tmp_path, cell, seconds):
    path = tmp_path / "t.csv"
    path.write_text(f"id,prompt,model,score,cost,duration\n1,x,m,1,0.1,{cell}\n")
    assert read_table([path]).extras["latency_s"].tolist() == [[seconds]]


def test_a_duration_that_is_no_number_asks_for_seconds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,prompt,model,score,cost,duration\n1,x,m,1,0.1,1m 20s\n")
    with pytest.raises(EvalSetError, match="write seconds, such as 80 for 1m 20s"):
        read_table([path])


def test_without_costs_the_remedy_names_the_option_and_tokens_are_said_to_give_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,prompt,model,score,input_tokens,output_tokens\n1,x,m,1,10,5\n")
    with pytest.raises(EvalSetError, match="there are none with --no-cost"):
        read_table([path])
    warnings = read_table([path], need_cost=False).report.warnings
    assert (
        "there are no costs: they are computed from the tokens and a catalog's prices" in warnings
    )
