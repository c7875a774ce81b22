"""Which calls a message still needs: answers first, then verdicts, however they are asked."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from hydra_core.base.tokens import most_text_tokens
from hydra_core.lab.labeling.client import Reply
from hydra_core.lab.labeling.config import LabelConfig, Server
from hydra_core.lab.labeling.ledger import Call, Ledger, Record
from hydra_core.lab.labeling.messages import Message
from hydra_core.lab.labeling.prompts import (
    ORDERS,
    Body,
    MalformedError,
    ask_arm,
    ask_judge,
    read_answer,
    read_verdict,
)

_ENOUGH = 20
#: Tokens that a server adds to a request of its own accord (templates).
_ADDED_TOKENS = 20_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls still to make by stage, and their cost.

    Attributes:
        most_usd: Upper bound: every answer as long as it may be.
        about_usd: From the mean cost of the calls so far; None before twenty of each stage.
    """

    calls: dict[str, int]
    most_usd: float
    about_usd: float | None


def estimate(config: LabelConfig, messages: Sequence[Message], record: Record) -> Estimate:
    """The calls a run would still make and what they can cost."""
    return estimate_of(LabelPlan(config), messages, record, partial(_most_usd_of_all, config))


def estimate_of(
    plan: Plan[ItemT], items: Sequence[ItemT], record: Record, most: Callable[[ItemT, Call], float]
) -> Estimate:
    """The calls that are not answered yet, and their cost.

    Args:
        most: The most that a call about an item may cost, USD.
    """
    left: Counter[str] = Counter()
    most_usd = 0.0
    for item in items:
        if item.id not in record.aside:
            for call in plan.planned(item):
                if call not in record.answered:
                    left[call.stage] += 1
                    most_usd += most(item, call)
    made = Counter(call.stage for call in record.answered)
    means = {s: record.spent_usd[s] / made[s] for s in left if made[s] >= _ENOUGH}
    about = sum(left[s] * means[s] for s in left) if len(means) == len(left) else None
    return Estimate(dict(left), most_usd, about)


def _most_usd_of_all(config: LabelConfig, message: Message, call: Call) -> float:
    stage = call.stage
    server = config.servers[stage]
    inward = most_text_tokens(message.text) + sum(
        most_text_tokens(text) for _, text in message.history
    )
    if stage not in ("cheap", "strong"):
        inward += most_text_tokens(config.rubric) + most_text_tokens(str(config.verdict_schema))
        inward += sum(config.servers[arm].max_tokens for arm in ("cheap", "strong"))
    return server.cost_usd(inward, server.max_tokens)


@dataclass(frozen=True, slots=True)
class Due:
    """A call that can be made now: to whom, with what, how its answer is read, what it may cost."""

    call: Call
    server: Server
    body: Body
    read: Callable[[str], Any]
    most_usd: float


class Item(Protocol):
    """What calls are made about; `digest` changes where its text does."""

    @property
    def id(self) -> str: ...
    @property
    def digest(self) -> str: ...


ItemT = TypeVar("ItemT", bound=Item, contravariant=True)


