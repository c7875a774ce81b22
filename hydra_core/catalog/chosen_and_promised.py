"""What a catalog records of its policy: the queries it was chosen on, and what was promised of it.

A point that was chosen on a set cannot be judged there as if it had been fixed beforehand, also
after it was published. So the catalog itself carries where its policy was chosen. A promise about
quality holds for one policy, pool and prices: `routes_by` tells whether they are still the same.
"""

import json
from dataclasses import replace

import numpy as np

from hydra_core.base.digests import text_sha256
from hydra_core.base.fitted_blocks import Promised
from hydra_core.base.types import Catalog, Chosen, Selection
from hydra_core.catalog.editing.document import CatalogDocument
from hydra_core.catalog.profiles import capabilities
from hydra_core.catalog.schema import parse_catalog


def record_choice(text: str, chosen: Chosen) -> str:
    """The catalog text with one more set that its policy was chosen on; none is ever taken away.

    What was chosen on the same queries before counts as well: looked beats cross-fitted, and more
    than the knob beats the knob alone.

    Raises:
        CatalogError: The text is not a valid catalog, or cannot be edited.
    """
    before = {one.queries: one for one in parse_catalog(text).policy.chosen_on}
    known = before.get(chosen.queries)
    if known is not None:
        looked = Selection.LOOKED in (known.how, chosen.how)
        how = Selection.LOOKED if looked else chosen.how
        alone = known.knob_alone and chosen.knob_alone
        chosen = replace(chosen, how=how, knob_alone=alone, sample=chosen.sample or known.sample)
    if known == chosen:
        return text
    document = CatalogDocument.parse(text)
    entry = {
        "evalset": chosen.evalset,
        "how": chosen.how.value,
        "knob_alone": chosen.knob_alone,
        **({"sample": " ".join(chosen.sample)} if chosen.sample else {}),
    }
    if before:
        document.set("policy", "chosen_on", chosen.queries, entry)
    else:
        document.set("policy", "chosen_on", {chosen.queries: entry})
    return document.text()


def chosen_between(before: Catalog, after: Catalog) -> bool | None:
    """What an edit chose: True the knob alone, False more than that, None nothing that is chosen.

    Prices, dates and notes are facts, not choices.
    """
    if _beyond_knob(before) != _beyond_knob(after):
        return False
    return True if _knob(before) != _knob(after) else None


def _knob(catalog: Catalog) -> tuple[object, ...]:
    return catalog.policy.tau, catalog.policy.value_usd, catalog.policy.rule


def _beyond_knob(catalog: Catalog) -> tuple[object, ...]:
    policy = catalog.policy
    models = [(m.id, m.status, dict(m.scores), dict(m.overrides)) for m in catalog.models]
    chosen = policy.weights, policy.cost_basis, policy.price_ratio, catalog.benchmarks
    fitted = None if catalog.success_profiles is None else catalog.success_profiles.sha256
    return *chosen, catalog.bands, catalog.outcome_model, fitted, policy.success_from, models


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
