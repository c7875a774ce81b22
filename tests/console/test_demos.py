"""A demo works on a copy of its own, belongs to one person, and is thrown away."""

import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hydra_core.base.errors import AccessError, StoreError
from hydra_core.console.demo.copies import CATALOG, EVALSET, GRACE_S, IDLE_S, MOST, Demos
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.store import Actor, Role, open_store
from tests.evalsets.sets import saved

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "catalog" / f"{CATALOG}.yaml").read_text(encoding="utf-8")
ANA = Actor("ana@example.org", Role.PUBLISHER, proven=True)
EVE = Actor("eve@example.org", Role.EDITOR, proven=True)
VIC = Actor("vic@example.org", Role.VIEWER, proven=True)


@pytest.fixture
def store(tmp_path):
    """The store of a workspace with something of everything in it."""
    opened = open_store(tmp_path)
    opened.publish("mine", TEXT, actor=ANA, base_revision=0, note="one")
    opened.drafts.start("mine", TEXT, actor=EVE, base_revision=1)
    saved(tmp_path / "evalsets" / "own", name="own")
    (tmp_path / "catalogs").mkdir()
    (tmp_path / "catalogs" / "file.yaml").write_text(TEXT)
    yield opened
    opened.close()


@pytest.fixture
def demos():
    """Demos of a console whose clock is turned by hand, and in which every session is there."""
    clock = [0.0]
    made = Demos(clock=lambda: clock[0])
    made.turn = lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    yield made
    made.end_all()


