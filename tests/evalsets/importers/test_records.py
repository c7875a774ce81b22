"""Public routing records become eval sets; prices are the operator's, estimates are marked."""

import json
from pathlib import Path

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.base.list_price import FREE, ListPrice
from hydra_core.base.tokens import text_tokens
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.assemble import NO_TEXTS
from hydra_core.evalsets.importers.draft import About, write_draft
from hydra_core.evalsets.importers.given import Given, ModelPrice, parse_prices, price_card
from hydra_core.evalsets.importers.records import (
    read_livecodebench,
    read_llmrouterbench,
    read_routellm,
    read_routerarena,
    result_files,
)

SHARED = Path(__file__).parents[4] / "shared" / "data" / "replay"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")
PRICES = parse_prices(["small=1,2,100", "big=10,20,200"])


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def beside(files, models, prices):
    """The first file, and what is given with it, the second among it."""
    return [files[0]], Given(files[1:], models, prices)


def livecodebench(folder, **changes):
    rows = [
        {"question_id": q, "model": m, "pass@1": p, "difficulty": "easy", "platform": "x"}
        for q, m, p in [("a", "S (N=1)", 100.0), ("a", "B", 50.0), ("b", "S (N=1)", 0.0)]
    ]
    texts = [
        {"question_id": "a", "question_content": "Sort " * 8, "platform": "x", "difficulty": "easy"}
    ]
    texts.append({**texts[0], "question_id": "b", "starter_code": "def f():"})
    content = {"performances": rows, "texts": texts, **changes}
    performances = write_json(folder / "p.json", {"performances": content["performances"]})
    return performances, write_json(folder / "q.json", content["texts"])


def test_prices_are_read_and_every_bad_one_is_named():
    assert PRICES.prices["big"].price.usd_of_one(1e6, 1e6) == 30
    with pytest.raises(EvalSetError) as caught:
        parse_prices(["a=1", "b=1,-2", "c=1,2", "c=1,2", "=1,2"])
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize("price", ["0.0000025,0.00001", "2.5,10,cached=1.25e-06"])
def test_a_price_per_token_is_refused_with_what_it_would_be(price):
    with pytest.raises(EvalSetError, match="looks like a price per token .per million tokens it"):
        parse_prices([f"a={price}"])


def test_a_card_is_free_only_where_that_is_said():
    assert price_card({"a": (0, 0), "b": (1, 2)}, {"b": 9}, ["a"]).prices == {
        "a": ModelPrice(FREE), "b": ModelPrice(ListPrice(1, 2), 9),
    }  # fmt: skip
    for pair, free in (((0, 0), []), ((0, 2), ["a"]), ((1e-6, 2), [])):
        with pytest.raises(EvalSetError, match="prices: a: "):
            price_card({"a": pair}, {}, free)


@pytest.mark.parametrize("price", ["0,0", "0,2", "1,0", "1,2,cached=0"])
def test_a_price_of_nothing_is_refused_before_a_set_is_made_of_it(price):
    with pytest.raises(EvalSetError, match="not above 0 .* self-hosted model what it costs you"):
        parse_prices([f"local={price}"])


def test_tokens_of_a_text_count_its_bytes():
    assert text_tokens("four") == 1
    assert text_tokens("четы") == 2


def test_livecodebench_is_joined_and_marked_as_estimated(tmp_path):
    files = livecodebench(tmp_path)
    models = {"small": "S (N=1)", "big": "B"}
    draft = read_livecodebench(*beside(files, models, PRICES))
    report, found = draft.report, write_draft(draft, tmp_path / "set", About())
    assert (found.models, found.query_ids) == (("big", "small"), ("a", "b"))
    np.testing.assert_array_equal(found.quality, [[0.5, 1.0], [np.nan, 0.0]])
    assert found.cost_usd[0, 1] == pytest.approx((1 * 10 + 2 * 100) / 1e6)
    assert found.cost_estimated
    assert "small 1/2 (100 tokens an answer)" in found.price_notes
    assert any("3 costs were estimated" in text for text in report.warnings)
    assert found.queries["text"][1].endswith("def f():")


def test_livecodebench_says_everything_that_is_missing(tmp_path):
    files = livecodebench(tmp_path)
    with pytest.raises(EvalSetError) as caught:
        read_livecodebench(*beside(files, {"a": "S (N=2)", "b": "B"}, parse_prices(["b=1,2"])))
    text = str(caught.value)
    assert "there is no such model (models like it: S (N=1)" in text
    assert "give --price a=INPUT,OUTPUT" in text
    assert "b: its answers' tokens were not recorded" in text


