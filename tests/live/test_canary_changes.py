"""Who may change a canary, what the audit trail keeps of it, and what a second begin means."""

from datetime import UTC, datetime

import pytest

from hydra_core.base.errors import AccessError, HydraError, ProblemsError
from hydra_core.cli.main import main
from hydra_core.decision_log.canaries_and_alerts import (
    CanaryOrder,
    CanaryRecord,
    begin_canary,
    canaries,
    ordered_canary,
)
from hydra_core.live.canary import CanaryChanges
from hydra_core.store import Actor, Role, open_store

ANA, EVE = Actor("ana", Role.PUBLISHER), Actor("eve", Role.EDITOR)
NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
ORDER = CanaryOrder("/pool.yaml", 0.2, 3.0)


@pytest.fixture
def store(tmp_path):
    found = open_store(tmp_path / "workspace")
    yield found
    found.close()


def changes(folder, store, actor=ANA):
    return CanaryChanges(folder, actor, store, lambda: NOW)


def record(digest="a" * 64, began="2026-11-25T10:00:00+00:00", **more):
    return CanaryRecord(digest, "pool", 0.2, began, **more)


@pytest.mark.parametrize(
    "act",
    [
        lambda one: one.begin(ORDER, "a" * 64),
        lambda one: one.end(),
        lambda one: one.stop("no"),
        lambda one: one.resume(),
    ],
)
def test_an_editor_changes_nothing_and_the_trail_stays_empty(tmp_path, store, act):
    begin_canary(tmp_path, record())
    with pytest.raises(AccessError, match="begin, stop or resume a canary"):
        act(changes(tmp_path, store, EVE))
    assert ordered_canary(tmp_path) is None
    assert canaries(tmp_path) == (record(),)
    assert store.audit() == ()


def test_every_change_is_in_the_audit_trail(tmp_path, store):
    mine = changes(tmp_path, store)
    mine.begin(ORDER, "a" * 64)
    begin_canary(tmp_path, record())  # as the service does
    mine.stop("prices changed")
    mine.resume()
    mine.end()
    kept = [(one.actor, one.subject.partition(": ")[2], one.reason) for one in store.audit()]
    assert kept == [
        ("ana", "end", ""),
        ("ana", "resume pool", ""),
        ("ana", "stop pool", "prices changed"),
        ("ana", "begin /pool.yaml, share 0.2, limit 3", ""),
    ]
    assert ordered_canary(tmp_path) == CanaryOrder("")


def test_an_order_that_makes_no_sense_lists_what_is_wrong(tmp_path, store):
    with pytest.raises(ProblemsError) as raised:
        changes(tmp_path, store).begin(CanaryOrder("", 1.5, 0.5), "")
    assert [one.place for one in raised.value.problems] == ["catalog", "share", "limit"]
    assert ordered_canary(tmp_path) is None


def test_a_canary_that_ran_before_begins_anew(tmp_path):
    begin_canary(tmp_path, record(stopped="it failed", at="2026-11-25T11:00:00+00:00"))
    changes(tmp_path, None).begin(ORDER, "a" * 64)
    (found,) = canaries(tmp_path)
    assert (found.stopped, found.began) == ("", "2026-11-25T12:00:00+00:00")


def test_another_share_for_the_canary_that_runs_keeps_what_it_has_seen(tmp_path):
    begin_canary(tmp_path, record())
    changes(tmp_path, None).begin(ORDER, "a" * 64)
    assert canaries(tmp_path) == (record(),)


def test_without_a_canary_there_is_nothing_to_stop(tmp_path):
    with pytest.raises(HydraError, match="begin one first"):
        changes(tmp_path, None).stop("no")


def test_a_stop_without_a_reason_stops(tmp_path):
    begin_canary(tmp_path, record())
    changes(tmp_path, None).stop(" ")
    assert [one.stopped for one in canaries(tmp_path)] == ["stopped by hand"]


def test_what_has_ended_or_not_begun_is_neither_stopped_nor_resumed(tmp_path):
    mine = changes(tmp_path, None)
    mine.begin(ORDER, "a" * 64)
    with pytest.raises(HydraError, match="no service has begun the canary yet"):
        mine.stop("no")
    begin_canary(tmp_path, record())
    mine.end()
    with pytest.raises(HydraError, match="has ended"):
        mine.resume()
    assert canaries(tmp_path) == (record(),)


def test_a_log_without_a_canary_is_shown_as_such(tmp_path, capsys):
    assert main(["canary", "show", str(tmp_path)]) == 0
    assert "no canary has begun here" in capsys.readouterr().err


def test_a_canary_that_runs_is_not_resumed_and_keeps_what_it_has_seen(tmp_path, store):
    begin_canary(tmp_path, record())
    with pytest.raises(HydraError, match="the canary of pool is not stopped"):
        changes(tmp_path, store).resume()
    assert canaries(tmp_path) == (record(),)
    assert store.audit() == ()
