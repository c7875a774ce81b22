"""Which calls a message still needs: answers first, then verdicts, however they are asked."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
    left: Counter[str] = Counter()
    most = 0.0
    for message in messages:
        if message.id not in record.aside:
            for call in planned(config, message):
                if call not in record.answered:
                    left[call.stage] += 1
                    most += _most_usd_of_all(config, message, call.stage)
    made = Counter(call.stage for call in record.answered)
    means = {s: record.spent_usd[s] / made[s] for s in left if made[s] >= _ENOUGH}
    about = sum(left[s] * means[s] for s in left) if len(means) == len(left) else None
    return Estimate(dict(left), most, about)


def _most_usd_of_all(config: LabelConfig, message: Message, stage: str) -> float:
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


def due(config: LabelConfig, message: Message, record: Record) -> list[Due]:
    """The calls of a message that can be made now; empty when it is done or needs none."""
    answers = {}
    missing = []
    for call in planned(config, message):
        if call.stage in ("cheap", "strong"):
            if call in record.answered:
                answers[call.stage] = str(record.answered[call])
            else:
                missing.append(_arm(config, message, call))
    if missing or not answers:
        return missing
    return [
        _verdict(config, message, answers, call)
        for call in planned(config, message)
        if call.order and call not in record.answered
    ]


def planned(config: LabelConfig, message: Message) -> list[Call]:
    """Every call of a message in a whole run; none for tiers that get the default."""
    if message.tier not in config.label_tiers:
        return []
    calls = [Call(message.id, "cheap"), Call(message.id, "strong")]
    again = 2 if sampled(message, "stability", config.stability_share) else 1
    calls += [Call(message.id, "judge", order, g) for g in range(again) for order in ORDERS]
    second = sampled(message, "agreement", config.agreement_share)
    if "second_judge" in config.servers and second:
        calls += [Call(message.id, "second_judge", order) for order in ORDERS]
    return calls


def sampled(message: Message, purpose: str, share: float) -> bool:
    """Whether a message is in a share of the messages: by its id, the same in every run."""
    digest = hashlib.sha256(f"{purpose}|{message.id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2.0**64


def idempotency_key(recipe: str, call: Call, attempt: int) -> str:
    """The same for the same attempt of the same call of the same recipe."""
    return hashlib.sha256(f"{recipe}|{call}|{attempt}".encode()).hexdigest()


def write_down(one: Due, reply: Reply, ledger: Ledger) -> str:
    """Write an answer down; why it cannot be used, empty where it can.

    A server that does not say how much was used is counted at its dearest, never guessed.
    """
    cost = one.server.cost_usd(*reply.tokens) if reply.tokens else one.most_usd
    tokens = list(reply.tokens or ())
    try:
        content = one.read(reply.text)
    except MalformedError as error:
        said = {"reason": str(error), "text": reply.text[:2_000]}
        ledger.add("malformed", one.call, cost_usd=cost, tokens=tokens, **said)
        return str(error)
    ledger.add("answered", one.call, cost_usd=cost, tokens=tokens, content=content)
    return ""


def _most_usd(server: Server, body: Body) -> float:
    inward = sum(most_text_tokens(turn["content"]) for turn in body["messages"])
    return server.cost_usd(inward, server.max_tokens)


def _arm(config: LabelConfig, message: Message, call: Call) -> Due:
    server = config.servers[call.stage]
    body = ask_arm(server, message)
    return Due(call, server, body, read_answer, _most_usd(server, body))


def _verdict(config: LabelConfig, message: Message, answers: dict[str, str], call: Call) -> Due:
    server = config.servers[call.stage]
    body = ask_judge(config, server, message, answers, call.order)

    def read(text: str) -> dict[str, Any]:
        return read_verdict(config, text, call.order)

    return Due(call, server, body, read, _most_usd(server, body))
