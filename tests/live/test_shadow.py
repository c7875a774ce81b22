"""A second catalog on logged traffic: the same rule as the router, and its value where known."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.errors import HydraError, RoutingError
from hydra_core.base.types import Rule, Stall, Team
from hydra_core.live.off_policy import NoOverlapError, logged_value
from hydra_core.live.shadow import routes, shadow
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from tests.live.logs import DAY, MODELS, decision, levels, other_catalog, traffic
from tests.routing.conftest import make_catalog, spec


def test_the_same_catalog_agrees_everywhere_and_costs_the_same(tmp_path):
    some = traffic(tmp_path, [decision(i, level) for i, level in enumerate(levels(50))])
    found = shadow(some, other_catalog(tau=0.0), DAY)
    assert found.agreement.value == 1.0
    assert found.cost.change.value == pytest.approx(0.0)
    assert found.left_out == {}


def test_every_replayed_route_is_the_routers_own(tmp_path):
    models = (spec("cheap", 1, 0.2, context_window=2000), spec("mid", 3, 0.5, vision=True),
              spec("strong", 9, 0.9, tools=False, vision=True))  # fmt: skip
    catalog = make_catalog(*models)
    rng, rows = np.random.default_rng(3), []
    for i, level in enumerate(levels(80)):
        facts = {"has_image": bool(rng.random() < 0.3), "needs_tools": bool(rng.random() < 0.3),
                 "context_tokens": int(rng.integers(0, 4000)),
                 "allow": ("cheap", "strong") if rng.random() < 0.2 else None,
                 "deny": ("mid",) if rng.random() < 0.2 else ()}  # fmt: skip
        rows.append(decision(i, level, **facts))
    some, router = traffic(tmp_path, rows), Router(catalog, today=lambda: DAY)
    found = routes(some, catalog, DAY)
    for row, at in zip(rows, found, strict=True):
        query = Query("", has_image=row.has_image, needs_tools=row.needs_tools, deny=set(row.deny),
                      context_tokens=row.context_tokens,
                      allow=None if row.allow is None else set(row.allow))  # fmt: skip
        try:
            expected = router.decide(np.array(row.requirements), query).model
        except RoutingError:
            expected = None
        assert (MODELS[at] if at >= 0 else None) == expected
    assert -1 in found


def test_what_cannot_be_replayed_is_counted(tmp_path):
    rows = [decision(0), decision(1, cause="kept_by_session", requirements=None, shortfalls=None),
            decision(2, predictor="other")]  # fmt: skip
    found = shadow(traffic(tmp_path, rows), make_catalog(), DAY)
    assert len(found.models) == 1
    assert sorted(found.left_out.values()) == [1, 1]


def test_a_catalog_that_cannot_be_replayed_is_refused(tmp_path):
    some = traffic(tmp_path, [decision(0)])
    with pytest.raises(HydraError, match="scored by another predictor"):
        shadow(some, replace(make_catalog(), predictor_fingerprint="g"), DAY)


def explored(tmp_path, n, share, seed=0):
    """Decisions of the tau-0 catalog with uniform exploration; dearer models do better."""
    rng, rows, qualities = np.random.default_rng(seed), [], {}
    for i, level in enumerate(levels(n, seed)):
        best = next(j for j, able in enumerate((0.2, 0.5, 0.9)) if level <= able)
        chances = np.full(3, share / 3)
        chances[best] += 1 - share
        served = int(rng.choice(3, p=chances))
        rows.append(decision(i, level, chosen=MODELS[served], served=MODELS[served],
                             propensities=tuple(chances), propensity=chances[served]))  # fmt: skip
        qualities[f"d{i}"] = float(rng.random() < (0.3, 0.5, 0.8)[served])
    return traffic(tmp_path, rows, qualities)


def test_the_value_of_another_catalog_is_found_where_it_was_explored(tmp_path):
    some = explored(tmp_path, 3000, 0.5)
    always = make_catalog(spec("strong", 9, 0.9))
    found = logged_value(some, always, DAY)
    assert found.explored == 1.0
    assert found.live.value < 0.65
    for one in (found.value.ips, found.value.snips, found.value.dr):
        assert one.lo < 0.8 < one.hi


def test_without_exploration_overlap_or_ratings_no_value_is_given(tmp_path):
    certain = explored(tmp_path / "certain", 200, 0.0)
    with pytest.raises(NoOverlapError, match="nothing was explored"):
        logged_value(certain, other_catalog(), DAY)
    few = explored(tmp_path / "few", 150, 0.3)
    with pytest.raises(NoOverlapError, match="are worth"):
        logged_value(few, make_catalog(spec("strong", 9, 0.9)), DAY)
    with pytest.raises(NoOverlapError, match="could not have served"):
        logged_value(few, make_catalog(spec("new", 9, 0.9)), DAY)
    unrated = traffic(tmp_path / "unrated", [decision(0)])
    with pytest.raises(NoOverlapError, match="feedback"):
        logged_value(unrated, other_catalog(), DAY)


def test_a_teams_own_models_and_knob_hold(tmp_path):
    teams = {"few": Team(models=frozenset({"mid", "strong"})), "cheap": Team(tau=9.0)}
    base = make_catalog(tau=0.0)
    catalog = replace(base, policy=replace(base.policy, teams=teams))
    rows = [decision(0, team="few"), decision(1, 0.9, team="cheap"), decision(2, 0.9, team="other")]
    found = routes(traffic(tmp_path, rows), catalog, DAY)
    assert [MODELS[at] for at in found] == ["mid", "cheap", "strong"]


def test_a_stall_raises_v(tmp_path):
    base = make_catalog()
    worth = {"rule": Rule.VALUE, "value_usd": 0.02, "stall": Stall(3, value_factor=100.0)}
    catalog = replace(base, policy=replace(base.policy, **worth))
    some = traffic(tmp_path, [decision(i, stalled=n) for i, n in enumerate((0, 2, 3, 9999))])
    said = {"replayed_success": [(0.5, 0.6, 0.7)] * 4,
            "replayed_cost_usd": [(0.001, 0.01, 0.1)] * 4}  # fmt: skip
    found = routes(replace(some, rows=some.rows.assign(**said)), catalog, DAY)
    assert [MODELS[at] for at in found] == ["cheap", "cheap", "strong", "strong"]
