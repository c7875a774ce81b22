"""Results of evaluation harnesses become eval sets; filters, repeats and errors are counted."""

import io
import json
import re
import zipfile

import numpy as np
import pytest

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.importers.formats import Kind, looks_like, read
from hydra_core.evalsets.importers.given import AskNames, Given, NamesKnown, parse_prices
from hydra_core.evalsets.importers.harness.adapters import read_harness, run_files
from tests.evalsets.importers.shared_cases import CASES, needs_cases


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def outcomes(draft):
    """(query id, model) -> quality."""
    return {
        (query, model): draft.quality[i, j]
        for i, query in enumerate(draft.queries["query_id"])
        for j, model in enumerate(draft.models)
        if not np.isnan(draft.quality[i, j])
    }


def extra(draft, name, model):
    return draft.extras[name][:, draft.models.index(model)].tolist()


@needs_cases
def test_two_models_of_lm_eval_are_one_set_of_the_filter_that_is_chosen(tmp_path, capsys):
    files = sorted((CASES / "harness").glob("samples_gsm8k_*.jsonl"))
    command = ["import", "harness", *map(str, files), "--out", str(tmp_path / "set")]
    assert main(command) == 2
    scores = re.search(r"several scores: ([^(]+) \(", capsys.readouterr().err)[1]
    assert scores.split(", ") == ["exact_match,strict-match", "exact_match,flexible-extract"]
    assert main([*command, "--score", "exact_match,strict-match"]) == 0
    report = capsys.readouterr().out
    assert "20 x scored as exact_match,flexible-extract, not as exact_match,strict-match" in report
    evalset = load_evalset(tmp_path / "set")
    assert evalset.models == ("llama-3.1-8b", "qwen2.5-72b")
    assert evalset.n == 10
    assert evalset.queries["text"].str.startswith("A farmer has").all()
    for file, model in zip(files, evalset.models, strict=True):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        expected = [row["exact_match"] for row in rows if row["filter"] == "strict-match"]
        assert evalset.quality[:, evalset.models.index(model)].tolist() == expected


@needs_cases
def test_promptfoo_gives_a_query_a_test_and_a_model_a_provider():
    path = CASES / "harness" / "promptfoo.json"
    draft = read_harness([path])
    assert draft.models == ("anthropic:messages:claude-sonnet-4-6", "openai:gpt-5.4-mini")
    assert len(draft.queries) == 12
    assert set(draft.queries["text"]) == {f"Answer: Fix bug {n}" for n in range(12)}
    rows = json.loads(path.read_text())["results"]["results"]
    expected = {(f"test-{r['testIdx']}", r["provider"]["id"]): r["score"] for r in rows}
    assert outcomes(draft) == expected
    assert set(draft.cost_usd[:, 1]) == {0.0012}
    assert set(extra(draft, "input_tokens", "openai:gpt-5.4-mini")) == {40.0}
    assert set(extra(draft, "latency_s", "openai:gpt-5.4-mini")) == {1.2}


def sample(number, **changes):
    row = {
        "doc_id": number,
        "doc": {"question": f"What is {number}?", "hint": f"Hint {number}"},
        "arguments": [["prompt", {}]],
        "filtered_resps": ["1"],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"h{number}",
        "acc": number % 2,
    }
    return row | changes


def test_a_file_of_lm_eval_takes_its_model_and_the_text_from_where_it_is_said(tmp_path):
    path = jsonl(tmp_path / "samples_arc_2026-01-02T03-04-05.123.jsonl", [sample(1), sample(2)])
    draft = read_harness([path])
    assert draft.models == ("arc",)
    assert "--model ID=NAME" in draft.report.warnings[0]
    named = read_harness([path], Given(models={"llama": "arc"}, text_path="doc.hint"))
    assert named.models == ("llama",)
    assert named.queries["text"].tolist() == ["Hint 1", "Hint 2"]


