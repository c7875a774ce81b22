"""Wide tables with headers for people: models, figures and units are read column by column."""

import json
import re

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.catalog.identifiers import proposed_ids
from hydra_core.evalsets.importers.headers import read_header, wide_columns
from hydra_core.evalsets.importers.mapping import parse_map, suggest_mapping
from hydra_core.evalsets.importers.reading.cells import Form
from hydra_core.evalsets.importers.reading.notation import parse_notations, parse_rates
from hydra_core.evalsets.importers.table import model_names, raw_rows, read_rows, read_table


@pytest.mark.parametrize(
    ("header", "model", "figure", "divisor"),
    [
        ("GPT 4o (May) correct", "GPT 4o (May)", "quality", 1),
        ("GPT 4o (May) $", "GPT 4o (May)", "cost_usd", 1),
        ("Sonnet score (%)", "Sonnet", "quality", 100),
        ("Score % of Sonnet", "Sonnet", "quality", 100),
        ("Sonnet rating (0-5)", "Sonnet", "quality", 5),
        ("Sonnet rating (out of 10)", "Sonnet", "quality", 10),
        ("Correct? (GPT-4o)", "GPT-4o", "quality", 1),
        ("GPT-4o cost (cents)", "GPT-4o", "cost_usd", 100),
        ("gpt-5_total_cost", "gpt-5", "cost_usd", 1),
        ("GPT-4o latency (ms)", "GPT-4o", "latency_s", 1000),
        ("gpt-4o input tokens", "gpt-4o", "input_tokens", 1),
        ("cost:org/model", "org/model", "cost_usd", 1),
        ("GPT 4o (May) ($)", "GPT 4o (May)", "cost_usd", 1),
        ("GPT 4o (correct?)", "GPT 4o", "quality", 1),
        ("GPT-4o latency (min)", "GPT-4o", "latency_s", 1 / 60),
    ],
)
def test_a_header_names_model_figure_and_unit(header, model, figure, divisor):
    read = read_header(header)
    assert (read.model, read.figure, read.notation.divisor) == (model, figure, divisor)


@pytest.mark.parametrize(
    "header", ["Prompt", "is_correct", "Prompt tokens", "Total cost", "Cost ($)", "a|answer"]
)
def test_other_headers_name_no_model(header):
    assert read_header(header) is None


@pytest.mark.parametrize(
    ("columns", "query_id", "text"),
    [
        (["Case no.", "Customer question"], "Case no.", "Customer question"),
        (["#", "Question ID", "User prompt", "System prompt"], "Question ID", "User prompt"),
        (["Task #", "Prompt"], "Task #", "Prompt"),
        (["Model ID", "Session id", "Answer text"], None, None),
    ],
)
def test_an_id_and_a_text_are_known_by_how_their_names_end(columns, query_id, text):
    fields = suggest_mapping(columns).fields
    assert (fields.get("query_id"), fields.get("text")) == (query_id, text)


def test_a_scale_that_the_header_names_is_read_in_a_long_table_too(tmp_path):
    path = wide(tmp_path, "id,text,model,score (0-5),cost ($)\n1,Hi,m,4,0.5\n")
    draft = read_table([path])
    assert (draft.quality[0, 0], draft.cost_usd[0, 0]) == (0.8, 0.5)


def test_a_score_that_stands_alone_is_no_model():
    assert wide_columns(["id", "text", "Team score"]) == {}
    assert len(wide_columns(["id", "text", "A score", "B score"])) == 2


WIDE = (
    "Ticket #,Prompt,A (May) correct,A (May) $,bee score (%),bee cost (cents),bee input tokens,"
    "C right?\n"
    'T1,One,yes,$0.02,83 %,"1,5","1,234",x\n'
    'T2,Two,no,$0.01,100 %,"0,5",56,x\n'
    'T2,Two,no,$0.01,100 %,"0,5",56,x\n'
    "T3,Three,,,0 %,,,x\n"
)


def wide(folder, content=WIDE):
    path = folder / "wide.csv"
    path.write_text(content)
    return path


