"""Whether a catalog's promise about quality still is about what its policy does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from hydra_core.base.digests import text_sha256
from hydra_core.base.fitted_blocks import Promised
from hydra_core.base.types import Catalog
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import capabilities
from hydra_core.catalog.schema import parse_catalog

_DIGITS = 9
PROMISE_AGAIN = "promise again, or remove policy.promise"


def routes_by(catalog: Catalog) -> str:
    """Return a digest (hex) of all that decides which model a query is routed to."""
    policy, costs = catalog.policy, catalog.realised_costs
    levels = np.round(capabilities(catalog), _DIGITS).tolist()
    fitted, learned = catalog.success_profiles, catalog.outcome_model
    made_of = {
        "predictor": catalog.predictor_fingerprint,
        "dimensions": list(catalog.dimensions),
        "bands": [[band.lo, band.hi] for band in catalog.bands],
        "rule": policy.rule.value,
        "knob": policy.knob,
        "weights": list(policy.weights),
        "cost": [policy.cost_basis.value, policy.price_ratio],
        "realised": None if costs is None else sorted(costs.usd_per_query.items()),
        "success_from": None if policy.success_from is None else policy.success_from.value,
        "success_profiles": None if fitted is None else fitted.sha256,
        "outcome_model": None if learned is None else learned.sha256,
        "require": sorted(policy.require),
        "models": [
            [m.id, m.status.value, sorted(m.tags), m.input_usd_per_mtok, m.output_usd_per_mtok, row]
            for m, row in zip(catalog.models, levels, strict=True)
        ],
    }
    return text_sha256(json.dumps(made_of))


def not_covered(catalog: Catalog) -> str:
    """Return why the catalog's promise does not cover its policy; '' where it does, or is none."""
    made = catalog.policy.promise
    if made is None or made.routes_by == routes_by(catalog):
        return ""
    return f"{made.claim} was promised for another setting, pool or prices; {PROMISE_AGAIN}"


def with_promise(text: str, source: str, promised: Promised, knob: tuple[str, float]) -> str:
    """Return the catalog's text with a promise, and the setting that it was made for.

    Args:
        promised: Its `routes_by` is filled in here.
        knob: Key in the policy and value: ("tau", 0.2) or ("value_usd", 0.01).

    Raises:
        CatalogError: The text is no valid catalog, or cannot be edited.
    """
    document = CatalogDocument.parse(text, source)
    document.set("policy", knob[0], knob[1])
    document.set("policy", "rule", "value" if knob[0] == "value_usd" else "shortfall")
    made = replace(promised, routes_by=routes_by(parse_catalog(document.text(), source)))
    document.set("policy", "promise", {key: getattr(made, key) for key in Promised.__slots__})
    return document.text()