def files(root):
    """Path and digest of every file below, but for those of demos and SQLite's table of readers."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not path.relative_to(root).parts[0].startswith(".demo.")
        and not path.name.endswith("-shm")
    }


def leftovers(root):
    return [path.name for path in root.glob(".demo.*")]


def gone(root):
    for _ in range(300):
        if not leftovers(root):
            return True
        time.sleep(0.02)
    return False


def test_a_demo_has_all_of_the_workspace_and_changes_none_of_it(tmp_path, store, demos):
    before = files(tmp_path)
    demo = demos.begin(tmp_path, store, EVE)
    assert demo.store.catalogs() == {"mine": 1, "demo": 1}
    assert demo.catalog == "demo"
    assert [draft.author for draft in demo.store.drafts.all()] == [EVE.name]
    assert (demo.folder / "catalogs" / "file.yaml").read_text() == TEXT
    assert load_evalset(demo.folder / "evalsets" / "own").name == "own"
    assert load_evalset(demo.folder / "samples" / EVALSET).n > 1000
    text = demo.store.newest("demo").yaml
    assert "outcome_model" not in text
    demo.store.publish("mine", TEXT + "# two\n", actor=demo.owner, base_revision=1, note="")
    changes = EvalSetChanges(demo.owner, demo.store)
    changes.write(
        demo.folder / "evalsets" / "own",
        lambda: saved(demo.folder / "evalsets" / "own", name="another", force=True),
    )
    changes.remove(demo.folder / "evalsets" / "own")
    assert files(tmp_path) == before
    demos.end(demo.token)
    assert not leftovers(tmp_path)
    assert files(tmp_path) == before


def test_a_set_that_is_linked_in_is_not_written_through_the_link(tmp_path, store, demos):
    outside = tmp_path / "outside"
    saved(outside, name="outside")
    (tmp_path / "evalsets" / "linked").symlink_to(outside)
    demo = demos.begin(tmp_path, store, ANA)
    linked = demo.folder / "evalsets" / "linked"
    assert not linked.is_symlink()
    before = files(outside)
    EvalSetChanges(demo.owner, demo.store).remove(linked)
    assert files(outside) == before


def test_the_storys_catalog_takes_no_other_catalogs_name(tmp_path, store, demos):
    store.publish("demo", TEXT, actor=ANA, base_revision=0, note="mine")
    demo = demos.begin(tmp_path, store, ANA)
    assert demo.catalog == "demo_2"
    assert demo.store.newest("demo").note == "mine"


def test_a_viewer_begins_none_and_an_editor_publishes_in_the_copy_alone(tmp_path, store, demos):
    with pytest.raises(AccessError, match="may not begin a demo"):
        demos.begin(tmp_path, store, VIC)
    assert not leftovers(tmp_path)
    demo = demos.begin(tmp_path, store, EVE)
    assert demo.owner == Actor(EVE.name, Role.PUBLISHER, proven=True)
    with pytest.raises(AccessError):
        store.publish("x", TEXT, actor=EVE, base_revision=0, note="")


def test_nobody_else_finds_a_demo_by_its_token(tmp_path, store, demos):
    demo = demos.begin(tmp_path, store, ANA)
    assert demos.join(demo.token, "s1", ANA) is demo
    assert demos.join(demo.token, "s2", EVE) is None
    assert demos.join(demo.token, "s3", Actor(ANA.name, Role.PUBLISHER)) is None  # only says so
    assert demos.join("another-token", "s4", ANA) is None
    assert demo.sessions == {"s1"}


def test_two_demos_share_nothing(tmp_path, store, demos):
    one, two = demos.begin(tmp_path, store, ANA), demos.begin(tmp_path, store, ANA)
    one.store.publish("only_one", TEXT, actor=ANA, base_revision=0, note="")
    assert "only_one" not in two.store.catalogs()
    assert one.folder != two.folder
    assert one.token != two.token
    assert one.tasks is not two.tasks
    demos.end(one.token)
    assert two.store.catalogs() == {"mine": 1, "demo": 1}


def test_there_are_never_too_many(tmp_path, store, demos):
    for _ in range(MOST):
        demos.begin(tmp_path, store, ANA)
    with pytest.raises(StoreError, match="end one"):
        demos.begin(tmp_path, store, ANA)
    assert len(leftovers(tmp_path)) == MOST


def test_it_ends_two_minutes_after_its_last_tab(tmp_path, store, demos):
    demo, there = demos.begin(tmp_path, store, ANA), {"s1"}
    demos.connected = there.__contains__
    demos.join(demo.token, "s1", ANA)
    demos.turn(IDLE_S / 2)
    demos.expire()
    assert demos.get(demo.token) is demo  # a tab is open, though nothing is done in it
    there.clear()
    demos.turn(GRACE_S - 1)
    demos.expire()
    demos.join(demo.token, "s2", ANA)  # reloaded
    there.add("s2")
    demos.turn(GRACE_S + 1)
    demos.expire()
    assert demos.get(demo.token) is demo
    there.clear()
    demos.turn(GRACE_S + 1)
    demos.expire()
    assert demos.get(demo.token) is None
    assert not leftovers(tmp_path)


def test_an_open_tab_in_which_nothing_is_done_does_not_keep_it_for_ever(tmp_path, store, demos):
    demo = demos.begin(tmp_path, store, ANA)
    demos.join(demo.token, "s1", ANA)
    demos.turn(IDLE_S + 1)
    demos.expire()
    assert demos.get(demo.token) is None


def test_work_in_it_is_stopped_before_it_is_thrown_away(tmp_path, store, demos):
    demo, begun, stopped = demos.begin(tmp_path, store, ANA), threading.Event(), []

    def work(task):
        begun.set()
        task.cancel.wait(10)
        stopped.append((demo.folder / "hydra.sqlite3").is_file())

    demo.tasks.start("learn", work)
    begun.wait(5)
    demos.end(demo.token)
    assert gone(tmp_path)
    assert stopped == [True]


def test_a_copy_that_fails_leaves_nothing(tmp_path, store, demos):
    (tmp_path / "catalogs" / "dangling.yaml").symlink_to("nowhere")
    with pytest.raises(StoreError, match="cannot be copied"):
        demos.begin(tmp_path, store, ANA)
    assert not leftovers(tmp_path)


KILLED = """
import os, sys
from pathlib import Path
from hydra_core.store import Actor, Role, open_store
from hydra_core.console.demo.copies import DEMOS
workspace = Path(sys.argv[1])
DEMOS.begin(workspace, open_store(workspace), Actor("ana", Role.PUBLISHER))
os._exit(9)
"""


def test_what_a_killed_console_left_is_removed_by_the_next_demo(tmp_path, store, demos):
    running = demos.begin(tmp_path, store, ANA)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == 9
    assert len(leftovers(tmp_path)) == 2
    demos.begin(tmp_path, store, ANA)
    assert len(leftovers(tmp_path)) == 2
    assert running.folder.is_dir()
    assert os.path.exists(running.folder / "hydra.sqlite3")


def test_which_workspace_and_which_address_have_one_home():
    """A page that asked past it would show or change the operator's workspace in a demo."""
    asking = {
        "workspace_folder": {"demo/session.py", "demo/panel.py", "access/serve.py"}
        | {"access/identity.py"},  # roles are those of the operator's workspace, demo or not
        "HYDRA_WORKSPACE": set(),
        "open_store": {"cache.py"},
        "SAMPLE_DATA": {"demo/session.py", "demo/copies.py", "inspect/view.py"}
        | {"inspect/view_conversation.py", "live/cache.py", "live/flight.py"},
        "st.query_params": {"frame.py"},
    }
    console = ROOT / "hydra_core" / "console"
    files = {path.relative_to(console).as_posix(): text(path) for path in console.rglob("*.py")}
    assert files
    for word, allowed in asking.items():
        found = {name for name, source in files.items() if word in source}
        assert found == allowed, word
        assert not [path for path in (ROOT / "pages").rglob("*.py") if word in text(path)]


def text(path):
    return path.read_text(encoding="utf-8")
