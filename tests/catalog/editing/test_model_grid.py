"""Editing the pool as a table, pasting rows into it, and editing the evidence."""

from pathlib import Path

import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.list_price import LongPromptPrice
from hydra_core.base.types import ModelStatus
from hydra_core.catalog import CatalogDocument, capabilities, parse_catalog, semantic_diff
from hydra_core.catalog.editing.evidence_grid import (
    add_benchmark,
    add_dimension,
    capability_rows,
    edit_capabilities,
    edit_evidence,
    edit_scales,
    evidence_rows,
    remove_benchmarks,
    scale_rows,
)
from hydra_core.catalog.editing.model_grid import (
    add_variant,
    cell_problems,
    duplicate_model,
    edit_cells,
    model_rows,
    remove_models,
    rows_after,
    set_status,
)
from hydra_core.console.catalog.dialogs import apply_pasted, read_pasted

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "catalog" / "paper_five.yaml").read_text(encoding="utf-8")
CATALOG = parse_catalog(TEXT)


def told(before, after):
    return [str(change) for change in semantic_diff(parse_catalog(before), parse_catalog(after))]


def lines_changed(before, after):
    return sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True))


def test_a_price_changes_its_line_and_nothing_else():
    after = edit_cells(TEXT, {1: {"input_usd_per_mtok": 0.8}})
    assert lines_changed(TEXT, after) == 1
    assert told(TEXT, after) == ["claude-haiku-4.5 input price 0.52 -> 0.80 USD/Mtok"]


def test_a_cell_that_says_the_same_keeps_its_spelling():
    rows = model_rows(CatalogDocument.parse(TEXT))
    assert edit_cells(TEXT, dict(enumerate(rows))) == TEXT


def test_the_same_edit_twice_is_one_edit():
    edits = {0: {"vision": False, "context_window": 128000, "price_date": "2026-03-01"}}
    once = edit_cells(TEXT, edits)
    assert edit_cells(once, edits) == once


def test_what_a_table_shows_after_an_edit_is_what_the_text_then_says():
    edits = {0: {"context_window": "128k", "retire_on": "2026-05-01T00:00:00"}, 1: {"notes": ""}}
    rows = model_rows(CatalogDocument.parse(TEXT))
    after = model_rows(CatalogDocument.parse(edit_cells(TEXT, edits)))
    assert rows_after(rows, edits) == after


@pytest.mark.parametrize(
    ("key", "typed", "read"),
    [
        ("input_usd_per_mtok", " 3.10", 3.1),
        ("input_usd_per_mtok", "$0,40", 0.4),
        ("output_usd_per_mtok", "40 ct", 0.4),
        ("output_usd_per_mtok", "0.003 per 1k tokens", 3.0),
        ("context_window", "128k", 128_000),
        ("context_window", "  1,048,576", 1_048_576),
        ("context_window", "200 000", 200_000),
        ("latency_s", "2,5", 2.5),
    ],
)
def test_a_typed_number_is_read_as_price_tables_read_it(key, typed, read):
    model = parse_catalog(edit_cells(TEXT, {1: {key: typed}})).models[1]
    assert getattr(model, key) == read


@pytest.mark.parametrize(
    ("key", "typed"),
    [
        *[
            ("input_usd_per_mtok", typed)
            for typed in ("3k", "1/2", "1.2.3", "5 %", "1 000", "128,000", "n/a", "2.5 EUR")
        ],
        *[("context_window", typed) for typed in ("32.000", "128.5.1", "12k5", "?")],
        ("latency_s", "$3"),
    ],
)
def test_what_is_no_number_is_kept_as_it_was_typed_and_named(key, typed):
    after = edit_cells(TEXT, {1: {key: typed}})
    assert model_rows(CatalogDocument.parse(after))[1][key] == typed
    with pytest.raises(CatalogError) as caught:
        parse_catalog(after)
    (problem,) = cell_problems(caught.value.problems)
    assert problem.model == "claude-haiku-4.5"
    assert repr(typed) in problem.message
    assert problem.remedy


def test_points_between_thousands_are_not_decimal_points():
    with pytest.raises(CatalogError, match="write 32000, or with fewer or more decimals"):
        parse_catalog(edit_cells(TEXT, {1: {"context_window": "32.000"}}))


