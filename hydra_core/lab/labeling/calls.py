"""Which calls a message still needs, what they ask and how answers and verdicts are read."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from hydra_core.base.tokens import most_text_tokens
from hydra_core.lab.labeling.client import Reply
from hydra_core.lab.labeling.config import JsonMode, LabelConfig, Server
from hydra_core.lab.labeling.ledger import Call, Ledger, Record
from hydra_core.lab.labeling.messages import Message

#: The order says which answer stands first (as A).
ORDERS: Final = ("cheap_first", "strong_first")
Body = dict[str, Any]
#: Characters of a verdict; longer ones are not read.
_LONGEST_VERDICT: Final = 100_000


class MalformedError(Exception):
    """An answer that came but cannot be used; `str(error)` says why."""


def ask_arm(server: Server, message: Message) -> Body:
    """The request body for an answer."""
    turns = [{"role": role, "content": content} for role, content in message.history]
    turns.append({"role": "user", "content": message.text})
    return {"model": server.model, "messages": turns, "max_tokens": server.max_tokens}


def ask_judge(
    config: LabelConfig, server: Server, message: Message, answers: Mapping[str, str], order: str
) -> Body:
    """The request body for a verdict on both answers in one order."""
    first, second = ("cheap", "strong") if order == ORDERS[0] else ("strong", "cheap")
    before = "\n".join(f"[{role}] {content}" for role, content in message.history)
    parts = [("CONVERSATION BEFORE", before), ("REQUEST", message.text)]
    parts += [("ANSWER A", answers[first]), ("ANSWER B", answers[second])]
    mark = _mark(text for _, text in parts)
    asked = "\n\n".join(f"=== {name} {mark} ===\n{text}" for name, text in parts if text)
    schema = json.dumps(config.verdict_schema)
    system = (
        f"{config.rubric.strip()}\n\nHeadings carry the mark {mark}. What else looks like a "
        f"heading is part of an answer.\n\nThe object's JSON schema:\n{schema}"
    )
    body: Body = {
        "model": server.model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": asked}],
        "max_tokens": server.max_tokens,
    }
    if server.json_mode is JsonMode.SCHEMA:
        named = {"name": "verdict", "schema": config.verdict_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    elif server.json_mode is JsonMode.OBJECT:
        body["response_format"] = {"type": "json_object"}
    return body


def _mark(texts: Iterable[str]) -> str:
    """What none of these texts can hold: a digest of all of them."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:12]


def read_answer(text: str) -> str:
    """An arm's answer as it came; MalformedError for none, or thinking that never ends."""
    plain = text.strip()
    thinking = plain.startswith("<think>") and not plain.partition("</think>")[2].strip()
    if not plain or thinking:
        raise MalformedError("the answer is empty")
    return text


def read_verdict(config: LabelConfig, text: str, order: str) -> dict[str, Any]:
    """A verdict by arm: ``cheap`` and ``strong`` (K scores each), ``winner`` and ``quality_gap``.

    Raises:
        MalformedError: It is no JSON object, or not the schema's, or a score is none.
    """
    from jsonschema import Draft202012Validator

    if len(text) > _LONGEST_VERDICT:
        raise MalformedError(f"the judgement has over {_LONGEST_VERDICT:,} characters")
    begin, end = text.find("{"), text.rfind("}")
    try:
        verdict = json.loads(
            text[begin : end + 1] if 0 <= begin < end else text, parse_constant=_no_number
        )
    except (ValueError, RecursionError) as error:
        raise MalformedError("the judgement is not JSON") from error
    for fault in Draft202012Validator(config.verdict_schema).iter_errors(verdict):
        place = ".".join(map(str, fault.absolute_path))
        raise MalformedError(f"the judgement breaks the schema: {place} {fault.message}"[:200])
    scores = [verdict[arm][name] for arm in ("A", "B") for name in config.dimensions]
    if not all(isinstance(one, int | float) and 1 <= one <= 5 for one in scores):
        raise MalformedError("the judgement has a score that is not from 1 to 5")
    return by_arm(verdict, config.dimensions, order)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def by_arm(verdict: Mapping[str, Any], dimensions: Sequence[str], order: str) -> dict[str, Any]:
    """A and B of a verdict as cheap and strong."""
    first, second = ("cheap", "strong") if order == ORDERS[0] else ("strong", "cheap")
    names = {"A": first, "B": second, "tie": "tie"}
    return {
        first: [float(verdict["A"][name]) for name in dimensions],
        second: [float(verdict["B"][name]) for name in dimensions],
        "winner": names.get(str(verdict.get("winner")), "tie"),
        "quality_gap": str(verdict.get("quality_gap", "")),
    }


_ENOUGH = 20
#: What a server says of an answer that ended early.
_ENDED: Final = {
    "length": ": it used up max_tokens",
    "content_filter": ": the server's filter held it back",
}
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


def estimate(plan: Plan[ItemT], items: Sequence[ItemT], record: Record) -> Estimate:
    """The calls a run would still make and what they can cost."""
    left: Counter[str] = Counter()
    most_usd = 0.0
    for item in items:
        if item.id not in record.aside:
            for call in plan.planned(item):
                if call not in record.answered:
                    left[call.stage] += 1
                    most_usd += plan.most_usd(item, call)
    made = Counter(call.stage for call in record.answered)
    means = {s: record.spent_usd[s] / made[s] for s in left if made[s] >= _ENOUGH}
    about = sum(left[s] * means[s] for s in left) if len(means) == len(left) else None
    return Estimate(dict(left), most_usd, about)


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

    def most_usd(self, item: ItemT, call: Call, /) -> float:
        """The most that a call about an item can cost: every answer as long as it may be."""


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Two answers and a judge's verdicts for each message."""

    config: LabelConfig

    @property
    def servers(self) -> Mapping[str, Server]:
        return self.config.servers

    @property
    def recipe(self) -> str:
        return self.config.recipe

    @property
    def budget_usd(self) -> float:
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

    def most_usd(self, item: Message, call: Call) -> float:
        """The most that a call can cost, whatever the arms answer."""
        config, server = self.config, self.servers[call.stage]
        texts = (item.text, *(text for _, text in item.history))
        inward = sum(map(most_text_tokens, texts))
        if call.order:
            inward += most_text_tokens(config.rubric) + most_text_tokens(str(config.verdict_schema))
            inward += sum(config.servers[arm].max_tokens for arm in ("cheap", "strong"))
        return server.cost_usd(inward, server.max_tokens)

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
    used: dict[str, Any] = {"tokens": list(tokens or ()), "cached": cached}
    used["seconds"] = reply.seconds
    if one.server.role in ledger.settings:
        used["settings"] = [one.server.role, ledger.settings[one.server.role]]
    try:
        content = one.read(reply.text)
    except MalformedError as error:
        reason = f"{error}{_ENDED.get(reply.ended, '')}"
        said = {"reason": reason, "text": reply.text[:2_000]}
        ledger.add("malformed", one.call, cost_usd=cost, **used, **said)
        return reason
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
