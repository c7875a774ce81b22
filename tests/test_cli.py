"""The command line: names, keys and exit codes that others script against."""

import copy
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from hydra_core.base.types import DIMENSIONS
from hydra_core.catalog import load_catalog, pool
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import save_scores
from hydra_core.routing.matcher import choose, shortfall
from hydra_core.store import open_store
from tests.evalsets.importers.test_swebench import BOARD, PROBLEMS, SHARED
from tests.evalsets.sets import saved
from tests.predictor.tiny_bundle import make_bundle

ROOT = Path(__file__).parents[1]
CATALOGS = ROOT / "catalog"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A bundle, a catalog that is bound to it, and an eval set with outcomes for the catalog."""
    folder = tmp_path_factory.mktemp("world")
    make_bundle(folder / "bundle")
    text = (CATALOGS / "matched_three.yaml").read_text()
    (folder / "pool.yaml").write_text(text)
    assert main(["rebind", str(folder / "pool.yaml"), "--bundle", str(folder / "bundle")]) == 0
    models = ("gpt-5", "gpt-5-mini", "gpt-5.2")
    quality = np.array([[1, 1, 1], [0, 0, 1], [1, 0, 1.0]])
    cost = np.array([[0.2, 0.02, 0.5], [0.2, 0.03, 0.6], [0.3, 0.04, 0.7]])
    saved(folder / "set", models=models, quality=quality, cost_usd=cost)
    assert main(["score", str(folder / "set"), "--bundle", str(folder / "bundle")]) == 0
    return folder


@pytest.fixture
def run(capsys, monkeypatch):
    """Run one command line: (exit code, stdout, stderr)."""

    def call(*arguments, stdin=""):
        capsys.readouterr()
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def evaluate_json(run, *arguments):
    code, out, _ = run("evaluate", *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_evaluate_has_the_promised_keys(run, world):
    found = evaluate_json(run, world / "set", "--catalog", world / "pool.yaml", "--tau", "0.1")
    assert found["n"] == 3
    assert set(found["models"]) == {"gpt-5", "gpt-5-mini", "gpt-5.2"}
    assert found["models"]["gpt-5"].keys() >= {"resolved", "quality", "mean_cost_usd"}
    assert found["oracle"].keys() >= {"resolved", "mean_cost_usd", "cs"}
    router = found["router"]
    keys = {"tau", "quality", "mean_cost_usd", "qr", "cs", "misroute", "shares", "ci"}
    assert router.keys() >= keys
    assert router["ci"].keys() >= {"quality", "qr", "cs", "misroute"}
    assert router["ci"].pop("qr") == [None, None]  # three queries that are all alike
    assert all(low <= router[name] <= high for name, (low, high) in router["ci"].items())
    assert sum(router["shares"].values()) == pytest.approx(1)
    assert found["verdict"].keys() >= {"label", "text", "delta", "interval", "constant"}
    assert found["verdict"]["label"] in ("better", "no measurable difference", "worse")
    assert all(len(point) == 3 for point in found["frontier"])
    assert found["frontier"][0][0] == 0


def test_evaluate_tells_the_costs_of_cheap_models_apart(run):
    arguments = ("sample_data/mixed_2024", "--catalog", "catalog/mixed_2024.yaml")
    _, out, _ = run("evaluate", *arguments)
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert "0.000342" in lines["gpt-3.5-turbo-0125"]
    assert "0.000386" in lines["llama-3-70b-instruct"]


def test_what_goes_to_a_model_without_outcomes_is_said_to_be_a_bound(run, world, tmp_path):
    document = yaml.safe_load((world / "pool.yaml").read_text())
    cheap = next(one for one in document["models"] if one["id"] == "gpt-5-mini")
    cheap = copy.deepcopy(cheap) | {"id": "newcomer", "input_usd_per_mtok": 0.002}
    cheap["price_date"] = date(2026, 1, 2)
    document["models"].append(cheap)
    (tmp_path / "pool.yaml").write_text(yaml.safe_dump(document))
    _, out, err = run("evaluate", world / "set", "--catalog", tmp_path / "pool.yaml", "--tau", "9")
    row = next(line for line in out.splitlines() if line.startswith("router  "))
    assert "≥ 0/3  ≥ 0.0 %" in row, err


def test_evaluate_agrees_with_the_frontier_at_every_tau(run, world):
    common = (world / "set", "--catalog", world / "pool.yaml")
    for tau, quality, cost in evaluate_json(run, *common)["frontier"]:
        router = evaluate_json(run, *common, "--tau", tau)["router"]
        assert (router["quality"], router["mean_cost_usd"]) == pytest.approx((quality, cost))


def test_evaluate_takes_tau_from_the_catalog_and_weights_and_baseline_from_the_line(run, world):
    common = (world / "set", "--catalog", world / "pool.yaml")
    plain = evaluate_json(run, *common)
    heavy = evaluate_json(run, *common, "--weights", "5,5,5,5", "--baseline", "gpt-5")
    assert f"tau: {plain['router']['tau']:g}" in (world / "pool.yaml").read_text()
    assert plain["frontier"][-1][0] < heavy["frontier"][-1][0]
    assert heavy["models"]["gpt-5"]["cs"] == 0


def test_evaluate_prints_a_table_and_the_verdict(run, world):
    code, out, _ = run("evaluate", world / "set", "--catalog", world / "pool.yaml")
    assert code == 0
    assert "oracle" in out
    assert "result: " in out


def test_the_synthetic_reconstruction_uses_the_papers_own_scores(run):
    published = CATALOGS / "paper_five_published.yaml"
    found = evaluate_json(run, ROOT / "sample_data" / "paper_swebench", "--catalog", published)
    assert found["synthetic"] is True
    assert found["oracle"]["resolved"] == 431
    assert found["models"]["gpt-5.4-mini"]["resolved"] == 347


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{set}", "--catalog", "{catalogs}/paper_five_published.yaml"], 2, "no outcomes for"),
        (["{set}", "--catalog", "{pool}", "--tau", "-1"], 2, "--tau"),
        (["{set}", "--catalog", "{pool}", "--tau", "nan"], 2, "--tau"),
        (["{set}", "--catalog", "{pool}", "--weights", "1,1"], 2, "weights"),
        (["{set}", "--catalog", "{pool}", "--weights", "a,b,c,d"], 2, "--weights"),
        (["{set}", "--catalog", "{pool}", "--weights", "0,1,1,1"], 2, "weights"),
        (["{set}", "--catalog", "{pool}", "--baseline", "gpt-9"], 2, "one of gpt-5"),
        (["{set}/nowhere", "--catalog", "{pool}"], 1, "there is no such file"),
        (["{set}", "--catalog", "{pool}x"], 1, "there is no such file"),
        (["{bundle}", "--catalog", "{pool}"], 2, "has no evalset.yaml"),
    ],
)
def test_evaluate_says_what_is_wrong(run, world, arguments, code, message):
    names = {"set": world / "set", "pool": world / "pool.yaml", "bundle": world / "bundle"}
    filled = [argument.format(**names, catalogs=CATALOGS) for argument in arguments]
    found, out, err = run("evaluate", *filled)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_scores_of_another_bundle_are_never_used(run, world, tmp_path):
    evalset = saved(tmp_path / "set", models=("gpt-5", "gpt-5-mini"))
    save_scores(evalset, "paper", DIMENSIONS, np.full((3, 4), 0.5))
    code, _, err = run("evaluate", tmp_path / "set", "--catalog", world / "pool.yaml")
    assert code == 2
    assert "rebind" in err


def test_a_set_that_is_not_scored_says_how_to_score_it(run, world, tmp_path):
    saved(tmp_path / "set", models=("gpt-5", "gpt-5-mini"))
    code, _, err = run("evaluate", tmp_path / "set", "--catalog", world / "pool.yaml")
    assert code == 2
    assert "hydra-router" in err


def test_route_prints_the_model_and_explains_it(run, world):
    common = ("--catalog", world / "pool.yaml", "--bundle", world / "bundle")
    code, plain, _ = run("route", *common, stdin="fix the bug\n")
    assert (code, plain.strip() in ("gpt-5", "gpt-5-mini", "gpt-5.2")) == (0, True)
    code, explained, _ = run("route", *common, "--explain", stdin="fix the bug\n")
    assert code == 0
    assert all(word in explained for word in ("needs:", "gpt-5-mini", "shortfall", plain.strip()))
    _, explained, _ = run("route", "Hi", "--catalog", "mixed_2024", "--explain")
    assert re.search(r" 0\.000[1-9]\d\d ", explained)  # a cheap model costs something
    _, explained, _ = run("route", *common, "--explain", "--tau", "1e-5", stdin="fix the bug\n")
    assert "tau 0.00001)" in explained
    code, out, _ = run("route", *common, "--json", stdin="fix the bug\n")
    receipt = json.loads(out)
    assert (code, receipt["model"]) == (0, plain.strip())
    assert [one["model"] for one in receipt["candidates"]] == ["gpt-5-mini", "gpt-5", "gpt-5.2"]


def test_route_reads_a_whole_request_as_serve_does(run):
    common = "route", "--catalog", "paper_five", "--messages"
    request = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0}
    code, plain, _ = run(*common, stdin=json.dumps(request))
    assert (code, plain) == (0, "gpt-5.4-mini\n")
    tool = {"type": "function", "function": {"name": "f", "description": "x" * 1_700_000}}
    for more in ({"max_tokens": 400_001}, {"tools": [tool]}):
        code, out, err = run(*common, stdin=json.dumps(request | more))
        assert (code, out) == (2, "")
        assert "Context window" in err


def test_route_takes_the_message_itself_too(run, world):
    common = ("--catalog", world / "pool.yaml", "--bundle", world / "bundle")
    receipts = [
        json.loads(out)
        for _, out, _ in (
            run("route", *common, "--json", stdin="fix the bug\n"),
            run("route", "fix the bug", *common, "--json", stdin="something else"),
        )
    ]
    assert receipts[0]["requirements"] == receipts[1]["requirements"]
    code, _, err = run("route", "fix the bug", *common, "--stream", stdin="")
    assert (code, "leave out TEXT or --stream" in err) == (2, True)


def test_the_rules_of_harness_text_are_json_where_that_is_asked_for(run):
    code, out, _ = run("harness", "--json")
    found = json.loads(out)
    assert (code, found["schema"]) == (0, "hydra.harness/v1")
    assert f"name: {found['rules'][0]['name']}" in run("harness")[1]


def test_route_by_value_refuses_a_tau_that_changes_nothing(run):
    code, out, err = run("route", "Hi", "--catalog", "mixed_2024", "--tau", "9")
    assert (code, out) == (2, "")
    assert "--tau: has no effect under the value rule" in err


def test_route_at_a_large_tau_takes_the_cheapest(run, world):
    common = ("--catalog", world / "pool.yaml", "--bundle", world / "bundle")
    assert run("route", *common, "--tau", "9", stdin="fix")[1] == "gpt-5-mini\n"


def test_route_refuses_a_catalog_of_another_bundle(run, world):
    catalog = CATALOGS / "paper_five_published.yaml"
    code, _, err = run("route", "--catalog", catalog, "--bundle", world / "bundle", stdin="x")
    assert code == 2
    assert "rebind" in err


def test_route_refuses_what_is_not_text(run, world):
    common = ("--catalog", world / "pool.yaml", "--bundle", world / "bundle")
    code, _, err = run("route", *common, stdin=b"\xff\xfe")
    assert code == 2
    assert "not UTF-8" in err


def test_score_texts_keeps_ids_and_order(run, world):
    lines = [
        {"id": 7, "text": "fix bug"},
        {"id": "b", "text": ""},
        {"id": 7, "text": "😀", "turn": 3},
    ]
    stdin = "".join(json.dumps(line) + "\n" for line in lines)
    code, out, _ = run("score-texts", "--bundle", world / "bundle", stdin=stdin)
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [one["id"] for one in found] == [7, "b", 7]
    assert all(list(one) == ["id", *DIMENSIONS] for one in found)
    assert all(0 <= one[name] <= 1 for one in found for name in DIMENSIONS)


def test_score_texts_says_what_was_not_read(run, world):
    stdin = json.dumps({"id": 1, "text": "fix bug " * 20_000})
    found = json.loads(run("score-texts", "--bundle", world / "bundle", stdin=stdin)[1])
    assert found["truncated"] is True


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": 1}', '{"text": "x"}', '{"id": 1, "text": 2}', "[" * 100_000,
             '{"id": 1, "text": "x", "turn": 0}'],
)  # fmt: skip
def test_score_texts_names_the_line_that_is_wrong(run, world, line):
    stdin = '{"id": 1, "text": "x"}\n' + line + "\n"
    code, _, err = run("score-texts", "--bundle", world / "bundle", stdin=stdin)
    assert code == 2
    assert "line 2" in err


def test_evaluate_predictor_has_the_promised_keys(run, world, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"id": i, "text": "fix bug " * (i % 9), "lang": ("en", "zh")[i % 2]}
        | {name: float(value) for name, value in zip(DIMENSIONS, rng.random(4), strict=True)}
        for i in range(30)
    ]
    labelled = tmp_path / "labelled.jsonl"
    labelled.write_text("".join(json.dumps(row) + "\n" for row in rows))
    common = (
        "lab",
        "evaluate-predictor",
        labelled,
        "--bundle",
        world / "bundle",
        "--resamples",
        50,
    )
    code, out, _ = run(*common, "--json")
    found = json.loads(out)
    names = {"pearson", "spearman", "mae", "rmse", "accuracy", "alpha", "groups", "bundle", "n"}
    assert code == 0
    assert found.keys() >= names
    assert list(found["pearson"]) == list(DIMENSIONS)
    assert set(found["groups"]) == {"english", "cjk"}
    assert "pearson" in run(*common)[1]
    labelled.write_text(json.dumps({**rows[0], "reasoning": 1.5}) + "\n")
    code, _, err = run(*common)
    assert code == 2
    assert "reasoning must be a number in [0, 1]" in err


def test_import_table_writes_reports_and_refuses(run, tmp_path):
    source = tmp_path / "x.csv"
    source.write_text("qid,prompt,lang,model,score,usd\na,Fix,en,m,1,0.1\nb,Mend,en,m,0,0.2\n")
    common = ("import", "table", source, "--map", "query_id=qid", "--out", tmp_path / "set")
    code, out, _ = run(*common, "--dry-run")
    assert code == 0
    assert not (tmp_path / "set").exists()
    code, out, _ = run(*common, "--json", "--licence", "CC0", "--synthetic")
    assert (code, json.loads(out)["kept"]) == (0, 2)
    found = load_evalset(tmp_path / "set")
    assert (found.licence, found.synthetic) == ("CC0", True)
    code, _, err = run(*common)
    assert code == 2
    assert "--force" in err
    assert run(*common, "--force")[0] == 0
    source.write_text("qid,prompt,lang,model,score,usd\na,Fix,en,m,1.7,0.1\n")
    code, _, err = run(*common, "--force")
    assert (code, "1.7" in err) == (2, True)
    assert load_evalset(tmp_path / "set").n == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["table", "{x}/nowhere.csv", "--out", "{x}/set"], 1, "there is no such file"),
        (["table", "{x}/a.csv"], 2, "--out"),
        (["table", "{x}/a.csv", "--out", "{x}/set", "--map", "text"], 2, "FIELD=COLUMN"),
        (["table", "{x}/a.csv", "--out", "{x}/set", "--quality-scale", "0"], 2, "--quality-scale"),
        (["swebench", "{x}/a.csv", "--problems", "{x}/a.csv", "--out", "{x}/s", "--model", "a"],
         2, "ID=RUN_FOLDER"),
        (["swebench", "{x}/a.csv", "--out", "{x}/s"], 2, "must be a .json file"),
    ],
)  # fmt: skip
def test_import_says_what_is_wrong(run, tmp_path, arguments, code, message):
    (tmp_path / "a.csv").write_text("query_id,text,language,model,quality,cost_usd\n")
    found, _, err = run("import", *(argument.format(x=tmp_path) for argument in arguments))
    assert found == code
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_score_reports_json_and_progress_apart(run, world):
    code, out, err = run("score", world / "set", "--bundle", world / "bundle", "--json")
    assert (code, json.loads(out)["n"]) == (0, 3)
    assert "3/3" in err


@pytest.mark.parametrize(
    ("name", "kind"),
    [("pool.yaml", "catalog"), ("set", "eval set"), ("bundle", "bundle"),
     ("set/evalset.yaml", "eval set")],
)  # fmt: skip
def test_validate_tells_what_a_file_is_by_its_content(run, world, name, kind):
    code, out, _ = run("validate", world / name, "--json")
    assert code == 0
    assert json.loads(out) == {
        "valid": True,
        "kind": kind,
        "file": str(world / name),
        "problems": [],
    }
    assert kind in run("validate", world / name)[1]


def test_validate_lists_every_problem(run, tmp_path):
    broken = tmp_path / "broken.yaml"
    text = (CATALOGS / "paper_five.yaml").read_text()
    broken.write_text(
        text.replace("cost_basis: list_price", "cost_bases: list_price", 1) + "x: 1\n"
    )
    code, out, _ = run("validate", broken, "--json")
    found = json.loads(out)
    assert (code, found["valid"]) == (2, False)
    assert len(found["problems"]) >= 2
    assert all(one.keys() == {"place", "message", "remedy"} for one in found["problems"])
    code, out, err = run("validate", broken)
    assert (code, out) == (2, "")
    assert "cost_bases" in err


def test_validate_of_nothing_could_not_be_run(run, tmp_path):
    assert run("validate", tmp_path / "nowhere.yaml")[0] == 1
    assert run("validate", tmp_path)[0] == 2


def test_rebind_leaves_named_profiles_and_broken_catalogs_alone(run, world, tmp_path):
    published = tmp_path / "published.yaml"
    published.write_text((CATALOGS / "paper_five_published.yaml").read_text())
    other = tmp_path / "other.yaml"
    other.write_text((CATALOGS / "paper_five.yaml").read_text())
    code, out, err = run("rebind", published, other, "--bundle", world / "bundle")
    assert (code, "left alone" in err) == (0, True)
    assert published.read_text() == (CATALOGS / "paper_five_published.yaml").read_text()
    assert "name: tiny" in other.read_text()
    fresh = (CATALOGS / "paper_five.yaml").read_text()
    other.write_text(fresh)
    published.write_text("schema: hydra.catalog/v1\n")
    assert run("rebind", other, published, "--bundle", world / "bundle")[0] == 2
    assert other.read_text() == fresh


def test_rebind_takes_the_bands_of_an_eval_sets_own_requirements(run, world, tmp_path):
    pool = tmp_path / "pool.yaml"
    pool.write_text((world / "pool.yaml").read_text())
    argv = ("rebind", pool, "--bundle", world / "bundle", "--from-evalset", world / "set")
    assert run(*argv)[0] == 0
    bound = load_catalog(pool)
    (scores,) = (world / "set" / "scores").glob("*.parquet")
    asked = pd.read_parquet(scores)[list(DIMENSIONS)].to_numpy()
    assert bound.predictor_fingerprint == scores.stem
    assert [band.lo for band in bound.bands] == pytest.approx(
        np.percentile(asked, 5, axis=0).round(4).clip(max=0.99)
    )


def shell(*arguments, **options):
    command = [sys.executable, "-m", "hydra_core", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, **options)


VERBS = ["import swebench", "import table", "score", "evaluate", "route", "validate",
         "score-texts", "rebind", "console", "lab evaluate-predictor", "lab label", "lab probe",
         "lab ablate", "lab recalibrate"]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples_and_exit_codes(capsys, verb):
    with pytest.raises(SystemExit) as caught:
        main([*verb.split(), "--help"])
    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert "example" in out
    assert f"hydra-router {verb}" in out
    assert "exit codes" in out


def test_an_option_that_a_verb_does_not_know_is_refused(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["validate", "pool.yaml", "--server.port", "8600"])
    assert caught.value.code == 2
    assert "unrecognized arguments: --server.port 8600" in capsys.readouterr().err


def test_the_console_passes_options_on_to_streamlit(monkeypatch):
    given = []
    monkeypatch.setattr("hydra_core.console.access.serve.main", given.append)
    assert main(["console", "--server.port", "8600", "--server.headless=true"]) == 0
    assert given == [["--server.port", "8600", "--server.headless=true"]]


def test_help_is_quick_because_nothing_heavy_is_imported():
    assert shell("--help").returncode == 0
    check = "import sys, hydra_core.cli.main; print({'numpy', 'pandas', 'yaml'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "set()"


def test_wrong_arguments_are_invalid_input():
    assert shell("evaluate").returncode == 2
    assert shell("fly").returncode == 2


def test_an_unknown_option_is_answered_with_the_options_of_its_verb(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["report", "evaluation", "mine", "--catalog", "a", "--out", "b", "--wrong"])
    said = capsys.readouterr().err
    assert "--tuned-on" in said
    assert "unrecognized arguments: --wrong" in said


def test_a_reader_that_leaves_early_causes_no_traceback(world):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "hydra_core", "evaluate", str(world / "set"), "--json"]
    command += ["--catalog", str(world / "pool.yaml")]
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False
    )
    os.close(write)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")
def test_the_matched_pool_of_the_real_data(run, world, tmp_path):
    folder = "20251211_mini-v1.17.2_gpt-5.2-2025-12-11-high"
    code, _, _ = run(
        *("import", "swebench", BOARD, "--problems", PROBLEMS, "--out", tmp_path / "set"),
        *("--model", "gpt-5=20250807_mini-v1.7.0_gpt-5"),
        *("--model", "gpt-5-mini=20250807_mini-v1.7.0_gpt-5-mini"),
        *("--model", f"gpt-5.2={folder}"),
    )
    assert code == 0
    assert run("score", tmp_path / "set", "--bundle", world / "bundle")[0] == 0
    found = evaluate_json(run, tmp_path / "set", "--catalog", world / "pool.yaml")
    assert (found["n"], found["oracle"]["resolved"]) == (500, 390)
    qualities = {name: round(100 * one["quality"], 1) for name, one in found["models"].items()}
    assert qualities == {"gpt-5": 65.0, "gpt-5-mini": 59.8, "gpt-5.2": 71.8}
    assert round(100 * found["models"]["gpt-5-mini"]["cs"], 1) == 93.2


def test_evaluate_prints_and_writes_the_significance_table(run, world, tmp_path):
    common = ("evaluate", world / "set", "--catalog", world / "pool.yaml", "--table")
    code, out, _ = run(*common, "--points", "0.1,0.2")
    assert code == 0
    assert "τ 0.1 " in out
    assert "p: McNemar's test against" in out
    table = json.loads(run(*common, "--json")[1])
    assert {one["policy"] for one in table["standings"]} == set(table["names"])
    code, _, told = run(*common, tmp_path / "table.csv")
    assert code == 0
    assert "table-pairs.csv" in told
    assert (tmp_path / "table.csv").read_text("utf-8-sig").startswith("policy,chosen,n,count")
    assert run(*common, tmp_path / "t.tex")[0] == 0
    assert r"\toprule" in (tmp_path / "t.tex").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "told"), [(("--table", "t.docx"), ".csv or .tex"), (("--points", "x"), "numbers")]
)
def test_a_table_nobody_can_write_is_refused(run, world, arguments, told):
    if "--table" not in arguments:
        arguments = ("--table", *arguments)
    code, _, err = run("evaluate", world / "set", "--catalog", world / "pool.yaml", *arguments)
    assert code == 2
    assert told in err


def test_fixed_is_said_to_be_the_operators_word(run, world):
    common = (world / "set", "--catalog", world / "pool.yaml", "--tau", "0.123", "--fixed")
    verdict = evaluate_json(run, *common)["verdict"]
    assert (verdict["selection"], verdict["stated_by_operator"]) == ("fixed", True)
    assert "The operator states this" in verdict["origin"]


def test_a_set_that_the_workspace_links_to_is_told_to_its_audit_trail(
    world, tmp_path, monkeypatch, run
):
    monkeypatch.setenv("HYDRA_WORKSPACE", str(tmp_path / "workspace"))
    shutil.copytree(world / "set", tmp_path / "outside", ignore=shutil.ignore_patterns("scores*"))
    (tmp_path / "workspace" / "evalsets").mkdir(parents=True)
    linked = tmp_path / "workspace" / "evalsets" / "linked"
    linked.symlink_to(tmp_path / "outside")
    assert run("score", linked, "--bundle", world / "bundle")[0] == 0
    with closing(open_store(tmp_path / "workspace")) as store:
        assert [entry.subject for entry in store.audit()] == ["eval set linked"]


@pytest.fixture(scope="module")
def log(world):
    """40 queries of every level of requirement, each with the outcome of one model."""
    models, n = ("gpt-5", "gpt-5-mini", "gpt-5.2"), 40
    served = np.eye(3, dtype=bool)[np.arange(n) % 3]
    quality, cost = np.where(served, 1.0, np.nan), np.where(served, 0.1, np.nan)
    queries = pd.DataFrame({"query_id": [f"q{i}" for i in range(n)], "language": "en"})
    made = save_evalset(
        world / "log", name="log", queries=queries, models=models, quality=quality, cost_usd=cost
    )
    fingerprint = load_catalog(world / "pool.yaml").predictor_fingerprint
    save_scores(made, fingerprint, DIMENSIONS, np.linspace(0, 1, n)[:, None] * np.ones(4))
    return world / "log"


def test_evaluate_on_a_log_takes_tau_and_weights_from_the_line(run, world, log):
    common = (log, "--catalog", world / "pool.yaml")
    catalog, scores = load_catalog(world / "pool.yaml"), np.linspace(0, 1, 40)[:, None] * np.ones(4)
    for tau, weights in ((0.1, (1, 1, 1, 1)), (0.3, (1, 1, 1, 1)), (0.3, (0.1, 9, 0.1, 0.1))):
        models = pool(catalog, today=date.today(), weights=weights)
        lacking = shortfall(models.capped(scores), models.capabilities, models.weights)
        chosen = np.array(models.ids)[choose(lacking, models.cost, tau)].tolist()
        given = ",".join(map(str, weights))
        found = evaluate_json(run, *common, "--tau", tau, "--weights", given)
        assert found["chosen"] == {name: chosen.count(name) / 40 for name in sorted(set(chosen))}
    assert found["chosen"] != evaluate_json(run, *common, "--tau", tau)["chosen"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tau", "nan"], "--tau: must be a number >= 0, got nan"),
        (["--weights", "1,2"], "weights"),
        (["--value", "0.02"], "--value: has no effect under the shortfall rule"),
        (["--outcome-model", "none", "--tau", "0.1"], "--tau: has no effect under the value rule"),
        (["--outcome-model", "none"], "--value: is missing, and the catalog has none"),
        (["--outcome-model", "none", "--value", "nan"], "--value: must be a number > 0, got nan"),
    ],
)
def test_evaluate_on_a_log_refuses_what_it_would_not_follow(run, world, log, arguments, message):
    code, out, err = run("evaluate", log, "--catalog", world / "pool.yaml", *arguments)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "SET", "--catalog", "POOL", "--weights", "1,nan,1,1"], "got [1.0, nan, 1.0"),
        (["flight", "FLIGHT", "--plan", "nan"], "--plan: must not be nan"),
        (["flight", "FLIGHT", "--plan", "0"], "--plan: must not be 0"),
        (["flight", "FLIGHT", "--plan", "0.02", "--per-day", "-1"], "--per-day: must be a number"),
        (["import", "spans", "x.jsonl", "--quality-scale", "0"], "--quality-scale: must be > 0"),
        (["import", "harness", "x.json", "--quality-scale", "inf"], "--quality-scale: must be > 0"),
        (["token", "--name", " "], "is empty (who has this token)"),
        (["token", "--name", "ci", "--require", ""], "require"),
    ],
)
def test_a_number_or_name_that_cannot_be_is_refused(run, world, arguments, message):
    places = {"SET": world / "set", "POOL": world / "pool.yaml"}
    places["FLIGHT"] = ROOT / "sample_data" / "paper_flight" / "flight.yaml"
    code, out, err = run(*(places.get(one, one) for one in arguments))
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "line",
    [
        "promise SET --catalog x --seed", "fit SET --catalog x --seed", "init SET --seed",
        "lab evaluate-predictor x --resamples",
    ],
)  # fmt: skip
def test_a_seed_is_a_whole_number(run, world, line, capsys):
    words = [str(world / "set") if one == "SET" else one for one in line.split()]
    with pytest.raises(SystemExit):
        run(*words, "-1")
    said = f"argument {words[-1]}: must be a whole number from 0, got '-1'"
    assert said in capsys.readouterr().err
