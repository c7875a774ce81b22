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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hydra_core.base.errors import CancelledError, StoreError
from hydra_core.base.spelling import signed
from hydra_core.base.types import Band, FloatArray, IntArray, Pool, Selection
from hydra_core.catalog.profiles import compensated_weights
from hydra_core.replay.fixed_mix import MatchedGain, matched_gain
from hydra_core.replay.metrics import PolicyMetrics, evaluate_choice, oracle_quality
from hydra_core.replay.operating_point import Aim, Aimed, AimKind, aim_at
from hydra_core.replay.replay import ReplayData, data_frontier, folds, replay
from hydra_core.replay.verdict import Verdict, verdict

#: Each stored weight lies between 1/4 and 4 before they are scaled.
_REACH = float(np.log(4.0))
_DIGITS = (2, 3, 4)
#: Scores closer than this differ by the rounding of sums only.
_SAME_SCORE = 1e-9

#: Parameter name -> (low, high), both ends included.
Box = Mapping[str, tuple[float, float]]
#: Model id and dimension number.
Cell = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Space:
    """What may vary.

    Attributes:
        bands: One per dimension, for the compensated weights.
        cells: (low, high) of the profile cells that may move.
    """

    bands: Sequence[Band]
    cells: Mapping[Cell, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy to try: stored weights (sum K), tau, and the profile cells that moved."""

    weights: tuple[float, ...]
    tau: float
    cells: Mapping[Cell, float] = field(default_factory=dict)


def cells_around(
    pool: Pool, cells: Sequence[Cell], reach: float
) -> dict[Cell, tuple[float, float]]:
    """Bounds of cells that may move by at most `reach` from where they are, within [0, 1].

    Raises:
        ValueError: A cell is not one of the pool's, or `reach` is not > 0.
    """
    if not reach > 0:
        raise ValueError(f"cells must be allowed to move by more than 0, got {reach}")
    bounds = {}
    for model, k in cells:
        at = float(pool.capabilities[_row(pool, model, k), k])
        bounds[(model, k)] = (max(at - reach, 0.0), min(at + reach, 1.0))
    return bounds


def checked(space: Space, pool: Pool) -> Space:
    """The space, whose bands and cells are those of a pool.

    Raises:
        ValueError: Not one band per dimension, or a cell that is not the pool's or whose bounds
            are not 0 <= low <= high <= 1.
    """
    if len(space.bands) != (k := pool.capabilities.shape[1]):
        raise ValueError(f"need one band per dimension, got {len(space.bands)} for {k}")
    for (model, k), (low, high) in space.cells.items():
        _row(pool, model, k)
        if not 0.0 <= low <= high <= 1.0:
            raise ValueError(
                f"cell {model!r}, dimension {k}: bounds must be 0 <= low <= high <= 1, got "
                f"{low} and {high}"
            )
    return space


def _row(pool: Pool, model: str, k: int) -> int:
    if model not in pool.ids or not 0 <= k < pool.capabilities.shape[1]:
        raise ValueError(
            f"there is no cell {model!r}, dimension {k}: the pool has {', '.join(pool.ids)} and "
            f"{pool.capabilities.shape[1]} dimensions"
        )
    return pool.ids.index(model)


def with_cells(data: ReplayData, cells: Mapping[Cell, float]) -> ReplayData:
    """The same queries with some profile cells replaced."""
    if not cells:
        return data
    capabilities = data.pool.capabilities.copy()
    for (model, k), value in cells.items():
        capabilities[data.pool.ids.index(model), k] = value
    return replace(data, pool=replace(data.pool, capabilities=capabilities))


def simplified(
    found: Mapping[str, float],
    box: Box,
    start: Mapping[str, float],
    names: Sequence[str],
    objective: Callable[[Mapping[str, float]], float],
) -> dict[str, float]:
    """The found parameters, with those in `names` moved no further than earns a score.

    One by one each goes back to where it started if the score is none the worse for it, else it
    is written in as few digits as keep the score. So a cell that did not matter stays as it was.
    """
    kept = dict(found)
    floor = objective(kept) - _SAME_SCORE if names else 0.0
    for name in names:
        low, high = box[name]
        shorter = (float(np.round(found[name], digits)) for digits in _DIGITS)
        for value in (start[name], *(v for v in shorter if low <= v <= high)):
            if objective({**kept, name: value}) >= floor:
                kept[name] = value
                break
    return kept


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
        qr, cost = self.metrics.qr.scaled(100.0), self.metrics.mean_cost_usd
        more = self.over_tau_only.quality.scaled(100.0)
        cells = f" Profile cells moved: {moved}." if (moved := len(self.setting.cells)) else ""
        return (
            f"Aim: {self.aim}. Picked on one half of the queries and measured on the other: QR "
            f"{qr.value:.1f} % [{qr.bounds(between=', ')}] at ${cost.value:.4g} "
            f"per query; the halves promised {qr.value + 100 * self.optimism_qr:.1f} % at "
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
        box = {f"w{i}": (-_REACH, _REACH) for i in range(k)}
        box |= {name: self.space.cells[cell] for name, cell in self.cells.items()}

        def aimed(parameters: Mapping[str, float], *, strict: bool = False) -> Aimed:
            weights = compensated_weights(self._stored(parameters), self.space.bands)
            cells = {cell: parameters[name] for name, cell in self.cells.items()}
            changed = with_cells(data, cells)
            curve = data_frontier(changed, weights)
            return aim_at(curve, self.aim, best_possible, changed, strict=strict)

        def objective(parameters: Mapping[str, float]) -> float:
            return aimed(parameters).score

        at = data.pool.ids.index
        now = {c: float(data.pool.capabilities[at(c[0]), c[1]]) for c in self.space.cells}
        start = {f"w{i}": 0.0 for i in range(k)} | {
            name: float(np.clip(now[cell], *box[name])) for name, cell in self.cells.items()
        }
        best = search(
            objective,
            box,
            trials=self.trials // 3 + (self.trials % 3 if number == 2 else 0),
            seed=self.seed * 3 + number,
            start=start,
            step=self._step,
            cancel=self.cancel,
            store=self.store,
            key=f"{self.key}/{number}",
        )
        settled = simplified(best.parameters, box, start, list(self.cells), objective)
        promised = aimed(settled, strict=strict)
        moved = {cell: settled[name] for name, cell in self.cells.items()}
        cells = {cell: value for cell, value in moved.items() if value != now[cell]}
        return Setting(tuple(self._stored(settled).tolist()), promised.knob, cells), promised

    def route(self, data: ReplayData, setting: Setting) -> IntArray:
        """(n,) choice of a setting on some queries."""
        weights = compensated_weights(setting.weights, self.space.bands)
        return replay(with_cells(data, setting.cells), setting.tau, weights)

    def _stored(self, parameters: Mapping[str, float]) -> FloatArray:
        """Stored weights; only their ratios matter (tau takes the scale), so they sum to K."""
        k = len(self.space.bands)
        raw = np.exp([parameters[f"w{i}"] for i in range(k)])
        return np.asarray(raw / raw.sum() * k, dtype=np.float64)

    def _step(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.trials)


def _fingerprint(data: ReplayData, space: Space, aim: Aim) -> str:
    digest, pool = hashlib.sha256(repr((aim, space, data.pool.ids)).encode()), data.pool
    for values in (data.requirements, *data.fixed, pool.capabilities, pool.cost):  # with gates
        digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
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
        """The trials of one search, in order; StoreError where the file is no trial store."""
        with self._open() as database:
            rows = database.execute(
                "SELECT number, parameters, score FROM trial WHERE search = ? ORDER BY number",
                (key,),
            ).fetchall()
        return [Trial(json.loads(p), s) for i, (number, p, s) in enumerate(rows) if number == i]

    def add(self, key: str, first: int, trials: list[Trial]) -> None:
        """Append trials, the first with number `first`; StoreError where the file refuses."""
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
    key = hashlib.sha256(json.dumps([key, sorted(box.items()), seed]).encode()).hexdigest()
    tried = [] if store is None else store.load(key)
    saved, best = len(tried), None

    def save() -> None:
        nonlocal saved
        if store is not None and len(tried) > saved:
            store.add(key, saved, tried[saved:])
            saved = len(tried)

    for i in range(trials):
        if cancel is not None and cancel.is_set():
            save()
            raise CancelledError(f"the search was stopped after {i} of {trials} trials")
        if i == len(tried):
            first = dict(start) if i == 0 and start else None
            parameters = first or _propose(box, seed, i, None if best is None else best.parameters)
            tried.append(Trial(parameters, objective(parameters)))
        if best is None or tried[i].score > best.score:
            best = tried[i]
        if len(tried) - saved >= _SAVE_EVERY:
            save()
        if step is not None:
            step()
    save()
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
