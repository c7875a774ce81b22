"""lm-evaluation-harness: whose model a file is of, and what a question and a score are."""

import json

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.given import Given, parse_prices
from hydra_core.evalsets.importers.harness.adapters import read_harness
from tests.evalsets.importers.test_harness import jsonl, outcomes, sample

STAMP = "2025-06-11T14-05-33.123456"


def rows(task, worth=1):
    return [
        sample(n, doc={"question": f"{task} {n}?"}, doc_hash=f"{task}{n}", acc=worth)
        for n in (0, 1)
    ]


def written(folder, *names):
    """A file of each name `TASK` and `MODEL` in order, the second model being always wrong."""
    return [
        jsonl(folder / name, rows("law" if "law" in name else "math", worth=int("m2" not in name)))
        for name in names
    ]


@pytest.mark.parametrize(
    "names",
    [
        [f"samples_{task}_{model}.jsonl" for model in ("m1", "m2") for task in ("law", "math")],
        [f"{model}_{task}.jsonl" for model in ("m1", "m2") for task in ("mmlu_law", "math")],
        ["samples_law_m1.jsonl", "samples_law_m2.jsonl", "samples_math_m2.jsonl"],
    ],
)
def test_files_of_several_tasks_are_of_the_models_that_their_names_share(tmp_path, names):
    draft = read_harness(written(tmp_path, *names))
    assert draft.models == ("m1", "m2")
    assert len(draft.queries) == 4
    assert {q for (_, model), q in outcomes(draft).items() if model == "m2"} == {0}
    assert {q for (_, model), q in outcomes(draft).items() if model == "m1"} == {1}


def test_tasks_of_one_model_are_read_where_its_name_stands_in_each_file(tmp_path):
    bare = written(tmp_path, f"samples_law_{STAMP}.jsonl", f"samples_math_{STAMP}.jsonl")
    with pytest.raises(EvalSetError, match=r"samples_law\S*: shares no question .*files alike"):
        read_harness(bare)
    draft = read_harness(written(tmp_path, "samples_law_m1.jsonl", "samples_math_m1.jsonl"))
    assert draft.models == ("m1",)
    assert draft.quality.tolist() == [[1]] * 4


def test_files_of_one_name_in_folders_of_tasks_are_of_one_model(tmp_path):
    files = []
    for task in ("law", "math"):
        (tmp_path / task).mkdir()
        files += [
            jsonl(tmp_path / task / f"{model}.jsonl", rows(task, worth))
            for model, worth in (("m1", 1), ("m2", 0))
        ]
    draft = read_harness(files)
    assert draft.models == ("m1", "m2")
    assert draft.quality.tolist() == [[1, 0]] * 4


def test_a_folder_as_the_harness_left_it_is_read_with_its_file_of_means(tmp_path):
    folder = tmp_path / "runs" / "org__model"
    folder.mkdir(parents=True)
    (folder / f"results_{STAMP}.json").write_text(json.dumps({"results": {}, "configs": {}}))
    written(folder, f"samples_law_{STAMP}.jsonl", f"samples_math_{STAMP}.jsonl")
    for number, given in enumerate(([tmp_path / "runs"], sorted(folder.iterdir()))):
        out = tmp_path / f"set{number}"
        assert main(["import", "harness", *map(str, given), "--out", str(out)]) == 0
        assert load_evalset(out).models == ("org/model",)
    with pytest.raises(EvalSetError, match=r"holds no answers of a run .*--log_samples"):
        read_harness([folder / f"results_{STAMP}.json"])


@pytest.mark.parametrize("indent", [None, 2])
def test_samples_that_are_one_json_list_are_read_whatever_their_file_is_called(tmp_path, indent):
    for name in ("samples_law_m1.jsonl", "samples_law_m1.json"):
        (tmp_path / name).write_text(json.dumps(rows("law"), indent=indent))
        assert len(read_harness([tmp_path / name]).queries) == 2


