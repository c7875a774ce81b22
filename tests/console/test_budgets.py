"""Tune's table of a budget is the exact curve; a team's form writes what the reader reads."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS, SAMPLE_DATA
from hydra_core.base.types import Team, TeamBudget
from hydra_core.catalog import load_catalog, parse_catalog
from hydra_core.console.catalog.policy import with_field
from hydra_core.console.tune.details import budget_frame, budget_text
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.replay.replay import catalog_scores
from hydra_core.replay.sweep import sweep_catalog


def test_every_row_is_the_curve_at_the_stated_setting():
    demo = load_evalset(SAMPLE_DATA / "console_demo")
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    sweep = sweep_catalog(demo, catalog, catalog_scores(demo, catalog), today=date(2026, 6, 1))
    budget = TeamBudget(50.0)
    frame = budget_frame(sweep, 0.1, Team(), budget)
    assert frame["used"].tolist() == [0, 50, 60, 70, 80, 90, 100]
    for used, quality, cost in zip(frame["used"], frame["quality"], frame["cost"], strict=True):
        if used < 90:
            at = sweep.curve.at(0.1 / budget.factor(used / 100))
            assert (quality, cost) == pytest.approx((100 * at.quality, at.mean_cost_usd))
    assert frame["setting"].iloc[-1] == "only gpt-5.4-mini"
    assert "At 80 % of the budget: τ 0.3077, quality" in budget_text(frame, budget)
    assert ", quality 0.0 points." in budget_text(frame.assign(change=-0.04), budget)


def test_a_team_is_written_changed_and_taken_out():
    text = (CATALOGS / "paper_five.yaml").read_text()
    with_team = with_field(text, "teams.search", {"tau": 0.3, "budget": {"usd": 5.0}})
    with_team = with_field(with_team, "teams.build", {"models": ["gpt-5.4-mini"]})
    teams = parse_catalog(with_team).policy.teams
    assert teams["search"] == Team(tau=0.3, budget=TeamBudget(5.0))
    assert teams["build"].models == {"gpt-5.4-mini"}
    gone = with_field(with_field(with_team, "teams.search", None), "teams.build", None)
    assert parse_catalog(gone).policy.teams == {}


def test_the_name_of_a_team_may_hold_points():
    text = (CATALOGS / "paper_five.yaml").read_text()
    with_team = with_field(text, "teams.eu.search", {"tau": 0.3})
    assert parse_catalog(with_team).policy.teams == {"eu.search": Team(tau=0.3)}
    assert parse_catalog(with_field(with_team, "teams.eu.search", None)).policy.teams == {}


@pytest.mark.parametrize(
    ("team", "told"),
    [
        ({"models": ["none"]}, "none of its models is routed to"),
        ({"budget": {"per": "day"}}, "usd"),
        ({"budget": {"usd": 1.0, "falls_from": 0.9, "cheapest_from": 0.5}}, "above falls_from"),
        ({"budget": {"usd": 1.0, "when_spent": "stop"}}, "refuse, cheapest"),
    ],
)
def test_a_team_that_cannot_work_is_refused(team, told):
    text = with_field((CATALOGS / "paper_five.yaml").read_text(), "teams.x", team)
    with pytest.raises(Exception, match=told):
        parse_catalog(text)


def test_the_cheapest_model_is_left_also_without_outcomes():
    evalset = load_evalset(SAMPLE_DATA / "paper_swebench")
    catalog = load_catalog(CATALOGS / "paper_five_published.yaml")
    cheap = replace(
        catalog.models[0], id="newcomer", input_usd_per_mtok=0.01, output_usd_per_mtok=0.01
    )
    catalog = replace(catalog, models=(*catalog.models, cheap), digest="new")
    scores = catalog_scores(evalset, catalog)
    sweep = sweep_catalog(evalset, catalog, scores, today=date(2026, 6, 1))
    last = budget_frame(sweep, 0.1, Team(), TeamBudget(50.0)).iloc[-1]
    cost = sweep.data.cost_usd[:, sweep.data.pool.ids.index("newcomer")].mean()
    assert (last["setting"], last["cost"]) == ("only newcomer", pytest.approx(cost))
    assert np.isnan([last["quality"], last["change"]]).all()
    early = budget_frame(sweep, 0.1, Team(), TeamBudget(50.0, falls_from=0.3, cheapest_from=0.5))
    assert "only newcomer, quality not known." in budget_text(early, TeamBudget(50.0))


def test_the_cheapest_that_is_left_obeys_the_gates_of_the_set():
    demo = load_evalset(SAMPLE_DATA / "console_demo")
    catalog = load_catalog(CATALOGS / "paper_five.yaml")
    sweep = sweep_catalog(demo, catalog, catalog_scores(demo, catalog), today=date(2026, 6, 1))
    data, (first, second) = sweep.data, sweep.order[:2]
    closed = np.zeros(data.quality.shape, dtype=bool)
    closed[::2, first] = True
    gated = replace(sweep, data=replace(data, closed=closed))
    last = budget_frame(gated, 0.1, Team(), TeamBudget(50.0)).iloc[-1]
    route = np.where(closed[:, first], second, first)
    rows = np.arange(len(route))
    assert last["cost"] == pytest.approx(data.cost_usd[rows, route].mean())
    assert last["quality"] == pytest.approx(100 * data.quality[rows, route].mean())
    assert last["setting"] == "only gpt-5.4-mini, where it may serve"