def read(path, *options, **more):
    ids = proposed_ids(model_names([path]))
    return read_table([path], notations=parse_notations(options), ids=ids, **more)


def test_every_column_is_read_as_it_is_written(tmp_path):
    draft = read(wide(tmp_path))
    assert draft.models == ("a-may", "bee")
    np.testing.assert_array_equal(draft.quality, [[1, 0.83], [0, 1], [np.nan, 0]])
    np.testing.assert_array_equal(draft.cost_usd, [[0.02, 0.015], [0.01, 0.005], [np.nan] * 2])
    np.testing.assert_array_equal(draft.extras["input_tokens"][:, 1], [1234, 56, np.nan])
    assert any("bee score (%) was read as percentages" in one for one in draft.report.warnings)
    dropped = {entry.reason: entry.count for entry in draft.report.dropped}
    assert dropped["outcome that an earlier row holds too"] == 2


def test_a_grid_of_models_and_figures_is_proposed():
    mapping = suggest_mapping(WIDE.splitlines()[0].split(","))
    assert mapping.fields == {"query_id": "Ticket #", "text": "Prompt"}
    assert mapping.quality == {"A (May)": "A (May) correct", "bee": "bee score (%)"}
    assert mapping.cost == {"A (May)": "A (May) $", "bee": "bee cost (cents)"}
    assert mapping.sides["input_tokens"] == {"bee": "bee input tokens"}


def test_the_grid_can_be_corrected_by_hand(tmp_path):
    content = "id,text,one,two,three\n1,Hi,1,0.5,7\n"
    mapping = parse_map(["quality:m=one", "cost:m=two", "output_tokens:m=three"])
    draft = read_table([wide(tmp_path, content)], mapping)
    assert draft.extras["output_tokens"].tolist() == [[7.0]]


def test_the_first_rows_are_shown_as_they_will_be_read(tmp_path):
    path = wide(tmp_path, WIDE.replace("83 %", "good"))
    seen = read_rows(raw_rows(path, 2), suggest_mapping(WIDE.splitlines()[0].split(",")))
    rows = seen.rows
    assert rows["A (May) $"].tolist() == ["0.02", "0.01"]
    assert rows["bee input tokens"].tolist() == ["1234", "56"]
    assert any("column 'bee score (%)': 1 of 2 cells are not numbers" in one for one in seen.faults)


def test_a_fault_names_column_row_and_value_and_counts_cells(tmp_path):
    with pytest.raises(EvalSetError) as caught:
        read(wide(tmp_path, WIDE.replace("$0.02", "free")))
    expected = "column 'A (May) $': 1 of 3 cells are not numbers, first in wide.csv line 2 ('free')"
    assert expected in str(caught.value)


def test_another_currency_asks_for_its_rate_and_takes_it(tmp_path):
    path = wide(tmp_path, WIDE.replace("$0.", "€0."))
    with pytest.raises(EvalSetError, match="3 of 3 cells are in EUR.*--rate EUR=USD"):
        read(path)
    assert read(path, rates=parse_rates(["EUR=1.5"])).cost_usd[0, 0] == 0.03


def test_what_is_said_of_all_columns_does_not_spoil_one_that_it_does_not_fit(tmp_path):
    content = "id,text,A score,A cost,B score,B cost\n1,Hi,85,0.5,1,0.1\n2,Ho,90,0.5,0,0.1\n"
    path = wide(tmp_path, content)
    with pytest.raises(EvalSetError, match="column 'B score'.*although none is above 1"):
        read(path, form=Form(scale=100.0))
    with pytest.raises(EvalSetError) as caught:
        read(path)
    (remedy,) = re.findall(r"--read '([^']+)'", str(caught.value))
    assert read(path, remedy).quality.tolist() == [[0.85, 1.0], [0.9, 0.0]]


def test_marks_out_of_five_are_read_by_the_remedy_that_is_offered(tmp_path):
    content = "id,text,A score,A cost\n1,Hi,5,0.5\n2,Ho,3,0.5\n3,Hu,1,0.5\n"
    path = wide(tmp_path, content)
    with pytest.raises(EvalSetError) as caught:
        read(path)
    (remedy,) = re.findall(r"--read '([^']+)'", str(caught.value))
    assert read(path, remedy).quality.ravel().tolist() == [1.0, 0.6, 0.2]