def test_rates_are_shares_or_percentages_and_other_texts_are_named():
    rate = f"s.{CATALOG.models[0].id}"
    row, before = (
        CATALOG.benchmarks[0].id,
        edit_evidence(TEXT, {0: {rate: "72 %", "importance": " 0.2"}}),
    )
    after = parse_catalog(before)
    assert (after.models[0].scores[row], after.benchmarks[0].importance) == (0.72, 0.2)
    assert edit_evidence(before, {0: {rate: "0.720"}}) == before
    with pytest.raises(CatalogError, match="got the text '3k'"):
        parse_catalog(edit_evidence(TEXT, {0: {rate: "3k"}}))
    with pytest.raises(CatalogError, match="got the text '1/2'"):
        parse_catalog(edit_scales(TEXT, {"debugging": {"weight": "1/2"}}))
    with pytest.raises(CatalogError, match="got the text '1/2'"):
        parse_catalog(edit_capabilities(TEXT, {0: {"debugging": "1/2"}}))


def test_an_optional_cell_can_be_filled_and_emptied():
    filled = edit_cells(TEXT, {0: {"cached_input_usd_per_mtok": 0.03}})
    assert parse_catalog(filled).models[0].cached_input_usd_per_mtok == 0.03
    assert edit_cells(filled, {0: {"cached_input_usd_per_mtok": None}}) == TEXT


def test_prices_of_long_requests_are_one_cell():
    cell = "200000: 4/18/0.4; 1000000: 8/30"
    after = edit_cells(TEXT, {1: {"long_prompts": cell}})
    assert parse_catalog(after).models[1].long_prompts == (
        LongPromptPrice(200_000, 4.0, 18.0, 0.4), LongPromptPrice(1_000_000, 8.0, 30.0)
    )  # fmt: skip
    assert model_rows(CatalogDocument.parse(after))[1]["long_prompts"] == cell
    rows = model_rows(CatalogDocument.parse(TEXT))
    assert rows_after(rows, {1: {"long_prompts": cell}})[1]["long_prompts"] == cell
    assert edit_cells(after, {1: {"long_prompts": cell}}) == after
    assert edit_cells(after, {1: {"long_prompts": ""}}) == TEXT
    pasted = read_pasted("Model\tLong requests\nclaude-haiku-4.5\t200000: 4/18", CATALOG)
    (tier,) = parse_catalog(apply_pasted(TEXT, pasted)).models[1].long_prompts
    assert tier == LongPromptPrice(200_000, 4.0, 18.0)


@pytest.mark.parametrize("cell", ["200.000: 4/18", "200000: 4", "4/18", "200000: 4/18/1/1"])
def test_a_wrong_price_of_long_requests_is_kept_and_says_the_form(cell):
    after = edit_cells(TEXT, {1: {"long_prompts": cell}})
    with pytest.raises(CatalogError) as caught:
        parse_catalog(after)
    (problem,) = cell_problems(caught.value.problems)
    assert (problem.row, problem.column) == (1, "Long requests")
    assert "in a cell 200000: 4/18/0.4" in problem.remedy


def test_an_emptied_price_is_a_problem_and_never_zero():
    text = edit_cells(TEXT, {0: {"input_usd_per_mtok": None}})
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text)
    (problem,) = cell_problems(caught.value.problems)
    assert (problem.row, problem.model, problem.column) == (0, "gpt-5.4-mini", "Input price")
    assert "is empty" in problem.message


def test_an_id_is_never_emptied_and_one_that_is_missing_makes_no_model_its_variant():
    with pytest.raises(CatalogError, match="needs an id"):
        edit_cells(TEXT, {1: {"id": ""}})
    broken = TEXT.replace("id: gpt-5.4-mini", "id:", 1)
    with pytest.raises(CatalogError) as caught:
        parse_catalog(broken)
    assert "None" not in str(caught.value)
    assert parse_catalog(edit_cells(broken, {0: {"id": "gpt-5.4-mini"}})) == CATALOG


def test_a_wrong_word_is_kept_and_told_with_a_suggestion():
    text = edit_cells(TEXT, {2: {"status": "actve"}})
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text)
    (problem,) = cell_problems(caught.value.problems)
    assert (problem.row, problem.column) == (2, "Status")
    assert "did you mean 'active'?" in problem.remedy