def test_livecodebench_without_problems_has_neither_texts_nor_costs(tmp_path):
    performances, _ = livecodebench(tmp_path)
    draft = read_livecodebench([performances], Given((), {"small": "S (N=1)", "big": "B"}, PRICES))
    found = write_draft(draft, tmp_path / "set", About())
    assert found.texts is None
    assert list(found.queries["language"]) == ["und", "und"]
    assert list(found.queries["group"]) == ["x/easy", "x/easy"]
    np.testing.assert_array_equal(found.quality, [[0.5, 1.0], [np.nan, 0.0]])
    assert np.isnan(found.cost_usd).all()
    assert NO_TEXTS in draft.report.warnings


def test_names_that_cannot_be_ids_must_be_given_one(tmp_path):
    with pytest.raises(EvalSetError, match=r"such as --model 's-n-1=S \(N=1\)'"):
        read_livecodebench(*beside(livecodebench(tmp_path), {}, PRICES))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"performances": "x"}, 'no "performances" list'),
        ({"texts": {"a": 1}}, "is not a list of problems"),
        ({"texts": []}, "no rows are left"),
    ],
)
def test_damaged_livecodebench_says_why(tmp_path, changes, message):
    files = livecodebench(tmp_path, **changes)
    with pytest.raises(EvalSetError, match=message):
        read_livecodebench(*beside(files, {"small": "S (N=1)"}, PRICES))


def test_a_score_over_100_percent_is_a_problem(tmp_path):
    rows = [{"question_id": "a", "model": "B", "pass@1": 101.0}]
    with pytest.raises(EvalSetError, match=r"quality must be in \[0, 1\]"):
        read_livecodebench(
            *beside(livecodebench(tmp_path, performances=rows), {"big": "B"}, PRICES)
        )


def result(model, costs, *, demo=False, text="Which?"):
    records = [
        {"index": i, "origin_query": f"{text} {i}", "score": i % 2, "cost": cost}
        | {"prompt_tokens": 10, "completion_tokens": 5, "raw_output": "x" * 100}
        for i, cost in enumerate(costs)
    ]
    about = {"model_name": model, "dataset_name": "aime", "split": "test", "demo": demo}
    return {**about, "records": records}


def test_llmrouterbench_takes_the_newest_run_that_is_no_demo(tmp_path):
    write_json(tmp_path / "a-20250101_000000.json", result("small", [9, 9]))
    write_json(tmp_path / "a-20250202_000000.json", result("small", [0.1, 0.2]))
    write_json(tmp_path / "a-20250303_000000.json", result("small", [7, 7], demo=True))
    write_json(tmp_path / "big" / "b-20250101_000000.json", result("big", [1, None]))
    draft = read_llmrouterbench(result_files(tmp_path), Given(prices=PRICES))
    assert draft.models == ("big", "small")
    np.testing.assert_allclose(draft.cost_usd, [[1, 0.1], [200e-6, 0.2]])
    np.testing.assert_array_equal(draft.extras["input_tokens"], 10)
    np.testing.assert_array_equal(draft.extras["output_tokens"], 5)
    assert draft.cost_estimated
    assert list(draft.queries["group"]) == ["aime-test"] * 2
    assert sum("skipped" in text for text in draft.report.warnings) == 2


def test_llmrouterbench_names_a_cost_that_no_float_holds(tmp_path):
    write_json(tmp_path / "a.json", result("small", [10**400]))
    with pytest.raises(EvalSetError, match="cost_usd is not a number"):
        read_llmrouterbench(result_files(tmp_path))


@pytest.mark.parametrize("missing", [None, 0])
def test_llmrouterbench_needs_prices_only_where_costs_are_missing(tmp_path, missing):
    write_json(tmp_path / "a.json", result("small", [0.1]))
    assert not read_llmrouterbench(result_files(tmp_path)).cost_estimated
    write_json(tmp_path / "b.json", result("big", [missing]))
    with pytest.raises(EvalSetError, match="big: no cost was recorded"):
        read_llmrouterbench(result_files(tmp_path))


def test_llmrouterbench_refuses_other_texts_under_one_index(tmp_path):
    write_json(tmp_path / "a.json", result("small", [0.1]))
    write_json(tmp_path / "b.json", result("big", [1.0], text="Other"))
    with pytest.raises(EvalSetError, match="text differs"):
        read_llmrouterbench(result_files(tmp_path))


def arena(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def arena_row(index, result, model="small"):
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"global_index": index, "question": f"Q {index}", "llm_selected": model} | {
        "token_usage": usage,
        "evaluation_result": result,
    }


def test_routerarena_reads_objects_and_literals(tmp_path):
    rows = [
        arena_row("AIME_1", {"score": 1.0, "inference_cost": 0.5}),
        arena_row("AIME_2", "{'score': 0.25, 'inference_cost': 0}"),
        arena_row("AIME_3", None),
    ]
    small = parse_prices(["small=1,2,100"])
    draft = read_routerarena([arena(tmp_path / "small.jsonl", rows)], Given(prices=small))
    np.testing.assert_allclose(draft.quality[:, 0], [1.0, 0.25])
    np.testing.assert_allclose(draft.cost_usd[:, 0], [0.5, 20e-6])
    np.testing.assert_array_equal(draft.extras["input_tokens"][:, 0], 10)
    np.testing.assert_array_equal(draft.extras["output_tokens"][:, 0], 5)
    assert set(draft.queries["group"]) == {"AIME"}
    assert [entry.count for entry in draft.report.dropped] == [1, 1]
    assert any("between 0 and 1" in text for text in draft.report.warnings)


