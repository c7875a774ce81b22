"""Long computations: one per key, an error in words, and again after a stop."""

import threading
import time

import pytest

from hydra_core.base.errors import AccessError, StoreError
from hydra_core.console.tasks import Tasks, Write
from hydra_core.store import Action, Actor, Role, open_store


def wait(task):
    for _ in range(500):
        if not task.running:
            return task
        time.sleep(0.01)
    raise AssertionError("still running")


def test_the_same_key_is_computed_once():
    tasks, gate, calls = Tasks(), threading.Event(), []

    def work(task):
        calls.append(1)
        gate.wait(5)
        return 7

    first, second = tasks.start("a", work), tasks.start("a", work)
    gate.set()
    assert first is second
    assert wait(first).result == 7
    assert tasks.start("a", work) is first
    assert len(calls) == 1


def test_an_error_is_told_and_can_be_tried_again():
    def broken(task):
        raise StoreError("no room")

    tasks = Tasks()
    assert wait(tasks.start("a", broken)).error == "no room"
    assert wait(tasks.start("a", lambda task: 1)).result == 1


def test_a_stop_is_no_error():
    def stopped(task):
        task.cancel.wait(5)
        raise StoreError("stopped")

    task = Tasks().start("a", stopped)
    task.cancel.set()
    assert wait(task).error == ""
    assert task.result is None


def test_what_is_left_is_told_from_the_pace_so_far():
    gate = threading.Event()

    def work(task):
        task.progress(1, 4)
        gate.wait(5)
        return True

    task = Tasks().start("a", work)
    time.sleep(0.05)
    assert task.left_s is not None
    assert task.left_s > 0
    gate.set()
    wait(task)


def test_who_writes_and_who_stops_it_stand_in_the_audit_trail(tmp_path):
    eve, eli = Actor("eve", Role.EDITOR), Actor("eli", Role.EDITOR)
    ben, vic = Actor("ben", Role.PUBLISHER), Actor("vic", Role.VIEWER)
    store, tasks = open_store(tmp_path), Tasks()

    def work(task):
        while True:
            time.sleep(0.005)
            task.step(1, 2)

    def write(actor):
        return Write(store, actor, Action.SCORE, "eval set mine")

    with pytest.raises(AccessError, match="score an eval set"):
        tasks.start("a", work, write=write(vic))
    assert tasks.get("a") is None
    task = tasks.start("a", work, write=write(eve))
    assert tasks.start("a", work, write=write(eli)) is task
    with pytest.raises(AccessError, match="another person"):
        task.stop(eli)
    assert not task.cancel.is_set()
    task.stop(ben)
    assert wait(task).error == ""
    assert task.done == 1
    told = [(line.actor, line.action, line.subject) for line in store.audit()]
    assert sorted(told) == [
        ("ben", Action.MODERATE, "work on eval set mine stopped"),
        ("eve", Action.SCORE, "work on eval set mine begun"),
    ]
    store.close()
