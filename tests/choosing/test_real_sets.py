"""The grader check on real outcomes: a sound set keeps its "use it", a faulty one loses it."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.catalog.schema import load_catalog
from hydra_core.choosing.lift import GRID, CrossFitted, Ranked
from hydra_core.choosing.material import outcomes_of_replay
from hydra_core.choosing.sources.grader_check import (
    FindingKind,
    GainFrom,
    cell_findings,
    findings_of,
    grader_check,
)
from hydra_core.choosing.sources.ladder import Kind, fit_rung, judged_rung
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.outcome_model.format import catalog_outcome_model
from hydra_core.replay.sweep import sweep_by_value
from hydra_core.routing.matcher import cost_order, returns_on_upgrading

FAULTY = (
    Path(__file__).parents[3] / "shared" / "data" / "replay" / "code-2026" / "with-grader-faults"
)
POOL = ("claude-opus-4-6", "claude-sonnet-4-6", "gpt-5.4", "Qwen3-Max", "kimi-k2.5")


@pytest.fixture(scope="module")
def sample():
    """The shipped real set, routed by its outcome model's cross-fitted predictions."""
    evalset = load_evalset(SAMPLE_DATA / "mixed_2024")
    catalog = load_catalog(CATALOGS / "mixed_2024.yaml")
    model = catalog_outcome_model(catalog)
    data = sweep_by_value(evalset, catalog, model, cross_fitted=True, today=date(2026, 1, 1)).data
    return evalset, data


def test_the_shipped_real_set_keeps_its_recommendation(sample):
    evalset, data = sample
    returns = returns_on_upgrading(data.predicted.success, data.predicted.cost_usd)
    order = cost_order(returns, data.predicted.cost_usd)
    outcomes = outcomes_of_replay(data, evalset)
    found = CrossFitted(Ranked(outcomes, returns, order), np.zeros(outcomes.n, np.intp))
    groups = evalset.queries["group"].iloc[data.rows].astype(str).tolist()
    findings = findings_of(evalset, data.pool.ids)
    rung = judged_rung(Kind.HEADS, found, None, groups, findings, False, 0)
    assert rung.recommend, rung.reason
    assert rung.check.gain_from is GainFrom.WITHIN


@pytest.mark.parametrize("kind", [Kind.PROFILES, Kind.SUCCESS])
def test_what_stands_in_yaml_alone_gains_there_too(sample, kind):
    evalset, data = sample
    rung = fit_rung(kind, outcomes_of_replay(data, evalset), folds=3)
    assert rung.lift.mean.lo > 0.005


@pytest.mark.skipif(not FAULTY.is_dir(), reason="the replay data are not beside the project")
def test_a_set_with_grader_faults_is_not_recommended():
    """Whoever knows the benchmark alone gains 9 points there."""
    lines = pd.read_json(FAULTY / "queries.jsonl.gz", lines=True)
    table = pd.read_parquet(FAULTY / "outcomes.parquet")
    table = table[table["model"].isin(POOL)]
    quality, cost = (
        table.pivot(index="query_id", columns="model", values=name)
        .reindex(index=lines["query_id"], columns=POOL)
        .to_numpy(np.float64)
        for name in ("quality", "cost_usd")
    )
    rows = np.isfinite(quality).all(axis=1) & np.isfinite(cost).all(axis=1)
    groups = lines["benchmark"].to_numpy()[rows]
    quality, cost = quality[rows], cost[rows]
    means = pd.DataFrame(quality).groupby(groups).transform("mean").to_numpy()
    usual = pd.DataFrame(cost).groupby(groups).transform("mean").to_numpy()
    returns = returns_on_upgrading(means, usual)
    ranked = Ranked(outcomes_like(quality, cost), returns, cost_order(returns, usual))
    findings = cell_findings(POOL, list(groups), quality)
    assert FindingKind.SIMILARITY in {one.kind for one in findings}
    choice = CrossFitted(ranked, np.zeros(rows.sum(), np.intp)).at(np.asarray(GRID) / 100)
    check = grader_check(list(groups), quality, cost, choice, findings=findings)
    assert check.total.lo > 0.05
    assert not check.may_recommend
    assert "comes from telling the groups apart" in check.sentence
    assert "Check the grader first" in check.sentence
    assert json.loads(json.dumps(check.numbers()))["gain_from"] == "telling groups apart"


def outcomes_like(quality, cost):
    """Outcomes whose requirements say nothing."""
    from hydra_core.choosing.material import Outcomes

    n = len(quality)
    return Outcomes(POOL, np.zeros((n, 1)), quality, cost, np.arange(n))
