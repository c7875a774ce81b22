"""The verb init: from an eval set to a catalog that fits it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra_core.base.errors import CatalogError, Problem
from hydra_core.cli.account import require_account
from hydra_core.cli.options import Verbs, bundle_option, evalset_argument, verb
from hydra_core.cli.output import print_json, say
from hydra_core.cli.score import open_predictor, scored
from hydra_core.cli.workspace import CATALOG, existing, shown

if TYPE_CHECKING:
    from hydra_core.catalog.prices.price_file import GivenPrice
    from hydra_core.choosing.initial_catalog import InitialCatalog


_INIT = """\
Makes a catalog that fits an eval set: profiles by Algorithm 1 and tau from half of its outcomes,
score bands from its requirements, cost order from the models' recorded costs. You give the prices;
they are never guessed. What is not in the data, such as a context window, is written down as
assumed. Queries that are not scored yet are scored first.

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
    short = "make a catalog that fits an eval set"
    parser = verb(verbs, "init", _init, short, _INIT, "MAKE_CATALOG")
    evalset_argument(parser)
    parser.add_argument("--models", default="", metavar="A,B,C", help="default: all of the set")
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="price file (YAML) or a public list (JSON)"
    )
    parser.add_argument(
        "--price", action="append", default=[], metavar="ID=INPUT,OUTPUT", help="USD per Mtok"
    )
    parser.add_argument("--cut-to-hull", action="store_true", help="without models below the hull")
    parser.add_argument("--name", default="", help="name of the catalog (default: the set's)")
    parser.add_argument("--seed", type=int, default=0, help="draws the training half")
    bundle_option(parser)
    help_text = "name in the workspace, or a new YAML file"
    parser.add_argument(
        "--out", type=CATALOG.place, required=True, metavar="CATALOG", help=help_text
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _init(options: argparse.Namespace) -> int:
    from datetime import date

    from hydra_core.choosing.initial_catalog import initial_catalog
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.export.release import write_release

    if options.out.exists():
        if not options.force:
            message = "exists already; nothing was written"
            raise CatalogError(str(options.out), [Problem("--out", message, "add --force")])
        require_account("REPLACE_CATALOG")
    evalset = load_evalset(existing(options.evalset))
    models = [name.strip() for name in options.models.split(",") if name.strip()]
    prices = _gathered_prices(options, models or evalset.models, evalset.prices)
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
    if options.json:
        print_json(_summary(made, options.out))
    else:
        print(_text(made, options.out))
    say(f"next: hydra-router evaluate {shown(options.evalset)} --catalog {shown(options.out)}")
    return 0


def _gathered_prices(
    options: argparse.Namespace,
    models: Sequence[str],
    recorded: Any,  # noqa: ANN401
) -> dict[str, GivenPrice]:
    """Prices by model: --price goes before --prices, that before what the eval set recorded."""
    from hydra_core.catalog.prices.price_file import GivenPrice, listed_prices, read_price_file
    from hydra_core.choosing.new_catalog import recorded_prices
    from hydra_core.evalsets.importers.price_card import parse_prices

    prices = recorded_prices(recorded)
    if options.prices is not None:
        path = existing(options.prices)
        is_list = path.suffix in (".json", ".toml")
        prices |= listed_prices(path, models) if is_list else read_price_file(path)
    card = parse_prices(options.price)
    prices |= {
        m: GivenPrice(p.price, None, "given by the operator") for m, p in card.prices.items()
    }
    return prices


def _summary(made: InitialCatalog, out: Path) -> dict[str, Any]:
    return {
        "out": str(out),
        "models": [model.id for model in made.catalog.models],
        "tau": made.catalog.policy.tau,
        "cost_basis": made.catalog.policy.cost_basis.value,
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
        *(f"assumed: {text}" for text in made.assumptions),
        *(f"warning: {text}" for text in made.warnings),
    ]
    for one in made.under_hull:
        done = "left out" if one.model in made.left_out else "consider --cut-to-hull"
        lines.append(f"below the best fixed mix: {one}; {done}")
    return "\n".join(lines)
