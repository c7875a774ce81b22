"""The real outcome sets beside the project, imported into a workspace folder (never committed)."""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.quality.outcome_lift import POOLS
from hydra_core.evalsets.evalset import EvalSet, load_evalset
from hydra_core.evalsets.importers.draft import About, Draft, report_on, write_draft
from hydra_core.evalsets.importers.given import Given, parse_prices
from hydra_core.evalsets.importers.records import (
    read_livecodebench,
    read_routellm,
    read_routerarena,
)
from hydra_core.evalsets.importers.swebench import list_runs, read_swebench
from sample_data import mixed_2024

SHARED = Path(__file__).parents[3] / "shared" / "data" / "replay"

#: MMLU is cut to this many queries, drawn with a fixed seed, so that a run takes minutes.
MMLU_QUERIES = 3_000

_MATCHED = {
    "gpt-5": "20250807_mini-v1.7.0_gpt-5",
    "gpt-5-mini": "20250807_mini-v1.7.0_gpt-5-mini",
    "gpt-5.2": "20251211_mini-v1.17.2_gpt-5.2-2025-12-11-high",
}
#: USD per Mtok in, out (list prices of January 2025), and an assumed mean length of answers.
LIVECODEBENCH = {
    "o1-high": ("O1-2024-12-17 (N=1) (High)", "15,60,9000"),
    "o1-mini": ("O1-Mini-2024-09-12 (N=1)", "3,12,4000"),
    "claude-3.5-sonnet": ("Claude-3.5-Sonnet-20241022", "3,15,700"),
    "deepseek-v3": ("DeepSeek-V3", "0.27,1.10,700"),
    "gpt-4o-mini": ("GPT-4O-mini-2024-07-18", "0.15,0.60,600"),
    "claude-3-haiku": ("Claude-3-Haiku", "0.25,1.25,500"),
    "gemini-1.5-flash": ("Gemini-Flash-1.5-002", "0.075,0.30,500"),
}
#: USD per Mtok in, out; MMLU keeps no answers, which are one letter long.
_ROUTELLM = {
    "mixtral-8x7b": ("mistralai/Mixtral-8x7B-Instruct-v0.1", "0.24,0.24,2"),
    "gpt-4-1106-preview": ("gpt-4-1106-preview", "10,30,2"),
}


@dataclass(frozen=True, slots=True)
class RealSet:
    """One set: how it is imported, and the catalog whose profiles are used, if there is one.

    Attributes:
        read: Takes the folder of the data, returns the import.
        catalog: Path of a catalog with evidence; None derives profiles from the other half.
    """

    name: str
    title: str
    read: Callable[[Path], Draft]
    note: str
    catalog: str | None = None


def _swebench(shared: Path, models: dict[str, str]) -> Draft:
    return read_swebench(
        shared / "swebench-verified-bash-only" / "data" / "leaderboards.json",
        shared / "swebench-verified-problems" / "data" / "swebench_verified.jsonl",
        models,
        board="bash-only",
    )


def _one_harness(shared: Path) -> Draft:
    path = shared / "swebench-verified-bash-only" / "data" / "leaderboards.json"
    runs = [run for run in list_runs(path) if "_mini-v2.0.0_" in run.folder and not run.problem]
    return _swebench(shared, {run.folder.split("_")[-1]: run.folder for run in runs})


def livecodebench(shared: Path, models: Mapping[str, tuple[str, str]] = LIVECODEBENCH) -> Draft:
    """The set of these models: the leaderboard's name and the price card of each."""
    board = shared / "livecodebench-leaderboard" / "2025-01-15" / "src" / "mocks"
    problems = shared / "livecodebench-problems" / "O1-Mini-2024-09-12 (N=1)"
    texts = problems / "Scenario.codegeneration_1_0.2_eval_all.json"
    return read_livecodebench([board / "performances_generation.json.gz"], _given(models, texts))


def _given(models: Mapping[str, tuple[str, str]], *more: Path) -> Given:
    """Names and prices of the models, and the files beside the others."""
    prices = parse_prices([f"{model}={price}" for model, (_, price) in models.items()])
    return Given(more, {model: name for model, (name, _) in models.items()}, prices)


