from dataclasses import replace

import pytest

from hydra_core.base.errors import AccessError, CatalogError, ConflictError, StoreError
from hydra_core.store import three_way
from hydra_core.store.contributions import MAX_STATES
from tests.catalog.small import SMALL, edited
from tests.store.conftest import ANA, BEN, EDITOR, VIEWER

STATES = [edited(("0.31", f"0.{number}")) for number in range(40, 49)]


@pytest.fixture
def draft(store):
    return store.drafts.start("small", SMALL, actor=EDITOR, base_revision=0)


def test_a_draft_survives_in_the_store(store, draft):
    saved = store.drafts.save(draft, STATES[0], actor=EDITOR)
    assert store.drafts.find("small", EDITOR) == saved
    assert (saved.text, saved.base_revision) == (STATES[0], 0)
    assert store.drafts.find("small", ANA) is None
    assert store.drafts.all() == store.drafts.all("small") == (saved,)
    assert store.drafts.all("other") == ()


def test_undo_and_redo_walk_through_the_states(store, draft):
    drafts = store.drafts
    for text in STATES[:2]:
        draft = drafts.save(draft, text, actor=EDITOR)
    assert (draft.can_undo, draft.can_redo) == (True, False)
    draft = drafts.undo(draft, actor=EDITOR)
    assert draft.text == STATES[0]
    draft = drafts.undo(draft, actor=EDITOR)
    assert (draft.text, draft.can_undo) == (SMALL, False)
    assert drafts.undo(draft, actor=EDITOR) == draft
    draft = drafts.redo(draft, actor=EDITOR)
    assert drafts.find("small", EDITOR).text == STATES[0]
    draft = drafts.save(draft, STATES[5], actor=EDITOR)
    assert draft.texts == (SMALL, STATES[0], STATES[5])
    assert drafts.redo(draft, actor=EDITOR) == draft


def test_saving_the_same_text_makes_no_state(store, draft):
    assert store.drafts.save(draft, SMALL, actor=EDITOR) == draft


def test_the_states_are_bounded(store, draft):
    for number in range(MAX_STATES + 5):
        text = edited(("0.31", f"0.{100 + number}"))
        draft = store.drafts.save(draft, text, actor=EDITOR)
    assert len(draft.texts) == MAX_STATES
    assert draft.text == text
    assert SMALL not in draft.texts


def test_an_unfinished_draft_is_kept_only_when_asked(store, draft):
    broken = SMALL.replace("input_usd_per_mtok: 0.31", "input_usd_per_mtok:")
    with pytest.raises(CatalogError):
        store.drafts.save(draft, broken, actor=EDITOR)
    saved = store.drafts.save(draft, broken, actor=EDITOR, unfinished=True)
    assert store.drafts.find("small", EDITOR).text == saved.text == broken
    with pytest.raises(CatalogError):
        store.drafts.save(draft, "\x00", actor=EDITOR, unfinished=True)


def test_two_windows_do_not_overwrite_each_other(store, draft):
    store.drafts.save(draft, STATES[0], actor=EDITOR)
    for write in (
        lambda: store.drafts.save(draft, STATES[1], actor=EDITOR),
        lambda: store.drafts.discard(draft, actor=EDITOR),
    ):
        with pytest.raises(ConflictError, match="another window"):
            write()
    assert store.drafts.find("small", EDITOR).text == STATES[0]


def test_one_draft_per_person_and_catalog(store, draft):
    with pytest.raises(ConflictError, match="draft already"):
        store.drafts.start("small", STATES[0], actor=EDITOR, base_revision=0)
    store.drafts.start("small", STATES[0], actor=ANA, base_revision=0)
    assert store.drafts.find("small", EDITOR) == draft


def test_viewers_and_other_people_may_not_write_a_draft(store, draft):
    with pytest.raises(AccessError, match="viewer and may not edit a draft"):
        store.drafts.start("small", SMALL, actor=VIEWER, base_revision=0)
    for write in (store.drafts.undo, store.drafts.redo, store.drafts.discard):
        with pytest.raises(AccessError, match="eve@example.org's"):
            write(draft, actor=ANA)
        with pytest.raises(AccessError):
            write(replace(draft, author=VIEWER.name), actor=VIEWER)
    assert store.drafts.find("small", EDITOR) == draft


def test_discarding_forgets_the_draft(store, draft):
    store.drafts.discard(draft, actor=EDITOR)
    assert store.drafts.find("small", EDITOR) is None


def test_publishing_a_draft_closes_it(store):
    draft = store.drafts.start("small", SMALL, actor=ANA, base_revision=0)
    other = store.drafts.start("small", SMALL, actor=BEN, base_revision=0)
    store.publish("small", draft.text, actor=ANA, base_revision=0, note="")
    assert store.drafts.find("small", ANA) is None
    assert store.drafts.find("small", BEN) == other


def test_a_draft_that_went_on_stays_open(store):
    draft = store.drafts.start("small", SMALL, actor=ANA, base_revision=0)
    draft = store.drafts.save(draft, STATES[0], actor=ANA)
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="")
    assert store.drafts.find("small", ANA) == draft


def test_after_a_merge_undo_cannot_bring_back_what_lacks_their_edit(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="")
    draft = store.drafts.start("small", SMALL, actor=BEN, base_revision=1)
    draft = store.drafts.save(draft, edited(("0.31", "0.40")), actor=BEN)
    theirs = store.publish("small", edited(("1.19", "1.50")), actor=ANA, base_revision=1, note="")
    with pytest.raises(ConflictError) as caught:
        store.publish("small", draft.text, actor=BEN, base_revision=1, note="")
    merged = three_way(SMALL, draft.text, caught.value.newest.yaml)
    draft = store.drafts.rebase(draft, merged.text, actor=BEN, base_revision=theirs.number)
    assert not draft.can_undo
    made = store.publish("small", draft.text, actor=BEN, base_revision=draft.base_revision, note="")
    assert made.number == 3
    assert made.yaml == edited(("0.31", "0.40"), ("1.19", "1.50"))
    with pytest.raises(StoreError):
        store.drafts.rebase(draft, merged.text, actor=BEN, base_revision=1)
