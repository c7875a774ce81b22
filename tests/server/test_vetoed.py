"""The log names the model that the rule would have chosen but for its health."""

import numpy as np
import pytest

from hydra_core.base.types import StickyMode
from hydra_core.routing.query import Query
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from hydra_core.server.deciding import vetoed_choice
from tests.routing.conftest import Scores, make_catalog, spec


def decided(need, query=None, catalog=None, **health):
    return Router(catalog or make_catalog()).decide(np.full(4, need), query, health=health)


@pytest.mark.parametrize(
    ("need", "health", "chosen", "vetoed"),
    [
        (0.4, {}, "mid", ""),
        (0.4, {"mid": 0.0}, "strong", "mid"),
        (0.4, {"cheap": 0.0}, "mid", ""),  # it was not capable
        (0.4, {"strong": 0.0}, "mid", ""),  # it comes later by cost
        (1.0, {"strong": 0.0}, "mid", "strong"),  # nobody is capable: the closest one
        (1.0, {"mid": 0.0}, "strong", ""),
        (0.4, {"cheap": 0.0, "mid": 0.0, "strong": 0.0}, "mid", ""),  # it is used all the same
    ],
)
def test_the_first_choice_of_the_rule_is_named_where_health_took_it_out(
    need, health, chosen, vetoed
):
    made = decided(need, **health)
    assert (made.model, vetoed_choice(made)) == (chosen, vetoed)


def test_what_a_gate_took_out_was_not_vetoed():
    made = decided(0.4, Query("", deny=frozenset({"mid"})), mid=0.0)
    assert (made.model, vetoed_choice(made)) == ("strong", "")


def test_of_models_that_cost_the_same_the_one_that_the_rule_takes():
    catalog = make_catalog(spec("near", 1, 0.5), spec("far", 1, 0.49), spec("strong", 9, 0.9))
    made = decided(0.5, catalog=catalog, near=0.0)
    assert (made.model, vetoed_choice(made)) == ("far", "near")


def test_a_conversation_that_stays_was_not_vetoed_by_another_models_health():
    catalog = make_catalog(
        spec("cheap", 1, 0.45), spec("other", 2, 0.5), spec("kept", 9, 0.9),
        mode=StickyMode.ADAPTIVE,
    )  # fmt: skip
    scores = Scores(0.8)
    router = Router(catalog, scores, sessions=MemorySessions())
    assert router.route(Query("first", 1, "c")).model == "kept"
    scores.level = 0.4
    made = router.route(Query("second", 2, "c"), health={"other": 0.0})
    assert (made.model, vetoed_choice(made)) == ("kept", "")
