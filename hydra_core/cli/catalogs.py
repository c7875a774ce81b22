"""The verbs init, validate and rebind: make a catalog, check it, move it to another bundle."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from shlex import quote as quote_word
from typing import TYPE_CHECKING, Any

from hydra_core.base.digests import SHA256
from hydra_core.base.errors import CatalogError, HydraError, Problem, ProblemsError
from hydra_core.base.spelling import counted
from hydra_core.cli.import_tables import pairs
from hydra_core.cli.options import Verbs, verb, whole
from hydra_core.cli.output import print_json, say, show
from hydra_core.cli.score import open_predictor, scored
from hydra_core.cli.workspace import (
    CATALOG,
    EVALSET,
    existing,
    find_any,
    open_evalset,
    require_new_catalog,
    shown,
    write_catalog,
)

if TYPE_CHECKING:
    from hydra_core.base.types import Band
    from hydra_core.catalog.prices.price_file import GivenPrice
    from hydra_core.choosing.initial_catalog import InitialCatalog
    from hydra_core.evalsets.evalset import EvalSet
    from hydra_core.predictor.bundle import Bundle


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


def add_init(verbs: Verbs) -> None:
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
    parser.add_argument("--seed", type=whole, default=0, help="draws the training half")
    parser.shared("--bundle")
    said = "name in the workspace, or a new YAML file"
    parser.option("--out", "CATALOG", said, type=CATALOG.place, required=True)
    parser.flag("--force", "replace a file that is there")


def _init(options: argparse.Namespace) -> None:
    from hydra_core.choosing.initial_catalog import initial_catalog

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
    write_catalog(options.out, made.text)
    show(options, _summary(made, options.out), _init_text(made, options.out))
    say(f"next: hydra-router evaluate {shown(options.evalset)} --catalog {shown(options.out)}")


def _gathered_prices(
    options: argparse.Namespace,
    models: Sequence[str],
    recorded: Any,  # noqa: ANN401
) -> dict[str, GivenPrice]:
    """Prices by model: --price goes before --prices, that before what the eval set recorded."""
    from hydra_core.catalog.prices.lists import LIST_ENDINGS
    from hydra_core.catalog.prices.price_file import (
        GivenPrice,
        free_entries,
        listed_prices,
        read_price_file,
    )
    from hydra_core.catalog.schema import read_catalog_text
    from hydra_core.choosing.initial_catalog import recorded_prices
    from hydra_core.evalsets.importers.given import parse_prices

    prices, free = recorded_prices(recorded), {}
    if options.prices is not None:
        path = existing(options.prices)
        if path.suffix.lower() in LIST_ENDINGS:
            entries = pairs(options.list_entry, "ID=ENTRY", place="--list-entry")
            prices |= listed_prices(path, models, entries)
            text = read_catalog_text(path)
            free = free_entries(text, path.name, models, as_of=date.today(), entries=entries)
        else:
            prices |= read_price_file(path)
    card = parse_prices(options.price)
    for model, price in card.prices.items():
        listed = prices[model].listed if model in prices else None
        listed = listed or free.get(model)
        prices[model] = GivenPrice(price.price, None, "given by the operator", listed)
    if options.prices is not None:
        missing = [model for model in models if model not in prices]
        _propose_entries(options.prices, missing, free)
    return prices


def _propose_entries(path: Path, missing: Sequence[str], free: Collection[str]) -> None:
    """Refuse models without a price where the list has an entry that may be theirs, naming it."""
    from hydra_core.catalog.identifiers import plain_name
    from hydra_core.catalog.prices.lists import LIST_ENDINGS, read_prices
    from hydra_core.catalog.prices.price_file import near_entries
    from hydra_core.catalog.prices.quotes import FREE_WORD
    from hydra_core.catalog.schema import read_catalog_text

    if not missing or path.suffix.lower() not in LIST_ENDINGS:
        return
    listed = read_prices(read_catalog_text(path), path.name, as_of=date.today())
    out = [(name, why) for why, names in listed.dropped.items() for name in names]
    unread = {plain_name(name): f"{name!r} of the list was left out: {why}" for name, why in out}
    unread |= {name: f"its entry was left out: {why}" for name, why in out}
    near = near_entries(missing, listed.quotes)
    problems = []
    for model in missing:
        plain, remedy = plain_name(model), f"give --price {model}=INPUT,OUTPUT"
        if model in free:
            remedy += f", or if it costs nothing --price {quote_word(f'{model}={FREE_WORD}')}"
        like = [one.entry for one in listed.quotes if plain in plain_name(one.id)][:3]
        if quote := near.get(model):
            option = f"--list-entry {quote_word(f'{model}={quote.entry}')}"
            remedy = f"it has {quote.entry!r} ({quote.in_words}); if that is the same, add {option}"
        elif like:
            remedy += f", or --list-entry {model}=ENTRY; it has {', '.join(like)}"
        lacking = unread.get(plain, "the list has no entry of that name")
        lacking = unread.get(model, lacking)
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
    CatalogError.raise_any(f"prices for {evalset.name}", problems)


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


def _init_text(made: InitialCatalog, out: Path) -> str:
    policy = made.catalog.policy
    lines = [
        f"{out}: {counted(len(made.catalog.models), 'model')}, tau {policy.tau:g}, cost order "
        f"{policy.cost_basis.value}; profiles from {counted(made.trained_on, 'query')}",
        *(f"note: {text}" for text in made.assumptions),
        *(f"warning: {text}" for text in made.warnings),
    ]
    for one in made.under_hull:
        done = "left out" if one.model in made.left_out else "consider --cut-to-hull"
        lines.append(f"below the best fixed mix: {one}; {done}")
    return "\n".join(lines)


_VALIDATE = """check a catalog, an eval set, a bundle or an outcome model
Checks a catalog (YAML file), an eval set, a predictor bundle or an outcome model (folders) and
lists every problem, not only the first. Exit code 0: valid; 2: not valid; 1: could not be run.