class Plan(Protocol[ItemT]):
    """Which calls a run makes, of whom, and for how much at most.

    Attributes:
        servers: By role; a call says whose it is by its server.
        recipe: Digest of all that decides an answer.
    """

    @property
    def servers(self) -> Mapping[str, Server]: ...
    @property
    def recipe(self) -> str: ...
    @property
    def budget_usd(self) -> float: ...
    def role_of(self, call: Call) -> str:
        """The role of the server that a call goes to."""

    def planned(self, item: ItemT, /) -> list[Call]:
        """Every call of an item in a whole run."""

    def due(self, item: ItemT, record: Record, /) -> list[Due]:
        """The calls of an item that can be made now; empty when it is done."""


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Two answers and a judge's verdicts for each message."""

    config: LabelConfig

    @property
    def servers(self) -> Mapping[str, Server]:
        """See `LabelConfig`."""
        return self.config.servers

    @property
    def recipe(self) -> str:
        """See `LabelConfig.recipe`."""
        return self.config.recipe

    @property
    def budget_usd(self) -> float:
        """The most the calls may cost."""
        return self.config.budget_usd

    def role_of(self, call: Call) -> str:
        """A call's stage."""
        return call.stage

    def planned(self, item: Message) -> list[Call]:
        """Every call of a message in a whole run; none for tiers that get the default."""
        config = self.config
        if item.tier not in config.label_tiers:
            return []
        calls = [Call(item.id, "cheap"), Call(item.id, "strong")]
        again = 2 if sampled(item, "stability", config.stability_share) else 1
        calls += [Call(item.id, "judge", order, g) for g in range(again) for order in ORDERS]
        if "second_judge" in config.servers and sampled(item, "agreement", config.agreement_share):
            calls += [Call(item.id, "second_judge", order) for order in ORDERS]
        return calls

    def due(self, item: Message, record: Record) -> list[Due]:
        """The calls of a message that can be made now; empty when it is done or needs none."""
        planned = self.planned(item)
        arms = [call for call in planned if not call.order]
        if left := [call for call in arms if call not in record.answered]:
            return [self._answer(item, call) for call in left]
        answers = {call.stage: str(record.answered[call]) for call in arms}
        judged = [call for call in planned if call.order and call not in record.answered]
        return [self._verdict(item, answers, call) for call in judged]

    def _answer(self, item: Message, call: Call) -> Due:
        server = self.servers[call.stage]
        body = ask_arm(server, item)
        return Due(call, server, body, read_answer, _most_usd(server, body))

    def _verdict(self, item: Message, answers: dict[str, str], call: Call) -> Due:
        config, server = self.config, self.servers[call.stage]
        body = ask_judge(config, server, item, answers, call.order)
        read = partial(read_verdict, config, order=call.order)
        return Due(call, server, body, read, _most_usd(server, body))


def sampled(message: Item, purpose: str, share: float) -> bool:
    """Whether a message is in a share of the messages: by its id, the same in every run."""
    digest = hashlib.sha256(f"{purpose}|{message.id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2.0**64


def idempotency_key(recipe: str, call: Call, attempt: int) -> str:
    """The same for the same attempt of the same call of the same recipe."""
    return hashlib.sha256(f"{recipe}|{call}|{attempt}".encode()).hexdigest()


def write_down(one: Due, reply: Reply, ledger: Ledger) -> str:
    """Write an answer down; why it cannot be used, empty where it can.

    A server that does not say how much was used, or says what cannot be, is counted at its
    dearest, never guessed.
    """
    cost, tokens = one.most_usd, reply.tokens if _can_be(one, reply) else None
    if tokens is not None:
        cost = one.server.cost_usd(*tokens, reply.cached)
    cached = reply.cached if tokens is not None else 0
    used = {"tokens": list(tokens or ()), "cached": cached, "seconds": reply.seconds}
    try:
        content = one.read(reply.text)
    except MalformedError as error:
        said = {"reason": str(error), "text": reply.text[:2_000]}
        ledger.add("malformed", one.call, cost_usd=cost, **used, **said)
        return str(error)
    ledger.add("answered", one.call, cost_usd=cost, **used, content=content)
    return ""


def _can_be(one: Due, reply: Reply) -> bool:
    """Whether the tokens that a server states can be true of this call."""
    if reply.tokens is None:
        return False
    read, written = reply.tokens
    most = one.most_usd + one.server.cost_usd(_ADDED_TOKENS, 0)
    said = one.server.cost_usd(read, written, reply.cached)
    return read > 0 and (written > 0 or not reply.text.strip()) and said <= most


def _most_usd(server: Server, body: Body) -> float:
    inward = sum(most_text_tokens(turn["content"]) for turn in body["messages"])
    return server.cost_usd(inward, server.max_tokens)