@pytest.mark.parametrize("text", ["x", "=comma", "x=half", "x=1/0"])
def test_a_notation_of_another_form_is_refused(text):
    with pytest.raises(EvalSetError, match="HOW is comma"):
        parse_notations([text])
    with pytest.raises(EvalSetError, match=r"EUR=1\.08"):
        parse_rates([text])


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (["EUR=0"], r"EUR=0.*is not CURRENCY=USD.*e\.g\. EUR=1\.08"),
        (["EUR=1.08", "EUR=1.1"], "EUR=1.1.*names EUR twice.*say it once"),
        (["USD=2"], "USD=2.*must be 1.*leave it out"),
    ],
)
def test_a_rate_that_would_make_a_wrong_cost_is_refused(rates, message):
    with pytest.raises(EvalSetError, match=message):
        parse_rates(rates)
    assert parse_rates(["USD=1", "EUR=1.08", "EUR=1.080"]) == {"USD": 1.0, "EUR": 1.08}


def test_a_notation_of_no_column_is_refused(tmp_path):
    with pytest.raises(EvalSetError, match="'D' is not a column|'D': is not a column"):
        read(wide(tmp_path), "D=percent")


def test_a_number_beyond_all_bounds_does_not_stop_the_reader(tmp_path):
    content = "id,text,A correct,A cost,A input tokens\n1,Hi,1,0.5,{}\n"
    long = "123456789012345678901234567890"
    draft = read(wide(tmp_path, content.format(long)))
    assert draft.extras["input_tokens"][0, 0] == float(long)
    for cell in ("9" * 400, "1e400"):
        with pytest.raises(EvalSetError, match="column 'A input tokens'"):
            read(wide(tmp_path, content.format(cell)))


@pytest.mark.parametrize("cell", ["1,2,3", "1.2.3", "1.234,5.6", "--1", "1e", "$1$", "$%"])
def test_what_only_looks_like_a_number_is_refused(tmp_path, cell):
    path = wide(tmp_path, f'id,text,A correct,A cost\n1,Hi,1,"{cell}"\n')
    with pytest.raises(EvalSetError, match="column 'A cost': 1 of 1 cells are not numbers"):
        read(path)


def test_a_note_says_which_mark_was_read_as_what(tmp_path):
    notes = " ".join(read(wide(tmp_path)).report.warnings)
    assert "bee cost (cents) was read in cents and with a decimal comma, such as 1,5" in notes
    assert "bee input tokens was read with a comma between thousands, such as 1,234" in notes


@pytest.mark.parametrize(
    ("cells", "costs"),
    [
        (("1,000,000", "0.5"), [1e6, 0.5]),
        (("1.234,56 €", "0,5 €"), [1234.56, 0.5]),
        (("$1,234", "$0.5"), [1234.0, 0.5]),
        (("12 ct", "3 ct"), [0.12, 0.03]),
        (("1,5e-3", "USD 2"), [0.0015, 2.0]),
        (("1e-05", "-"), [1e-05, np.nan]),
    ],
)
def test_a_cost_is_read_as_its_column_proves(tmp_path, cells, costs):
    rows = "".join(f'{n},Hi {n},1,"{cell}"\n' for n, cell in enumerate(cells))
    path = wide(tmp_path, "id,text,A correct,A cost\n" + rows)
    np.testing.assert_array_equal(read(path, rates={"EUR": 1.0}).cost_usd[:, 0], costs)


def test_points_between_thousands_of_a_count_are_read_where_one_has_two(tmp_path):
    path = wide(tmp_path, "id,text,A correct,A cost,A tokens\n1,a,1,1,1.234\n2,b,1,1,2.345.678\n")
    assert read(path).extras["tokens"].ravel().tolist() == [1234.0, 2345678.0]
    path = wide(tmp_path, "id,text,A correct,A cost,A tokens\n1,a,1,1,1.234\n")
    with pytest.raises(EvalSetError, match="1 of 1 cells are not whole numbers"):
        read(path)


