"""The audit trail is evidence: what was changed or removed is named."""

import threading

import pytest
import sqlalchemy as sa

from hydra_core.base.errors import AccessError
from hydra_core.store import Action, tables
from tests.catalog.small import SMALL
from tests.store.conftest import ANA, BEN, EDITOR, VIEWER


@pytest.fixture
def told(store):
    """A store with five records."""
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="first", metrics={"qr": 0.1})
    for number in range(4):
        store.notes.add("d" * 64, f"q{number}", "look", actor=EDITOR)
    return store


def change(url, statement):
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            connection.execute(sa.text(statement))
    finally:
        engine.dispose()


def test_a_whole_trail_is_whole(told):
    found = told.check_audit()
    assert (found.entries, found.fault) == (5, "")
    assert found.head == told.audit()[0].digest


def test_an_empty_trail_is_whole(store):
    assert (store.check_audit().entries, store.check_audit().fault) == (0, "")


@pytest.mark.parametrize(
    "column",
    ["actor = 'x'", "role = 'x'", "action = 'x'", "subject = 'x'", "reason = 'x'", "revision = 9"]
    + ["catalog = 'x'", "from_revision = 9", "metrics = '{}'", "at = '2020-01-01 00:00:00'"],
)
def test_a_changed_record_is_named(told, url, column):
    change(url, f"UPDATE audit SET {column} WHERE id = 1")
    found = told.check_audit()
    assert "record 1 " in found.fault
    assert "was changed" in found.fault
    assert found.entries == 0


@pytest.mark.parametrize(
    ("gone", "fault"),
    [
        ("id = 1", "between the beginning and record 2"),
        ("id = 3", "between record 2 and record 4"),
        ("id = 5", "after record 4"),
        ("id > 2", "after record 2"),
        ("id > 0", "after the beginning"),
    ],
)
def test_a_missing_record_is_named(told, url, gone, fault):
    change(url, f"DELETE FROM audit WHERE {gone}")
    assert fault in told.check_audit().fault


def test_a_record_put_in_between_is_named(told, url):
    change(url, "UPDATE audit SET id = 6 WHERE id = 2")
    assert "between record 1 and record 3" in told.check_audit().fault


def test_a_trail_written_anew_is_found_by_a_digest_kept_elsewhere(told, url):
    kept = told.check_audit().head
    told.notes.add("d" * 64, "q9", "later", actor=EDITOR)
    assert not told.check_audit(kept).fault
    change(url, "DELETE FROM audit")
    change(url, "UPDATE audit_head SET entries = 0, digest = ''")
    told.notes.add("d" * 64, "q9", "another past", actor=EDITOR)
    assert not told.check_audit().fault
    assert "was rewritten" in told.check_audit(kept).fault


def test_records_of_many_writers_make_one_chain(store):
    def write(name):
        for number in range(5):
            store.notes.add("d" * 64, f"{name}.{number}", "look", actor=EDITOR)

    writers = [threading.Thread(target=write, args=(name,)) for name in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (store.check_audit().entries, store.check_audit().fault) == (40, "")


def test_a_write_elsewhere_is_told_with_before_and_after(store):
    store.record_event(BEN, Action.REPLACE, "eval set mine", before="a" * 64, after="b" * 64)
    newest = store.audit()[0]
    assert (newest.actor, newest.action, newest.subject) == (
        BEN.name,
        Action.REPLACE,
        "eval set mine",
    )
    assert newest.metrics == {"before": "a" * 64, "after": "b" * 64}
    with pytest.raises(AccessError):
        store.record_event(VIEWER, Action.IMPORT, "eval set mine")
    assert len(store.audit()) == 1


def test_the_head_is_one_row(store, url):
    with pytest.raises(sa.exc.IntegrityError):
        change(url, "INSERT INTO audit_head (id, entries, digest) VALUES (2, 0, '')")
    assert tables.audit_head.name == "audit_head"
