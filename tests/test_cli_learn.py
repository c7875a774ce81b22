"""The verb learn, and evaluate by what it learned: keys, agreement with the rule, refusals."""

import contextlib
import io
import json
import re
import shutil

import numpy as np
import onnx
import pandas as pd
import pytest

from hydra_core.base.digests import file_sha256
from hydra_core.base.shipped import CATALOGS
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.cli.main import main
from hydra_core.cli.output import points, points_range
from hydra_core.evalsets.evalset import load_evalset, save_evalset
from hydra_core.evalsets.scores import TextFacts, load_text_facts, save_scores
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.predictor.bundle import load_bundle
from hydra_core.predictor.signals import surface_counts
from tests.predictor.tiny_bundle import WIDTH, graph, make_bundle, tokenizer

MODELS = ("gpt-5-mini", "gpt-5", "gpt-5.2")
CHANCE = {"hard": (0.1, 0.5, 0.95), "easy": (0.95, 0.95, 0.95)}
COST_USD = (0.02, 0.2, 0.5)


def traffic(folder, n=240, *, seed=0, texts=True, **changes):
    """Bugs to fix are hard and poems are easy; the dear model alone solves what is hard."""
    rng = np.random.default_rng(seed)
    kinds = np.where(rng.random(n) < 0.5, "hard", "easy")
    chance = np.array([CHANCE[kind] for kind in kinds])
    words = {"hard": "fix bug", "easy": "write poem"}
    queries = pd.DataFrame({"query_id": [f"{seed}-{i}" for i in range(n)], "language": "en"})
    if texts:
        queries["text"] = [f"{words[kind]} {seed} {i}" for i, kind in enumerate(kinds)]
    content = {
        "name": folder.name,
        "queries": queries,
        "models": MODELS,
        "quality": (rng.random((n, 3)) < chance).astype(float),
        "cost_usd": np.array(COST_USD) * rng.lognormal(0, 0.2, (n, 1)),
    }
    return save_evalset(folder, **(content | changes))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A bundle with vectors, a catalog of it, traffic that was learned on, and other traffic."""
    folder = tmp_path_factory.mktemp("learned")
    words = tokenizer().get_vocab_size()
    (folder / "bundle").mkdir()
    onnx.save(graph(words, vectors=True), folder / "bundle" / "model.int8.onnx")
    make_bundle(folder / "bundle", vectors=WIDTH)
    shutil.copy(CATALOGS / "matched_three.yaml", folder / "pool.yaml")
    assert main(["rebind", str(folder / "pool.yaml"), "--bundle", str(folder / "bundle")]) == 0
    traffic(folder / "set")
    traffic(folder / "other", 60, seed=1)
    return folder


@pytest.fixture
def run(world, capsys):
    """Run one verb with the world's bundle: (exit code, stdout, stderr)."""

    def call(verb, *arguments):
        capsys.readouterr()
        code = main([verb, *map(str, arguments), "--bundle", str(world / "bundle")])
        return code, *capsys.readouterr()

    return call


@pytest.fixture(scope="module")
def said(world):
    """What learn prints as JSON; the outcome model is world/om."""
    names = ["--catalog", world / "pool.yaml", "--out", world / "om", "--folds", "2", "--json"]
    options = [world / "set", *names, "--bundle", world / "bundle"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["learn", *map(str, options)]) == 0
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def learned(world, said):
    """The outcome model's folder."""
    return world / "om"


def test_learn_has_the_promised_keys(said, learned):
    assert said.keys() >= {"lift", "recommend", "reason", "features", "n", "models"}
    lift = said["lift"]
    assert lift.keys() >= {"points", "mean", "interval", "simultaneous"}
    assert set(lift["points"]) == set(lift["simultaneous"]) == {"25", "50", "75"}
    assert lift["mean"] == pytest.approx(np.mean(list(lift["points"].values())))
    assert lift["interval"][0] <= lift["mean"] <= lift["interval"][1]
    for point, (low, high) in lift["simultaneous"].items():
        assert low <= lift["points"][point] <= high
    assert said["n"] == 240
    assert {name: one["outcomes"] for name, one in said["models"].items()} == {
        name: 240 for name in MODELS
    }
    assert said["recommend"] is True
    assert said["reason"].startswith("Use it")
    assert said["sha256"] == load_outcome_model(learned).digest


