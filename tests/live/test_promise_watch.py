"""A promise ends on another setting, on drift, and on feedback that contradicts it."""

from dataclasses import replace

import numpy as np
import pytest

from hydra_core.base.fitted_blocks import Promised
from hydra_core.catalog.chosen_and_promised import routes_by
from hydra_core.live.drift import evidence, promise_status
from hydra_core.routing.decision import Cause
from tests.live.logs import decision, traffic
from tests.routing.conftest import make_catalog

FLOOR = 0.7


@pytest.fixture
def catalog():
    """Promises 70 % and has the digest of the logs' decisions."""
    base = replace(make_catalog(), digest="0")
    promised = Promised(
        0.02, 0.95, "strong", FLOOR, 0.3, 900, "mine", "cross-fitted predictions", routes_by(base)
    )
    return replace(base, policy=replace(base.policy, promise=promised))


def rated(folder, qualities, **changes):
    return traffic(
        folder,
        [decision(i, **changes) for i in range(len(qualities))],
        {f"d{i}": quality for i, quality in enumerate(qualities)},
    )


def test_feedback_that_keeps_it_ends_it_in_5_percent_at_most():
    rng = np.random.default_rng(0)
    ended = sum(
        evidence((rng.random(1_000) < FLOOR).astype(float), FLOOR, np.arange(1_000)) >= 20
        for _ in range(1_000)
    )
    assert ended <= 50


def test_feedback_far_below_ends_it(catalog, tmp_path):
    found = promise_status(catalog, rated(tmp_path / "log", [0.0, 1.0] * 60))
    assert "Feedback contradicts it: 120 rated requests reach 50.0 %" in found.ended
    assert "no longer covered" in found.sentence


def test_feedback_above_the_floor_leaves_it(catalog, tmp_path):
    found = promise_status(catalog, rated(tmp_path / "log", [0.0, 1.0, 1.0, 1.0] * 30))
    assert found.ended == ""
    assert found.rated == 120
    assert "reach 75.0 %, the promise allows 70.0 %" in found.sentence


def test_only_what_this_catalog_routed_counts(catalog, tmp_path):
    for number, other in enumerate(
        (
            {"catalog_digest": "9"},
            {"arm": "canary"},
            {"rule": "named"},
            {"cause": "explored"},
            {"cause": next(one.value for one in Cause if one.keeps)},
        )
    ):
        found = promise_status(catalog, rated(tmp_path / str(number), [0.0] * 100, **other))
        assert (found.rated, found.ended) == (0, ""), other


def test_a_conversation_bets_once(catalog, tmp_path):
    found = promise_status(catalog, rated(tmp_path / "log", [0.0] * 100, conversation_id="one"))
    assert (found.rated, found.conversations, found.ended) == (100, 1, "")
    assert "100 rated requests of 1 conversation reach" in found.sentence


def test_conversations_of_different_lengths_are_judged_by_their_requests(catalog, tmp_path):
    """Long conversations do well, single requests fail; and the other way round."""
    names = [f"c{i}" for i in range(60) for _ in range(9)] + [None] * 60
    log = [decision(i, conversation_id=name) for i, name in enumerate(names)]
    for long, said, ended in ((1.0, "reach 90.0 %", False), (0.0, "reach 10.0 %", True)):
        told = {f"d{i}": long if name else 1.0 - long for i, name in enumerate(names)}
        found = promise_status(catalog, traffic(tmp_path / said, log, told))
        assert said in found.sentence
        assert bool(found.ended) == ended


def test_changed_requirements_and_another_setting_end_it(catalog, tmp_path):
    log = rated(tmp_path / "log", [1.0] * 10)
    assert promise_status(catalog, log).ended == ""
    found = promise_status(catalog, log, ("tool_use",))
    assert "Requirements have changed (tool use)" in found.ended
    turned = replace(catalog, policy=replace(catalog.policy, tau=0.3))
    assert "another setting, pool or prices" in promise_status(turned, log).ended


def test_a_catalog_without_a_promise_has_nothing_to_watch(tmp_path):
    assert promise_status(make_catalog(), rated(tmp_path / "log", [1.0])) is None


def test_a_later_start_takes_more_evidence(catalog, tmp_path):
    log = rated(tmp_path / "log", [0.0] * 12)
    assert promise_status(catalog, log).ended
    assert promise_status(catalog, log, start=30).ended == ""