def test_a_copy_gets_a_free_id_and_the_same_profile():
    twice = parse_catalog(duplicate_model(duplicate_model(TEXT, 0), 0))
    ids = [model.id for model in twice.models]
    assert ids[-2:] == ["gpt-5.4-mini-copy", "gpt-5.4-mini-copy-2"]
    assert twice.models[-1].scores == twice.models[0].scores


def test_models_are_disabled_and_removed():
    assert parse_catalog(set_status(TEXT, [1], ModelStatus.DISABLED)).models[1].status == "disabled"
    kept = parse_catalog(remove_models(TEXT, [0, 3]))
    assert [model.id for model in kept.models] == ["claude-haiku-4.5", "gpt-5.3-codex", "gpt-5.4"]


@pytest.mark.parametrize("mark", ["\t", ";", ","])
def test_pasted_rows_change_known_models(mark):
    rows = [["Model", "Input price ($/Mtok)", "Context"], ["claude-haiku-4.5", "0.80", "100000"]]
    pasted = read_pasted("\n".join(mark.join(row) for row in rows), CATALOG)
    assert told(TEXT, apply_pasted(TEXT, pasted)) == [
        "claude-haiku-4.5 input price 0.52 -> 0.80 USD/Mtok",
        "claude-haiku-4.5 context window 200,000 -> 100,000 tokens",
    ]


def test_a_pasted_model_can_be_complete():
    head = "id,provider,status,input,output,context,vision,tools,source,date," + ",".join(
        CATALOG.dimensions
    )
    row = "new-one,acme,active,1,2,1000,yes,no,a list,2026-01-01,0.1,0.1,0.1,0.1"
    after = parse_catalog(apply_pasted(TEXT, read_pasted(f"{head}\n{row}", CATALOG)))
    assert after.model("new-one").overrides["debugging"] == 0.1
    assert after.model("new-one").vision is True


@pytest.mark.parametrize(
    ("heading", "cell", "price"),
    [
        ("Input price (cents)", "40", 0.4),
        ("Input price (per 1K tokens)", "0.0004", 0.4),
        ("Input price", "$0.40", 0.4),
        ("input_usd_per_mtok", "0,40", 0.4),
    ],
)
def test_a_pasted_price_is_read_by_its_unit(heading, cell, price):
    pasted = read_pasted(f"Model\t{heading}\tcheck\nclaude-haiku-4.5\t{cell}\told", CATALOG)
    after = parse_catalog(apply_pasted(TEXT, pasted))
    assert after.model("claude-haiku-4.5").input_usd_per_mtok == price


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Model,Input price (€)\na,1", "is not in USD"),
        ("Model,Input (cached)\na,1", "is not known"),
        ("Model,Output price (>200K)\na,1", "is not known"),
        ("Model,价格\na,1", "is not known"),
        ("Model", "needs a heading"),
        ("Model,Inptu price\na,1", "did you mean"),
        ("Input price\n1", "no column with the model id"),
        ("Model,Input price,Input\na,1,2", "given twice"),
        ("Model,Input price\n,1", "has no model id"),
        ("Model,Input price\na,1,2", "has 3 cells"),
    ],
)
def test_rows_that_cannot_be_read_say_why(text, message):
    with pytest.raises(CatalogError, match=message):
        read_pasted(text, CATALOG)


def test_evidence_is_edited_in_place():
    after = edit_evidence(
        TEXT, {0: {"importance": 0.1, "w.tool_use": 0.6, "s.gpt-5.4": 0.9, "id": "ignored"}}
    )
    row = evidence_rows(CatalogDocument.parse(after))[0]
    assert (row["importance"], row["w.tool_use"], row["s.gpt-5.4"]) == (0.1, 0.6, 0.9)
    assert lines_changed(TEXT, after) == 3


def test_a_benchmark_is_added_and_removed_without_a_trace():
    scores = {model.id: 0.5 for model in CATALOG.models}
    more = add_benchmark(TEXT, "new_bench", 0.2, {"reasoning": 0.5, "tool_use": 0.0}, scores)
    assert parse_catalog(more).benchmarks[-1].weights == (0.5, 0.0, 0.0, 0.0)
    less = remove_benchmarks(more, [len(CATALOG.benchmarks)])
    assert semantic_diff(CATALOG, parse_catalog(less)) == ()