def test_learn_makes_the_vectors_that_are_missing(world, learned):
    bundle = load_outcome_model(learned).fingerprint
    assert load_text_facts(load_evalset(world / "set"), bundle).vectors.shape == (240, WIDTH)


def test_learn_answers_in_words_first(run, world, tmp_path):
    options = (world / "other", "--models", "gpt-5-mini,gpt-5.2", "--out", tmp_path / "om")
    code, out, err = run("learn", *options, "--folds", "2")
    assert code == 0, err
    assert out.startswith(("Use it: +", "Keep the fixed mix"))
    assert re.search(r"50 % of the cost range +[+-]\d+\.\d +\[", out)
    digest = load_outcome_model(tmp_path / "om").digest
    assert f"sha256: {digest}" in out


def test_learn_judges_at_the_prices_of_the_catalog(run, world, tmp_path):
    """Costs of tokens at prices of then change nothing where the catalog has those of today."""
    rng = np.random.default_rng(3)
    tokens = {name: rng.integers(50, 900, (60, 3)) for name in ("input_tokens", "output_tokens")}
    found = []
    for name, factor in (("then", 1.0), ("now", (9.0, 1.0, 0.1))):
        cost_usd = np.full((60, 3), COST_USD) * factor
        evalset = traffic(tmp_path / name, 60, cost_usd=cost_usd, extras=tokens)
        options = ("--catalog", world / "pool.yaml", "--out", tmp_path / f"om_{name}", "--json")
        code, out, err = run(
            "learn", evalset.path, *options, "--folds", "2", "--bundle", world / "bundle"
        )
        assert code == 0, err
        found.append(json.loads(out))
    assert found[0]["lift"] == found[1]["lift"]
    assert found[0]["learning_curve"] == found[1]["learning_curve"]


def test_learn_leaves_out_models_that_the_catalog_does_not_route_to(run, world, tmp_path):
    document = CatalogDocument.parse((world / "pool.yaml").read_text())
    document.set("models", "gpt-5.2", "status", "disabled")
    (tmp_path / "cut.yaml").write_text(document.text())
    options = ("--catalog", tmp_path / "cut.yaml", "--out", tmp_path / "om", "--folds", "2")
    code, out, err = run("learn", world / "other", *options, "--json")
    assert code == 0, err
    assert "gpt-5.2" not in json.loads(out)["models"]
    assert "note: the catalog does not route to gpt-5.2: left out" in err


def test_learn_replaces_an_outcome_model_only_when_told(run, world, learned):
    before = load_outcome_model(learned).digest
    options = (world / "set", "--models", ",".join(MODELS), "--out", learned, "--folds", "2")
    code, out, err = run("learn", *options)
    assert (code, out) == (2, "")
    assert "--force" in err
    assert load_outcome_model(learned).digest == before


def rule_of(run, world, *arguments):
    catalog = ("--catalog", world / "pool.yaml")
    code, out, err = run("evaluate", *arguments, *catalog, "--json")
    assert code == 0, err
    return json.loads(out)


def test_evaluate_by_value_has_the_promised_keys(run, world, learned):
    found = rule_of(run, world, world / "other", "--outcome-model", learned)
    assert found["rule"] == "value"
    rows = np.array(found["frontier"])
    assert rows.shape[1] == 3
    assert len(rows) <= 5000
    assert (np.diff(rows[:, 0]) > 0).all()
    assert found["router"]["value_usd"] > 0
    assert found["outcome_model"]["cross_fitted"] is False
    assert found["verdict"]["label"] in ("better", "no measurable difference", "worse")


