"""Long computations: one per key, an error in words, and again after a stop."""

from __future__ import annotations

import threading
import time

from hydra_core.errors import StoreError
from hydra_core.ui.tasks import Tasks


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
