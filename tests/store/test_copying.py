"""A copy of a store says the same, in a database of its own."""

import sqlalchemy as sa

from hydra_core.store import open_store, tables
from tests.catalog.small import SMALL
from tests.store.conftest import ANA, BEN, EDITOR


def rows(store):
    """Everything the store holds, table by table."""
    with store._journal.database.reading() as connection:
        return {
            table.name: connection.execute(
                sa.select(table).order_by(*table.primary_key.columns)
            ).all()
            for table in tables.metadata.sorted_tables
        }


def filled(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="first", metrics={"qr": 0.1})
    store.publish("small", SMALL + "# again\n", actor=ANA, base_revision=1, note="second")
    store.drafts.start("small", SMALL, actor=BEN, base_revision=2)
    store.notes.add("d" * 64, "q1", "look", actor=EDITOR)
    store.points.pin(
        "small", "knee", revision=2, evalset_digest="d" * 64, tau=0.1, weights=(1.0,), actor=EDITOR
    )
    return store


def test_every_row_of_every_table_is_there_and_the_trail_is_whole(store, tmp_path):
    filled(store)
    copy = store.copied_to(tmp_path / "copy")
    assert rows(copy) == rows(store)
    assert copy.check_audit() == store.check_audit()
    assert copy.check_audit().entries == 4
    copy.close()


def test_what_the_copy_is_told_stays_in_the_copy(store, tmp_path):
    before = rows(filled(store))
    copy = store.copied_to(tmp_path / "copy")
    copy.publish("small", SMALL + "# third\n", actor=BEN, base_revision=2, note="in the copy")
    copy.notes.add("d" * 64, "q2", "in the copy", actor=EDITOR)
    copy.drafts.discard(copy.drafts.all()[0], actor=BEN)
    assert rows(store) == before
    assert copy.check_audit().fault == ""
    assert copy.catalogs() == {"small": 3}
    copy.close()


def test_an_empty_store_is_copied_too(store, tmp_path):
    copy = store.copied_to(tmp_path / "copy")
    copy.publish("small", SMALL, actor=ANA, base_revision=0, note="")
    assert copy.check_audit().entries == 1
    copy.close()
    again = open_store(url=sa.URL.create("sqlite", database=str(tmp_path / "copy/hydra.sqlite3")))
    assert again.catalogs() == {"small": 1}
    again.close()
