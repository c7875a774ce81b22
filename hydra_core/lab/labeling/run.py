"""A labelling run: every call that is due, within the budget, written down before and after.

Answers may come in files instead: from a provider's batch API, or because they are there already.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic

from hydra_core.base.errors import HydraError, LabelError
from hydra_core.base.spelling import counted, set_usd, usd
from hydra_core.evalsets.importers.reading.bounded import Budget
from hydra_core.evalsets.importers.reading.cells import Issues
from hydra_core.evalsets.importers.reading.tables import json_objects
from hydra_core.lab.labeling.calls import (
    ORDERS,
    Due,
    ItemT,
    MalformedError,
    Plan,
    idempotency_key,
    read_answer,
    write_down,
)
from hydra_core.lab.labeling.client import Client, GivenUpError, LostError, reply_of
from hydra_core.lab.labeling.config import LabelConfig
from hydra_core.lab.labeling.ledger import BATCH, Call, Ledger
from hydra_core.lab.labeling.messages import Message, all_issues, is_whole

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
    under_way: set[Call] = field(default_factory=set)
    landed: asyncio.Event = field(default_factory=asyncio.Event)

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
        while record.unusable[message.id][one.call] < _MALFORMED_TRIES:
            attempt = record.attempts[one.call]
            key = idempotency_key(self.ledger.recipe, one.call, attempt)

            async def before() -> None:
                await self._afford(one)
                self.ledger.add("asked", one.call, most_usd=one.most_usd, digest=message.digest)
                self.under_way.add(one.call)
                await self.ledger.settled()

            def refused(why: str) -> None:
                self.ledger.add("refused", one.call, reason=why)
                self._land(one.call)

            client = self.clients[one.server.role]
            try:
                reply = await client.ask(one.body, key, before=before, refused=refused)
                reason = write_down(one, reply, self.ledger)
            finally:
                self._land(one.call)
            await self.ledger.settled()
            if not reason:
                return
            if reply.ended == "length" and one.read is read_answer:
                break  # it would think as long again, and be paid for as much
        asked = counted(record.attempts[one.call], "time")
        raise MalformedError(f"{one.call.stage}: {reason or 'malformed'}, asked {asked}")

    def _land(self, call: Call) -> None:
        self.under_way.discard(call)
        self.landed.set()

    async def _afford(self, one: Due) -> None:
        """Wait while calls under way hold what this one needs: they may cost less."""
        while self.stop is None and one.most_usd > self._left_usd() and self.under_way:
            self.landed.clear()
            await self.landed.wait()
        if self.stop is not None:
            raise self.stop
        left = self._left_usd()
        if one.most_usd > left:
            raise BudgetError(
                f"the next call may cost up to {usd(one.most_usd)} and {usd(max(left, 0.0))} of "
                f"{set_usd(self.plan.budget_usd)} is left; raise budget_usd and run again to go on"
            )

    def _left_usd(self) -> float:
        return self.plan.budget_usd - self.ledger.record.committed_usd


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
        known = {plan.role_of(call) for call in ledger.record.answered}
        clients = {
            role: Client(server, answers=role in known) for role, server in plan.servers.items()
        }
        try:
            await _Run(plan, messages, ledger, clients, progress, clock, clock()).go()
        finally:
            for client in clients.values():
                await client.close()

    asyncio.run(go())


def reopen(
    plan: Plan[ItemT], messages: Sequence[ItemT], ledger: Ledger, *, keep: bool = True
) -> int:
    """Give messages that were set aside another chance, calls in doubt too; how many.

    Args:
        keep: Whether the ledger says so too, or this process alone.
    """
    aside = [m for m in messages if m.id in ledger.record.aside]
    for message in aside:
        first = plan.planned(message)[0]
        if keep:
            ledger.add("again", first)
        else:
            ledger.record.take("again", first, {})
    return len(aside)


def check_texts(messages: Sequence[ItemT], ledger: Ledger) -> None:
    """Refuse messages whose text changed since they were first asked (LabelError)."""
    known = ledger.record.digests
    changed = [m.id for m in messages if known.get(m.id, m.digest) != m.digest]
    if changed:
        shown = ", ".join(changed[:5]) + (", ..." if len(changed) > 5 else "")
        message = f"{len(changed)} message(s) have changed since they were asked: {shown}"
        raise LabelError.of(str(ledger.path), message, "give them new ids")


#: What one file of OpenAI's batch API may hold.
_REQUESTS: Final = 50_000
_BYTES: Final = 190_000_000
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_Take = Callable[[Mapping[str, Any], int, Issues], list[tuple[Call, Any]]]


def write_batches(
    folder: Path, plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger
) -> dict[str, int]:
    """Write the calls that can be made now, by server; file name -> requests in it.

    The ledger changes only when the results are read.
    """
    written = {}
    by_role: dict[str, list[Due]] = {role: [] for role in plan.servers}
    for one in _all_due(plan, items, ledger):
        by_role[plan.role_of(one.call)].append(one)
    for role, calls in by_role.items():
        lines = [_line(one) for one in calls]
        for number, part in enumerate(_parts(lines), 1):
            name = f"{BATCH}{_UNSAFE.sub('-', role)}-{number}.jsonl"
            (folder / name).write_text("".join(part), encoding="utf-8")
            written[name] = len(part)
    return written


def _all_due(plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger) -> Iterator[Due]:
    for item in items:
        if item.id not in ledger.record.aside:
            yield from plan.due(item, ledger.record)


def _line(one: Due) -> str:
    request = {
        "custom_id": str(one.call),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": one.body,
    }
    return json.dumps(request) + "\n"


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for line in lines:
        if part and (len(part) == _REQUESTS or size + len(line) > _BYTES):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part


def read_batch(
    path: Path, plan: Plan[ItemT], items: Sequence[ItemT], ledger: Ledger
) -> tuple[int, dict[str, int]]:
    """Read a result file: (answers taken, reasons of those not taken -> how many).

    Results that are in the ledger already are left alone, so a file may be read twice.

    Raises:
        LabelError: A line is no result of a batch.
    """
    waiting = {str(one.call): one for one in _all_due(plan, items, ledger)}
    taken, left = 0, dict[str, int]()
    for custom_id, response in _results(path):
        one = waiting.pop(custom_id, None)
        reason = "not waited for" if one is None else _take_result(one, response, ledger)
        taken += not reason
        if reason:
            left[reason] = left.get(reason, 0) + 1
    return taken, left


def _results(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    with all_issues(path.name) as issues:
        for number, row in json_objects(path, Budget(), issues):
            response = row.get("response") or {}
            if isinstance(row.get("custom_id"), str) and isinstance(response, dict):
                found.append((row["custom_id"], response))
            else:
                issues.add("is not a batch result", number, "give the provider's output file")
    return found


def _take_result(one: Due, response: dict[str, Any], ledger: Ledger) -> str:
    """Write one result down; why it could not be used, empty where it could."""
    if response.get("status_code") != 200:
        return f"answered {response.get('status_code', 'nothing')}"
    return write_down(one, reply_of(response.get("body")), ledger)


def take_answers(path: Path, messages: Sequence[Message], ledger: Ledger) -> int:
    """Rows ``{"id", "cheap", "strong"}``, either answer may be missing; how many were new.

    Raises:
        LabelError: With every kind of problem; nothing is taken then.
    """

    def take(row: Mapping[str, Any], number: int, issues: Issues) -> list[tuple[Call, Any]]:
        arms = [arm for arm in ("cheap", "strong") if arm in row]
        if not arms or not all(isinstance(row[a], str) and row[a].strip() for a in arms):
            issues.add("cheap and strong must be text", number)
            return []
        return [(Call(row["id"], arm), row[arm]) for arm in arms]

    return _taken(path, take, messages, ledger)


def take_verdicts(
    path: Path, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> int:
    """Rows ``{"id", "order", "cheap": {score names}, "strong": {...}}``; how many were new.

    `order` is cheap_first or strong_first: both are needed for a label.

    Raises:
        LabelError: With every kind of problem; nothing is taken then.
    """

    def take(row: Mapping[str, Any], number: int, issues: Issues) -> list[tuple[Call, Any]]:
        if row.get("order") not in ORDERS:
            issues.add(f"order must be {' or '.join(ORDERS)}", number)
        else:
            scores = {arm: _scores(row.get(arm), config.dimensions) for arm in ("cheap", "strong")}
            if None not in scores.values():
                content = {**scores, "winner": str(row.get("winner", "tie")), "quality_gap": ""}
                return [(Call(row["id"], "judge", str(row["order"])), content)]
            named = ", ".join(config.dimensions)
            issues.add(f"cheap and strong must each score {named} from 1 to 5", number)
        return []

    return _taken(path, take, messages, ledger)


def _scores(found: object, dimensions: Sequence[str]) -> list[float] | None:
    values = [found.get(name) for name in dimensions] if isinstance(found, dict) else [None]
    numbers = [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    whole = len(numbers) == len(dimensions) and all(1.0 <= number <= 5.0 for number in numbers)
    return numbers if whole else None


def _taken(path: Path, take: _Take, messages: Sequence[Message], ledger: Ledger) -> int:
    known = {message.id for message in messages}
    rows: list[tuple[Call, Any]] = []
    with all_issues(path.name) as issues:
        for number, row in json_objects(path, Budget(), issues):
            if not is_whole(row, number, issues):
                continue
            if row.get("id") in known:
                rows += take(row, number, issues)
            else:
                issues.add(f"{row.get('id')!r} is not among the messages", number)
    fresh = [(call, content) for call, content in rows if call not in ledger.record.answered]
    for call, content in fresh:
        ledger.add("answered", call, cost_usd=0.0, tokens=[], content=content, origin=path.name)
    return len(fresh)
