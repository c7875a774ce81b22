"""A team's own models, knob and budget, as they apply to one request, and what teams have spent.

The ledger is exact over the workers of a host, and over hosts by Redis. A file in the log's folder
holds every amount, so a restart forgets nothing. Redis holds the total of each host, written again
with every request: after a loss of Redis it is back with the next.
"""

from __future__ import annotations

import logging
import math
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.errors import RoutingError
from hydra_core.base.spelling import short_number, usd
from hydra_core.base.types import Period, Policy, Rule, Team, TeamBudget, WhenSpent
from hydra_core.routing.decision import Decision
from hydra_core.routing.gates import ONLY_CHEAPEST
from hydra_core.routing.query import Query
from hydra_core.server.chat import ChatRequest
from hydra_core.server.exploration import Draw
from hydra_core.server.live import Serving
from hydra_core.server.settings import AUTO

if TYPE_CHECKING:
    from redis import Redis


_LOG = logging.getLogger(__name__)
_FILE: Final = "budgets.sqlite"
#: A request that was not settled by then counts as what was reserved for it.
_UNSETTLED_S: Final = 900.0
_KEPT_S: Final = 40 * 86_400
_TABLES: Final = """
create table if not exists host (name text);
create table if not exists spent (team text, period text, usd real, primary key (team, period));
create table if not exists reserved
    (id text primary key, team text, period text, usd real, until real);
"""
#: Writes a host's total unless all hosts together would be over; the total of all, or -1.
_TAKE: Final = """
local sum = 0
local all = redis.call('hgetall', KEYS[1])
for i = 1, #all, 2 do if all[i] ~= ARGV[1] then sum = sum + tonumber(all[i + 1]) end end
local most = tonumber(ARGV[3])
if most >= 0 and sum + tonumber(ARGV[2]) > most then return '-1' end
redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
redis.call('expire', KEYS[1], ARGV[4])
return tostring(sum + tonumber(ARGV[2]))
"""


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is held back until a request's cost is known; `used` is the share used before it."""

    id: str
    team: str
    period: str
    usd: float
    used: float


def period_of(per: Period, now: datetime) -> tuple[str, float]:
    """The period that a moment belongs to, and the seconds until the next one begins."""
    if per is Period.DAY:
        begins = now.replace(hour=0, minute=0, second=0, microsecond=0)
        ends = begins + timedelta(days=1)
        return begins.strftime("%Y-%m-%d"), (ends - now).total_seconds()
    begins = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    ends = (begins + timedelta(days=32)).replace(day=1)
    return begins.strftime("%Y-%m"), (ends - now).total_seconds()


def percent_used(used: float) -> int:
    """A share of a budget in percent; 100 only where nothing is left."""
    return math.floor(100 * used + 1e-6)