def test_files_of_the_same_name_take_the_model_from_their_folder(tmp_path):
    for model in ("org__one", "org__two"):
        (tmp_path / model).mkdir()
        jsonl(tmp_path / model / "samples_arc.jsonl", [sample(1)])
    draft = read_harness(run_files(tmp_path))
    assert draft.models == ("org/one", "org/two")


@pytest.mark.parametrize("folder", ["org__one", "gpt-4o"])
def test_files_that_lm_eval_named_by_task_take_the_model_from_their_folder(tmp_path, folder):
    (tmp_path / folder).mkdir()
    stamp = "2026-01-02T03-04-05.678901"
    (tmp_path / folder / f"results_{stamp}.json").write_text("{}")
    for task in ("arc", "gsm8k"):
        rows = [sample(1, doc_hash=task)]
        path = jsonl(tmp_path / folder / f"samples_{task}_{stamp}.jsonl", rows)
    for files in ([path], sorted(path.parent.glob("samples_*"))):
        assert read_harness(files).models == (folder.replace("__", "/"),)


def test_repeats_are_averaged_and_counted(tmp_path):
    rows = [sample(1), sample(1, acc=0), sample(2)]
    draft = read_harness([jsonl(tmp_path / "samples_arc_m.jsonl", rows)])
    assert sorted(outcomes(draft).values()) == [0.0, 0.5]
    assert any("1 outcome is the mean of several answers (up to 2)" in warning
               for warning in draft.report.warnings)  # fmt: skip


def inspect_log(samples, model="openai/gpt-5"):
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "arith", "model": model},
        "plan": {},
        "samples": samples,
    }


def inspect_samples():
    usage = {"input_tokens": 100, "output_tokens": 20, "total_tokens": 170,
             "input_tokens_cache_read": 50}  # fmt: skip
    judge = {"openai/judge": {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}}
    return [
        {"id": 1, "epoch": 1, "input": "One?", "scores": {"match": {"value": "C"}},
         "model_usage": {"openai/gpt-5": usage, **judge}, "working_time": 2.5},
        {"id": 1, "epoch": 2, "input": "One?", "scores": {"match": {"value": "I"}},
         "model_usage": {"openai/gpt-5": usage}, "working_time": 1.5},
        {"id": "b", "epoch": 1, "input": [{"role": "user", "content": "Two?"}],
         "scores": {"match": {"value": 1}}, "model_usage": {}},
        {"id": "c", "epoch": 1, "input": "Three?", "scores": {}, "error": {"message": "x"}},
        {"id": "d", "epoch": 1, "input": "Four?", "scores": {}},
    ]  # fmt: skip


def written_log(path, log):
    """A log in the form that its name says."""
    if path.suffix == ".json":
        path.write_text(json.dumps(log))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps({**log, "samples": []}))
        for one in log["samples"]:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("summaries.json", "[]")
    return path


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_inspect_logs_are_read_in_both_forms(tmp_path, kind):
    log, path = inspect_log(inspect_samples()), tmp_path / f"log.{kind}"
    written_log(path, log)
    draft = read_harness([path], Given(prices=parse_prices(["openai/gpt-5=1,2,cached=0.1"])))
    model = "openai/gpt-5"
    assert outcomes(draft) == {("arith:1", model): 0.5, ("arith:b", model): 1.0}
    assert extra(draft, "input_tokens", model)[0] == 150
    assert extra(draft, "cached_input_tokens", model)[0] == 50
    assert extra(draft, "latency_s", model)[0] == 2.0
    assert draft.cost_usd[0, 0] == pytest.approx((150 + 40 - 45) / 1e6)
    assert {one.reason: one.count for one in draft.report.dropped} == {
        "the sample ended in an error": 1,
        "no feedback": 1,
    }


