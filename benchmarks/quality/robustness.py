"""Does a claim of difficulty buy a dearer model, and does the language change the route?

    python -m benchmarks.quality.robustness [--bundle DIR] [--catalog FILE] [--tau T ...] [--json]

On the 40 tasks in sixteen languages of sample_data/console_demo, which no bundle is trained on.
The catalog's bands are moved to the bundle's, so that any bundle can be looked at.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from hydra_core.base.types import FloatArray, IntArray
from hydra_core.cli.predictor import as_json
from hydra_core.evalsets.evalset import cluster_numbers
from hydra_core.lab.evaluate import evaluate
from hydra_core.lab.robustness.findings import TAUS, bound_catalog, probed, routed
from hydra_core.predictor.bundle import SHIPPED, Bundle, load_bundle
from hydra_core.predictor.onnx_predictor import Predictor
from hydra_core.routing.matcher import choose, shortfall

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "sample_data" / "console_demo" / "queries.parquet"
#: (n, K) requirements -> (n,) indices into the pool.
Route = Callable[[FloatArray], IntArray]


@dataclass(frozen=True, slots=True)
class ParallelConsistency:
    """How alike one predictor scores the same tasks in several languages.

    Attributes:
        tasks: Tasks that are there in two languages or more.
        std: (K,) mean over tasks of the standard deviation (n - 1) across languages.
        mean_std: Mean of `std`.
        pearson: (K,) against the labels, over all wordings; nan where not defined or unlabelled.
        agreement: Share of other wordings routed like the English one; nan without any.
        by_language: Language code -> that share.
    """

    tasks: int
    std: FloatArray
    mean_std: float
    pearson: FloatArray
    agreement: float
    by_language: Mapping[str, float]


def parallel_consistency(
    requirements: FloatArray,
    tasks: Sequence[str],
    languages: Sequence[str],
    route: Route,
    labels: FloatArray | None = None,
) -> ParallelConsistency:
    """Spread across languages, correlation with the labels, and agreement of the route.

    Args:
        requirements: (n, K) of all wordings.
        tasks: (n,) the task each wording says.
        languages: (n,) its language code.
        route: The policy at its tau.
        labels: (n, K) of the tasks, or None.
    """
    k = requirements.shape[1]
    _, task = np.unique(np.asarray(tasks, dtype=object).astype(str), return_inverse=True)
    counts = np.bincount(task)
    several = counts > 1
    sums = np.stack([np.bincount(task, requirements[:, j]) for j in range(k)], axis=1)
    centred = requirements - (sums / counts[:, None])[task]
    squares = np.stack([np.bincount(task, centred[:, j] ** 2) for j in range(k)], axis=1)
    spread = np.sqrt(squares[several] / (counts[several] - 1)[:, None])
    std = spread.mean(axis=0) if several.any() else np.full(k, np.nan)
    agreement, by_language = _agreement(route(requirements), task, languages)
    return ParallelConsistency(
        tasks=int(several.sum()),
        std=std,
        mean_std=float(std.mean()),
        pearson=_pearson(requirements, labels),
        agreement=agreement,
        by_language=by_language,
    )


def _pearson(requirements: FloatArray, labels: FloatArray | None) -> FloatArray:
    k = requirements.shape[1]
    names = [str(j) for j in range(k)]
    if labels is None:
        return np.full(k, np.nan)
    found = evaluate(requirements, labels, names, resamples=0)["pearson"]
    values = found.values() if isinstance(found, dict) else ()
    return np.array([np.nan if value is None else value for value in values])


def _agreement(
    choice: IntArray, task: npt.NDArray[np.intp], languages: Sequence[str]
) -> tuple[float, Mapping[str, float]]:
    codes = np.asarray(languages, dtype=np.object_)
    english = np.full(task.max(initial=-1) + 1, -1, dtype=np.intp)
    english[task[codes == "en"]] = choice[codes == "en"]
    counted = (codes != "en") & (english[task] >= 0)
    same = choice == english[task]
    present = sorted(set(codes[counted]))
    by_language = {code: float(same[counted & (codes == code)].mean()) for code in present}
    return float(same[counted].mean()) if counted.any() else float("nan"), by_language


def measure(bundle: Bundle, catalog: Path, taus: Sequence[float], queries: pd.DataFrame) -> dict:
    predictor = Predictor(bundle)
    texts, languages = list(queries["text"]), list(queries["language"])
    labels = queries[[f"label_{name}" for name in bundle.dimensions]].to_numpy(np.float64)
    began = time.perf_counter()
    found = probed(predictor, texts, languages, cluster_numbers(queries))
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
