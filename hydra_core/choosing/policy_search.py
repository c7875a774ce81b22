"""Weights, tau and (if wanted) profile cells for a stated aim, chosen and reported apart.

For every weighting the exact frontier gives the best tau at once, so only the weights are searched.
The queries are cut in two (clusters whole, languages in proportion); what each half's setting
promised, and what it kept on the other half, are both shown. The setting to use is searched on all
queries; the cross-fitted figures are what to expect of it. Profile cells move only where a space
names them, and go back to the catalog's value where moving them earned nothing.

A search is seeded, can be stopped, and goes on exactly where it was: chance is drawn anew for every
trial from (seed, trial number). Its first settings lie anywhere in the box; each later one changes
some parameters of the best so far, by little or much. Finished trials may be kept in an SQLite
file, keyed by what they were made of.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hydra_core.base.errors import CancelledError, StoreError
from hydra_core.base.spelling import signed
from hydra_core.base.types import FloatArray, IntArray, Selection
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.choosing.space import Box, Cell, Setting, Space, checked, simplified, with_cells
from hydra_core.replay.matched_cost import MatchedGain, matched_gain
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice, oracle_quality
from hydra_core.replay.operating_point import Aim, Aimed, AimKind, aim_at
from hydra_core.replay.replay import ReplayData, data_frontier, folds, replay
from hydra_core.replay.verdict import Verdict, verdict

_SAVE_EVERY = 25
_STARTUP = 40
#: How far a parameter moves, in widths of its range: one of these is drawn for each trial.
_STEPS = (0.3, 0.1, 0.03)
#: Share of the parameters that a trial changes, at least one.
_CHANGED = 0.4


@dataclass(frozen=True, slots=True)
class Half:
    """A setting chosen on one half and measured on the other.

    Attributes:
        promised: What it reached where it was chosen.
        qr, mean_cost_usd: What it reached and spent on the other half.
    """

    setting: Setting
    promised: Aimed
    queries: int
    qr: float
    mean_cost_usd: float


@dataclass(frozen=True, slots=True)
class SearchedPolicy:
    """A draft policy with its evidence.

    Attributes:
        setting: Searched on all queries; the one to use. It reaches `promised` on them.
        halves: The two cross-fitted choices.
        metrics: All queries, each routed by the setting its own half did not choose.
        verdict: Against the best constant, on the same.
        optimism_qr: QR the halves promised minus the QR measured, as a fraction.
        optimism_cost_usd: Cost measured minus cost promised.
        tau_only: The same aim met by tau alone, the weights left as they are, cross-fitted.
        over_tau_only: Tuned against tau alone at the same cost, paired by query.
        trials: Settings tried in all.
    """

    aim: Aim
    setting: Setting
    promised: Aimed
    halves: tuple[Half, ...]
    metrics: PolicyMetrics
    verdict: Verdict
    optimism_qr: float
    optimism_cost_usd: float
    tau_only: PolicyMetrics
    over_tau_only: MatchedGain
    trials: int
    seed: int

    @property
    def met(self) -> bool:
        """Whether the tuned setting keeps the aim's limit on queries it was not chosen on."""
        return self._keeps(self.metrics)

    @property
    def tau_alone_better(self) -> bool:
        """Whether tau alone serves the aim better on queries it was not chosen on."""
        tuned, plain = self.metrics, self.tau_only
        if self.met != self._keeps(plain):
            return self._keeps(plain)
        if self.aim.kind is AimKind.HYPERVOLUME:
            return self.over_tau_only.quality.value < 0
        cheaper = plain.mean_cost_usd.value < tuned.mean_cost_usd.value
        quality_counts = self.met is (self.aim.kind is AimKind.BEST_WITH_COST)
        return plain.qr.value > tuned.qr.value if quality_counts else cheaper

    def _keeps(self, metrics: PolicyMetrics) -> bool:
        return self.aim.met_by(metrics.qr.value, metrics.mean_cost_usd.value)

    @property
    def text(self) -> str:
        """What was chosen on what, and what it kept of its promise."""
        qr, cost = self.metrics.qr, self.metrics.mean_cost_usd
        gain = self.over_tau_only
        more = gain.quality.scaled(100.0)
        moved = len(self.setting.cells)
        cells = f" Profile cells moved: {moved}." if moved else ""
        return (
            f"Aim: {self.aim}. Picked on one half of the queries and measured on the other: QR "
            f"{100 * qr.value:.1f} % [{100 * qr.lo:.1f}, {100 * qr.hi:.1f}] at ${cost.value:.4g} "
            f"per query; the halves promised {100 * (qr.value + self.optimism_qr):.1f} % at "
            f"${cost.value - self.optimism_cost_usd:.4g} (promised less kept "
            f"{signed(100 * self.optimism_qr)} pp). Against tuning tau alone, at the "
            f"same cost, quality: {more.text('pp')}.{cells}"
        )


