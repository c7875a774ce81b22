"""Ratings: newest counts, undo, many raters, and what kill -9 may not lose."""

import contextlib
import time
from datetime import UTC, datetime

import pytest

from benchmarks.speed.store_load import CONTEXT
from hydra_core.base.errors import AccessError, ConflictError, StoreError
from hydra_core.store import Actor, RatingState, Role, open_store

ANA, BO = Actor("ana", Role.EDITOR), Actor("bo", Role.PUBLISHER)
DIMENSIONS = ("reasoning", "tool_use")


@pytest.fixture
def store(tmp_path):
    found = open_store(tmp_path)
    yield found
    found.close()


def drawn(store, name="s", queries=("q1", "q2", "q3")):
    return store.ratings.draw(
        name, actor=ANA, evalset="e", evalset_digest="d", dimensions=DIMENSIONS, query_ids=queries
    )


def test_the_newest_rating_counts_and_an_undone_one_does_not(store):
    sample = drawn(store)
    store.ratings.rate(sample, "q1", (1, 2), actor=ANA, note="first")
    store.ratings.rate(sample, "q1", (3, 4), actor=ANA)
    store.ratings.skip(sample, "q2", actor=ANA)
    store.ratings.rate(sample, "q1", (5, 5), actor=BO)
    found = {(one.rater, one.query_id): one for one in store.ratings.of("s")}
    assert found["ana", "q1"].scores == (3.0, 4.0)
    assert found["ana", "q2"].state is RatingState.SKIPPED
    assert store.ratings.undo(sample, actor=ANA) == "q2"
    assert store.ratings.undo(sample, actor=ANA) == "q1"
    assert store.ratings.undo(sample, actor=ANA) is None
    assert [one.rater for one in store.ratings.of("s")] == ["bo"]


def test_a_rating_has_its_rater_and_time(store):
    sample = drawn(store)
    store.ratings.rate(sample, "q1", (1, 5), actor=ANA)
    one = store.ratings.of("s")[0]
    assert one.rater == "ana"
    assert abs((datetime.now(UTC) - one.created_at).total_seconds()) < 60


@pytest.mark.parametrize("scores", [(1,), (0, 3), (1, 6), (float("nan"), 2)])
def test_a_score_out_of_range_changes_nothing(store, scores):
    sample = drawn(store)
    with pytest.raises(StoreError, match="from 1 to 5"):
        store.ratings.rate(sample, "q1", scores, actor=ANA)
    assert store.ratings.of("s") == ()


def test_viewers_do_not_rate_and_editors_not_for_others(store):
    sample = drawn(store)
    with pytest.raises(AccessError):
        store.ratings.rate(sample, "q1", (1, 1), actor=Actor("eve", Role.VIEWER))
    with pytest.raises(AccessError):
        store.ratings.take_in(sample, [("q1", "chen", (1, 1), "")], actor=ANA)
    assert store.ratings.take_in(sample, [("q1", "chen", (1, 1), "")], actor=BO) == 1
    (newest,) = store.audit(limit=1)
    assert (newest.actor, newest.subject) == (BO.name, "1 ratings of sample s taken in for chen")
    with pytest.raises(StoreError, match="not in the sample"):
        store.ratings.take_in(
            sample, [("q2", "chen", (1, 1), ""), ("q9", "chen", (1, 1), "")], actor=BO
        )
    assert len(store.ratings.of("s")) == 1


def test_a_name_is_taken_once(store):
    drawn(store)
    with pytest.raises(ConflictError, match="take another name"):
        drawn(store)


def rate_on(folder, rater, start, acknowledged):
    """Rate from the start-th query on, telling each that is kept."""
    store = open_store(folder)
    sample = store.ratings.samples()[0]
    for query in sample.query_ids[start:]:
        store.ratings.rate(sample, query, (2, 4), actor=Actor(rater, Role.EDITOR))
        acknowledged.send(query)


@pytest.mark.slow
def test_ratings_of_three_raters_survive_twenty_kills(store, tmp_path):
    queries = tuple(f"q{i}" for i in range(5000))
    drawn(store, queries=queries)
    said = {"ana": 0, "bo": 0, "chen": 0}
    for kill in range(20):
        rater = list(said)[kill % 3]
        reader, writer = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(target=rate_on, args=(tmp_path, rater, said[rater], writer))
        process.start()
        writer.close()
        for _ in range(3 + kill % 4):
            reader.recv()
            said[rater] += 1
        time.sleep(0.001 * kill)
        process.kill()
        with contextlib.suppress(EOFError, OSError):
            while reader.recv():
                said[rater] += 1
        process.join()
        reader.close()
    kept = {rater: 0 for rater in said}
    for one in store.ratings.of("s"):
        kept[one.rater] += 1
        assert one.scores == (2.0, 4.0)
    for rater, acknowledged in said.items():
        assert acknowledged > 0
        assert kept[rater] >= acknowledged
