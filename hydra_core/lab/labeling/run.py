"""A labelling run: every call that is due, within the budget, written down before and after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic

from hydra_core.base.errors import HydraError, LabelError
from hydra_core.lab.labeling.calls import Due, ItemT, Plan, idempotency_key, write_down
from hydra_core.lab.labeling.client import Client, GivenUpError, LostError
from hydra_core.lab.labeling.ledger import Ledger
from hydra_core.lab.labeling.prompts import MalformedError

#: Times a call is asked again because its answer could not be used.
_MALFORMED_TRIES: Final = 3
_IN_DOUBT: Final = "a call was under way when the run was killed; it may have been paid"


class BudgetError(HydraError):
    """The next call could cost more than is left; what was paid is kept."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Messages done and set aside, USD committed, seconds left (None: unknown)."""

    done: int
    total: int
    aside: int
    spent_usd: float
    left_s: float | None


@dataclass(slots=True)
class _Run(Generic[ItemT]):
    plan: Plan[ItemT]
    messages: Sequence[ItemT]
    ledger: Ledger
    clients: Mapping[str, Client]
    progress: Callable[[Progress], None]
    clock: Callable[[], float]
    began: float
    stop: HydraError | None = None
    done: int = 0
    fresh: int = 0

    async def go(self) -> None:
        """Work through the messages; raises what stopped the run."""
        todo = iter(self.messages)
        at_once = sum(server.concurrency for server in self.plan.servers.values())
        await asyncio.gather(*(self._work(todo) for _ in range(min(at_once, len(self.messages)))))
        await self.ledger.settled()
        if self.stop is not None:
            raise self.stop

    async def _work(self, todo: Iterator[ItemT]) -> None:
        for message in todo:
            if self.stop is not None:
                return
            fresh = await self._message(message)
            if self.stop is None:
                self.done += 1
                self.fresh += fresh
                self._report()

    def _report(self) -> None:
        record, waited = self.ledger.record, self.clock() - self.began
        left = (len(self.messages) - self.done) * waited / self.fresh if self.fresh else None
        spent = record.committed_usd
        self.progress(Progress(self.done, len(self.messages), len(record.aside), spent, left))

    async def _message(self, message: ItemT) -> bool:
        """Make every call a message still needs; whether there was any."""
        record, asked = self.ledger.record, False
        if message.id in record.aside or self._in_doubt(message):
            return False
        while message.id not in record.aside and (calls := self.plan.due(message, record)):
            asked = True
            # Siblings are never cancelled: an answer on its way has been paid.
            found = await asyncio.gather(
                *(self._call(one, message) for one in calls), return_exceptions=True
            )
            for fault in found:
                self._take_fault(message, fault)
            if self.stop is not None:
                return asked
        return asked

    def _take_fault(self, message: ItemT, fault: object) -> None:
        if isinstance(fault, BudgetError | LabelError):
            self.stop = fault if self.stop is None else self.stop
        elif isinstance(fault, GivenUpError | LostError | MalformedError):
            self._set_aside(message, str(fault))
        elif isinstance(fault, BaseException):
            raise fault

    def _set_aside(self, message: ItemT, reason: str) -> None:
        if message.id not in self.ledger.record.aside:
            self.ledger.add("aside", self.plan.planned(message)[0], reason=reason)

    def _in_doubt(self, message: ItemT) -> bool:
        """Set a message aside whose call an earlier process may have paid without the answer."""
        for call in self.plan.planned(message):
            server = self.plan.servers[self.plan.role_of(call)]
            if call in self.ledger.record.open and not server.honours_idempotency_key:
                self._set_aside(message, f"{call.stage}: {_IN_DOUBT}")
                return True
        return False

    async def _call(self, one: Due, message: ItemT) -> None:
        """Ask until the answer can be used, or say why not."""
        record, reason = self.ledger.record, ""
        while (attempt := record.attempts[one.call]) < _MALFORMED_TRIES:
            key = idempotency_key(self.plan.recipe, one.call, attempt)

            async def before() -> None:
                self._afford(one)
                self.ledger.add("asked", one.call, most_usd=one.most_usd, digest=message.digest)
                await self.ledger.settled()

            def refused(why: str) -> None:
                self.ledger.add("refused", one.call, reason=why)

            client = self.clients[one.server.role]
            reply = await client.ask(one.body, key, before=before, refused=refused)
            reason = write_down(one, reply, self.ledger)
            await self.ledger.settled()
            if not reason:
                return
        raise MalformedError(f"{one.call.stage}: {reason or 'malformed'}, asked {attempt} times")

    def _afford(self, one: Due) -> None:
        left = self.plan.budget_usd - self.ledger.record.committed_usd
        if self.stop is not None:
            raise self.stop
        if one.most_usd > left:
            raise BudgetError(
                f"the next call may cost up to ${one.most_usd:.4f} and ${left:.4f} of "
                f"${self.plan.budget_usd:g} is left; raise budget_usd and run again to go on"
            )


def run(
    plan: Plan[ItemT],
    messages: Sequence[ItemT],
    ledger: Ledger,
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Make every call that is still due; a run that was killed goes on exactly where it was.

    Raises:
        BudgetError: The budget does not cover the next call; run again with more.
        LabelError: A server does not know the key, the model or the request; or a message's text
            is another than when it was first asked.
    """
    check_texts(messages, ledger)

    async def go() -> None:
        clients = {role: Client(server) for role, server in plan.servers.items()}
        try:
            await _Run(plan, messages, ledger, clients, progress, clock, clock()).go()
        finally:
            for client in clients.values():
                await client.close()

    asyncio.run(go())


def reopen(plan: Plan[ItemT], messages: Sequence[ItemT], ledger: Ledger) -> int:
    """Give messages that were set aside another chance, calls in doubt too; how many."""
    aside = [m for m in messages if m.id in ledger.record.aside]
    for message in aside:
        ledger.add("again", plan.planned(message)[0])
    return len(aside)


def check_texts(messages: Sequence[ItemT], ledger: Ledger) -> None:
    """Refuse messages whose text changed since they were first asked.

    Raises:
        LabelError: Naming the first ones.
    """
    known = ledger.record.digests
    changed = [m.id for m in messages if known.get(m.id, m.digest) != m.digest]
    if changed:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        message = f"{len(changed)} message(s) have changed since they were labelled: {shown}"
        raise LabelError.of(str(ledger.path), message, "give them new ids")
