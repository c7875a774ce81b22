from datetime import UTC

import pytest
import sqlalchemy as sa

from hydra_core.base.errors import AccessError, CatalogError, ConflictError, StoreError
from hydra_core.catalog import parse_catalog
from hydra_core.store import NewerRevisionError, open_store
from tests.catalog.small import SMALL, edited
from tests.store.conftest import ANA, BEN, EDITOR, START, VIEWER

DEARER = edited(("0.31", "0.40"))
METRICS = {"qr": [0.91, 0.88, 0.94], "evalset": "demo"}


def published(store, *texts, actor=ANA):
    return [
        store.publish("small", text, actor=actor, base_revision=number, note=f"step {number}")
        for number, text in enumerate(texts)
    ]


def test_a_published_revision_reads_back_as_it_was_written(store):
    made = store.publish(
        "small", SMALL, actor=ANA, base_revision=0, note=" first\nlines ", metrics=METRICS
    )
    assert store.newest("small") == store.revision("small", 1) == made
    assert (made.number, made.parent, made.restores) == (1, None, None)
    assert (made.yaml, made.note, made.metrics) == (SMALL, "first\nlines", METRICS)
    assert made.digest == parse_catalog(SMALL).digest
    assert made.bundle_fingerprint == "abc123"
    assert made.created_at == START
    assert made.created_at.tzinfo is UTC


def test_revisions_survive_reopening(store, url):
    published(store, SMALL, DEARER)
    again = open_store(url=url)
    assert again.history("small") == store.history("small")
    again.close()


def test_numbers_count_up_per_catalog(store):
    published(store, SMALL, DEARER)
    other = store.publish("other", SMALL, actor=BEN, base_revision=0, note="")
    assert other.number == 1
    assert store.catalogs() == {"other": 1, "small": 2}
    assert [item.number for item in store.history("small")] == [2, 1]
    assert [item.number for item in store.history("small", limit=1)] == [2]
    assert [item.number for item in store.history("small", before=2)] == [1]
    assert store.history("nowhere") == ()
    assert store.newest("nowhere") is None


def test_the_second_of_two_publishers_is_told_who_was_first(store):
    published(store, SMALL)
    first = store.publish("small", DEARER, actor=BEN, base_revision=1, note="")
    with pytest.raises(NewerRevisionError, match="ben@example.org published revision 2 at 2026-03"):
        store.publish("small", edited(("1.19", "1.5")), actor=ANA, base_revision=1, note="")
    with pytest.raises(ConflictError) as caught:
        store.publish("small", edited(("1.19", "1.5")), actor=ANA, base_revision=0, note="")
    assert caught.value.newest == first
    assert store.catalogs() == {"small": 2}
    assert len(store.audit()) == 2


def test_a_refused_publish_leaves_no_gap(store):
    published(store, SMALL)
    for text, base, error in [
        (SMALL, 1, StoreError),
        ("schema: no", 1, CatalogError),
        (DEARER, 7, StoreError),
        (DEARER, 0, ConflictError),
    ]:
        with pytest.raises(error):
            store.publish("small", text, actor=ANA, base_revision=base, note="")
    assert store.publish("small", DEARER, actor=ANA, base_revision=1, note="").number == 2


def test_a_refused_first_publish_leaves_no_catalog(store):
    with pytest.raises(StoreError, match="there is no revision 3"):
        store.publish("small", SMALL, actor=ANA, base_revision=3, note="")
    assert store.catalogs() == {}


@pytest.mark.parametrize("actor", [VIEWER, EDITOR])
def test_only_publishers_publish_and_roll_back(store, actor):
    published(store, SMALL, DEARER)
    with pytest.raises(AccessError, match="may not publish a revision"):
        store.publish("small", SMALL, actor=actor, base_revision=2, note="")
    with pytest.raises(AccessError, match="may not roll back"):
        store.roll_back("small", 1, actor=actor, base_revision=2, note="")
    assert store.catalogs() == {"small": 2}


def test_the_role_is_checked_before_the_content(store):
    with pytest.raises(AccessError):
        store.publish("small", "not a catalog", actor=VIEWER, base_revision=0, note="")


