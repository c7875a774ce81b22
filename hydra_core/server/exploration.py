"""Bounded exploration: now and then another model that is good enough, with its true probability.

It never leaves a kept conversation, and stops for the day when its budget is spent. One share is
drawn among models that the rule itself holds capable (shortfall rule: within tau; value rule: a
predicted success of at least the floor). Another may be drawn among all that can serve the request:
then the value of any other policy can be estimated from the log.
"""

import fcntl
import os
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from hydra_core.routing.decision import Candidate, Decision, Fate

#: Days that a clock may have been ahead.
_MOST_AHEAD: Final = 2
_FILE: Final = ".exploration-budget"


@dataclass(frozen=True, slots=True)
class Draw:
    """The model to serve, and the probability that each candidate had, catalog order."""

    model: str
    propensities: tuple[float, ...]


class Exploration:
    """Draws the model to serve. Safe to share between threads.

    Args:
        share: Share of decisions drawn at random among the capable models, in [0, 1].
        floor: Least predicted success of a model that may be tried (value rule).
        budget_usd: What tried requests may cost a day.
        folder: Where all workers keep the sum, which outlives them; None for this process alone.
        every: Share of decisions drawn among all models that can serve the request, in [0, 1].
    """

    def __init__(
        self,
        share: float,
        floor: float,
        budget_usd: float,
        rng: random.Random | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        folder: Path | None = None,
        every: float = 0.0,
    ) -> None:
        self._every = every
        self._share, self._floor, self._budget = share, floor, Budget(budget_usd, folder)
        self._rng, self._today = rng or random.Random(), today
        self._lock = threading.Lock()

    def draw(self, decision: Decision) -> Draw:
        """The decision's model, or now and then another one that is good enough."""
        names, capable, able = decision.pool.ids, [decision.model], [decision.model]
        if self._share + self._every > 0 and self._may_explore(decision):
            rows = decision.candidates()
            capable += self._capable(decision, rows)
            able = [row.model for row in rows if row.fate not in (Fate.GATED, Fate.UNHEALTHY)]
        among_all = self._every if len(able) > 1 else 0.0
        share = self._share if len(capable) > 1 else 0.0
        chances = [(1.0 - among_all) * share / len(capable) * (name in capable) for name in names]
        chances[decision.index] += (1.0 - among_all) * (1.0 - share)
        for i, name in enumerate(names):
            chances[i] += among_all / len(able) * (name in able)
        with self._lock:
            if among_all and self._rng.random() < among_all:
                model = self._rng.choice(able)
            else:
                tried = self._rng.random() < share
                model = self._rng.choice(capable) if tried else decision.model
        return Draw(model, tuple(chances))

    def spent(self, cost_usd: float) -> None:
        self._budget.spend(self._today(), cost_usd)

    def _may_explore(self, decision: Decision) -> bool:
        """Whether the conversation does not keep its model, and today's budget is not spent."""
        moves = decision.scored and not decision.cause.keeps
        return moves and self._budget.is_left(self._today())

    def _capable(self, decision: Decision, rows: tuple[Candidate, ...]) -> list[str]:
        """The other models that are good enough to be tried."""
        valued = decision.valuation
        if valued is None:
            return [row.model for row in rows if row.fate is Fate.DEARER]
        success = dict(zip(decision.pool.ids, valued.success.tolist(), strict=True))
        open_ = [row.model for row in rows if row.fate is Fate.WORTH_LESS]
        return [name for name in open_ if success[name] >= self._floor]


class Budget:
    """An amount a day. Safe to share between threads; with a folder also between processes.

    With a folder every worker knows what was spent today, also after a restart.
    """

    def __init__(self, usd: float, folder: Path | None = None) -> None:
        self._usd, self._path = usd, None if folder is None else folder / _FILE
        self._lock, self._own = threading.Lock(), ""

    def is_left(self, day: date) -> bool:
        """Whether something may be spent; not while the sum cannot be read."""
        with self._lock:
            try:
                return _spent(self._read(), day) < self._usd
            except OSError:
                return False

    def spend(self, day: date, usd: float) -> None:
        with self._lock:
            if self._path is None:
                self._own = _added(self._own, day, usd)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            with os.fdopen(file, "r+", encoding="ascii", errors="replace") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                text = _added(stream.read(), day, usd)
                stream.seek(0)
                stream.truncate()
                stream.write(text)

    def _read(self) -> str:
        if self._path is None:
            return self._own
        try:
            return self._path.read_text(encoding="ascii")
        except (FileNotFoundError, UnicodeDecodeError):
            return ""


def _added(text: str, day: date, usd: float) -> str:
    """Day and sum after an amount; the later day stays where its sum counts."""
    before, today = _spent(text, day), day.isoformat()
    last = max(today, text.partition(" ")[0]) if before else today
    return f"{last} {before + usd!r}"


def _spent(text: str, day: date) -> float:
    """Spent on a day or the next ones: a clock that went back must not give the budget twice."""
    kept, _, written = text.partition(" ")
    try:
        amount, ahead = float(written), (date.fromisoformat(kept) - day).days
    except ValueError:
        return 0.0
    return amount if 0 <= ahead <= _MOST_AHEAD else 0.0