def test_both_ends_of_the_frontier_are_the_cheapest_and_the_surest(run, world, learned):
    found = rule_of(run, world, world / "other", "--outcome-model", learned)
    (_, quality, cost), last = found["frontier"][0], found["frontier"][-1]
    cheapest = found["models"]["gpt-5-mini"]
    assert (quality, cost) == pytest.approx((cheapest["quality"], cheapest["mean_cost_usd"]))
    beyond = rule_of(
        run, world, world / "other", "--outcome-model", learned, "--value", 2 * last[0] + 1
    )["router"]
    assert (beyond["quality"], beyond["mean_cost_usd"]) == pytest.approx(last[1:])


def test_evaluate_agrees_with_the_frontier_at_its_rows(run, world, learned):
    asked = (world / "other", "--outcome-model", learned)
    rows = rule_of(run, world, *asked)["frontier"]
    for i in np.linspace(0, len(rows) - 1, 4).astype(int):
        value, quality, cost = rows[i]
        router = rule_of(run, world, *asked, "--value", value)["router"]
        assert (router["quality"], router["mean_cost_usd"]) == pytest.approx((quality, cost))


def test_evaluate_makes_the_vectors_that_are_missing(run, world, learned, tmp_path):
    fresh = traffic(tmp_path / "fresh", 30, seed=2)
    found = rule_of(run, world, fresh.path, "--outcome-model", learned)
    assert found["n"] == 30


@pytest.mark.parametrize("renamed", [False, True])
def test_a_set_that_was_learned_on_takes_cross_fitted(run, world, learned, tmp_path, renamed):
    evalset = load_evalset(world / "set")
    queries = evalset.queries.head(50)
    if renamed:  # the same texts under other names are still what was learned on
        queries = queries.assign(query_id=[f"x{i}" for i in range(50)])
    traffic(
        tmp_path / "part", queries=queries,
        quality=evalset.quality[:50], cost_usd=evalset.cost_usd[:50],
    )  # fmt: skip
    asked = (tmp_path / "part", "--outcome-model", learned)
    code, out, err = run("evaluate", *asked, "--catalog", world / "pool.yaml", "--json")
    assert (code, out) == (2, "")
    assert "50 of the 50 queries" in err
    assert "--cross-fitted" in err
    found = rule_of(run, world, *asked, "--cross-fitted")
    assert found["outcome_model"]["cross_fitted"] is True
    assert any("cross-fitted" in note for note in found["notes"])


def fewer(quality):
    quality[24:, 2] = np.nan
    return quality


def same(quality):
    quality[:, 0] = 1.0
    return quality


@pytest.mark.parametrize(
    ("change", "models", "said"),
    [
        (None, MODELS[:1], "models: are 1"),
        (None, ("gpt-5", "gpt-9"), "'gpt-9' has no outcomes here"),
        (fewer, MODELS, "model 'gpt-5.2': has 24 outcomes"),
        (same, MODELS, "model 'gpt-5-mini': has the same outcome (1)"),
    ],
)
def test_what_cannot_be_learned_is_refused_and_nothing_written(run, tmp_path, change, models, said):
    evalset = traffic(tmp_path / "set", 60)
    if change is not None:
        quality = change(evalset.quality.copy())
        evalset = traffic(tmp_path / "changed", 60, quality=quality)
    names = ",".join(models)
    code, out, err = run("learn", evalset.path, "--models", names, "--out", tmp_path / "om")
    assert (code, out) == (2, "")
    assert said in err
    assert re.search(r": \S.*[;(].*\w", err.splitlines()[-1]), "a place and a remedy"
    assert not (tmp_path / "om").exists()


def test_a_set_without_texts_and_vectors_is_refused(run, tmp_path):
    evalset = traffic(tmp_path / "bare", 60, texts=False)
    options = ("--models", ",".join(MODELS), "--out", tmp_path / "om")
    code, out, err = run("learn", evalset.path, *options)
    assert (code, out) == (2, "")
    assert "bare" in err
    assert "texts" in err
    assert not (tmp_path / "om").exists()
    assert not (evalset.path / "scores").exists()


