"""The record of which queries a policy was chosen on: written when a choice goes into a catalog.

A point that was chosen on a set cannot be judged there as if it had been fixed beforehand, also
after it was published. So the catalog itself carries where its policy was chosen.
"""

from __future__ import annotations

from dataclasses import replace

from hydra_core.base.types import Catalog, Chosen, Selection
from hydra_core.catalog.editing.document import CatalogDocument
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
