"""A policy that was chosen on a set is not judged there as if it had been fixed beforehand."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.types import Chosen, Selection
from hydra_core.catalog import load_catalog
from hydra_core.evalsets.evalset import SAMPLE, load_evalset, marks_of, sample_of
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog
from tests.pages.conftest import ROOT


@pytest.fixture(scope="module")
def demo():
    return load_evalset(ROOT / "sample_data" / "console_demo")


def judged(demo, *records, selection=None):
    catalog = load_catalog(ROOT / "catalog" / "paper_five.yaml")
    policy = replace(catalog.policy, chosen_on=records)
    scores = catalog_scores(demo, catalog)
    sweep = sweep_catalog(demo, replace(catalog, policy=policy), scores, today=date(2026, 6, 1))
    return evaluate(sweep, policy.tau, selection=selection)


def test_the_catalogs_own_point_is_fixed_where_no_record_says_otherwise(demo):
    said = judged(demo).verdict
    assert said.selection is Selection.FIXED
    assert "does not say on which set" in said.origin


@pytest.mark.parametrize("how", [Selection.LOOKED, Selection.CROSS_FITTED])
def test_on_the_set_it_was_chosen_on_it_is_judged_by_the_band(demo, how):
    found = judged(demo, Chosen(demo.queries_digest, "demo", how, knob_alone=True))
    said = found.verdict
    assert said.selection is Selection.LOOKED
    assert said.judged_by == said.simultaneous
    assert said.origin == "The catalog's policy was chosen on these queries."
    assert said.origin in said.details
    assert not found.caution
    assert not said.tuned_here
    more = judged(demo, Chosen(demo.queries_digest, "demo", how, knob_alone=False))
    assert "weights, profiles or a pool" in more.caution
    assert more.verdict.tuned_here


def test_on_another_set_it_is_fixed_and_says_where_it_was_chosen(demo):
    said = judged(demo, Chosen("0" * 64, "last month", Selection.LOOKED, knob_alone=False)).verdict
    assert said.selection is Selection.FIXED
    assert "chosen on last month" in said.origin


def test_what_the_operator_states_is_said_to_be_their_statement(demo):
    record = Chosen(demo.queries_digest, "demo", Selection.LOOKED, knob_alone=True)
    said = judged(demo, record, selection=Selection.FIXED).verdict
    assert "The operator states this" in said.origin


def test_the_queries_stay_the_same_under_another_name_and_order(demo):
    other = replace(
        demo,
        name="other",
        digest="f" * 64,
        queries=demo.queries.iloc[::-1].drop(columns="cluster"),
    )
    assert other.queries_digest == demo.queries_digest
    fewer = replace(demo, queries=demo.queries.iloc[1:])
    assert fewer.queries_digest != demo.queries_digest


def test_a_renamed_or_cut_down_list_is_known_by_the_sample(demo):
    record = Chosen(
        demo.queries_digest, "demo", Selection.LOOKED, True, sample_of(demo.query_marks)
    )
    assert len(record.sample) == SAMPLE
    renamed = demo.queries.assign(query_id=[f"q{i}" for i in range(demo.n)])
    half = np.arange(0, demo.n, 2)
    part = replace(
        demo,
        queries=renamed.iloc[half].reset_index(drop=True),
        quality=demo.quality[half],
        cost_usd=demo.cost_usd[half],
        extras={},
    )
    assert part.queries_digest != record.queries
    assert {*record.sample} & part.query_marks
    catalog = load_catalog(ROOT / "catalog" / "paper_five.yaml")
    catalog = replace(catalog, policy=replace(catalog.policy, chosen_on=(record,)))
    scores = catalog_scores(demo, catalog)[half]
    sweep = sweep_catalog(part, catalog, scores, today=date(2026, 6, 1))
    said = evaluate(sweep, catalog.policy.tau).verdict
    assert said.selection is Selection.LOOKED
    assert "chosen on some of these queries" in said.origin


def test_marks_go_by_the_text_and_by_the_id_without_one():
    assert marks_of(["a"], ["two  words\n"]) == marks_of(["b"], ["two words"])
    assert marks_of(["a"], None) != marks_of(["b"], None)