@pytest.mark.parametrize("kind", ["eval", "json"])
@pytest.mark.parametrize("status", ["error", "cancelled", "started", ""])
def test_an_inspect_run_that_did_not_finish_is_named_and_its_scores_are_kept(
    tmp_path, kind, status
):
    log, path = {**inspect_log(inspect_samples()[:3]), "status": status}, tmp_path / f"log.{kind}"
    written_log(path, log)
    draft = read_harness([path])
    assert outcomes(draft) == {
        ("arith:1", "openai/gpt-5"): 0.5,
        ("arith:b", "openai/gpt-5"): 1.0,
    }
    said = f"the run did not finish (status {status or 'started'}): the 3 samples"
    assert f"{path.name}: {said}" in " ".join(draft.report.warnings)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 100, "output_tokens": 10, "reasoning_tokens": 200, "total_tokens": 310},
         (100, 210)),
        ({"input_tokens": 100, "output_tokens": 210, "reasoning_tokens": 200, "total_tokens": 310},
         (100, 210)),
        ({"input_tokens": 40, "output_tokens": 10, "reasoning_tokens": 200, "total_tokens": 310,
          "input_tokens_cache_read": 60}, (100, 210)),
        ({"input_tokens": 40, "output_tokens": 10, "total_tokens": 110,
          "input_tokens_cache_read": 60}, (100, 10)),
    ],
)  # fmt: skip
def test_reasoning_beside_inspects_answer_counts_as_output(tmp_path, usage, expected):
    one = {"id": 1, "input": "One?", "scores": {"match": {"value": "C"}},
           "model_usage": {"google/gemini": usage}}  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log([one], "google/gemini")))
    draft = read_harness([path])
    found = [extra(draft, f"{side}_tokens", "google/gemini")[0] for side in ("input", "output")]
    assert tuple(found) == expected


def test_an_older_inspect_log_has_one_score_without_a_name(tmp_path):
    rows = [
        {"id": n, "input": f"{n}?", "score": {"value": letter}} for n, letter in enumerate("CI")
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log(rows)))
    assert read_harness([path]).quality.tolist() == [[1], [0]]


def test_an_inspect_run_that_finished_is_not_named(tmp_path):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspect_log(inspect_samples())))
    assert "did not finish" not in " ".join(read_harness([path]).report.warnings)


def test_a_damaged_inspect_log_is_refused(tmp_path):
    whole = written_log(tmp_path / "log.eval", inspect_log(inspect_samples()))
    (tmp_path / "cut.eval").write_bytes(whole.read_bytes()[:300])
    with pytest.raises(EvalSetError, match=r"cut.eval: is damaged or cut off"):
        read_harness([tmp_path / "cut.eval"])


def promptfoo_row(test, provider, **changes):
    row = {
        "testIdx": test,
        "testCase": {},
        "promptId": "p",
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": f"Ask {test}", "label": "x"},
        "response": {"output": "ok", "tokenUsage": {"prompt": 4, "completion": 2}},
        "score": 1,
        "cost": 0.5,
        "latencyMs": 100,
    }
    return row | changes


def test_promptfoo_rows_from_its_cache_have_no_cost_and_errors_are_skipped(tmp_path):
    cached = {"output": "ok", "cached": True, "tokenUsage": {"cached": 6}}
    rows = [
        promptfoo_row(0, "a"),
        promptfoo_row(0, "b", response=cached, cost=0, latencyMs=1),
        promptfoo_row(1, "a", failureReason=2, error="429", response={}),
        promptfoo_row(1, "b", namedScores={"tone": 0.25}, cost=0),  # as promptfoo without a price
    ]
    draft = read_harness([jsonl(tmp_path / "out.jsonl", rows)])
    assert outcomes(draft) == {("test-0", "a"): 1, ("test-0", "b"): 1, ("test-1", "b"): 1}
    assert np.isnan(draft.cost_usd[:, 1]).all()
    assert "1 request has a cost of 0" in " ".join(draft.report.warnings)
    assert draft.report.dropped[0].reason == "the provider gave an error"
    tone = read_harness([jsonl(tmp_path / "out.jsonl", rows)], Given(score="tone"))
    assert outcomes(tone) == {("test-1", "b"): 0.25}