def test_rolling_back_publishes_the_old_text_as_a_new_revision(store):
    published(store, SMALL, DEARER)
    back = store.roll_back("small", 1, actor=BEN, base_revision=2, note="too dear")
    assert (back.number, back.parent, back.restores, back.yaml) == (3, 2, 1, SMALL)
    assert [item.number for item in store.history("small")] == [3, 2, 1]


def test_rolling_back_needs_a_revision_that_differs_and_the_newest_base(store):
    published(store, SMALL, DEARER)
    with pytest.raises(StoreError, match="no revision 9"):
        store.roll_back("small", 9, actor=ANA, base_revision=2, note="")
    with pytest.raises(StoreError, match="says the same already"):
        store.roll_back("small", 2, actor=ANA, base_revision=2, note="")
    with pytest.raises(NewerRevisionError):
        store.roll_back("small", 1, actor=ANA, base_revision=1, note="")


def test_every_write_is_in_the_audit_trail(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="start", metrics=METRICS)
    published_2 = store.publish("small", DEARER, actor=BEN, base_revision=1, note="dearer")
    store.roll_back("small", 1, actor=ANA, base_revision=2, note="too dear")
    newest, middle, first = store.audit("small")
    assert (newest.actor, newest.action) == (ANA.name, "roll back to an earlier revision")
    assert (newest.revision, newest.from_revision, newest.reason) == (3, 2, "too dear")
    assert (middle.actor, middle.role, middle.revision) == (BEN.name, "publisher", 2)
    assert middle.at > published_2.created_at
    assert first.metrics == METRICS
    assert store.audit("other") == ()
    assert len(store.audit(limit=2)) == 2


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201, "nul\x00"])
def test_a_catalog_needs_a_plain_name(store, name):
    with pytest.raises(StoreError, match="the catalog's name"):
        store.publish(name, SMALL, actor=ANA, base_revision=0, note="")


@pytest.mark.parametrize("metrics", [{"qr": float("nan")}, {"qr": object()}, {"a": "\x00"}])
def test_metrics_are_plain_json(store, metrics):
    with pytest.raises(StoreError, match="metrics"):
        store.publish("small", SMALL, actor=ANA, base_revision=0, note="", metrics=metrics)


def test_a_note_holds_no_control_characters(store):
    with pytest.raises(StoreError, match="U\\+0000"):
        store.publish("small", SMALL, actor=ANA, base_revision=0, note="a\x00b")


def test_text_of_every_script_is_kept(store):
    text = edited(("name: small", "name: small\nnotes: 'Größe, 価格, سعر, 🐉'"))
    store.publish("небольшой", text, actor=ANA, base_revision=0, note="ціна 🐉")
    assert store.newest("небольшой").yaml == text


def test_a_revision_changed_outside_is_refused(store, url):
    published(store, SMALL)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE revisions SET yaml = 'x'"))
    engine.dispose()
    with pytest.raises(StoreError, match="changed outside HyDRA"):
        store.newest("small")


@pytest.mark.parametrize(
    "name",
    ["paper_fіve", "a b", "x`rm -rf ~`", "$(reboot)", "![x](http://evil.example/x.png)", "<img>"]
    + ["-rf", "ｐaper", "a;b"],
)
def test_a_new_name_obeys_the_rules_of_ids(store, name):
    for write in (
        lambda: store.publish(name, SMALL, actor=ANA, base_revision=0, note=""),
        lambda: store.drafts.start(name, SMALL, actor=ANA, base_revision=0),
    ):
        with pytest.raises(StoreError, match="the catalog's name"):
            write()
    assert store.catalogs() == {}
    assert store.drafts.all() == ()


def test_a_name_that_looks_like_anothers_is_refused(store):
    published(store, SMALL)
    store.publish("aaa", SMALL, actor=ANA, base_revision=0, note="")
    with pytest.raises(StoreError, match="looks like 'aaa'"):
        store.publish("ааа", SMALL, actor=ANA, base_revision=0, note="")
    assert store.catalogs() == {"aaa": 1, "small": 1}
