"""The verbs fit and promise: what they write, what they print, what they refuse."""

import contextlib
import io
import json
from datetime import date

import numpy as np
import pytest

from hydra_core.base.errors import CatalogError
from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.base.types import Band
from hydra_core.catalog.chosen_and_promised import not_covered
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.catalog.schema import load_catalog, parse_catalog
from hydra_core.choosing.write import prices_of, stored_weights
from hydra_core.cli.main import main
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.scores import load_scores
from hydra_core.outcome_model.success_profiles import profiles_of
from hydra_core.replay.replay import align_catalog, replay
from hydra_core.routing.router import Router

SET, CATALOG = SAMPLE_DATA / "mixed_2024", CATALOGS / "mixed_2024.yaml"


def run(*options):
    """Exit code, stdout and stderr of a verb."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(option) for option in options])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Catalog and JSON of both kinds."""
    folder = tmp_path_factory.mktemp("fitted")
    found = {}
    for kind in ("profiles", "success"):
        out = folder / f"{kind}.yaml"
        options = ("--catalog", CATALOG, "--as", kind, "--out", out, "--folds", 2, "--json")
        code, text, err = run("fit", SET, *options)
        assert code == 0, err
        found[kind] = out, json.loads(text)
    return found


@pytest.mark.parametrize("kind", ["profiles", "success"])
def test_the_answer_has_what_scripts_read(fitted, kind):
    path, answer = fitted[kind]
    assert answer["kind"] == kind
    assert answer["path"] == str(path)
    assert {"kind", "lift", "recommend", "reason", "n"} <= set(answer)
    assert set(answer["lift"]["points"]) == {"25", "50", "75"}
    assert len(answer["lift"]["interval"]) == 2
    assert set(answer["lift"]["simultaneous"]) == {"25", "50", "75"}
    assert answer["n"] > 3_000


def test_fitted_profiles_make_a_valid_catalog(fitted):
    catalog, before = load_catalog(fitted["profiles"][0]), load_catalog(CATALOG)
    assert catalog.dimensions == (*before.dimensions, "level")
    assert all(set(model.overrides) == set(catalog.dimensions) for model in catalog.models)
    assert [model.price for model in catalog.models] == [model.price for model in before.models]


def test_fitted_profiles_are_evaluated_and_route(fitted):
    """The level is appended to what the predictor scores, when replaying and when serving."""
    path = fitted["profiles"][0]
    code, text, err = run("evaluate", SET, "--catalog", path, "--json")
    assert code == 0, err
    catalog = load_catalog(path)
    evalset = load_evalset(SET)
    scores = load_scores(evalset, catalog.predictor_fingerprint)
    data = align_catalog(evalset, catalog, scores, today=date(2026, 1, 1))
    routes = replay(data, catalog.policy.tau)
    assert np.bincount(routes).max() < 0.9 * len(routes)
    router = Router(catalog, today=lambda: date(2026, 1, 1))
    for row in range(0, len(routes), 400):
        decided = router.decide(scores[data.rows[row]])
        assert decided.model == data.pool.ids[routes[row]]


def test_a_fitted_catalog_says_what_it_was_chosen_on(fitted):
    digest = load_evalset(SET).queries_digest
    for path, _ in fitted.values():
        (record,) = (c for c in load_catalog(path).policy.chosen_on if c.queries == digest)
        assert not record.knob_alone
    code, _, err = run("promise", SET, "--catalog", fitted["profiles"][0])
    assert code == 2
    assert "chosen on these queries" in err


def test_stored_weights_are_the_inverse_of_their_compensation():
    bands = (Band(0.1, 0.3), Band(0.0, 0.8), Band(0.0, 1.0))
    wanted = np.array([1.3, 0.4, 0.7])
    made = compensated_weights(stored_weights(wanted, bands), bands)
    assert made / made.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-3)


def test_success_profiles_stand_in_the_yaml(fitted):
    catalog = load_catalog(fitted["success"][0])
    assert catalog.policy.value_usd > 0
    block = catalog.success_profiles
    prices = prices_of(catalog, tuple(block.models))
    profiles = profiles_of(block, tuple(block.models), prices)
    predicted = profiles.predict(np.array([[0.0] * 4, [0.5] * 4]))
    assert ((predicted.success > 0) & (predicted.success <= 1)).all()
    assert block.digest == load_evalset(SET).digest


def test_nothing_is_replaced_unasked(fitted):
    path = fitted["profiles"][0]
    code, _, err = run("fit", SET, "--catalog", CATALOG, "--as", "profiles", "--out", path)
    assert code == 2
    assert "exists already" in err


def test_a_fitted_catalog_can_be_fitted_again(fitted, tmp_path):
    path, first = fitted["profiles"]
    out = tmp_path / "again.yaml"
    options = ("--as", "success", "--folds", 2, "--json", "--out", out)
    code, text, err = run("fit", SET, "--catalog", path, *options)
    assert code == 0, err
    again = load_catalog(out)
    assert again.dimensions == load_catalog(CATALOG).dimensions
    assert json.loads(text)["lift"] == fitted["success"][1]["lift"]


