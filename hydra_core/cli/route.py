"""The verbs route (a message, or a stream of them) and harness (what of one is not scored)."""

from __future__ import annotations

import argparse
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hydra_core.base.errors import CatalogError, Problem, ProblemsError, RoutingError
from hydra_core.base.spelling import set_usd, short_number, usd
from hydra_core.cli.evaluate import checked_tau
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import LINE_BYTES, print_json, say, stdin_lines, table, utf8_stdin
from hydra_core.cli.score import open_predictor
from hydra_core.cli.workspace import open_catalog

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.routing.decision import Decision
    from hydra_core.routing.query import Fields, Query
    from hydra_core.routing.router import Router
    from hydra_core.routing.valuation import Valuation

_ROUTE = """route one message, or a stream of them
Routes a message, given here or on standard input, and prints the model's id.

With --stream every line of standard input is a request and every line of standard output its
decision, in order, written at once. Keys: text or messages (the OpenAI form, with tools), and
optionally id turn conversation_id prefix has_image needs_tools context_tokens allow deny needs
require max_s max_ttft_s compacted current spent_usd health. Conversations keep their model as the
catalog's sticky policy says. A line that cannot be routed is answered with "error".

What an agent's harness adds to a message is not scored (docs/guide/agents.md).

With messages the last user turn is routed; --messages also reads what a whole request asks of the
answer, such as max_tokens. A bundle that was trained on what came before reads that, too; the two
that come with HyDRA score the message alone.

examples:
  hydra-router route "Fix the failing test" --catalog paper_five
  hydra-router route --catalog mine --tau 0.1 --explain < message.txt
  hydra-router route --catalog mine --json < message.txt | jq .model
  hydra-router route --catalog mine --messages < conversation.json
  hydra-router route --catalog mine --stream --receipt < requests.jsonl > routed.jsonl
"""
_HARNESS = """print the rules by which agents' harness text is known
Checks and prints the rules by which harness text is known: those of the file in HYDRA_HARNESS, else
those that come with HyDRA. Harness text is not scored (docs/guide/agents.md).

examples:
  hydra-router harness > harness.yaml
  HYDRA_HARNESS=harness.yaml hydra-router harness
"""
_CONVERSATIONS: Final = 100_000


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "route", _route, _ROUTE)
    parser.option("text", "TEXT", "the message (default: stdin)", nargs="?")
    parser.shared("--catalog", "--tau")
    parser.flag("--explain", "why, model by model")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--stream", action="store_true", help="JSONL in, JSONL out")
    said = "a conversation in: OpenAI messages, or lines User: ... and Assistant: ..."
    form.add_argument("--messages", action="store_true", help=said)
    parser.flag("--receipt", "the whole receipt as JSON")
    parser.shared("--bundle")
    verb(verbs, "harness", _print_harness, _HARNESS)


def _route(options: argparse.Namespace) -> int:
    from hydra_core.base.types import Rule
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.routing.router import Router
    from hydra_core.routing.sessions import MemorySessions

    if options.text is not None and (options.stream or options.messages):
        only = "--stream" if options.stream else "--messages"
        stray = f"is given beside {only}, which reads standard input"
        raise ProblemsError.of("route", stray, f"leave out TEXT or {only}", place="TEXT")
    catalog = open_catalog(options.catalog)
    tau = checked_tau(options.tau, catalog)
    if options.tau is not None and catalog.policy.rule is Rule.VALUE:
        unused = "has no effect under the value rule"
        raise CatalogError.of("--tau", unused, "leave it out, or change policy.value_usd")
    predictor = open_predictor(options.bundle)
    require_bundle(catalog, predictor.bundle.fingerprint)
    catalog = replace(catalog, policy=replace(catalog.policy, tau=tau))
    if options.stream:
        router = Router(catalog, predictor, sessions=MemorySessions())
        return route_stream(router, receipts=options.receipt)
    text = options.text
    if text is None:
        text = utf8_stdin().removesuffix("\n")  # the one that echo and editors add
    decision = Router(catalog, predictor).route(_message_query(text, messages=options.messages))
    _say_notes(decision)
    if options.json or options.receipt:
        print_json(decision.receipt())
    elif options.explain:
        print(_explanation(decision, catalog))
    else:
        print(decision.model)
    return 0


def _say_notes(decision: Decision) -> None:
    """What of the message was not read or not scored."""
    reading = decision.reading
    if decision.query and decision.query.harness_tokens:
        from hydra_core.routing.decision import harness_text

        say(f"note: {harness_text(decision.query.harness_tokens)}")
    if reading and reading.truncated:
        say("note: the message is longer than the predictor reads; its middle was not read")
    if reading and reading.ignored_chars:
        only = f"the last {reading.ignored_chars} characters only claim difficulty"
        say(f"note: {only} and were not scored")
    if reading and reading.unusual:
        far = f"{reading.distance:.2f} times the distance within which nearly all of them lie"
        say(f"note: unlike what the predictor was trained on ({far}); do not trust the scores")