@pytest.mark.parametrize(
    "content",
    [
        "q,[a] Ask {{q}},[b] Ask {{q}}\none,[PASS] yes,[FAIL] no\ntwo,[ERROR] 429,[PASS] yes\n",
        "Description,q,[a] Ask {{q}},Status,Score,Named Scores,Grader Reason,Comment,"
        "[b] Ask {{q}},Status,Score,Named Scores,Grader Reason,Comment\n"
        "x,one,yes,PASS,1.00,,,,no,FAIL,0.00,,,\nx,two,429,ERROR,0.00,,,,yes,PASS,1.00,,,\n",
    ],
    ids=["old", "new"],
)
def test_promptfoo_csv_is_read_in_both_forms(tmp_path, content):
    path = tmp_path / "out.csv"
    path.write_text(content)
    draft = read_harness([path])
    assert outcomes(draft) == {("test-0", "a"): 1, ("test-0", "b"): 0, ("test-1", "b"): 1}
    assert draft.queries["text"].tolist() == ["Ask one", "Ask two"]


def test_evalplus_takes_its_problems_from_a_file_of_their_own(tmp_path):
    status = {"base_status": "pass", "plus_status": "fail", "solution": "x"}
    results = {"eval": {"HumanEval/0": [{"task_id": "HumanEval/0", **status}]}}
    path = tmp_path / "gpt-5_temp_0.0_eval_results.json"
    path.write_text(json.dumps(results))
    with pytest.raises(EvalSetError, match="--problems"):
        read_harness([path])
    problems = jsonl(tmp_path / "p.jsonl", [{"task_id": "HumanEval/0", "prompt": "def f():"}])
    draft = read_harness([path], Given([problems]))
    assert outcomes(draft) == {("HumanEval/0", "gpt-5_temp_0.0"): 0.0}
    assert draft.queries["text"].tolist() == ["def f():"]
    base = read_harness([path], Given([problems], score="base"))
    assert list(outcomes(base).values()) == [1.0]


def test_a_helm_run_is_read_from_its_folder(tmp_path):
    run = tmp_path / "mmlu:model=x"
    run.mkdir()
    state = {
        "adapter_spec": {"model": "openai/gpt-5"},
        "request_states": [{"instance": {"id": "id1", "input": {"text": "Why?"}}}],
    }
    figures = (("exact_match", 1.0), ("num_prompt_tokens", 40), ("num_output_tokens", 3))
    stats = [{"name": {"name": name}, "mean": value} for name, value in figures]
    (run / "scenario_state.json").write_text(json.dumps(state))
    (run / "per_instance_stats.json").write_text(
        json.dumps([{"instance_id": "id1", "stats": stats}])
    )
    draft = read_harness(run_files(tmp_path))
    assert outcomes(draft) == {("mmlu:id1", "openai/gpt-5"): 1.0}
    assert extra(draft, "input_tokens", "openai/gpt-5") == [40.0]
    uploads = []
    for path in run.iterdir():
        uploads.append(io.BytesIO(path.read_bytes()))
        uploads[-1].name = path.name
    assert {looks_like(one) for one in uploads} == {Kind.HARNESS}
    assert outcomes(read_harness(uploads)) == {("id1", "openai/gpt-5"): 1.0}
    (run / "per_instance_stats.json").unlink()
    with pytest.raises(EvalSetError, match="give one run, its scenario_state.json"):
        read_harness(run_files(tmp_path))


def test_questions_of_one_id_in_files_of_several_tasks_are_not_averaged(tmp_path):
    """Two subjects by one model, of which another has the first: each counts from 1."""
    for name, model, text, letter in (
        ("a", "m1", "Algebra?", "C"), ("b", "m1", "Law?", "I"), ("c", "m2", "Algebra?", "I")
    ):  # fmt: skip
        one = {"id": 1, "input": text, "scores": {"match": {"value": letter}}}
        (tmp_path / f"{name}.json").write_text(json.dumps(inspect_log([one], model)))
    draft = read_harness(sorted(tmp_path.glob("*.json")))
    quality = dict(zip(draft.queries["text"], draft.quality.tolist(), strict=True))
    assert quality["Algebra?"] == [1, 0]
    assert quality["Law?"][0] == 0
    assert draft.queries["query_id"].str.startswith("arith:1-").all()
    assert "1 id names several questions (e.g. arith:1)" in " ".join(draft.report.warnings)


