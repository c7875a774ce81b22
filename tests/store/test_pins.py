from dataclasses import replace

import pytest

from hydra_core.base.errors import AccessError, ConflictError, StoreError
from hydra_core.base.types import Rule
from tests.catalog.small import SMALL
from tests.store.conftest import ANA, BEN, EDITOR, VIEWER

POINT = {
    "revision": 1,
    "evalset_digest": "d" * 64,
    "tau": 0.1 + 0.2,
    "weights": (1.0, 0.1 + 0.7),
    "metrics": {"qr": 0.93},
}


@pytest.fixture
def catalog(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="")
    return store


def test_a_pinned_point_reads_back_exactly(catalog):
    point = catalog.points.pin("small", "night", actor=EDITOR, **POINT)
    assert catalog.points.all("small") == (point,)
    assert (point.tau, point.weights) == (POINT["tau"], POINT["weights"])
    assert catalog.points.all("other") == ()
    assert catalog.audit()[0].subject == "operating point night"


def test_a_name_is_taken_once(catalog):
    catalog.points.pin("small", "night", actor=EDITOR, **POINT)
    with pytest.raises(ConflictError, match="'night' exists"):
        catalog.points.pin("small", "night", actor=ANA, **POINT)
    assert len(catalog.points.all("small")) == 1
    assert len(catalog.audit()) == 2


@pytest.mark.parametrize(
    "change",
    [{"revision": 2}, {"tau": -0.1}, {"tau": float("inf")}, {"weights": (1.0, 0.0)}],
)
def test_a_point_out_of_range_is_refused(catalog, change):
    with pytest.raises(StoreError):
        catalog.points.pin("small", "night", actor=EDITOR, **{**POINT, **change})
    assert catalog.points.all("small") == ()


def test_only_the_author_or_a_publisher_removes_a_point(catalog):
    point = catalog.points.pin("small", "night", actor=EDITOR, **POINT)
    with pytest.raises(AccessError):
        catalog.points.remove(point, actor=VIEWER)
    with pytest.raises(AccessError):
        catalog.points.remove(point, actor=replace(EDITOR, name="other"))
    catalog.points.remove(point, actor=BEN)
    assert catalog.points.all("small") == ()
    with pytest.raises(StoreError, match="gone already"):
        catalog.points.remove(point, actor=BEN)


def test_viewers_neither_pin_nor_note(catalog):
    with pytest.raises(AccessError):
        catalog.points.pin("small", "night", actor=VIEWER, **POINT)
    with pytest.raises(AccessError):
        catalog.notes.add("d" * 64, "q1", "look", actor=VIEWER)


def test_notes_stay_with_their_query(store):
    first = store.notes.add("d" * 64, "q1", "a wrong label?\nlook again", actor=EDITOR)
    second = store.notes.add("d" * 64, "q2", "fine", actor=ANA)
    assert store.notes.all("d" * 64) == (first, second)
    assert store.notes.all("d" * 64, "q1") == (first,)
    assert store.notes.all("e" * 64) == ()


def test_only_the_author_or_a_publisher_removes_a_note(store):
    note = store.notes.add("d" * 64, "q1", "mine", actor=ANA)
    with pytest.raises(AccessError):
        store.notes.remove(note, actor=EDITOR)
    store.notes.remove(note, actor=ANA)
    with pytest.raises(StoreError, match="gone already"):
        store.notes.remove(note, actor=ANA)


@pytest.mark.parametrize("text", ["", " \n", "x" * 20_001, "bell\x07"])
def test_an_empty_or_unprintable_note_is_refused(store, text):
    with pytest.raises(StoreError):
        store.notes.add("d" * 64, "q1", text, actor=EDITOR)


def test_a_forged_author_does_not_make_a_note_or_point_ones_own(catalog):
    note = catalog.notes.add("d" * 64, "q1", "Ana's", actor=ANA)
    point = catalog.points.pin("small", "night", actor=ANA, **POINT)
    with pytest.raises(AccessError):
        catalog.notes.remove(replace(note, author=EDITOR.name), actor=EDITOR)
    with pytest.raises(AccessError):
        catalog.points.remove(replace(point, author=EDITOR.name), actor=EDITOR)
    assert catalog.notes.all("d" * 64) == (note,)
    assert catalog.points.all("small") == (point,)


def test_what_is_removed_stands_in_the_trail(catalog):
    note = catalog.notes.add("d" * 64, "q1", "Ana's", actor=ANA)
    catalog.notes.remove(note, actor=BEN)
    newest = catalog.audit()[0]
    assert newest.metrics == {"before": {"author": ANA.name, "text": "Ana's"}}
    assert newest.action == "change what another person wrote or began"


def test_a_point_of_the_value_rule_keeps_its_rule_and_v(catalog):
    point = catalog.points.pin(
        "small", "paid", actor=EDITOR, **POINT, rule=Rule.VALUE, value_usd=0.25
    )
    (read,) = catalog.points.all("small")
    assert read == point
    assert (read.rule, read.value_usd) == (Rule.VALUE, 0.25)
    for value in (None, 0.0, float("nan")):
        with pytest.raises(StoreError, match="V"):
            catalog.points.pin(
                "small", "other", actor=EDITOR, **POINT, rule=Rule.VALUE, value_usd=value
            )
