"""Long computations that outlive a page run: a worker thread, a plain object to look at. No
streamlit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from hydra_core.errors import HydraError
from hydra_core.store import Action, Actor, require

__all__ = ["Task", "Tasks"]

_KEPT = 48


@dataclass(slots=True)
class Task:
    """One computation; written by its thread, read by any page.

    Attributes:
        done, total: Steps; total 0 where they cannot be counted.
        stage: What it is doing, where there are several parts.
        error: What went wrong in words; '' otherwise.
        result: None until it is there.
        owner: Who began it, '' for nobody in particular.
    """

    done: int = 0
    total: int = 0
    stage: str = ""
    running: bool = True
    error: str = ""
    result: object = None
    owner: str = ""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    cancel: threading.Event = field(default_factory=threading.Event)

    def stop(self, actor: Actor) -> None:
        """Ask it to stop; what another person began takes a publisher.

        Raises:
            AccessError: The actor may not.
        """
        if actor.name != self.owner:
            require(actor, Action.MODERATE)
        self.cancel.set()

    def progress(self, done: int, total: int) -> None:
        """Take note of how far it is."""
        self.done, self.total = done, total

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

    def start(self, key: Hashable, work: Callable[[Task], object], owner: str = "") -> Task:
        """Begin, unless one with this key is running or has its result."""
        with self._lock:
            known = self._tasks.get(key)
            if known is not None and (known.running or known.result is not None):
                return known
            task = Task(owner=owner)
            self._tasks.pop(key, None)
            self._tasks[key] = task
            for old in [k for k, t in self._tasks.items() if not t.running][:-_KEPT]:
                del self._tasks[old]
        threading.Thread(target=_run, args=(task, work), daemon=True).start()
        return task


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