def test_an_outcome_that_is_no_share_is_refused(run, tmp_path):
    evalset = traffic(tmp_path / "set", 60)
    path, manifest = evalset.path / "outcomes.parquet", evalset.path / "evalset.yaml"
    table, before = pd.read_parquet(path), file_sha256(path)
    table.loc[7, "quality"] = np.inf
    table.to_parquet(path, index=False)
    manifest.write_text(manifest.read_text().replace(before, file_sha256(path)))
    options = ("--models", ",".join(MODELS), "--out", tmp_path / "om")
    code, out, err = run("learn", evalset.path, *options)
    assert (code, out) == (2, "")
    assert "quality: must lie from 0 to 1 in 1 row(s) (row 8: 'inf')" in err
    assert not (tmp_path / "om").exists()


def test_vectors_that_are_no_numbers_are_refused(run, world, tmp_path):
    evalset = traffic(tmp_path / "bare", 60, texts=False)
    bundle = load_bundle(world / "bundle")
    vectors = np.zeros((60, WIDTH), dtype=np.float16)
    vectors[3, 2] = np.nan
    facts = TextFacts(vectors, surface_counts([""] * 60))
    save_scores(evalset, bundle.fingerprint, bundle.dimensions, np.full((60, 4), 0.5), facts)
    options = ("--models", ",".join(MODELS), "--out", tmp_path / "om")
    code, out, err = run("learn", evalset.path, *options)
    assert (code, out) == (2, "")
    assert "vectors that are not finite" in err
    assert not (tmp_path / "om").exists()


@pytest.mark.parametrize("folds", ["1", "21"])
def test_a_number_of_folds_that_cannot_be_is_refused(run, world, tmp_path, folds):
    options = ("--models", ",".join(MODELS), "--out", tmp_path / "om", "--folds", folds)
    code, out, err = run("learn", world / "set", *options)
    assert (code, out) == (2, "")
    assert "--folds: must be 2 to 20" in err
    assert not (tmp_path / "om").exists()


def test_an_outcome_model_of_another_bundle_is_refused(run, world, learned, tmp_path):
    shutil.copytree(learned, tmp_path / "foreign")
    manifest = tmp_path / "foreign" / "outcome_model.yaml"
    known = load_outcome_model(learned).fingerprint
    manifest.write_text(manifest.read_text().replace(known, "f" * 64))
    options = ("--catalog", world / "pool.yaml", "--outcome-model", tmp_path / "foreign")
    code, out, err = run("evaluate", world / "other", *options)
    assert (code, out) == (2, "")
    assert "ffffffffffff" in err
    assert "learn it again" in err


@pytest.mark.parametrize("value", ["0", "-1", "nan"])
def test_a_value_that_is_not_a_price_is_refused(run, world, learned, value):
    options = ("--catalog", world / "pool.yaml", "--outcome-model", learned, "--value", value)
    code, out, err = run("evaluate", world / "other", *options)
    assert (code, out) == (2, "")
    assert "--value: must be a number > 0" in err


@pytest.mark.parametrize(
    ("knob", "by_value", "told"),
    [
        (("--tau", "0.1"), True, "--tau: has no effect under the value rule"),
        (("--weights", "1,1,1,1"), True, "--weights: has no effect under the value rule"),
        (("--value", "0.1"), False, "--value: has no effect under the shortfall rule"),
        (("--cross-fitted",), False, "--cross-fitted: has no effect under the shortfall rule"),
    ],
)
def test_a_knob_of_the_other_rule_is_refused(run, world, learned, knob, by_value, told):
    model = ("--outcome-model", learned) if by_value else ()
    options = ("--catalog", world / "pool.yaml", *model, *knob)
    code, out, err = run("evaluate", world / "other", *options)
    assert (code, out) == (2, "")
    assert told in err