def search_policy(
    data: ReplayData,
    space: Space,
    aim: Aim,
    *,
    trials: int = 2_000,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    cancel: threading.Event | None = None,
    storage: Path | None = None,
) -> SearchedPolicy:
    """Search a policy for an aim; see the module's text for what is chosen on what.

    Args:
        data: Replayed set with at least 4 independent queries.
        trials: Settings to try in all, a third on each half and on the whole; >= 3.
        seed: Same seed, same result, also over a stop and a resume.
        storage: SQLite file that keeps finished trials; a stopped search goes on from there.

    Raises:
        ValueError: Fewer than 3 trials, or a space that is not the pool's.
        InfeasibleError: No weighting the search tried meets the aim on all queries.
        CancelledError: `cancel` was set.
        StoreError: The storage cannot be used.
    """
    if trials < 3:
        raise ValueError(f"need at least 3 trials, got {trials}")
    store = None if storage is None else TrialStore(storage)
    key = "" if storage is None else _fingerprint(data, space, aim)
    job = _Job(checked(space, data.pool), aim, trials, seed, progress, cancel, store, key)
    cut = folds(data, 2, np.random.default_rng(seed))
    choice, plain = np.empty((2, len(data.query_ids)), dtype=np.intp)
    halves = []
    for number, fold in enumerate(cut):
        here, there = data.take(fold.train), data.take(fold.test)
        setting, promised = job.run(here, number)
        choice[fold.test] = job.route(there, setting)
        kept = evaluate_choice(there, choice[fold.test])
        halves.append(Half(setting, promised, kept.n, kept.qr.value, kept.mean_cost_usd.value))
        tau = aim_at(data_frontier(here), aim, oracle_quality(here), here).knob
        plain[fold.test] = replay(there, tau)
    setting, promised = job.run(data, len(cut), strict=True)
    metrics = evaluate_choice(data, choice)
    share = np.array([len(fold.test) / len(choice) for fold in cut])
    promised_qr = float(share @ [half.promised.qr for half in halves])
    promised_cost = float(share @ [half.promised.mean_cost_usd for half in halves])
    return SearchedPolicy(
        aim=aim,
        setting=setting,
        promised=promised,
        halves=tuple(halves),
        metrics=metrics,
        verdict=verdict(data, choice, Selection.CROSS_FITTED),
        optimism_qr=promised_qr - metrics.qr.value,
        optimism_cost_usd=metrics.mean_cost_usd.value - promised_cost,
        tau_only=evaluate_choice(data, plain),
        over_tau_only=matched_gain(data, plain, choice),
        trials=job.done,
        seed=seed,
    )


@dataclass(slots=True)
class _Job:
    """One search: what its three parts share."""

    space: Space
    aim: Aim
    trials: int
    seed: int
    progress: Callable[[int, int], None] | None
    cancel: threading.Event | None
    store: TrialStore | None
    key: str
    done: int = 0

    @property
    def cells(self) -> dict[str, Cell]:
        """Parameter -> the profile cell that it moves."""
        return {f"c{i}": cell for i, cell in enumerate(self.space.cells)}

    def run(self, data: ReplayData, number: int, *, strict: bool = False) -> tuple[Setting, Aimed]:
        """Search on some queries; `strict` raises where the aim cannot be met."""
        best_possible = oracle_quality(data)
        k = len(self.space.bands)
        reach = float(np.log(self.space.factor))
        box = {f"w{i}": (-reach, reach) for i in range(k)}
        box |= {name: self.space.cells[cell] for name, cell in self.cells.items()}

        def objective(parameters: Mapping[str, float]) -> float:
            changed, weights = self._apply(data, parameters)
            return aim_at(data_frontier(changed, weights), self.aim, best_possible, changed).score

        share = self.trials // 3 + (self.trials % 3 if number == 2 else 0)
        start = {f"w{i}": 0.0 for i in range(k)} | {
            name: float(np.clip(_at(data, cell), *box[name])) for name, cell in self.cells.items()
        }
        best = search(
            objective,
            box,
            trials=share,
            seed=self.seed * 3 + number,
            start=start,
            step=self._step,
            cancel=self.cancel,
            store=self.store,
            key=f"{self.key}/{number}",
        )
        settled = simplified(best.parameters, box, start, list(self.cells), objective)
        changed, weights = self._apply(data, settled)
        aimed = aim_at(
            data_frontier(changed, weights), self.aim, best_possible, changed, strict=strict
        )
        cells = {
            cell: settled[name]
            for name, cell in self.cells.items()
            if settled[name] != _at(data, cell)
        }
        return Setting(tuple(self._stored(settled).tolist()), aimed.knob, cells), aimed

    def route(self, data: ReplayData, setting: Setting) -> IntArray:
        """(n,) choice of a setting on some queries."""
        weights = compensated_weights(setting.weights, self.space.bands)
        return replay(with_cells(data, setting.cells), setting.tau, weights)

    def _apply(
        self, data: ReplayData, parameters: Mapping[str, float]
    ) -> tuple[ReplayData, FloatArray]:
        weights = compensated_weights(self._stored(parameters), self.space.bands)
        cells = {cell: parameters[name] for name, cell in self.cells.items()}
        return with_cells(data, cells), weights

    def _stored(self, parameters: Mapping[str, float]) -> FloatArray:
        """Stored weights; only their ratios matter (tau takes the scale), so they sum to K."""
        k = len(self.space.bands)
        raw = np.exp([parameters[f"w{i}"] for i in range(k)])
        return np.asarray(raw / raw.sum() * k, dtype=np.float64)

    def _step(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.trials)


def _at(data: ReplayData, cell: Cell) -> float:
    return float(data.pool.capabilities[data.pool.ids.index(cell[0]), cell[1]])


def _fingerprint(data: ReplayData, space: Space, aim: Aim) -> str:
    digest = hashlib.sha256(repr((aim, space, data.pool.ids)).encode())
    for values in (data.requirements, data.quality, data.cost_usd, data.pool.capabilities):
        digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    digest.update(np.ascontiguousarray(data.pool.cost, dtype="<f8").tobytes())
    return digest.hexdigest()


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
