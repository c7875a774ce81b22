"""Killed while importing or learning: what is there was acknowledged or is the next, and whole."""

import multiprocessing
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from hydra_core.choosing.learn import learn
from hydra_core.choosing.write import audit_recorder, write_outcome_model
from hydra_core.evalsets.changes import EvalSetChanges, earlier
from hydra_core.evalsets.evalset import load_evalset
from hydra_core.evalsets.folders import list_evalsets
from hydra_core.outcome_model.format import load_outcome_model
from hydra_core.store import Actor, Role, open_store
from tests.choosing.learning_sets import FINGERPRINT, learnable, material_of
from tests.evalsets.sets import saved

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.attacks.kills"])
LOADER = Actor("loader", Role.PUBLISHER)


def replace_without_end(workspace, begun, acknowledged):
    """Replace one set again and again, noting each number once it is acknowledged."""
    store, path = open_store(workspace), workspace / "evalsets" / "mine"
    changes = EvalSetChanges(LOADER, store)
    while True:
        number = begun.value = begun.value + 1
        changes.write(path, lambda number=number: saved(path, name=f"set {number}", force=True))
        acknowledged[:] = number, acknowledged[1] + 1


def learn_without_end(found, workspace, begun, acknowledged):
    """Write what was learned again and again, as above; the number stands where the seed does."""
    store, path = open_store(workspace), workspace / "outcome_models" / "mine"
    while True:
        number = begun.value = begun.value + 1
        record = audit_recorder(LOADER, store, path)
        numbered = replace(found, seed=number)
        write_outcome_model(path, numbered, fingerprint=FINGERPRINT, force=True, record=record)
        acknowledged[:] = number, acknowledged[1] + 1


def kill_imports(rounds, rng):
    """Sets begun and acknowledged; a lost or torn one raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        return _kills(workspace, replace_without_end, _check_set, rounds, rng)


def kill_learning(rounds, rng):
    """Outcome models begun and acknowledged; a lost or torn one raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        material = material_of(learnable(workspace / "learnable", 120))
        found = learn(material, None, folds=2, curve=False)  # what comes before writes nothing
        return _kills(workspace, partial(learn_without_end, found), _check_model, rounds, rng)


def _kills(workspace, work, check, rounds, rng, longest_s=0.6):
    # without locks: one that a killed writer held would never be given back
    begun = CONTEXT.Value("i", 0, lock=False)
    acknowledged = CONTEXT.Array("i", 2, lock=False)  # the newest number, and how many there were
    for _ in range(rounds):
        before = acknowledged[0]
        child = CONTEXT.Process(target=work, args=(workspace, begun, acknowledged))
        child.start()
        while acknowledged[0] == before and child.is_alive():
            time.sleep(0.01)
        time.sleep(rng.uniform(0, longest_s))
        child.kill()
        child.join()
        assert acknowledged[0] > before, "the writer ended before it had written anything"
        check(workspace, begun.value, *acknowledged)
    return begun.value, acknowledged[1]


def _check_set(workspace, begun, newest, count):
    root = workspace / "evalsets"
    number = int(load_evalset(root / "mine").name.split()[1])
    assert newest <= number <= begun, (newest, number, begun)
    assert [info.problem for info in list_evalsets(root)] == [""]
    for state in earlier(root):
        load_evalset(state.path)
    assert _told(workspace, "import an eval set", "replace an eval set") >= count


def _check_model(workspace, begun, newest, count):
    found = load_outcome_model(workspace / "outcome_models" / "mine")
    assert found.learned.query_ids.size == 120
    assert newest <= found.figures["seed"] <= begun, (newest, found.figures["seed"], begun)
    assert _told(workspace, "learn an outcome model") >= count


def _told(workspace, *actions):
    """Records of these actions in an audit trail that is whole."""
    store = open_store(workspace)
    assert not store.check_audit().fault
    text = sum(line.action in actions for line in store.audit(limit=10**6))
    store.close()
    return text
