"""The knob of a message: every step says the model that the router chooses there."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.catalog.schema import load_catalog
from hydra_core.routing.decision import Query
from hydra_core.routing.router import Router
from hydra_core.shipped import CATALOGS
from hydra_core.types import Rule
from hydra_core.views import inspection
from hydra_core.views.knob.message import facts, knob_of, message_steps

CATALOG = load_catalog(CATALOGS / "paper_five.yaml")


@pytest.mark.parametrize("needs", [(0.3, 0.1, 0.5, 0.1), (0.1, 0.05, 0.1, 0.02)])
def test_every_step_names_the_model_that_the_router_chooses(needs):
    one = inspection.reopen(CATALOG, needs, Query(""), None)
    models = inspection.cost_order(one.decision)
    rule, knob = knob_of(one)
    assert (rule, knob) == (Rule.SHORTFALL, CATALOG.policy.tau)
    strips = inspection.strips({"": one})
    frame = message_steps(strips, inspection.strip_scale(one), models, rule, knob)
    assert frame["knob"].is_monotonic_increasing
    assert frame["knob"].iloc[0] == 0
    for tau, number in zip(frame["knob"], frame["model_0"], strict=True):
        there = replace(CATALOG, policy=replace(CATALOG.policy, tau=tau))
        assert Router(there).decide(np.asarray(needs), Query("")).model == models[number]
    told = facts({"": one}, models)[0]
    assert all(text.startswith("shortfall ") and "$" in text for text in told)
