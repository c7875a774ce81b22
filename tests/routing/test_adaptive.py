"""Adaptive stickiness: every turn is scored; the kept model is left when it falls too short."""

from dataclasses import replace

import pytest

from hydra_core.base.types import StickyMode
from hydra_core.catalog.schema import parse_catalog
from hydra_core.routing.decision import Cause
from hydra_core.routing.query import Query
from hydra_core.routing.redecide import redecide
from hydra_core.routing.router import Router
from hydra_core.routing.sessions import MemorySessions
from tests.catalog.small import edited
from tests.routing.conftest import Scores, make_catalog


@pytest.fixture
def scores():
    return Scores()


@pytest.fixture
def turn(scores):
    """Routes one turn of a conversation at a requirement; tau .1, margin .2, four dimensions."""
    catalog = make_catalog(mode=StickyMode.ADAPTIVE)
    sticky = replace(catalog.policy.sticky, margin=0.2)
    catalog = replace(catalog, policy=replace(catalog.policy, sticky=sticky))
    router = Router(catalog, scores, sessions=MemorySessions())

    def route(number, level, **changes):
        scores.level = level
        return router.route(Query("x", number, "c", **changes))

    return route


def test_a_little_beyond_tau_the_model_is_kept_and_far_beyond_it_is_left(turn):
    assert turn(1, 0.2).model == "cheap"
    kept = turn(2, 0.26)  # falls short by .24: beyond tau, within the margin
    assert (kept.model, kept.cause) == ("cheap", Cause.KEPT_WITHIN_MARGIN)
    assert turn(3, 0.4).model == "mid"


def test_a_model_that_is_more_than_enough_is_kept_for_its_cache(turn):
    assert turn(1, 0.9).model == "strong"
    kept = turn(2, 0.0)
    assert (kept.model, kept.cause) == ("strong", Cause.KEPT_WITHIN_MARGIN)
    assert kept.requirements.tolist() == [0.0] * 4
    told = {row.model: row.reason for row in kept.candidates()}
    assert "stays on strong" in told["cheap"]


def test_after_a_compaction_there_is_no_cache_to_keep(turn):
    turn(1, 0.9)
    assert turn(2, 0.0, compacted=True).model == "cheap"


def test_the_receipt_alone_leads_to_the_kept_model(turn):
    turn(1, 0.9)
    assert redecide(turn(2, 0.0).receipt()) == "strong"


def test_a_model_that_cannot_serve_is_left(turn):
    turn(1, 0.9)
    assert turn(2, 0.0, deny=frozenset({"strong"})).model == "cheap"


def test_the_catalog_says_mode_and_margin():
    text = edited(("mode: per_session,", "mode: adaptive, margin: 0.1,"))
    sticky = parse_catalog(text).policy.sticky
    assert (sticky.mode, sticky.margin) == (StickyMode.ADAPTIVE, 0.1)
