"""The verb route: one message or a stream of them, by the router's own rule."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from hydra_core.cli.evaluate import checked_tau
from hydra_core.cli.output import existing, open_predictor, print_json, say, table, utf8_stdin
from hydra_core.cli.route_stream import route_stream

if TYPE_CHECKING:
    from hydra_core.base.types import Catalog
    from hydra_core.routing.decision import Decision
    from hydra_core.routing.query import Query


def route(options: argparse.Namespace) -> int:
    """Route the message on standard input, or with --stream every line of it."""
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.routing.router import Router
    from hydra_core.routing.sessions import MemorySessions

    catalog = load_catalog(existing(options.catalog))
    tau = checked_tau(options.tau, catalog)
    predictor = open_predictor(options.bundle)
    require_bundle(catalog, predictor.bundle.fingerprint)
    catalog = replace(catalog, policy=replace(catalog.policy, tau=tau))
    if options.stream:
        router = Router(catalog, predictor, sessions=MemorySessions())
        return route_stream(router, receipts=options.receipt)
    text = utf8_stdin().removesuffix("\n")  # the one that echo and editors add
    decision = Router(catalog, predictor).route(_query(text, messages=options.messages))
    reading = decision.reading
    if reading and reading.truncated:
        say("note: the message is longer than the predictor reads; its middle was not seen")
    if reading and reading.ignored_chars:
        only = f"the last {reading.ignored_chars} characters only claim difficulty"
        say(f"note: {only} and were not scored")
    if reading and reading.unusual:
        far = f"{reading.distance:.2f} times the distance that nearly all of them keep"
        say(f"note: unlike the messages the predictor was trained on ({far}); scores say little")
    if options.json or options.receipt:
        print_json(decision.receipt())
    elif options.explain:
        print(_explanation(decision, catalog))
    else:
        print(decision.model)
    return 0


def _query(text: str, *, messages: bool) -> Query:
    """The message, or the last user turn of a conversation.

    Raises:
        ProblemsError: It is no conversation; lists every problem found.
    """
    from hydra_core.routing.query import Query

    if not messages:
        return Query(text)
    from hydra_core.routing.conversations.messages import parse_messages
    from hydra_core.server.chat import query_of

    return query_of(parse_messages(text, "standard input"), {})


def _explanation(decision: Decision, catalog: Catalog) -> str:
    """Requirements, every model cheapest first, which model for every tau, the nearest flips."""
    if decision.valuation is not None:
        return _valued(decision, catalog)
    needs = ", ".join(
        f"{name} {value:.3f}"
        for name, value in zip(decision.dimensions, decision.requirements, strict=True)
    )
    header = [
        "model",
        decision.cost_basis.unit.replace(" ", ""),
        *(f"-{name}" for name in decision.dimensions),
        "shortfall",
        "fate",
    ]
    candidates = decision.candidates()
    rows = [
        [
            one.model,
            f"{one.cost:.3f}",
            *(f"{deficit:.3f}" for deficit in one.deficits),
            f"{one.shortfall:.3f}",
            one.fate.value,
        ]
        for one in candidates
    ]
    reasons = [f"  {one.model}: {one.reason}" for one in candidates]
    return "\n".join(
        [
            f"{decision.model} ({decision.cause.value.replace('_', ' ')}, tau {decision.tau:g})",
            "",
            f"needs: {needs}",
            _read(decision),
            "below: price, what a model lacks per dimension, the weighted sum, the outcome",
            "",
            table(header, rows),
            "",
            *reasons,
            "",
            *_what_if(decision, catalog),
        ]
    )


def _valued(decision: Decision, catalog: Catalog) -> str:
    """The same under the value rule: predicted success and cost of every model, and neighbours."""
    from hydra_core.routing.explain import flips, strip

    valued = decision.valuation
    assert valued is not None
    rows, reasons = [], []
    for one in decision.candidates():
        i = decision.pool.ids.index(one.model)
        ends = valued.range_of(i)
        between = "by profile" if ends is None else f"{100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"
        success, cost = f"{100 * valued.success[i]:.1f} %", f"{valued.cost_usd[i]:.5f}"
        rows.append([one.model, success, between, cost, one.fate.value])
        reasons.append(f"  {one.model}: {one.reason}")
    near = [
        f"  {found.query_id} ({found.likeness:.2f}): "
        + ", ".join(f"{name} {quality:g}" for name, quality in found.outcomes.items())
        for found in valued.neighbours()
    ]
    return "\n".join(
        [
            f"{decision.model} ({decision.cause.value.replace('_', ' ')}, one more resolved query "
            f"worth ${valued.value_usd:g})",
            "",
            _read(decision),
            "",
            table(["model", "success", "95 %", "USD", "fate"], rows),
            "",
            *reasons,
            "",
            "which model for every worth in USD:",
            *(f"  above {part.start:.5g}  {part.model}" for part in strip(decision)),
            "",
            "smallest changes of one number that choose another model:",
            *(f"  {flip}" for flip in flips(decision, catalog)),
            "",
            "nearest queries learned on, and what the models achieved there:",
            *near,
        ]
    )


def _read(decision: Decision) -> str:
    """Signal flags found and tokens read."""
    from hydra_core.predictor.signals import signal_prefix

    query = decision.query
    flags = signal_prefix(query.text, query.turn).strip() if query else ""
    reading = decision.reading
    cut = ", the middle was left out" if reading and reading.truncated else ""
    return f"read: {reading.tokens if reading else 0:,} tokens{cut}; signals {flags}"


def _what_if(decision: Decision, catalog: Catalog) -> list[str]:
    """The tau strip and the nearest changes that choose another model."""
    from hydra_core.routing.explain import flips, strip

    parts = [f"  from {part.start:.4f}  {part.model}" for part in strip(decision)]
    changes = [f"  {flip}".replace("τ", "tau") for flip in flips(decision, catalog)]
    return [
        "which model for every tau:",
        *parts,
        "",
        "smallest changes of one number that choose another model:",
        *(changes or ["  none: only one model can serve this message"]),
    ]
