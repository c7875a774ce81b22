"""Every change of an eval set is asked, told, and can be taken back."""

import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from hydra_core.base.digests import file_sha256
from hydra_core.base.errors import AccessError, EvalSetError, StoreError
from hydra_core.evalsets.changes import MOST_KEPT, EvalSetChanges, earlier
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import list_evalsets
from hydra_core.evalsets.scores import score_path
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.store import Action, Actor, Role, open_store
from tests.evalsets.sets import saved
from tests.predictor.tiny_bundle import make_bundle

EDITOR = Actor("eve", Role.EDITOR)
ANA = Actor("ana", Role.PUBLISHER)
VIEWER = Actor("vic", Role.VIEWER)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "evalsets"


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def changes(actor, store):
    times = iter(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(99))
    return EvalSetChanges(actor, store, clock=lambda: next(times))


def write(doing, path, name="first"):
    return doing.write(path, lambda: saved(path, name=name, force=True))


def break_trail(workspace):
    with closing(sqlite3.connect(workspace / "hydra.sqlite3")) as damage, damage:
        damage.execute("DROP TABLE audit_head")


def test_a_viewer_writes_nothing(root, store):
    write(changes(ANA, store), root / "mine")
    doing = changes(VIEWER, store)
    for attempt in (
        lambda: write(doing, root / "other"),
        lambda: write(doing, root / "mine", "second"),
        lambda: doing.remove(root / "mine"),
    ):
        with pytest.raises(AccessError):
            attempt()
    assert [info.name for info in list_evalsets(root)] == ["first"]
    assert len(store.audit()) == 1
    assert earlier(root) == ()


def test_an_editor_imports_and_replaces_nothing(root, store):
    doing = changes(EDITOR, store)
    write(doing, root / "mine")
    with pytest.raises(AccessError, match="may not replace"):
        write(doing, root / "mine", "second")
    assert load_evalset(root / "mine").name == "first"


def test_a_replaced_set_is_kept_and_can_be_brought_back(root, store):
    doing = changes(ANA, store)
    write(doing, root / "mine")
    (root / "mine" / "scores").mkdir()
    (root / "mine" / "scores" / "abc.parquet").write_bytes(b"scores")
    write(doing, root / "mine", "second")
    assert [info.name for info in list_evalsets(root)] == ["second"]
    (kept,) = earlier(root)
    doing.bring_back(kept)
    assert load_evalset(root / "mine").name == "first"
    assert (root / "mine" / "scores" / "abc.parquet").read_bytes() == b"scores"
    assert len(earlier(root)) == 2  # the second one is kept in turn
    records = store.audit()
    assert [r.action for r in records] == [Action.REPLACE, Action.REPLACE, Action.IMPORT]
    first = records[2].metrics["after"]
    assert records[1].metrics["before"] == records[0].metrics["after"] == first


def test_a_removed_set_is_kept_and_can_be_brought_back(root, store):
    doing = changes(ANA, store)
    write(doing, root / "mine")
    kept = doing.remove(root / "mine")
    assert list_evalsets(root) == ()
    assert doing.bring_back(kept) == root / "mine"
    assert load_evalset(root / "mine").name == "first"
    assert store.audit()[1].action == Action.DELETE
    assert store.audit()[1].metrics["after"] == ""


def test_an_import_that_fails_changes_nothing(root, store):
    doing = changes(ANA, store)
    write(doing, root / "mine")

    def fail():
        raise EvalSetError("mine", [])

    with pytest.raises(EvalSetError):
        doing.write(root / "mine", fail)
    assert load_evalset(root / "mine").name == "first"
    assert earlier(root) == ()
    assert len(store.audit()) == 1


def test_what_cannot_be_told_is_taken_back(root, store, tmp_path):
    doing = changes(ANA, store)
    write(doing, root / "mine")
    break_trail(tmp_path)
    with pytest.raises(StoreError):
        write(doing, root / "mine", "second")
    with pytest.raises(StoreError):
        doing.remove(root / "mine")
    with pytest.raises(StoreError):
        write(doing, root / "other")
    assert [info.name for info in list_evalsets(root)] == ["first"]


def test_the_oldest_states_are_dropped(root, store):
    doing = changes(ANA, store)
    for number in range(MOST_KEPT + 3):
        write(doing, root / "mine", f"set {number}")
    kept = earlier(root)
    assert len(kept) == MOST_KEPT
    assert load_evalset(kept[0].path).name == f"set {MOST_KEPT + 1}"


def test_there_must_be_a_set_to_remove(root, store):
    with pytest.raises(EvalSetError, match="is no eval set"):
        changes(ANA, store).remove(root / "none")


def test_scores_are_told_once_with_what_was_and_is(root, store, tmp_path):
    doing = changes(EDITOR, store)
    write(doing, root / "mine")
    predictor = Predictor(make_bundle(tmp_path / "bundle"))
    evalset = load_evalset(root / "mine")
    doing.score(evalset, predictor)
    doing.score(evalset, predictor)  # they are there
    newest, *_ = store.audit()
    assert (newest.actor, newest.action) == ("eve", Action.SCORE)
    assert newest.metrics == {
        "before": "",
        "after": file_sha256(score_path(root / "mine", predictor.bundle.fingerprint)),
    }
    assert len(store.audit()) == 2


def test_scores_that_cannot_be_told_are_taken_away(root, store, tmp_path):
    doing = changes(EDITOR, store)
    write(doing, root / "mine")
    predictor = Predictor(make_bundle(tmp_path / "bundle"))
    break_trail(tmp_path)
    with pytest.raises(StoreError):
        doing.score(load_evalset(root / "mine"), predictor)
    assert not score_path(root / "mine", predictor.bundle.fingerprint).exists()


def test_two_imports_at_once_neither_replaces_the_other_unseen(root, store):
    first_is_writing, told = threading.Event(), []

    def slowly():
        first_is_writing.set()
        time.sleep(0.2)
        return saved(root / "mine", name="first", force=True)

    def second():
        first_is_writing.wait(10)
        try:
            write(EvalSetChanges(EDITOR, store), root / "mine", "second")
        except AccessError as error:
            told.append(str(error))

    other = threading.Thread(target=second)
    other.start()
    EvalSetChanges(EDITOR, store).write(root / "mine", slowly)
    other.join(10)
    assert "may not replace" in told[0]
    assert load_evalset(root / "mine").name == "first"


def test_removing_a_link_leaves_what_it_leads_to(root, store, tmp_path):
    saved(tmp_path / "outside", name="outside")
    root.mkdir()
    (root / "mine").symlink_to(tmp_path / "outside")
    doing = changes(ANA, store)
    kept = doing.remove(root / "mine")
    assert list_evalsets(root) == ()
    assert load_evalset(tmp_path / "outside").name == "outside"
    assert load_evalset(doing.bring_back(kept)).name == "outside"