def test_a_model_run_at_several_efforts_is_a_model_for_each(tmp_path):
    for name, effort, letter in (("a", "low", "I"), ("b", "high", "C"), ("c", None, "C")):
        one = {"id": 1, "input": "One?", "scores": {"match": {"value": letter}}}
        log = inspect_log([one]) | {"plan": {"config": {"reasoning_effort": effort}}}
        (tmp_path / f"{name}.json").write_text(json.dumps(log))
    draft = read_harness(sorted(tmp_path.glob("*.json")))
    assert draft.models == ("openai/gpt-5", "openai/gpt-5:high", "openai/gpt-5:low")
    assert draft.quality.tolist() == [[1, 1, 0]]
    assert "openai/gpt-5:high, openai/gpt-5:low; name them" in " ".join(draft.report.warnings)
    assert read_harness([tmp_path / "b.json"]).models == ("openai/gpt-5",)


def test_llmrouters_rows_are_joined_by_their_query(tmp_path):
    rows = [
        {"task_name": "t", "query": "Why?", "model_name": m, "performance": p, "response_time": 2}
        for m, p in (("a", 1.0), ("b", 0.5))
    ]
    draft = read_harness([jsonl(tmp_path / "routing.jsonl", rows)])
    assert draft.quality.tolist() == [[1.0, 0.5]]
    assert draft.queries["group"].tolist() == ["t"]


def test_a_file_of_no_harness_is_refused_and_models_are_asked_for_before_a_score(tmp_path):
    other = tmp_path / "x.json"
    other.write_text('{"a": 1}')
    with pytest.raises(EvalSetError, match="is of no harness that is read"):
        read_harness([other])
    rows = [sample(1, metrics=["acc", "f1"], f1=0.5)]
    path = jsonl(tmp_path / "samples_arc_m.jsonl", rows)
    with pytest.raises(NamesKnown) as known:
        read(Kind.HARNESS, [path], Given(models=AskNames()))
    assert known.value.names == ("arc_m",)
    assert known.value.scores == ("acc", "f1")
    draft = read(Kind.HARNESS, [path], Given(models={"m": "arc_m"}, score="f1"))
    assert draft.quality.tolist() == [[0.5]]


def test_nested_values_of_a_table_are_mapped_by_their_path(tmp_path):
    row = {"id": 1, "doc": {"question": "Why?"}, "run": {"model": "m"}, "ok": 1, "cost": 0.5}
    path = jsonl(tmp_path / "rows.jsonl", [row])
    command = ["import", "table", str(path), "--map", "text=doc.question"]
    command += ["--map", "model=run.model", "--map", "quality=ok", "--out", str(tmp_path / "set")]
    assert main(command) == 0
    assert load_evalset(tmp_path / "set").queries["text"].tolist() == ["Why?"]


def prompted(number, **changes):
    row = {
        "provider": {"id": "openai:gpt"}, "testCase": {}, "promptId": "x", "testIdx": number,
        "prompt": {"raw": f"Do {number}"}, "score": 1, "success": True,
        "response": {"output": "a", "tokenUsage": {"prompt": 10, "completion": 5}},
    }  # fmt: skip
    return row | changes


def test_promptfoos_success_counts_where_no_score_was_written(tmp_path):
    rows = [prompted(i, score=None, success=i == 0) for i in range(2)]
    draft = read_harness([jsonl(tmp_path / "r.jsonl", rows)])
    assert draft.quality.ravel().tolist() == [1.0, 0.0]


def test_tokens_that_were_not_counted_cost_nothing_that_is_known(tmp_path):
    usage = {"output": "a", "tokenUsage": {"prompt": 0, "completion": 0}}
    rows = [prompted(0), prompted(1, response=usage)]
    card = parse_prices(["openai:gpt=1,2"])
    draft = read_harness([jsonl(tmp_path / "r.jsonl", rows)], Given(prices=card))
    np.testing.assert_array_equal(draft.cost_usd.ravel(), [20e-6, np.nan])
