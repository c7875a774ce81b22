"""The verb import policy: another router's decisions kept beside an eval set."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hydra_core.cli.grammar import verb
from hydra_core.cli.output import existing, print_json

_POLICY = """\
Keeps another router's decisions beside an eval set: CSV, JSONL or Parquet with a row a query,
columns query_id and model. Every query of the set needs a model that the set has.

example:
  python -m hydra_core import policy decisions.csv --evalset evalsets/mine --name complexity
"""


def add_policy(sources: Any) -> None:  # noqa: ANN401 (argparse has no public type)
    """Add the source to `import`."""
    parser = verb(sources, "policy", _policy, "another router's decisions", _POLICY, "IMPORT")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--evalset", type=Path, required=True, metavar="DIR")
    parser.add_argument("--name", required=True, help="name of the policy")
    parser.add_argument("--force", action="store_true", help="replace one of that name")


def _policy(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.importers.policy import read_policy
    from hydra_core.replay.imported_policies import save_policy

    evalset = load_evalset(existing(options.evalset))
    models = read_policy(existing(options.file), evalset)
    path = save_policy(evalset, options.name, models, force=options.force)
    shares = models.value_counts(normalize=True).to_dict()
    if options.json:
        print_json({"out": str(path), "n": evalset.n, "shares": shares})
    else:
        told = ", ".join(f"{model} {100 * share:.1f} %" for model, share in shares.items())
        print(f"{path}: {evalset.n:,} queries; {told}")
    return 0
