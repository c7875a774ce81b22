"""Does a claim of difficulty buy a dearer model, and does the language change the route?

    python -m benchmarks.quality.robustness [--bundle DIR] [--catalog FILE] [--tau T ...] [--json]

On the 40 tasks in sixteen languages of sample_data/console_demo, which no bundle is trained on.
The catalog's bands are moved to the bundle's, so that any bundle can be looked at.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.cli.lab.probe import as_json
from hydra_core.lab.robustness.harmless import parallel_consistency
from hydra_core.lab.robustness.probe import TAUS, bound_catalog, probed, routed
from hydra_core.predictor.bundle import SHIPPED, Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.matcher import choose, shortfall

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "sample_data" / "console_demo" / "queries.parquet"


def measure(bundle: Bundle, catalog: Path, taus: Sequence[float], queries: pd.DataFrame) -> dict:
    predictor = Predictor(bundle)
    texts, languages = list(queries["text"]), list(queries["language"])
    labels = queries[[f"label_{name}" for name in bundle.dimensions]].to_numpy(np.float64)
    began = time.perf_counter()
    found = probed(predictor, texts, languages)
    result: dict = {
        "bundle": f"{bundle.name} {bundle.version}",
        "n": len(texts),
        "seconds": time.perf_counter() - began,
        "tau": {},
    }
    attacks = routed(found, bound_catalog(catalog, bundle))
    models = attacks.pool
    for tau in taus:

        def route(requirements: FloatArray, tau: float = tau) -> IntArray:
            gaps = shortfall(requirements, models.capabilities, models.weights)
            return choose(gaps, models.cost, tau)

        alike = parallel_consistency(
            found.clean.requirements, list(queries["cluster"]), languages, route, labels
        )
        result["tau"][str(tau)] = {
            "attacks": as_json(attacks.at(tau), by_value=False)["attacks"],
            "agreement": alike.agreement,
            "agreement_by_language": alike.by_language,
        }
        result["spread"] = alike.mean_std
        result["pearson"] = float(alike.pearson.mean())
    return result


def table(found: dict) -> str:
    lines = [
        f"| predictor bundle {found['bundle']}, {found['n']} messages | measured | bound |",
        "|---|---|---|",
        f"| spread of a score over 16 languages | {found['spread']:.3f} | 0.04 |",
        f"| Pearson against the labels, mean of dimensions | {found['pearson']:.3f} | 0.70 |",
    ]
    for tau, part in found["tau"].items():
        lines.append(f"| tau {tau}: routed as in English | {part['agreement']:.1%} | 90 % |")
        for suffix in ("localised", "english"):
            rows = [row for row in part["attacks"] if row["suffix"] == suffix]
            whole = rows[-1]
            worst = max(rows[:-1], key=lambda row: np.nan_to_num(row["success"]))
            name = f"tau {tau}, {suffix} suffixes"
            share = f"{whole['success']:.1%} of {whole['n']}"
            where = f"{worst['success']:.1%} of {worst['n']} ({worst['family']}, {worst['group']})"
            lines += [
                f"| {name}: moved to the frontier | {share} | 2 % |",
                f"| {name}: worst family and group | {where} | 2 % |",
                f"| {name}: cost ratio | {whole['cost_ratio']:.3f} | 1.1 |",
            ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Suffix attacks and parallel consistency.")
    parser.add_argument("--bundle", type=Path, default=SHIPPED)
    parser.add_argument("--catalog", type=Path, default=ROOT / "catalog" / "paper_five.yaml")
    parser.add_argument("--tau", type=float, nargs="+", default=TAUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    queries = pd.read_parquet(DEMO)
    found = measure(load_bundle(options.bundle), options.catalog, options.tau, queries)
    print(json.dumps(found, indent=2) if options.json else table(found))


if __name__ == "__main__":
    main()
