"""The verb init: from an eval set to a catalog that fits it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from shlex import quote as quote_word
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.cli.import_tables import pairs
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import say, show
from hydra_core.cli.score import open_predictor, scored
from hydra_core.cli.workspace import CATALOG, existing, open_evalset, require_new_catalog, shown

if TYPE_CHECKING:
    from hydra_core.catalog.prices.price_file import GivenPrice
    from hydra_core.choosing.initial_catalog import InitialCatalog
    from hydra_core.evalsets.evalset import EvalSet


_INIT = """make a catalog that fits an eval set
Makes a catalog that fits an eval set: profiles by Algorithm 1 and tau from half of its outcomes,
score bands from its requirements, cost order from the models' recorded costs. You give the prices;
they are never guessed: where recorded tokens and costs say that a price is three times off, it is
refused until --confirm-price names the model. What is not in the data, such as a context window, is
written down as assumed. Queries that are not scored yet are scored first.

examples:
  hydra-router init mine --prices prices.yaml --out mine
  hydra-router init mine --models gpt-4o,gpt-4o-mini \\
      --price gpt-4o=2.5,10 --price gpt-4o-mini=0.15,0.6 --out pool.yaml
  hydra-router init mine --prices model_prices_and_context_window.json --out mine

prices.yaml:
  models:
    gpt-4o: {input: 2.5, output: 10, cached: 1.25, date: 2024-08-06}
