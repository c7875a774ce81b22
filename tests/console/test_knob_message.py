"""The knob of a message: every step says the model that the router chooses there."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.shipped import CATALOGS
from hydra_core.base.types import Rule
from hydra_core.catalog.schema import load_catalog
from hydra_core.console.inspect import view
from hydra_core.console.inspect.view import facts, knob_of, message_steps
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router

CATALOG = load_catalog(CATALOGS / "paper_five.yaml")


@pytest.mark.parametrize("needs", [(0.3, 0.1, 0.5, 0.1), (0.1, 0.05, 0.1, 0.02)])
def test_every_step_names_the_model_that_the_router_chooses(needs):
    one = view.reopen(CATALOG, needs, Query(""), None)
    models = view.cost_order(one.decision)
    rule, knob = knob_of(one)
    assert (rule, knob) == (Rule.SHORTFALL, CATALOG.policy.tau)
    strips = view.strips({"": one})
    frame = message_steps(strips, view.strip_scale(one), models, rule, knob)
    assert frame["knob"].is_monotonic_increasing
    assert frame["knob"].iloc[0] == 0
    for tau, number in zip(frame["knob"], frame["model_0"], strict=True):
        there = replace(CATALOG, policy=replace(CATALOG.policy, tau=tau))
        assert Router(there).decide(np.asarray(needs), Query("")).model == models[number]
    told = facts({"": one}, models)[0]
    assert all(text.startswith("shortfall ") and "$" in text for text in told)


def test_only_a_model_without_a_success_profile_is_marked_so():
    catalog = load_catalog(CATALOGS / "mixed_2024.yaml")
    newcomer = replace(catalog.models[2], id="new")
    catalog = replace(catalog, models=(*catalog.models, newcomer))
    valued = Router(catalog).decide(np.full(4, 0.3)).valuation
    names = valued.valuer.ids
    said = [view.success_text(valued, i) for i in range(len(names))]
    assert [name for name, text in zip(names, said, strict=True) if "profile" in text] == ["new"]