def test_a_prompt_for_a_chat_model_is_read_for_its_last_user_message(tmp_path):
    prompt = json.dumps([{"role": "system", "content": "Be brief."},
                         {"role": "user", "content": "Solve it"}])  # fmt: skip
    for stored in (prompt, [prompt]):
        arguments = {"gen_args_0": {"arg_0": stored, "arg_1": {}}}
        path = jsonl(tmp_path / "s_m1.jsonl", [sample(1, doc={"goal": "x"}, arguments=arguments)])
        assert read_harness([path]).queries["text"].tolist() == ["Solve it"]


def test_a_question_stands_below_the_passage_that_it_is_about(tmp_path):
    doc = {"passage": "The sky is green.", "question": "is it true?", "idx": 3}
    draft = read_harness([jsonl(tmp_path / "s_m1.jsonl", [sample(1, doc=doc)])])
    assert draft.queries["text"].tolist() == ["The sky is green.\n\nis it true?"]


def test_a_score_of_several_instructions_is_the_share_that_was_followed(tmp_path):
    one = sample(1, metrics=["inst_level_strict_acc"], inst_level_strict_acc=[True, False])
    path = jsonl(tmp_path / "s_m1.jsonl", [one])
    np.testing.assert_array_equal(read_harness([path]).quality, [[0.5]])


def test_tasks_with_a_score_of_their_own_each_are_read_together(tmp_path):
    law = [one | {"metrics": ["acc"], "acc": 1} for one in rows("law")]
    math = [one | {"metrics": ["exact_match"], "exact_match": 0} for one in rows("math")]
    files = [jsonl(tmp_path / f"{task}_m1.jsonl", found)
             for task, found in (("law", law), ("math", math))]  # fmt: skip
    draft = read_harness(files)
    assert sorted(draft.quality.ravel()) == [0, 0, 1, 1]
    said = "another score in each task: acc (2 answers), exact_match (2 answers)"
    assert said in " ".join(draft.report.warnings)
    jsonl(files[1], [*math, *(one | {"filter": "strict"} for one in math)])
    with pytest.raises(EvalSetError, match="several scores: exact_match, exact_match,strict"):
        read_harness(files)


def test_costs_are_estimated_from_the_length_of_prompt_and_answer(tmp_path):
    """A thousand bytes of a prompt are 250 tokens; of a multiple choice there is no answer."""
    one = sample(1, arguments={"gen_args_0": {"arg_0": "p" * 1000}}, resps=[["a" * 400]])
    path = jsonl(tmp_path / "s_m1.jsonl", [one])
    draft = read_harness([path], Given(prices=parse_prices(["s_m1=1,10"])))
    assert draft.cost_usd.tolist() == [[pytest.approx((250 + 1000) / 1e6)]]
    assert draft.cost_estimated
    assert "bytes / 4 of prompt and answer" in draft.price_notes
    jsonl(path, [{**one, "resps": [[["-1.5", "False"]]]}])
    draft = read_harness([path], Given(prices=parse_prices(["s_m1=1,10"])))
    assert np.isnan(draft.cost_usd).all()
    assert "--price s_m1=INPUT,OUTPUT,TOKENS" in " ".join(draft.report.warnings)
    stated = read_harness([path], Given(prices=parse_prices(["s_m1=1,10,20"])))
    assert stated.cost_usd.tolist() == [[pytest.approx((250 + 200) / 1e6)]]


def test_log_likelihoods_are_refused_and_no_worth_of_each_is_asked_for(tmp_path):
    one = sample(1, metrics=["acc", "perplexity"], perplexity=-1.25)
    path = jsonl(tmp_path / "s_m1.jsonl", [one])
    with pytest.raises(EvalSetError, match="choose a score from 0 to 1") as refused:
        read_harness([path], Given(score="perplexity"))
    assert "--label" not in str(refused.value)
    assert read_harness([path], Given(score="acc")).quality.tolist() == [[1]]