"""


def add_verbs(verbs: Verbs) -> None:
    """Add init."""
    parser = verb(verbs, "init", _init, _INIT, "MAKE_CATALOG")
    parser.shared("evalset")
    parser.option("--models", "A,B,C", "default: all of the set", default="")
    parser.option(
        "--prices", "FILE", "price file (YAML), table (CSV) or a public list (JSON)", type=Path
    )
    parser.each("--price", "ID=INPUT,OUTPUT", "USD per Mtok")
    said = "the entry of a public list that is a model's price; once per model"
    parser.each("--list-entry", "ID=ENTRY", said)
    said = "take a price although recorded costs say another one; once per model"
    parser.each("--confirm-price", "ID", said)
    parser.flag("--cut-to-hull", "without models below the hull")
    parser.add_argument("--name", default="", help="name of the catalog (default: the set's)")
    parser.add_argument("--seed", type=int, default=0, help="draws the training half")
    parser.shared("--bundle")
    said = "name in the workspace, or a new YAML file"
    parser.option("--out", "CATALOG", said, type=CATALOG.place, required=True)
    parser.flag("--force", "replace a file that is there")


def _init(options: argparse.Namespace) -> None:
    from datetime import date

    from hydra_core.choosing.initial_catalog import initial_catalog
    from hydra_core.export.release import write_release

    require_new_catalog(options.out, force=options.force)
    evalset = open_evalset(options.evalset)
    models = [name.strip() for name in options.models.split(",") if name.strip()]
    prices = _gathered_prices(options, models or evalset.models, evalset.prices)
    _require_agreement(evalset, models or evalset.models, prices, options.confirm_price)
    predictor = open_predictor(options.bundle)
    made = initial_catalog(
        evalset,
        scored(evalset, predictor),
        prices,
        name=options.name or evalset.name,
        predictor=predictor.bundle.name,
        fingerprint=predictor.bundle.fingerprint,
        dimensions=predictor.bundle.dimensions,
        models=models,
        cut_to_hull=options.cut_to_hull,
        today=date.today(),
        seed=options.seed,
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_release(options.out, made.text)
    show(options, _summary(made, options.out), _text(made, options.out))
    say(f"next: hydra-router evaluate {shown(options.evalset)} --catalog {shown(options.out)}")


def _gathered_prices(
    options: argparse.Namespace,
    models: Sequence[str],
    recorded: Any,  # noqa: ANN401
) -> dict[str, GivenPrice]:
    """Prices by model: --price goes before --prices, that before what the eval set recorded."""
    from hydra_core.catalog.prices.lists import LIST_ENDINGS
    from hydra_core.catalog.prices.price_file import GivenPrice, listed_prices, read_price_file
    from hydra_core.choosing.new_catalog import recorded_prices
    from hydra_core.evalsets.importers.price_card import parse_prices

    prices = recorded_prices(recorded)
    if options.prices is not None:
        path = existing(options.prices)
        if path.suffix.lower() in LIST_ENDINGS:
            entries = pairs(options.list_entry, "ID=ENTRY", place="--list-entry")
            prices |= listed_prices(path, models, entries)
        else:
            prices |= read_price_file(path)
    card = parse_prices(options.price)
    for model, price in card.prices.items():
        listed = prices[model].listed if model in prices else None
        prices[model] = GivenPrice(price.price, None, "given by the operator", listed)
    if options.prices is not None:
        _propose_entries(options.prices, [model for model in models if model not in prices])
    return prices


def _propose_entries(path: Path, missing: Sequence[str]) -> None:
    """Refuse models without a price where the list has an entry that may be theirs, naming it."""
    from datetime import date

    from hydra_core.catalog.identifiers import plain_name
    from hydra_core.catalog.prices.lists import LIST_ENDINGS, read_prices
    from hydra_core.catalog.prices.price_file import near_entries
    from hydra_core.catalog.schema import read_catalog_text

    if not missing or path.suffix.lower() not in LIST_ENDINGS:
        return
    listed = read_prices(read_catalog_text(path), path.name, as_of=date.today())
    unread = {
        plain_name(name.rsplit("/", 1)[-1]): f"its entry was left out: {reason}"
        for reason, names in listed.dropped.items()
        for name in names
    }
    near = near_entries(missing, listed.quotes)
    problems = []
    for model in missing:
        plain, remedy = plain_name(model), f"give --price {model}=INPUT,OUTPUT"
        like = [one.entry for one in listed.quotes if plain in plain_name(one.id)][:3]
        if quote := near.get(model):
            option = f"--list-entry {quote_word(f'{model}={quote.entry}')}"
            remedy = f"it has {quote.entry!r} ({quote.in_words}); if that is the same, add {option}"
        elif like:
            remedy += f", or --list-entry {model}=ENTRY; it has {', '.join(like)}"
        lacking = unread.get(plain, "the list has no entry of that name")
        problems.append(Problem(model, lacking, remedy))
    raise CatalogError(path.name, problems)


def _require_agreement(
    evalset: EvalSet,
    models: Sequence[str],
    prices: dict[str, GivenPrice],
    confirmed: Sequence[str],
) -> None:
    """Refuse prices that recorded tokens and costs speak against, unless they are confirmed."""
    from hydra_core.catalog.prices.recorded import cost_gaps

    if not set(models) <= set(prices):
        return  # refused for the lack of them
    known = {model: prices[model].price for model in models}
    problems = [
        Problem("", str(gap), f"correct the price, or add --confirm-price {gap.model}")
        for gap in cost_gaps(evalset, known)
        if gap.must_be_confirmed and gap.model not in confirmed
    ]
    if problems:
        raise CatalogError(f"prices for {evalset.name}", problems)


def _summary(made: InitialCatalog, out: Path) -> dict[str, Any]:
    policy = made.catalog.policy
    return {
        "out": str(out),
        "models": [model.id for model in made.catalog.models],
        "tau": policy.tau,
        "cost_basis": policy.cost_basis.value,
        "trained_on": made.trained_on,
        "assumptions": list(made.assumptions),
        "warnings": list(made.warnings),
        "under_hull": [
            {"model": one.model, "gap": one.gap, "mix": str(one.mix), "p_value": one.p_value}
            for one in made.under_hull
        ],
        "left_out": list(made.left_out),
    }


def _text(made: InitialCatalog, out: Path) -> str:
    policy = made.catalog.policy
    lines = [
        f"{out}: {len(made.catalog.models)} models, tau {policy.tau:g}, cost order "
        f"{policy.cost_basis.value}; profiles from {made.trained_on:,} queries",
        *(f"note: {text}" for text in made.assumptions),
        *(f"warning: {text}" for text in made.warnings),
    ]
    for one in made.under_hull:
        done = "left out" if one.model in made.left_out else "consider --cut-to-hull"
        lines.append(f"below the best fixed mix: {one}; {done}")
    return "\n".join(lines)
