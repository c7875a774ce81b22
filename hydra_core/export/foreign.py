"""What exports to other routers share: which models go, and saying what does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hydra_core.base.types import Catalog, ModelSpec, Rule, SuccessSource
from hydra_core.catalog import capabilities
from hydra_core.catalog.editing.document import Value, block
from hydra_core.catalog.prices.suggestions import exact


@dataclass(frozen=True, slots=True)
class Export:
    """A file for another router, and what of the catalog that router cannot be told, in words."""

    text: str
    not_expressed: tuple[str, ...]


def exported_models(catalog: Catalog) -> tuple[ModelSpec, ...]:
    """The models that may get traffic, catalog order; retiring ones included.

    Effort levels are left out: what sets them stands in the upstreams file, not in the catalog.
    """
    return tuple(m for m in catalog.models if m.status.in_pool and not m.variant_of)


def decision_rules(catalog: Catalog, instead: str) -> list[str]:
    """The rules that the other router cannot follow, the one in force first.

    `instead` says what that router does.
    """
    policy, source = catalog.policy, catalog.success_source
    rules = [f"the shortfall rule: tau {policy.tau:g}, weights, bands and the predictor"]
    if source is not None:
        worth = "" if policy.value_usd is None else f"V {policy.value_usd:g} USD, "
        rules.append(f"the value rule: {worth}{_predicts_with(catalog)}")
    if policy.rule is Rule.VALUE:
        rules.reverse()
    return [f"{rules[0]}; {instead}", *rules[1:]]


def _predicts_with(catalog: Catalog) -> str:
    model, block = catalog.outcome_model, catalog.success_profiles
    if catalog.success_source is SuccessSource.OUTCOME_MODEL and model is not None:
        return f"outcome model {model.path} ({model.sha256[:12]})"
    assert block is not None
    return f"success profiles fitted to {block.evalset}"


def left_out(catalog: Catalog) -> list[str]:
    """Which models and dates do not go along, in words."""
    gone = [model.id for model in catalog.models if not model.status.in_pool]
    notes = [f"disabled and retired models are left out: {', '.join(gone)}"] if gone else []
    levels = [model.id for model in catalog.models if model.status.in_pool and model.variant_of]
    if levels:
        notes.append(
            f"effort levels are left out, since upstreams.yaml sets the effort: {', '.join(levels)}"
        )
    leaving = [
        f"{model.id} on {model.retire_on}"
        for model in exported_models(catalog)
        if model.retire_on is not None
    ]
    if leaving:
        notes.append(f"retirement dates, remove these by hand: {', '.join(leaving)}")
    return notes


def teams(catalog: Catalog) -> list[str]:
    """That the limits of teams do not go along, in words."""
    named = ", ".join(catalog.policy.teams)
    return [f"models, knobs and budgets of teams: {named}"] if named else []


def per_token(price_usd_per_mtok: float) -> Decimal:
    """USD per token, exact: 0.31 per million is 0.00000031."""
    return exact(price_usd_per_mtok).normalize().scaleb(-6)


def profiles(catalog: Catalog) -> dict[str, dict[str, Decimal]]:
    """Model id -> dimension -> capability in [0, 1], six decimals, routable models."""
    rows = zip(catalog.models, capabilities(catalog), strict=True)
    return {
        model.id: {
            name: Decimal(f"{value:.6f}").normalize()
            for name, value in zip(catalog.dimensions, row, strict=True)
        }
        for model, row in rows
        if model.status.in_pool
    }


def written(
    target: str, catalog: Catalog, data: Mapping[str, Value], not_expressed: Sequence[str]
) -> Export:
    """The YAML file with what could not be expressed in its head."""
    head = [
        f"{target}, exported by HyDRA from the catalog {catalog.name!r}",
        f"catalog sha256: {catalog.digest}",
        f"predictor: {catalog.predictor}, fingerprint {catalog.predictor_fingerprint}",
        "Not expressed in this file:",
        *(f"  - {note}" for note in not_expressed),
    ]
    body = block(data, -2, "\n").removeprefix("\n")
    return Export("\n".join([*comments(head), body, ""]), tuple(not_expressed))


def comments(lines: Sequence[str]) -> list[str]:
    """Lines of a comment; YAML takes no control characters, not even there."""
    return ["# " + "".join(c if c.isprintable() else "?" for c in line) for line in lines]
