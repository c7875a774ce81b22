"""Killed while importing: the set there is always one that was acknowledged or the next."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path

from hydra_core.evaluation.evalset.changes import EvalSetChanges, earlier
from hydra_core.evaluation.evalset.evalset import load_evalset
from hydra_core.evaluation.evalset.listing import list_evalsets
from hydra_core.store import Actor, Role, open_store
from tests.evaluation.sets import saved

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["benchmarks.attacks.imports"])
LOADER = Actor("loader", Role.PUBLISHER)


def replace_without_end(workspace, begun, acknowledged):
    """Replace one set again and again, telling each number once it is acknowledged."""
    store, path = open_store(workspace), workspace / "evalsets" / "mine"
    changes = EvalSetChanges(LOADER, store)
    while True:
        number = begun.value = begun.value + 1
        changes.write(path, lambda number=number: saved(path, name=f"set {number}", force=True))
        acknowledged.value = number


def kill_imports(rounds, rng, longest_s=0.6):
    """Sets begun and acknowledged; a lost or torn one raises AssertionError."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        begun, acknowledged = CONTEXT.Value("i", 0), CONTEXT.Value("i", 0)
        for _ in range(rounds):
            before = acknowledged.value
            child = CONTEXT.Process(
                target=replace_without_end, args=(workspace, begun, acknowledged)
            )
            child.start()
            while acknowledged.value == before and child.is_alive():
                time.sleep(0.01)
            time.sleep(rng.uniform(0, longest_s))
            child.kill()
            child.join()
            _check(workspace, begun.value, acknowledged.value)
        return begun.value, acknowledged.value


def _check(workspace, begun, acknowledged):
    root = workspace / "evalsets"
    number = int(load_evalset(root / "mine").name.split()[1])
    assert acknowledged <= number <= begun, (acknowledged, number, begun)
    assert [info.problem for info in list_evalsets(root)] == [""]
    for state in earlier(root):
        load_evalset(state.path)
    store = open_store(workspace)
    assert not store.check_audit().fault
    assert sum(line.action == "replace an eval set" for line in store.audit(limit=10**6)) >= (
        acknowledged - 1
    )
    store.close()