examples:
  hydra-router validate mine
  hydra-router validate workspace/catalogs/mine.yaml --json
"""
_REBIND = """move catalogs to another predictor bundle
Recomputes catalogs on the score bands of a predictor bundle: `predictor` and `bands` are replaced,
derived capabilities follow when the catalog is loaded, everything else stays as it is, comments
included. Tune tau anew afterwards. With --from-evalset the bands are the 5th to 95th percentile of
that set's own requirements (scored first where they are not) instead of the bundle's.

examples:
  hydra-router rebind mine
  hydra-router rebind pool.yaml --bundle bundles/compact-2
  hydra-router rebind mine --from-evalset mine
"""
_KINDS = {
    "evalset.yaml": "eval set",
    "bundle.yaml": "bundle",
    "outcome_model.yaml": "outcome model",
}


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "validate", _validate, _VALIDATE)
    parser.option("file", "FILE", "name in the workspace, or a file or folder")
    parser = verb(verbs, "rebind", _rebind, _REBIND, "REBIND")
    said = "names in the workspace, or YAML files"
    parser.option("catalogs", "CATALOG", said, type=CATALOG.place, nargs="+")
    parser.option("--from-evalset", "SET", "bands from this set's requirements", type=EVALSET.find)
    parser.shared("--bundle")


def _validate(options: argparse.Namespace) -> int:
    path = find_any(options.file)
    kind = _kind(path)
    document: dict[str, object] = {"valid": True, "kind": kind, "file": str(path), "problems": []}
    try:
        summary = _check(kind, path)
    except HydraError as error:
        own = error.problems if isinstance(error, ProblemsError) else (Problem("", str(error)),)
        listed = [{"place": p.place, "message": p.message, "remedy": p.remedy} for p in own]
        if options.json:
            print_json({**document, "valid": False, "problems": listed})
        else:
            say(str(error))
        return 2
    show(options, document, f"{path}: valid {kind}, {summary}")
    return 0


def _kind(path: Path) -> str:
    """What a path holds, by its content; read anything unknown as a catalog."""
    folder = path if path.is_dir() else path.parent
    for name, kind in _KINDS.items():
        if path.name == name or (path.is_dir() and (folder / name).is_file()):
            return kind
    return "eval set" if path.is_dir() else "catalog"


def _check(kind: str, path: Path) -> str:
    """Load it with every check there is; one phrase about it."""
    folder = path if path.is_dir() else path.parent
    if kind == "bundle":
        from hydra_core.predictor.onnx_predictor import open_apart

        return open_apart(folder)  # opens the model and scores one message
    if kind == "eval set":
        return _check_evalset(folder)
    if kind == "outcome model":
        return _check_outcome_model(folder)
    return _check_catalog(path)


def _check_catalog(path: Path) -> str:
    from hydra_core.base.types import CostBasis
    from hydra_core.catalog.chosen_and_promised import not_covered
    from hydra_core.catalog.profiles import pool
    from hydra_core.catalog.schema import load_catalog, read_catalog_text
    from hydra_core.export.release import check_release

    catalog = load_catalog(path)
    costs = dict.fromkeys((model.id for model in catalog.models), 1.0)
    basis = costs if catalog.policy.cost_basis is CostBasis.REALISED else None
    routable = pool(catalog, today=date.today(), realised_cost=basis)
    summary = f"{counted(len(catalog.models), 'model')}, {len(routable.ids)} of them routable today"
    release = check_release(read_catalog_text(path))
    if release is not None and release.intact:
        summary += ", a release, unchanged since it was written"
    elif release is not None:
        say(f"warning: {path} was edited since its release: its first lines no longer describe it")
    if catalog.policy.promise is not None:
        summary += f", promises {catalog.policy.promise.claim}"
        if problem := not_covered(catalog):
            raise CatalogError.of(str(path), f"does not hold: {problem}", place="policy.promise")
    if catalog.success_profiles is not None:
        summary += f", success profiles of {counted(len(catalog.success_profiles.models), 'model')}"
    if catalog.outcome_model is None:
        return summary
    from hydra_core.outcome_model.format import catalog_outcome_model

    named = catalog_outcome_model(catalog)
    return f"{summary}, outcome model {named.digest[:12]} of {counted(len(named.models), 'model')}"


def _check_outcome_model(folder: Path) -> str:
    from hydra_core.outcome_model.format import load_outcome_model

    model = load_outcome_model(folder)
    queries = counted(len(model.learned.query_ids), "query")
    return f"{counted(len(model.models), 'model')}, learned on {queries} of {model.evalset!r}"


def _check_evalset(folder: Path) -> str:
    from hydra_core.evalsets.folders import scored_by
    from hydra_core.evalsets.scores import load_scores

    evalset = open_evalset(folder)
    fingerprints = scored_by(folder)
    for fingerprint in fingerprints:
        load_scores(evalset, fingerprint)
    counts = (evalset.n, "query"), (len(evalset.models), "model"), (len(fingerprints), "set")
    return ", ".join(counted(*one) for one in counts) + " of scores"


def _bands(options: argparse.Namespace, bundle: Bundle) -> tuple[Band, ...]:
    if options.from_evalset is None:
        return bundle.bands
    from hydra_core.predictor.score_bands import score_bands

    return score_bands(scored(open_evalset(options.from_evalset), open_predictor(options.bundle)))


def _rebind(options: argparse.Namespace) -> None:
    from hydra_core.catalog.binding import rebind as rebound
    from hydra_core.catalog.schema import load_catalog, parse_catalog, read_catalog_text
    from hydra_core.outcome_model.format import catalog_outcome_model
    from hydra_core.predictor.bundle import load_bundle

    bundle = load_bundle(None if options.bundle is None else existing(options.bundle))
    bands = dict(zip(bundle.dimensions, _bands(options, bundle), strict=True))
    done: dict[Path, str] = {}
    for path in options.catalogs:
        text = read_catalog_text(existing(path))
        catalog = parse_catalog(text, path.name)
        if not SHA256.fullmatch(catalog.predictor_fingerprint):
            say(f"{path}: left alone, it is bound to the named profiles {catalog.predictor!r}")
            continue
        done[path] = rebound(text, bundle.name, bundle.fingerprint, bands)
    for path, text in done.items():  # nothing is written unless every catalog could be moved
        write_catalog(path, text, "REBIND")
        try:
            if (moved := load_catalog(path)).outcome_model is not None:
                catalog_outcome_model(moved)
        except HydraError as error:
            say(f"warning: {path}: {error}")
    if options.json:
        print_json({"fingerprint": bundle.fingerprint, "rebound": [str(path) for path in done]})
    else:
        for path in done:
            print(f"{path}: bound to {bundle.name} ({bundle.fingerprint[:12]}); tune tau anew")