def test_out_needs_a_kind(tmp_path):
    code, _, err = run("fit", SET, "--catalog", CATALOG, "--out", tmp_path / "new.yaml")
    assert code == 2
    assert "--as" in err


@pytest.mark.slow
def test_without_a_kind_all_sources_are_compared_by_the_figures_that_each_has(fitted, tmp_path):
    options = ("--catalog", CATALOG, "--folds", 2, "--json")
    code, text, err = run("fit", SET, *options)
    assert code == 0, err
    found = {one["kind"]: one["lift"]["mean"] for one in json.loads(text)["sources"]}
    assert list(found) == ["benchmarks", "profiles", "success", "heads"]
    for kind, (_, answer) in fitted.items():
        assert found[kind] == answer["lift"]["mean"]
    code, text, err = run("learn", SET, *options, "--out", tmp_path / "learned")
    assert code == 0, err
    assert found["heads"] == pytest.approx(json.loads(text)["lift"]["mean"], abs=1e-9)


def test_a_promise_is_calibrated_on_predictions_that_have_not_seen_the_query():
    model = CATALOGS / "mixed_2024"
    options = ("--catalog", CATALOG, "--outcome-model", model, "--within", 0.02, "--json")
    code, text, err = run("promise", SET, *options)
    assert code == 0, err
    made = json.loads(text)
    assert made["kept"]
    assert made["knob"]["rule"] == "value"
    assert made["calibrated_on"] == "cross-fitted predictions"
    assert 0 < made["saving"] < 1
    assert made["baseline"] == "claude-3-5-sonnet-20240620"
    wanted = {"kept", "knob", "baseline", "within", "confidence", "saving", "n", "method"}
    assert wanted <= set(made)
    assert [one["queries"] for one in made["forecast"]] == sorted(
        one["queries"] for one in made["forecast"]
    )


def test_profiles_that_were_chosen_on_the_set_promise_nothing_there(tmp_path):
    code, out, err = run("promise", SET, "--catalog", CATALOG)
    said = out + err
    assert (code == 0 and "points below" in said) or "chosen on these queries" in said


def test_a_margin_out_of_range_is_refused():
    code, _, err = run("promise", SET, "--catalog", CATALOG, "--within", 2)
    assert code == 2
    assert "--within" in err


def test_a_promise_goes_into_the_catalog_and_holds_for_its_setting_alone(fitted, tmp_path):
    """Success profiles were fitted to this set: their routes are cross-fitted."""
    out = tmp_path / "promised.yaml"
    path = tmp_path / "value.yaml"
    text = fitted["success"][0].read_text(encoding="utf-8")
    document = CatalogDocument.parse(text)
    document.set("policy", "rule", "value")
    document.set("policy", "success_from", "success_profiles")
    path.write_text(document.text(), encoding="utf-8")
    code, text, err = run("promise", SET, "--catalog", path, "--out", out, "--json")
    assert code == 0, err
    made, catalog = json.loads(text), load_catalog(out)
    assert made["kept"]
    assert made["calibrated_on"] == "cross-fitted predictions"
    promised = catalog.policy.promise
    assert catalog.policy.value_usd == made["knob"]["value"]
    assert (promised.baseline, promised.within) == (made["baseline"], 0.02)
    assert promised.saving == pytest.approx(made["saving"], abs=1e-4)
    assert not_covered(catalog) == ""
    code, text, _ = run("validate", out)
    assert code == 0
    assert "promises at most 2 points below claude-3-5-sonnet" in text
    document = CatalogDocument.parse(out.read_text(encoding="utf-8"))
    document.set("policy", "value_usd", 2 * catalog.policy.value_usd)
    out.write_text(document.text(), encoding="utf-8")
    code, _, err = run("validate", out)
    assert code == 2
    assert "promised for another setting" in err
    assert "remove policy.promise" in err
    code, _, err = run("promise", SET, "--catalog", path, "--out", out)
    assert code == 2
    assert "--force" in err


def test_a_promise_that_is_not_whole_is_refused(fitted):
    text = fitted["success"][0].read_text(encoding="utf-8")
    document = CatalogDocument.parse(text)
    document.set("policy", "promise", {"within": 2, "confidence": 0.95, "routes_by": "x"})
    with pytest.raises(CatalogError) as refused:
        parse_catalog(document.text())
    said = str(refused.value)
    assert "policy.promise.within" in said
    assert "policy.promise.baseline" in said
    assert "policy.promise.routes_by" in said


@pytest.mark.parametrize(
    ("option", "value", "example"), [("--within", 2, "0.02"), ("--confidence", 1, "0.95")]
)
def test_a_refused_number_of_a_promise_says_one_that_is_taken(option, value, example):
    code, _, err = run("promise", SET, "--catalog", CATALOG, option, value)
    assert code == 2
    assert f"{option} must lie between 0 and 1, such as {example}; got {value}" in err
