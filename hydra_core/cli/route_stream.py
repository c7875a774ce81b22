"""Routing a stream: one JSON object a line in, one decision a line out, in order, as they come."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.errors import Problem, ProblemsError, RoutingError
from hydra_core.cli.output import stdin
from hydra_core.routing.query import FIELDS, BadFieldError, Fields, check_fields, limits_of

if TYPE_CHECKING:
    from hydra_core.routing.query import Query
    from hydra_core.routing.router import Router


_LINE_BYTES: Final = 16 << 20
_CONVERSATIONS: Final = 100_000


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


#: Field -> what it must be, in words and as a check.
_FIELDS: Final[Fields] = {
    "id": ("a text or a whole number", _is_id),
    "text": ("a text", lambda value: isinstance(value, str)),
    "messages": ("a list of messages", lambda value: isinstance(value, list)),
    "tools": ("a list of tools", lambda value: isinstance(value, list)),
    **FIELDS,
}


class _BadLineError(Exception):
    """A line that is no request; its text says why."""


class _Turns:
    """Counts the turns of conversations whose lines do not number them; forgets the oldest."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()

    def next(self, conversation: str) -> int:
        number = self._last.pop(conversation, 0) + 1
        self._last[conversation] = number
        if len(self._last) > _CONVERSATIONS:
            self._last.popitem(last=False)
        return number


def route_stream(router: Router, *, receipts: bool) -> int:
    """Answer every line of standard input; the exit code is 2 when a line was not valid.

    A line that cannot be read or routed is answered with "error", and the stream goes on.

    Args:
        receipts: Put the whole receipt into every answer.
    """
    bad = 0
    turns = _Turns()
    for number, raw in _lines():
        found: dict[str, Any] = {}
        try:
            found = _decoded(raw, first=number == 1)
            _check_fields(found)
            answer = _answer(router, found, turns, receipts=receipts)
        except _BadLineError as error:
            bad += 1
            answer = {"error": str(Problem(f"line {number}", str(error)))}
        except RoutingError as error:
            answer = {"error": str(error), "http_status": error.http_status}
        named = {"id": found["id"]} if _is_id(found.get("id")) else {}
        sys.stdout.write(json.dumps({**named, **answer}, allow_nan=False) + "\n")
        sys.stdout.flush()
    return 2 if bad else 0


def _lines() -> Iterator[tuple[int, bytes]]:
    """Number and bytes of every line that is not blank; of an endless one only the beginning."""
    number = 0
    stream = stdin()
    while raw := stream.readline(_LINE_BYTES + 1):
        number += 1
        rest = raw
        while len(rest) > _LINE_BYTES and not rest.endswith(b"\n"):
            rest = stream.readline(_LINE_BYTES + 1)
        if raw.strip():
            yield number, raw


def _decoded(raw: bytes, *, first: bool) -> dict[str, Any]:
    if len(raw) > _LINE_BYTES:
        raise _BadLineError("is longer than 16 MiB")
    try:
        found = json.loads(raw.decode("utf-8-sig" if first else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"is not JSON: {str(error)[:120]}") from error
    if not isinstance(found, dict):
        raise _BadLineError('must be an object with "text", such as {"text": "Hello"}')
    return found


def _check_fields(found: Mapping[str, Any]) -> None:
    if ("text" in found) == ("messages" in found):
        both = "has both" if "text" in found else "has neither of"
        raise _BadLineError(f'{both} "text" and "messages"; give one, such as {{"text": "Hello"}}')
    try:
        check_fields(found, _FIELDS)
    except BadFieldError as error:
        raise _BadLineError(str(error)) from error


def _answer(
    router: Router, found: Mapping[str, Any], turns: _Turns, *, receipts: bool
) -> dict[str, Any]:
    decision = router.route(_query(found, turns), health=found.get("health"))
    answer: dict[str, Any] = {"model": decision.model, "cause": decision.cause.value}
    if decision.scored:
        needs = zip(decision.dimensions, decision.requirements.tolist(), strict=True)
        answer |= {
            "requirements": dict(needs),
            "shortfall": float(decision.shortfalls[decision.index]),
        }
    if decision.reading is not None:
        answer |= {
            "tokens": decision.reading.tokens,
            "truncated": decision.reading.truncated,
        }
    return {**answer, "receipt": decision.receipt()} if receipts else answer


def _query(found: Mapping[str, Any], turns: _Turns) -> Query:
    from hydra_core.routing.query import Query

    if "messages" in found:
        return _of_messages(found)
    conversation = found.get("conversation_id")
    turn = found.get("turn") or (turns.next(conversation) if conversation is not None else 1)
    return Query(
        text=found["text"],
        turn=turn,
        conversation_id=conversation,
        prefix=tuple(found.get("prefix", ())),
        has_image=found.get("has_image", False),
        needs_tools=found.get("needs_tools", False),
        context_tokens=found.get("context_tokens", 0),
        **limits_of(found),
    )


def _of_messages(found: Mapping[str, Any]) -> Query:
    """As `serve` reads the same messages; the conversation itself numbers its turns."""
    from hydra_core.routing.conversations.messages import read_messages
    from hydra_core.server.chat import query_of

    try:
        conversation = read_messages(found, "messages")
    except ProblemsError as error:
        raise _BadLineError("; ".join(map(str, error.problems))) from error
    return query_of(conversation, found, found.get("conversation_id"))