def _print_harness(options: argparse.Namespace) -> None:
    """Print the file of rules in force; refuse one that is not valid."""
    from hydra_core.base.reading.yaml_reader import plain, read_yaml
    from hydra_core.routing.conversations.harness import rules, source

    rules()
    text = source().read_text(encoding="utf-8-sig")
    root = read_yaml(text)[0] if options.json else None
    if root is None:
        print(text, end="")
    else:
        print_json(plain(root))


def _message_query(text: str, *, messages: bool) -> Query:
    """The message, or the last user turn of a conversation; a request's as `serve` reads it."""
    from hydra_core.routing.query import Query

    if not messages:
        from hydra_core.routing.conversations.harness import said

        message, harness_tokens = said(text)
        return Query(message, harness_tokens=harness_tokens)
    from hydra_core.routing.conversations.messages import parse_messages
    from hydra_core.server.chat import query_of

    conversation = parse_messages(text, "standard input")
    request = text.lstrip("\ufeff \t\r\n")
    found = json.loads(request) if request.startswith("{") else {}
    return query_of(conversation, {}, None, found)


def _explanation(decision: Decision, catalog: Catalog) -> str:
    """What was read, every model, the model for every setting of the knob, the nearest changes."""
    from hydra_core.routing.flips import flips, strip

    valued, change = decision.valuation, [f"  {flip}" for flip in flips(decision, catalog)]
    if valued is None:
        knob, every, models = f"tau {short_number(decision.tau, 6)}", "tau", _by_shortfall(decision)
        parts = [f"  from {part.start:.4f}  {part.model}" for part in strip(decision)]
        change = [one.replace("τ", "tau") for one in change]
        change = change or ["  none: only one model can serve this message"]
    else:
        knob = f"value of one more resolved query {set_usd(valued.value_usd)}"
        every, models = "value (V) in USD", _by_value(decision, valued)
        parts = [f"  above {short_number(part.start, 5)}  {part.model}" for part in strip(decision)]
        near = [
            f"  {one.query_id} ({one.likeness:.2f}): "
            + ", ".join(f"{name} {quality:g}" for name, quality in one.outcomes.items())
            for one in valued.neighbours()
        ]
        title = "most similar queries learned on, and what the models achieved there:"
        change += ["", title, *near] if near else []
    return "\n".join(
        [
            f"{decision.model} ({decision.cause.value.replace('_', ' ')}, {knob})",
            "",
            *models,
            "",
            *(f"  {one.model}: {one.reason}" for one in decision.candidates()),
            "",
            f"which model for every {every}:",
            *parts,
            "",
            "smallest changes of one number that choose another model:",
            *change,
        ]
    )


def _by_shortfall(decision: Decision) -> list[str]:
    """The requirements, and every model, cheapest first, with what it lacks."""
    needs = ", ".join(
        f"{name} {value:.3f}"
        for name, value in zip(decision.dimensions, decision.requirements, strict=True)
    )
    lacks = (f"-{name}" for name in decision.dimensions)
    header = ["model", decision.cost_basis.unit.replace(" ", ""), *lacks, "shortfall", "fate"]
    rows = [
        [
            one.model,
            usd(one.cost)[1:],
            *(f"{deficit:.3f}" for deficit in one.deficits),
            f"{one.shortfall:.3f}",
            one.fate.value,
        ]
        for one in decision.candidates()
    ]
    what = "for each model: price, what it lacks per dimension, the weighted sum, what happened"
    return [f"needs: {needs}", _read(decision), what, "", table(header, rows)]


def _by_value(decision: Decision, valued: Valuation) -> list[str]:
    """Every model with its predicted success and cost."""
    rows = []
    for one in decision.candidates():
        i = decision.pool.ids.index(one.model)
        ends = valued.range_of(i)
        between = "unknown" if ends is None else f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"
        success, cost = f"{100 * valued.success[i]:.1f} %", usd(float(valued.cost_usd[i]))[1:]
        rows.append([one.model, success, between, cost, one.fate.value])
    return [_read(decision), "", table(["model", "success", "95 %", "USD", "fate"], rows)]


def _read(decision: Decision) -> str:
    """Signal flags and the number of tokens read."""
    from hydra_core.predictor.signals import signal_prefix

    query, reading = decision.query, decision.reading
    flags = signal_prefix(query.text, query.turn).strip() if query else ""
    cut = ", the middle was left out" if reading and reading.truncated else ""
    return f"read: {reading.tokens if reading else 0:,} tokens{cut}; signals {flags}"


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