@pytest.mark.parametrize(
    ("header", "cell", "value"),
    [
        ("A cost (EUR)", "0.02", 0.03),
        ("A cost (€)", '"0,02"', 0.03),
        ("A eur", "0.02", 0.03),
        ("A cost (EUR)", "$0.02", 0.02),
        ("A cost (ct)", "2", 0.02),
    ],
)
def test_a_currency_in_the_header_is_that_of_bare_cells(tmp_path, header, cell, value):
    path = wide(tmp_path, f"id,text,A correct,{header}\n1,Hi,1,{cell}\n")
    draft = read(path, rates={"EUR": 1.5})
    assert draft.cost_usd[0, 0] == pytest.approx(value, rel=1e-15)
    if value == 0.03:
        assert draft.price_notes == "Costs were converted at 1 EUR = 1.5 USD"
        with pytest.raises(EvalSetError, match="1 of 1 cells are in EUR"):
            read(path)


@pytest.mark.parametrize(
    ("column", "cell", "field", "value"),
    [
        ("latency_ms", "1500", "latency_s", 1.5),
        ("latencyMs", "1500", "latency_s", 1.5),
        ("latency", "1500 ms", "latency_s", 1.5),
        ("latency", "1.5s", "latency_s", 1.5),
        ("input_tokens (k)", "1.5", "input_tokens", 1500.0),
    ],
)
def test_units_of_other_columns_are_read_by_name_and_sign(tmp_path, column, cell, field, value):
    path = wide(tmp_path, f"id,text,model,score,cost_cents,{column}\n1,Hi,m,1,5,{cell}\n")
    draft = read_table([path])
    assert draft.cost_usd[0, 0] == 0.05
    assert draft.extras[field][0, 0] == value


def test_one_of_several_files_may_lack_a_cost_that_is_not_needed(tmp_path):
    costly, free = tmp_path / "costly.csv", tmp_path / "free.csv"
    costly.write_text("id,text,A quality,A cost\n1,Hi,1,0.1\n")
    free.write_text("id,text,A quality\n2,Ho,0\n")
    with pytest.raises(EvalSetError, match="there is no column 'A cost'"):
        read_table([costly, free])
    draft = read_table([costly, free], need_cost=False)
    np.testing.assert_array_equal(draft.cost_usd, [[0.1], [np.nan]])


def objects(tmp_path, *rows):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    return path


def test_figures_inside_objects_are_read_and_the_objects_are_not(tmp_path):
    """`tokens` is a figure's name, and here it holds the figures."""
    figures = {"score": 1, "cost": 0.02, "tokens": {"in": 100, "out": 20}}
    rows = [{"id": i, "question": f"Prime {i}?", "results": {"big": figures}} for i in range(3)]
    draft = read_table([objects(tmp_path, *rows)])
    assert draft.models == ("big",)
    assert draft.extras["input_tokens"][:, 0].tolist() == [100] * 3
    assert draft.extras["output_tokens"][:, 0].tolist() == [20] * 3
    answers = [
        {"model": name, "score": 1, "cost": 0.02, "tokens": {"input": 7, "output": 5, "cached": 3}}
        for name in ("big", "small")
    ]
    rows = [{"id": i, "question": f"Prime {i}?", "answers": answers} for i in range(3)]
    draft = read_table([objects(tmp_path, *rows)])
    assert draft.extras["input_tokens"].tolist() == [[7, 7]] * 3
    assert draft.extras["cached_input_tokens"].tolist() == [[3, 3]] * 3
    assert draft.report.unread == ()


def test_scores_and_costs_by_model_are_a_wide_table(tmp_path):
    rows = [
        {"id": i, "prompt": f"Prime {i}?", "scores": {"a": 1, "b": 0}, "costs": {"a": 0.2, "b": 0}}
        for i in range(3)
    ]
    draft = read_table([objects(tmp_path, *rows)])
    assert draft.models == ("a", "b")
    assert draft.quality.tolist() == [[1, 0]] * 3
    assert draft.cost_usd[:, 0].tolist() == [0.2] * 3