def test_a_capability_set_by_hand_goes_back_to_derived():
    by_hand = edit_capabilities(TEXT, {0: {"debugging": 0.2}})
    assert parse_catalog(by_hand).models[0].overrides == {"debugging": 0.2}
    back = edit_capabilities(by_hand, {0: {"debugging": None}})
    assert semantic_diff(CATALOG, parse_catalog(back)) == ()
    assert (capabilities(parse_catalog(back)) == capabilities(CATALOG)).all()


def test_a_variant_shows_what_it_takes_from_its_base():
    base = CATALOG.models[0].id
    text = edit_capabilities(add_variant(TEXT, 0), {0: {"debugging": 0.2, "reasoning": 0.7}})
    document = CatalogDocument.parse(text)
    own, variant = capability_rows(document)[0], capability_rows(document)[-1]
    assert (variant["debugging"], variant["reasoning"], variant["tool_use"]) == (0.2, 0.7, None)
    rates = evidence_rows(document)[0]
    assert rates[f"s.{variant['model']}"] == rates[f"s.{base}"] is not None
    last = len(CATALOG.models)
    cleared = edit_capabilities(text, {last: {"debugging": None}})
    assert parse_catalog(cleared).models[last].overrides == {"reasoning": 0.7}
    assert capability_rows(CatalogDocument.parse(cleared))[0] == own
    assert edit_capabilities(text, {last: {"debugging": 0.2}}) == text


def test_an_edit_of_a_model_that_is_gone_is_refused():
    with pytest.raises(CatalogError, match="there is no row 6"):
        edit_capabilities(TEXT, {len(CATALOG.models): {"debugging": 0.2}})


def test_a_text_in_place_of_a_capability_can_be_cleared():
    wrong = edit_capabilities(TEXT, {0: {"debugging": "about a half"}})
    assert capability_rows(CatalogDocument.parse(wrong))[0]["debugging"] == "about a half"
    back = edit_capabilities(wrong, {0: {"debugging": None}})
    assert semantic_diff(CATALOG, parse_catalog(back)) == ()


def test_bands_and_weights_are_shown_while_one_is_wrong():
    rows = scale_rows(CatalogDocument.parse(edit_scales(TEXT, {"debugging": {"lo": "low"}})))
    assert [row["dimension"] for row in rows] == list(CATALOG.dimensions)
    k = CATALOG.dimensions.index("debugging")
    assert (rows[k]["lo"], rows[k]["hi"]) == ("low", CATALOG.bands[k].hi)
    assert [row["weight"] for row in rows] == list(CATALOG.policy.weights)


def test_bands_weights_and_dimensions():
    after = parse_catalog(edit_scales(TEXT, {"debugging": {"lo": 0.01, "hi": 0.3, "weight": 2.0}}))
    k = CATALOG.dimensions.index("debugging")
    assert (after.bands[k].lo, after.bands[k].hi, after.policy.weights[k]) == (0.01, 0.3, 2.0)
    with pytest.raises(CatalogError, match="no benchmark with importance"):
        parse_catalog(add_dimension(TEXT, "long_context", 0.0, 0.5, 1.0))


def test_a_new_dimension_replaces_none_of_the_same_name():
    with pytest.raises(CatalogError, match="has a dimension debugging already"):
        add_dimension(TEXT, "debugging", 0.0, 0.5, 1.0)


def test_pasted_cells_are_read_as_a_price_table_is_and_a_model_once():
    heading = "Model\tContext window\tPrice date\tCached input price\tInput price\n"
    pasted = read_pasted(f"{heading}claude-haiku-4.5\t100k\t31.03.2026\t–\tn/a\n", CATALOG)
    assert told(TEXT, apply_pasted(TEXT, pasted)) == [
        "claude-haiku-4.5 context window 200,000 -> 100,000 tokens",
        "claude-haiku-4.5 price read 2026-01-01 -> 2026-03-31",
    ]
    rate = CATALOG.benchmarks[0].id
    shares = read_pasted(f"Model\t{rate}\nclaude-haiku-4.5\t72 %\n", CATALOG)
    assert parse_catalog(apply_pasted(TEXT, shares)).model("claude-haiku-4.5").scores[rate] == 0.72
    with pytest.raises(CatalogError, match="row 2: names claude-haiku-4.5 again"):
        read_pasted("Model\tInput price\nclaude-haiku-4.5\t1\nclaude-haiku-4.5\t2\n", CATALOG)
