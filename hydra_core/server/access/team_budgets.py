"""What teams have spent and reserved: exact over the workers of a host, and over hosts by Redis.

A file in the log's folder holds every amount, so a restart forgets nothing. Redis holds the total
of each host, written again with every request: after a loss of Redis it is back with the next.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.types import Period, TeamBudget

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
        self._base = sqlite3.connect(
            folder / _FILE, timeout=30, isolation_level=None, check_same_thread=False
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
        """Close the file."""
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
