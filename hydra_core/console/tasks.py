"""Long computations that outlive a page run: a worker thread, a plain object to look at. No
streamlit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hydra_core.base.errors import CancelledError, HydraError
from hydra_core.store.roles import Action, Actor, require

if TYPE_CHECKING:
    from hydra_core.store.store import Store

_KEPT = 48


@dataclass(frozen=True, slots=True)
class Write:
    """What a computation changes; its start and its stop go to the audit trail.

    What it changed is said by what writes it, once it is done.

    Attributes:
        actor: Who begins it.
        subject: What is written, as the trail names it.
    """

    store: Store
    actor: Actor
    action: Action
    subject: str

    def begin(self) -> None:
        """Record the start."""
        self.store.record_event(self.actor, self.action, f"work on {self.subject} begun")

    def stop(self, actor: Actor) -> None:
        """Record that an actor stops it."""
        own = actor.name == self.actor.name
        action = self.action if own else Action.MODERATE
        self.store.record_event(
            actor, action, f"work on {self.subject} stopped", before=self.actor.name
        )


@dataclass(slots=True)
class Task:
    """One computation; written by its thread, read by any page.

    Attributes:
        done, total: Steps; total 0 where they cannot be counted.
        stage: What it is doing, where there are several parts.
        error: What went wrong in words; '' otherwise.
        result: None until it is there.
        owner: Who began it, '' for nobody in particular.
        write: What it changes, None if it only computes.
    """

    done: int = 0
    total: int = 0
    stage: str = ""
    running: bool = True
    error: str = ""
    result: object = None
    owner: str = ""
    write: Write | None = None
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    cancel: threading.Event = field(default_factory=threading.Event)

    def stop(self, actor: Actor) -> None:
        """Ask it to stop; what another person began takes a publisher.

        Raises:
            AccessError: The actor may not.
            StoreError: It could not be written to the audit trail; the work goes on.
        """
        if self.write is not None:
            self.write.stop(actor)
        elif actor.name != self.owner:
            require(actor, Action.MODERATE)
        self.cancel.set()

    def progress(self, done: int, total: int) -> None:
        """Take note of how far it is."""
        self.done, self.total = done, total

    def step(self, done: int, total: int) -> None:
        """Take note of how far it is; CancelledError ends the work where it was asked to stop."""
        self.progress(done, total)
        if self.cancel.is_set():
            raise CancelledError("stopped")

    @property
    def failure(self) -> HydraError | None:
        """Why it ended without a result; None where it did not, or was stopped."""
        return HydraError(self.error) if self.error else None

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self.ended or time.monotonic()) - self.began

    @property
    def left_s(self) -> float | None:
        """How long it will still run at its pace so far, None where that cannot be said."""
        if not self.done or not self.total:
            return None
        return self.seconds / self.done * (self.total - self.done)


@dataclass(slots=True)
class Tasks:
    """All computations of this console by what they are made of."""

    _tasks: dict[Hashable, Task] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Hashable) -> Task | None:
        """The newest with this key."""
        return self._tasks.get(key)

    def start(
        self,
        key: Hashable,
        work: Callable[[Task], object],
        owner: str = "",
        *,
        write: Write | None = None,
    ) -> Task:
        """Begin, unless one with this key is running or has its result.

        Args:
            work: Runs in a thread of its own; may call no `st.*`.
            owner: Who begins it; where it writes, the write's actor.
            write: What it changes.

        Raises:
            AccessError: The actor may not write that; nothing was started.
            StoreError: It could not be written to the audit trail; nothing was started.
        """
        if write is not None:
            require(write.actor, write.action)
            owner = write.actor.name
        with self._lock:
            known = self._tasks.get(key)
            if known is not None and (known.running or known.result is not None):
                return known
            if write is not None:
                write.begin()
            task = Task(owner=owner, write=write)
            self._tasks.pop(key, None)
            self._tasks[key] = task
            for old in [k for k, t in self._tasks.items() if not t.running][:-_KEPT]:
                del self._tasks[old]
        threading.Thread(target=_run, args=(task, work), daemon=True).start()
        return task

    def halt(self) -> tuple[Task, ...]:
        """Ask all to stop, as what they write to is thrown away; those that still run."""
        running = tuple(task for task in list(self._tasks.values()) if task.running)
        for task in running:
            task.cancel.set()
        return running


def _run(task: Task, work: Callable[[Task], object]) -> None:
    try:
        task.result = work(task)
    except HydraError as error:
        task.error = "" if task.cancel.is_set() else str(error)
    except ValueError as error:
        task.error = str(error)
    finally:
        task.ended = time.monotonic()
        task.running = False