def test_a_score_below_0_counts_as_0_and_is_reported(tmp_path):
    rows = [arena_row("A_1", {"score": -0.03, "inference_cost": 1.0})]
    draft = read_routerarena([arena(tmp_path / "small.jsonl", rows)])
    assert draft.quality[0, 0] == 0
    assert "1 score is below 0: read as 0" in draft.report.warnings


@pytest.mark.parametrize("result", ["__import__('os').getcwd()", "[1]", "(" * 5000, 7])
def test_routerarena_executes_nothing(tmp_path, result):
    path = arena(tmp_path / "small.jsonl", [arena_row("A_1", result)])
    with pytest.raises(EvalSetError, match="neither an object nor the text of one"):
        read_routerarena([path], Given(prices=PRICES))


def routellm(folder, name="set.csv", answers=True):
    head = "prompt,org/small,big" + (",org/small_response,big_response" if answers else "")
    rows = ["Hi there,True,True", '"Two\nlines",False,True']
    rows = [row + (",Four,Fourfour" if answers else "") for row in rows]
    path = folder / name
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_routellm_costs_follow_from_prompt_and_answer(tmp_path):
    models = {"small": "org/small", "big": "big"}
    draft = read_routellm(
        [routellm(tmp_path)], Given((), models, parse_prices(["small=1,2", "big=10,20"]))
    )
    np.testing.assert_array_equal(draft.quality, [[1, 1], [1, 0]])
    np.testing.assert_allclose(draft.cost_usd[0], [(20 + 40) / 1e6, (2 + 2) / 1e6])
    assert draft.cost_estimated


def test_routellm_without_answers_needs_their_tokens(tmp_path):
    files = [routellm(tmp_path, answers=False)]
    models = {"small": "org/small", "big": "big"}
    with pytest.raises(EvalSetError, match="big: its answers' tokens were not recorded"):
        read_routellm(files, Given((), models, parse_prices(["small=1,2,3", "big=10,20"])))
    draft = read_routellm(files, Given((), models, PRICES))
    assert draft.cost_usd[0, 1] == pytest.approx((2 + 200) / 1e6)


def test_routellm_names_the_file_that_lacks_a_model(tmp_path):
    (tmp_path / "bad.csv").write_text("question,big\nHi,True\n")
    files = [routellm(tmp_path), tmp_path / "bad.csv"]
    with pytest.raises(EvalSetError) as caught:
        read_routellm(files, Given((), {"big": "big", "small": "org/small"}, PRICES))
    assert str(caught.value).count("bad.csv: there is no column") == 2


def test_the_command_line_imports_and_reports(tmp_path, capsys):
    path = routellm(tmp_path)
    argv = ["import", "routellm", str(path), "--model", "small=org/small", "--model", "big=big"]
    argv += ["--price", "small=1,2", "--price", "big=10,20", "--json"]
    assert main([*argv, "--out", str(tmp_path / "set")]) == 0
    assert json.loads(capsys.readouterr().out)["kept"] == 2
    assert load_evalset(tmp_path / "set").cost_estimated
    assert main([*argv[:-3], "--dry-run"]) == 2
    assert "big: no cost was recorded" in capsys.readouterr().err


@needs_shared
def test_the_real_livecodebench_of_january():
    performances = SHARED / "livecodebench-leaderboard/2025-01-15/src/mocks"
    problems = SHARED / "livecodebench-problems" / "O1-Mini-2024-09-12 (N=1)"
    draft = read_livecodebench(
        [performances / "performances_generation.json.gz"],
        Given(
            [problems / "Scenario.codegeneration_1_0.2_eval_all.json"],
            {"small": "Claude-3-Haiku", "big": "O1-2024-12-17 (N=1) (High)"},
            PRICES,
        ),
    )
    assert draft.report.dropped == ()
    np.testing.assert_allclose(draft.quality.mean(axis=0), [0.8318, 0.2215], atol=1e-4)


@needs_shared
def test_the_real_routerarena_and_routellm_records():
    arena_files = sorted((SHARED / "routerarena" / "cached_results").glob("*.jsonl"))
    assert read_routerarena(arena_files).report.kept == 809
    gsm8k = SHARED / "routellm" / "routellm" / "evals" / "gsm8k" / "gsm8k_responses.csv"
    models = {"small": "mistralai/Mixtral-8x7B-Instruct-v0.1", "big": "gpt-4-1106-preview"}
    assert read_routellm([gsm8k], Given((), models, PRICES)).report.kept == 1319
