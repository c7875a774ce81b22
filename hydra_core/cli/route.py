"""The verb route: one message from standard input, by the router's own rule."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from hydra_core.cli.evaluate import checked_tau
from hydra_core.cli.output import existing, open_predictor, print_json, say, table, utf8_stdin

if TYPE_CHECKING:
    from hydra_core.routing.decision import Decision

__all__ = ["route"]


def route(options: argparse.Namespace) -> int:
    """Route the message on standard input."""
    from hydra_core.catalog.binding import require_bundle
    from hydra_core.catalog.schema import load_catalog
    from hydra_core.routing.decision import Query
    from hydra_core.routing.router import Router

    catalog = load_catalog(existing(options.catalog))
    tau = checked_tau(options.tau, catalog)
    predictor = open_predictor(options.bundle)
    require_bundle(catalog, predictor.bundle.fingerprint)
    catalog = replace(catalog, policy=replace(catalog.policy, tau=tau))
    text = utf8_stdin().removesuffix("\n")  # the one that echo and editors add
    decision = Router(catalog, predictor).route(Query(text))
    if decision.facts.get("truncated"):
        say("note: the message is longer than the predictor reads; its end was not seen")
    if options.json:
        print_json(decision.receipt())
    elif options.explain:
        print(_explanation(decision))
    else:
        print(decision.model)
    return 0


def _explanation(decision: Decision) -> str:
    """Requirements, then every model cheapest first: price, deficits, shortfall, fate."""
    needs = ", ".join(
        f"{name} {value:.3f}"
        for name, value in zip(decision.dimensions, decision.requirements, strict=True)
    )
    header = [
        "model",
        "USD/Mtok",
        *(f"-{name}" for name in decision.dimensions),
        "shortfall",
        "fate",
    ]
    candidates = decision.candidates()
    rows = [
        [
            one.model,
            f"{one.list_price:.3f}",
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
            "below: price, what a model lacks per dimension, the weighted sum, the outcome",
            "",
            table(header, rows),
            "",
            *reasons,
        ]
    )
