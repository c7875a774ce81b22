"""What the arms and the judge are asked, and how a verdict is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hydra_core.lab.labeling.config import JsonMode, LabelConfig, Server
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
    """An arm's answer as it came.

    Raises:
        MalformedError: It is empty.
    """
    if not text.strip():
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
