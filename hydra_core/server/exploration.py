"""Bounded exploration: now and then another model that is good enough, with its true probability.

Without it a log says nothing about models that were not chosen. It is off unless a share is given,
tries only models that the rule itself holds capable (shortfall rule: within tau; value rule: a
predicted success of at least the floor), never leaves a kept conversation, and stops for the day
when its budget is spent.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from hydra_core.routing.decision import Decision, Fate
from hydra_core.server.access.budget import Budget


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
        rng: The source of chance.
        today: The day that the budget belongs to.
        folder: Where all workers keep the sum, which outlives them; None for this process alone.
    """

    def __init__(
        self,
        share: float,
        floor: float,
        budget_usd: float,
        rng: random.Random | None = None,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
        folder: Path | None = None,
    ) -> None:
        self._share, self._floor, self._budget = share, floor, Budget(budget_usd, folder)
        self._rng, self._today = rng or random.Random(), today
        self._lock = threading.Lock()

    def draw(self, decision: Decision) -> Draw:
        """The decision's model, or now and then another one that is good enough."""
        names = decision.pool.ids
        open_to_all = [decision.model]
        if self._share > 0 and self._budget.is_left(self._today()):
            open_to_all += self._capable(decision)
        share = self._share if len(open_to_all) > 1 else 0.0
        each = share / len(open_to_all)
        chances = [each if name in open_to_all else 0.0 for name in names]
        chances[decision.index] += 1.0 - share
        with self._lock:
            tried = self._rng.random() < share
            model = self._rng.choice(open_to_all) if tried else decision.model
        return Draw(model, tuple(chances))

    def spent(self, cost_usd: float) -> None:
        """Count what a tried request cost."""
        self._budget.spend(self._today(), cost_usd)

    def _capable(self, decision: Decision) -> list[str]:
        """The models that may be tried; none while a conversation is kept."""
        if not decision.scored or decision.cause.keeps:
            return []
        rows, valued = decision.candidates(), decision.valuation
        if valued is None:
            return [row.model for row in rows if row.fate is Fate.DEARER]
        success = dict(zip(decision.pool.ids, valued.success.tolist(), strict=True))
        open_ = [row.model for row in rows if row.fate is Fate.WORTH_LESS]
        return [name for name in open_ if success[name] >= self._floor]
