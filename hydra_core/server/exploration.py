"""Bounded exploration: now and then another model that is good enough, with its true probability.

Without it a log says nothing about models that were not chosen. It is off unless a share is given,
never leaves a kept conversation, and stops for the day when its budget is spent. One share is drawn
among models that the rule itself holds capable (shortfall rule: within tau; value rule: a predicted
success of at least the floor). Another may be drawn among all that can serve the request: then the
value of any other policy can be estimated from the log.
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
        if self._share + self._every > 0 and self._budget.is_left(self._today()):
            capable += self._capable(decision) if self._share > 0 else []
            able = self._able(decision) if self._every > 0 else able
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
        """Count what a tried request cost."""
        self._budget.spend(self._today(), cost_usd)

    def _able(self, decision: Decision) -> list[str]:
        """The models that can serve the request; the chosen one alone in a kept conversation."""
        if not decision.scored or decision.cause.keeps:
            return [decision.model]
        out = (Fate.GATED, Fate.UNHEALTHY)
        return [one.model for one in decision.candidates() if one.fate not in out]

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