def test_a_model_without_outcomes_joins_by_its_rate(world, run, tmp_path):
    rng = np.random.default_rng(3)
    quality = np.column_stack([rng.random((240, 2)) < 0.6, np.full(240, np.nan)]).astype(float)
    costs = np.full((240, 2), COST_USD[:2])
    traffic(tmp_path / "set", models=MODELS[:2], quality=quality[:, :2], cost_usd=costs)
    common = ("learn", tmp_path / "set", "--catalog", world / "pool.yaml", "--out", tmp_path / "m")
    common = (*common, "--folds", 2)
    for rate, wrong in (("gpt-5.2", "must be MODEL=P"), ("gpt-5.2=62", "between 0 and 1"),
                        ("other=0.5", "must be MODEL=P with a model of the catalog")):  # fmt: skip
        code, _, err = run(*common, "--rate", rate)
        assert code == 2
        assert wrong in err
    code, out, err = run(*common, "--rate", "gpt-5.2=0.9", "--rate", "gpt-5=0.5", "--json")
    assert code == 0, err
    figures = json.loads(out)
    assert "the rate of gpt-5 is not used" in err
    assert figures["newcomers"][0]["name"] == "gpt-5.2"
    assert figures["newcomers"][0]["rate"] == 0.9
    assert "What this adds is not measured." in figures["reason"]
    assert set(load_outcome_model(tmp_path / "m").models) == set(MODELS)


def test_learn_takes_in_a_model_whose_outcomes_are_in_a_log_only(run, world, tmp_path):
    whole = traffic(tmp_path / "whole", 240, seed=3)
    later = np.arange(240) >= 160
    known = np.column_stack([~later, ~later, later])
    quality, cost_usd = (np.where(known, v, np.nan) for v in (whole.quality, whole.cost_usd))
    traffic(tmp_path / "set", 240, seed=3, quality=quality, cost_usd=cost_usd)
    options = ("--catalog", world / "pool.yaml", "--out", tmp_path / "om", "--folds", "2")
    code, out, err = run("learn", tmp_path / "set", *options)
    assert code == 0, err
    assert "gpt-5.2 joins by 80 outcomes, too few of them on queries that the others" in out
    assert "gpt-5.2 80 (newcomer)" in out
    assert load_outcome_model(tmp_path / "om").models[2] == "gpt-5.2"


def test_a_report_is_by_the_catalogs_own_rule(world, learned, run, tmp_path):
    text = (world / "pool.yaml").read_text()
    digest = load_outcome_model(learned).digest
    own = text.replace("policy:", "policy:\n  rule: value\n  value_usd: 0.3", 1)
    own += f"outcome_model: {{path: {learned}, sha256: {digest}}}\n"
    (tmp_path / "value.yaml").write_text(own)
    common = (world / "other", "--catalog", tmp_path / "value.yaml", "--json")
    code, out, _ = run("evaluate", *common)
    assert code == 0
    mine = json.loads(out)
    html = tmp_path / "report.html"
    code, out, err = run("report", "evaluation", *common, "--out", html)
    assert code == 0, err
    found = json.loads(html.with_suffix(".json").read_text())
    assert found["router"] == mine["router"]
    assert found["rule"] == "value"
    code, _, err = run("report", "ablation", *common)
    assert "the catalog routes by value; this report is by its tau" in err
    code, _, err = run("lab", "ablate", *common)
    assert (code, "routes are compared by its tau" in err) == (0, True)


def test_rebind_warns_of_an_outcome_model_that_does_not_go_along(world, learned, tmp_path, capsys):
    model = load_outcome_model(learned)
    text = (world / "pool.yaml").read_text("utf-8")
    named = f"outcome_model: {{path: {learned}, sha256: {model.digest}}}\n"
    (tmp_path / "pool.yaml").write_text(text + named, encoding="utf-8")
    assert main(["rebind", str(tmp_path / "pool.yaml")]) == 0
    assert "learn it again with this bundle" in capsys.readouterr().err
    again = ["rebind", str(tmp_path / "pool.yaml"), "--bundle", str(world / "bundle")]
    assert main(again) == 0
    assert "warning" not in capsys.readouterr().err


def test_points_that_round_to_nothing_have_no_sign():
    assert [points(value) for value in (-0.0004, 0.0, 0.0004)] == ["0.0"] * 3
    assert points_range([-0.0123, None]) == "[-1.2, ?]"