def _routellm(shared: Path, pattern: str) -> Draft:
    files = sorted((shared / "routellm" / "routellm" / "evals").glob(pattern))
    return read_routellm(files, _given(_ROUTELLM))


def _mmlu(shared: Path) -> Draft:
    draft = _routellm(shared, "mmlu/responses/*.csv")
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(len(draft.queries), MMLU_QUERIES, replace=False))
    return replace(
        draft,
        queries=draft.queries.iloc[rows].reset_index(drop=True).assign(language="en"),
        quality=draft.quality[rows],
        cost_usd=draft.cost_usd[rows],
        extras={},
    )


def _mixed(shared: Path, models: tuple[str, ...]) -> Draft:
    with tempfile.TemporaryDirectory() as scratch:
        found = mixed_2024.read(Path(scratch) / "set", shared / "mixed-2024", models)
    report = report_on(models, found.quality, found.cost_usd)
    return Draft(found.queries, models, found.quality, found.cost_usd, report, found.extras)


MIXED = tuple(
    RealSet(
        f"mixed-2024-{name}",
        f"Public benchmark questions of 2024, pool {name}",
        partial(_mixed, models=models),
        "Costs are estimated from tokens and the list prices of 2024.",
    )
    for name, models in POOLS.items()
)
SETS = (
    RealSet(
        "swebench-matched",
        "SWE-bench Verified, the paper's matched pool",
        lambda shared: _swebench(shared, _MATCHED),
        "Costs are as billed. Profiles come from the evidence in catalog/matched_three.yaml, whose "
        "benchmarks include SWE-bench itself. The runs are of two harness versions.",
        "catalog/matched_three.yaml",
    ),
    RealSet(
        "swebench-mini-2.0.0",
        "SWE-bench Verified, all 12 models on one harness",
        _one_harness,
        "Costs are as billed, with one harness version (mini-SWE-agent 2.0.0).",
    ),
    RealSet(
        "livecodebench",
        "LiveCodeBench (January 2025), o1-high, o1-mini and small models",
        livecodebench,
        "Costs are estimated from January 2025 list prices, question bytes / 4, and assumed mean "
        "answer lengths ("
        + ", ".join(f"{m} {p.rpartition(',')[2]}" for m, (_, p) in LIVECODEBENCH.items())
        + " tokens). Quality is pass@1.",
    ),
    RealSet(
        "gsm8k",
        "RouteLLM GSM8K",
        lambda shared: _routellm(shared, "gsm8k/*.csv"),
        "Costs are estimated from the bytes of prompt and answer. The source's list of "
        "contaminated prompts was not applied.",
    ),
    RealSet(
        "mmlu",
        "RouteLLM MMLU",
        _mmlu,
        f"Costs are estimated from the bytes of the prompt. The set is {MMLU_QUERIES:,} of 14,042 "
        "queries, drawn with a fixed seed.",
    ),
    RealSet(
        "routerarena",
        "RouterArena, a tenth of it, two models",
        lambda shared: read_routerarena(
            sorted((shared / "routerarena" / "cached_results").glob("*.jsonl"))
        ),
        "Costs are as recorded. Some scores are METEOR similarities between 0 and 1.",
    ),
    *MIXED,
)


def evalset_of(real: RealSet, shared: Path, workspace: Path) -> EvalSet:
    """The imported set, from the workspace if it is there already."""
    folder = workspace / real.name
    if folder.is_dir():
        return load_evalset(folder)
    draft = real.read(shared)
    draft = replace(draft, queries=draft.queries.assign(language="en"))
    return write_draft(
        draft, folder, About(name=real.title, origin="see benchmarks/quality/real_pools.py")
    )


def options_of_sets(doc: str) -> argparse.ArgumentParser:
    """The options of every measurement on these sets: where they are, which, where to write."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=SHARED)
    parser.add_argument("--workspace", type=Path)
    parser.add_argument("--only", nargs="+", choices=[real.name for real in SETS])
    parser.add_argument("--out", type=Path)
    return parser