#: Field -> what it must be, in words and as a check; beside those of `routing.query`.
_OWN_FIELDS: Final[Fields] = {
    "id": ("a text or a whole number", _is_id),
    "text": ("a text", lambda value: isinstance(value, str)),
    "messages": ("a list of messages", lambda value: isinstance(value, list)),
    "tools": ("a list of tools", lambda value: isinstance(value, list)),
}


class _BadLineError(Exception):
    """A line that is no request; its text says why."""


class _Turns(OrderedDict[str, int]):
    """Counts the turns of conversations whose lines do not number them; evicts the oldest."""

    def next(self, conversation: str) -> int:
        number = self.pop(conversation, 0) + 1
        self[conversation] = number
        if len(self) > _CONVERSATIONS:
            self.popitem(last=False)
        return number


def route_stream(router: Router, *, receipts: bool) -> int:
    """Answer every line of standard input; the exit code is 2 when a line was not valid.

    A line that cannot be read or routed is answered with "error", and the stream goes on.

    Args:
        receipts: Put the whole receipt into every answer.
    """
    bad = 0
    turns = _Turns()
    for number, raw in stdin_lines():
        request: dict[str, Any] = {}
        try:
            request = _decoded(raw, first=number == 1)
            _check_fields(request)
            answer = _answer(router, request, turns, receipts=receipts)
        except _BadLineError as error:
            bad += 1
            answer = {"error": str(Problem(f"line {number}", str(error)))}
        except RoutingError as error:
            answer = {"error": str(error), "http_status": error.http_status}
        named = {"id": request["id"]} if _is_id(request.get("id")) else {}
        sys.stdout.write(json.dumps({**named, **answer}, allow_nan=False) + "\n")
        sys.stdout.flush()
    return 2 if bad else 0


def _decoded(raw: bytes, *, first: bool) -> dict[str, Any]:
    if len(raw) > LINE_BYTES:
        raise _BadLineError("is longer than 16 MiB")
    try:
        request = json.loads(raw.decode("utf-8-sig" if first else "utf-8"))
    except (ValueError, RecursionError) as error:
        raise _BadLineError(f"is not JSON: {str(error)[:120]}") from error
    if not isinstance(request, dict):
        raise _BadLineError('must be an object with "text", such as {"text": "Hello"}')
    return request


def _check_fields(request: Mapping[str, Any]) -> None:
    from hydra_core.routing.query import FIELDS, BadFieldError, check_fields

    if ("text" in request) == ("messages" in request):
        both = "has both" if "text" in request else "has neither of"
        remedy = 'give one, such as {"text": "Hello"}'
        raise _BadLineError(f'{both} "text" and "messages"; {remedy}')
    try:
        check_fields(request, {**_OWN_FIELDS, **FIELDS})
    except BadFieldError as error:
        raise _BadLineError(str(error)) from error


def _answer(
    router: Router, request: Mapping[str, Any], turns: _Turns, *, receipts: bool
) -> dict[str, Any]:
    decision = router.route(_query(request, turns), health=request.get("health"))
    answer: dict[str, Any] = {"model": decision.model, "cause": decision.cause.value}
    if decision.scored:
        needs = zip(decision.dimensions, decision.requirements.tolist(), strict=True)
        shortfall = float(decision.shortfalls[decision.index])
        answer |= {"requirements": dict(needs), "shortfall": shortfall}
    if reading := decision.reading:
        answer |= {"tokens": reading.tokens, "truncated": reading.truncated}
    return {**answer, "receipt": decision.receipt()} if receipts else answer


def _query(request: Mapping[str, Any], turns: _Turns) -> Query:
    from hydra_core.routing.conversations.harness import said
    from hydra_core.routing.query import Query, limits_of

    if "messages" in request:
        return _of_messages(request)
    conversation = request.get("conversation_id")
    turn = request.get("turn") or (turns.next(conversation) if conversation is not None else 1)
    text, harness_tokens = said(request["text"])
    return Query(
        text=text,
        harness_tokens=harness_tokens,
        turn=turn,
        conversation_id=conversation,
        prefix=tuple(request.get("prefix", ())),
        has_image=request.get("has_image", False),
        needs_tools=request.get("needs_tools", False),
        context_tokens=request.get("context_tokens", 0),
        needs=frozenset(request.get("needs", ())),
        **limits_of(request),
    )


def _of_messages(request: Mapping[str, Any]) -> Query:
    """As `serve` reads the same messages; the conversation itself numbers its turns."""
    from hydra_core.routing.conversations.messages import read_messages
    from hydra_core.server.chat import query_of

    try:
        conversation = read_messages(request, "messages")
    except ProblemsError as error:
        raise _BadLineError("; ".join(map(str, error.problems))) from error
    return query_of(conversation, request, request.get("conversation_id"), request)