class TeamBudgets:
    """The ledger of one host. Safe to share between threads and processes.

    Args:
        folder: Of the decision log.
        redis: What other hosts share; None for this host alone.
    """

    def __init__(
        self,
        folder: Path,
        redis: Redis | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._redis, self._now, self._lock = redis, now, threading.Lock()
        self._away_until, self.note = 0.0, ""
        path = folder / _FILE
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # -wal and -shm follow it
        self._base = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._base.execute("pragma journal_mode=wal")
        self._base.execute("pragma synchronous=normal")
        self._base.executescript(_TABLES)
        with self._lock, self._base:
            self._base.execute("begin immediate")
            row = self._base.execute("select name from host").fetchone()
            self._host = row[0] if row else secrets.token_hex(8)
            if not row:
                self._base.execute("insert into host values (?)", (self._host,))

    def close(self) -> None:
        self._base.close()

    def used(self, team: str, budget: TeamBudget) -> float:
        """Share of the budget that is spent or reserved."""
        period, _ = period_of(budget.per, self._now())
        with self._lock:
            own = self._own(team, period)
        return self._shared(team, period, own, -1.0) / budget.usd

    def take(
        self, team: str, budget: TeamBudget, usd: float, *, most: bool = True
    ) -> Reservation | None:
        """Hold an amount back; None where it would not fit into the budget.

        With `most` False the budget is no limit: what is beyond it is counted all the same.
        """
        period, _ = period_of(budget.per, self._now())
        limit = budget.usd if most else -1.0
        with self._lock, self._base:
            self._base.execute("begin immediate")
            self._expire()
            own = self._own(team, period)
            if most and own + usd > budget.usd:
                return None
            total = self._shared(team, period, own + usd, limit)
            if total < 0:
                return None
            used = (total - usd) / budget.usd
            found = Reservation(secrets.token_hex(8), team, period, usd, used)
            until = self._now().timestamp() + _UNSETTLED_S
            values = (found.id, team, period, usd, until)
            self._base.execute("insert into reserved values (?, ?, ?, ?, ?)", values)
        return found

    def settle(self, reservation: Reservation, usd: float) -> None:
        """Count what a request cost instead of what was reserved for it."""
        with self._lock, self._base:
            self._base.execute("begin immediate")
            gone = self._base.execute("delete from reserved where id = ?", (reservation.id,))
            late = reservation.usd if gone.rowcount == 0 else 0.0  # was counted as reserved
            self._add(reservation.team, reservation.period, usd - late)
            own = self._own(reservation.team, reservation.period)
            self._shared(reservation.team, reservation.period, own, -1.0)

    def _add(self, team: str, period: str, usd: float) -> None:
        text = (
            "insert into spent values (?, ?, ?) "
            "on conflict (team, period) do update set usd = usd + excluded.usd"
        )
        self._base.execute(text, (team, period, usd))

    def _own(self, team: str, period: str) -> float:
        total = 0.0
        for table in ("spent", "reserved"):
            text = f"select sum(usd) from {table} where team = ? and period = ?"
            total += self._base.execute(text, (team, period)).fetchone()[0] or 0.0
        return total

    def _expire(self) -> None:
        """Count what was never settled: a worker was killed, and the request may have cost."""
        at = self._now().timestamp()
        old = self._base.execute(
            "select team, period, usd from reserved where until < ?", (at,)
        ).fetchall()
        if old:
            self._base.execute("delete from reserved where until < ?", (at,))
            for team, period, usd in old:
                self._add(team, period, usd)

    def _shared(self, team: str, period: str, own: float, limit: float) -> float:
        """The total of all hosts with this one's, -1 where that is over; `own` without Redis."""
        if self._redis is None or time.monotonic() < self._away_until:
            return own
        key, words = f"hydra:budget:{period}:{team}", (self._host, repr(own), repr(limit))
        try:
            said: Any = self._redis.eval(_TAKE, 1, key, *words, _KEPT_S)
            found = float(said)
        except Exception as error:  # whatever it is, this host goes on by its own ledger
            if not self.note:
                _LOG.warning("Redis cannot be reached, budgets count this host alone: %s", error)
            self.note = "Redis does not answer: budgets count what this host has spent"
            self._away_until = time.monotonic() + 2.0
            return own
        self.note = ""
        return found


#: Tokens of an answer whose length nobody limits.
_ANSWER_TOKENS: Final = 1_000


class BudgetSpentError(RoutingError):
    """A team has used its budget (429); the next period begins after `wait_s`."""

    def __init__(self, message: str, wait_s: float) -> None:
        self.wait_s = wait_s
        super().__init__(message, http_status=429)


@dataclass(frozen=True, slots=True)
class Share:
    """What a team's policy made of one request.

    Attributes:
        knob: tau, or V in USD, in force for it.
        used: Share of the budget that was used before it, None without a budget.
        note: What the budget has changed, '' for nothing.
        reservation: What is held back for it, None for nothing.
    """

    knob: float
    used: float | None = None
    note: str = ""
    reservation: Reservation | None = None


#: Decides a query with this tau or V, and draws the model that is served.
Route = Callable[[Query, float], tuple[Decision, Draw]]


@dataclass(frozen=True, slots=True)
class Teams:
    """Applies what the policy says of teams; `ledger` keeps what was spent, None for nowhere."""

    ledger: TeamBudgets | None = None

    def decide(
        self, serving: Serving, request: ChatRequest, query: Query, route: Route, *, spend: bool
    ) -> tuple[Decision, Draw, Share]:
        """The decision for a team that the policy names; with `spend` it is going to be answered.

        Raises:
            BudgetSpentError: The budget does not hold what the cheapest model may cost.
            RoutingError: No model can serve the query.
        """
        policy, name = serving.catalog.policy, request.team
        team = policy.teams[name]
        if team.models is not None:
            allowed = team.models if query.allow is None else query.allow & team.models
            query = replace(query, allow=allowed)
        budget, ledger = team.budget, self.ledger
        if budget is None or ledger is None:
            knob = team.knob(policy)
            return (*route(query, knob), Share(knob))
        used = ledger.used(name, budget)
        share = _share_at(policy, team, budget, name, used)
        goes_on = ""
        if budget.when_spent is WhenSpent.CHEAPEST:
            goes_on = _cheapest(query, team, route) if request.model != AUTO else AUTO
        refuses = request.model != goes_on
        if refuses and used >= 1.0:
            raise _spent(name, budget, goes_on)
        if used >= budget.cheapest_from:
            why = f"has used {percent_used(used)} % of its budget of {_budget(budget)}"
            query, share = _only_cheapest(query, share, f"Team {name} {why}")
        decision, draw = route(query, share.knob)
        if not spend:
            return decision, draw, share
        limited = refuses or not query.only_cheapest
        held = ledger.take(name, budget, _expected(serving, draw, request), most=limited)
        if held is None and not query.only_cheapest:
            why = "Another model may cost more than is free of"
            why = f"{why} team {name}'s budget of {_budget(budget)}"
            query, share = _only_cheapest(query, share, why)
            decision, draw = route(query, share.knob)
            held = ledger.take(name, budget, _expected(serving, draw, request), most=refuses)
        if held is None:
            raise _too_dear(name, budget, _expected(serving, draw, request))
        return decision, draw, replace(share, reservation=held)

    def settle(self, share: Share | None, cost_usd: float | None) -> None:
        """Count what a request cost; where nobody knows, what was held back for it."""
        if share is not None and share.reservation is not None and self.ledger is not None:
            held = share.reservation
            self.ledger.settle(held, held.usd if cost_usd is None else cost_usd)


def _share_at(policy: Policy, team: Team, budget: TeamBudget, name: str, used: float) -> Share:
    own = team.knob(policy)
    knob = budget.knob(policy.rule, own, used)
    if knob == own:
        return Share(knob, used)
    now, before = (
        (f"V is {usd(knob)}", usd(own))
        if policy.rule is Rule.VALUE
        else (f"tau is {knob:.4g}", f"{own:.4g}")
    )
    note = f"Team {name} has used {percent_used(used)} % of its budget: {now} instead of {before}."
    return Share(knob, used, note)


def _cheapest(query: Query, team: Team, route: Route) -> str:
    anyone = replace(query, allow=team.models, only_cheapest=ONLY_CHEAPEST)
    return route(anyone, 0.0)[0].model


def _only_cheapest(query: Query, share: Share, why: str) -> tuple[Query, Share]:
    why = f"{why}: {ONLY_CHEAPEST}"
    return replace(query, only_cheapest=why), replace(share, note=why)


def _budget(budget: TeamBudget) -> str:
    return f"${short_number(budget.usd, 9)} a {budget.per.value}"


def _spent(name: str, budget: TeamBudget, goes_on: str = "") -> BudgetSpentError:
    period, wait_s = period_of(budget.per, datetime.now(UTC))
    still = f"ask for '{AUTO}' or '{goes_on}', " if goes_on else ""
    message = (
        f"team {name} has used its budget of ${short_number(budget.usd, 9)} for {period} (UTC); "
        f"{still}raise it in the policy, or wait for the next period"
    )
    return BudgetSpentError(message, wait_s)


def _too_dear(name: str, budget: TeamBudget, usd_needed: float) -> BudgetSpentError:
    """Something is left of the budget, but not what the request may cost."""
    period, wait_s = period_of(budget.per, datetime.now(UTC))
    message = (
        f"this request may cost {usd(usd_needed)}, more than is left of the budget of "
        f"${short_number(budget.usd, 9)} that team {name} has for {period} (UTC); allow a shorter "
        "answer, raise the budget in the policy, or wait for the next period"
    )
    return BudgetSpentError(message, wait_s)


def _expected(serving: Serving, draw: Draw, request: ChatRequest) -> float:
    """What the drawn model may cost: every input token fresh, and the longest answers."""
    answer = request.choices * (request.query.output_tokens or _ANSWER_TOKENS)
    return serving.catalog.model(draw.model).price.usd_of_one(request.input_tokens, answer)
