"""A seeded search that can be stopped and goes on exactly where it was.

The first settings lie anywhere in the box; each later one changes some parameters of the best
setting so far, by little or much. Chance is drawn anew for every trial from (seed, trial number),
so a search that was stopped and resumed gives the same trials as one that was not. Finished trials
may be kept in an SQLite file, keyed by what they were made of.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hydra_core.base.errors import CancelledError, StoreError

_SAVE_EVERY = 25
_STARTUP = 40
#: How far a parameter moves, in widths of its range: one of these is drawn for each trial.
_STEPS = (0.3, 0.1, 0.03)
#: Share of the parameters that a trial changes, at least one.
_CHANGED = 0.4

#: Parameter name -> (low, high), both ends included.
Box = Mapping[str, tuple[float, float]]


class Trial(NamedTuple):
    """A setting that was tried, and its score."""

    parameters: dict[str, float]
    score: float


class TrialStore:
    """Finished trials of many searches in one SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as database, database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS trial (search TEXT, number INTEGER, "
                    "parameters TEXT NOT NULL, score REAL NOT NULL, PRIMARY KEY (search, number))"
                )
                yield database
        except sqlite3.Error as error:
            raise StoreError(f"{self._path}: trials cannot be written there: {error}") from error

    def load(self, key: str) -> list[Trial]:
        """The trials of one search, in their order.

        Raises:
            StoreError: The file cannot be read or is no trial store.
        """
        with self._open() as database:
            rows = database.execute(
                "SELECT number, parameters, score FROM trial WHERE search = ? ORDER BY number",
                (key,),
            ).fetchall()
        whole = [row for i, row in enumerate(rows) if row[0] == i]
        return [Trial(json.loads(parameters), float(score)) for _, parameters, score in whole]

    def add(self, key: str, first: int, trials: list[Trial]) -> None:
        """Append trials, the first of which has number `first`.

        Raises:
            StoreError: The file cannot be written.
        """
        rows = [(key, first + i, json.dumps(p), score) for i, (p, score) in enumerate(trials)]
        with self._open() as database:
            database.executemany("INSERT OR REPLACE INTO trial VALUES (?, ?, ?, ?)", rows)


def search(
    objective: Callable[[Mapping[str, float]], float],
    box: Box,
    *,
    trials: int,
    seed: int,
    start: Mapping[str, float] | None = None,
    step: Callable[[], None] | None = None,
    cancel: threading.Event | None = None,
    store: TrialStore | None = None,
    key: str = "",
) -> Trial:
    """Maximise an objective over a box.

    Args:
        objective: Score of one setting; higher is better, must be finite.
        trials: How many settings to try in all, those in the store included; >= 1.
        start: A setting that is tried first.
        store: Keeps finished trials, so that a stopped search can go on.
        key: Names this search in the store; anything that changes it must change the key.

    Raises:
        CancelledError: `cancel` was set.
        StoreError: The store cannot be used.
    """
    key = _digest(key, box, seed)
    done = store.load(key) if store is not None else []
    pending: list[Trial] = []
    best: Trial | None = None

    def save(upto: int) -> None:
        if store is not None and pending:
            store.add(key, upto - len(pending), pending)
            pending.clear()

    for i in range(trials):
        if cancel is not None and cancel.is_set():
            save(i)
            raise CancelledError(f"the search was stopped after {i} of {trials} trials")
        if i < len(done):
            trial = done[i]
        else:
            first = dict(start) if i == 0 and start else None
            parameters = first or _propose(box, seed, i, None if best is None else best.parameters)
            trial = Trial(parameters, objective(parameters))
            pending.append(trial)
        if best is None or trial.score > best.score:
            best = trial
        if len(pending) >= _SAVE_EVERY:
            save(i + 1)
        if step is not None:
            step()
    save(trials)
    if best is None:
        raise ValueError(f"a search needs at least one trial, got {trials}")
    return best


def _propose(
    box: Box, seed: int, number: int, best: Mapping[str, float] | None
) -> dict[str, float]:
    """The setting of one trial, from the best of those before it."""
    rng = np.random.default_rng([seed, number])
    low, high = np.array(list(box.values()), dtype=np.float64).T
    if best is None or number < _STARTUP:
        values = rng.uniform(low, high)
    else:
        changed = rng.random(low.size) < _CHANGED
        changed[rng.integers(low.size)] = True
        moved = rng.normal(0.0, rng.choice(_STEPS), low.size) * (high - low)
        values = np.array([best[name] for name in box]) + np.where(changed, moved, 0.0)
    return dict(zip(box, np.clip(values, low, high).tolist(), strict=True))


def _digest(key: str, box: Box, seed: int) -> str:
    content = json.dumps([key, sorted(box.items()), seed])
    return hashlib.sha256(content.encode()).hexdigest()
