"""The imports of records: leaderboards, router benchmarks, results of evaluation harnesses."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.cli.import_tables import need_out, pairs, reading, write
from hydra_core.cli.options import IMPORT, Grammar, Verbs, verb
from hydra_core.cli.workspace import existing

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.given import Given

_PRICES = """
Costs that were not recorded are estimated: --price ID=INPUT,OUTPUT in USD per million tokens. Add
a third number, the mean tokens of an answer, where the files hold neither tokens nor answers.
Prices are never guessed, and the eval set says that its costs are estimates.
"""
_LIVECODEBENCH = f"""LiveCodeBench pass@1 with its problem texts
Joins the leaderboard's performances_generation.json (pass@1 per question) with the problem texts of
a submission's evaluation file. Quality is pass@1 / 100.
{_PRICES}
example:
  hydra-router import livecodebench performances_generation.json.gz \\
      --problems Scenario.codegeneration_1_0.2_eval_all.json \\
      --model o1-mini="O1-Mini-2024-09-12 (N=1)" --price o1-mini=1.1,4.4,4000 \\
      --model claude-3-haiku=Claude-3-Haiku --price claude-3-haiku=0.25,1.25,600 \\
      --out livecodebench
"""
_LLMROUTERBENCH = f"""LLMRouterBench result files
Reads result files or folders of them (one JSON file per dataset, split and model), joined by index;
demo runs are skipped and the newest of several runs is taken.
{_PRICES}
example:
  hydra-router import llmrouterbench results/bench --out llmrouterbench
"""
_ROUTERARENA = f"""RouterArena cached results
Reads cached results (one JSONL file per model), joined by global_index.
{_PRICES}
example:
  hydra-router import routerarena cached_results/*.jsonl --out routerarena
"""
_ROUTELLM = f"""RouteLLM evaluation responses
Reads CSV files with a prompt and a True/False column per model; <model>_response gives the length
of its answer.
{_PRICES}
example:
  hydra-router import routellm gsm8k_responses.csv \\
      --model mixtral-8x7b=mistralai/Mixtral-8x7B-Instruct-v0.1 --price mixtral-8x7b=0.24,0.24 \\
      --model gpt-4-turbo=gpt-4-1106-preview --price gpt-4-turbo=10,30 --out gsm8k
"""

_HARNESS = f"""results of lm-eval, Inspect, promptfoo, HELM, EvalPlus, LLMRouter
Reads results of evaluation harnesses, recognised by what they hold: lm-evaluation-harness
(samples_*.jsonl), Inspect (.eval, .json), promptfoo (.json, .jsonl, .csv), HELM (a run's folder),
EvalPlus (*_eval_results.json with --problems), LLMRouter (routing data). A file that names no model
is called by what sets its name apart; --model ID=NAME says otherwise. Of several scores, or one
score under several filters, --score says which is the quality. Repeats of a query by a model are
averaged and counted.
{_PRICES}
examples:
  hydra-router import harness samples_gsm8k_*.jsonl --score exact_match,strict-match \\
      --out gsm8k
  hydra-router import harness logs/*.eval --out inspect
  hydra-router import harness promptfoo.json --out promptfoo
"""


def add_verbs(sources: Verbs) -> None:
    """Add the imports."""
    parser = verb(sources, "livecodebench", _livecodebench, _LIVECODEBENCH, "IMPORT")
    parser.option("performances", "PERFORMANCES.json", type=Path)
    parser.option("--problems", "PROBLEMS.json", "without: no texts, no costs", type=Path)
    _options(parser)
    for name, text, files in (
        ("llmrouterbench", _LLMROUTERBENCH, "FILE_OR_DIR"),
        ("routerarena", _ROUTERARENA, "FILE.jsonl"),
        ("routellm", _ROUTELLM, "FILE.csv"),
    ):
        parser = verb(sources, name, partial(_records, name), text, "IMPORT")
        parser.option("files", files, type=Path, nargs="+")
        _options(parser)
    parser = verb(sources, "harness", _harness, _HARNESS, "IMPORT")
    parser.option("files", "FILE_OR_DIR", type=Path, nargs="+")
    parser.option("--score", "NAME", "which score is the quality", default="")
    parser.option("--quality-scale", "X", "the score that means 1", type=float, default=1.0)
    parser.each("--label", "LABEL=QUALITY", "a score in words")
    parser.option("--problems", "FILE.jsonl", "task_id and prompt, for EvalPlus", type=Path)
    parser.each("--map", "text=PATH", "where the message stands")
    _options(parser)


def _options(parser: Grammar) -> None:
    parser.shared("--model")
    parser.each(
        "--price", "ID=IN,OUT[,TOKENS]", "USD per Mtok, and mean answer tokens; once per model"
    )
    parser.shared(*IMPORT)


def _livecodebench(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.records import read_livecodebench

    given = _given(options, options.problems)
    need_out(options)
    draft = read_livecodebench([existing(options.performances)], given)
    write(draft, options, f"LiveCodeBench leaderboard, {options.performances.name}")


def _given(options: argparse.Namespace, more: Path | None = None) -> Given:
    """The models and prices of the options, and the file beside the others."""
    from hydra_core.evalsets.importers.given import Given
    from hydra_core.evalsets.importers.price_card import parse_prices

    beside = () if more is None else (existing(more),)
    return Given(beside, pairs(options.model), parse_prices(options.price))


def _records(name: str, options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers import records

    files = [existing(path) for path in options.files]
    if name == "llmrouterbench":
        files = [file for path in files for file in records.result_files(path)]
    given = _given(options)
    need_out(options)
    read, origin = {
        "llmrouterbench": (records.read_llmrouterbench, "LLMRouterBench results"),
        "routerarena": (records.read_routerarena, "RouterArena cached results"),
        "routellm": (records.read_routellm, "RouteLLM evaluation responses"),
    }[name]
    write(read(files, given), options, origin)


def _harness(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.harness.adapters import kinds_of, read_harness, run_files
    from hydra_core.evalsets.importers.mapping import parse_map
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels

    mapping = parse_map(options.map)
    given = replace(
        _given(options, options.problems),
        score=options.score,
        scale=options.quality_scale,
        labels=parse_labels(options.label),
        text_path=mapping.fields.get("text", ""),
    )
    if set(mapping.all_columns()) - {"text"}:
        raise EvalSetError("--map", [Problem("", "maps the text alone here", "text=doc.question")])
    need_out(options)
    files = [file for path in options.files for file in run_files(existing(path))]
    with reading(files):
        draft = read_harness(files, given)
    write(draft, options, f"results of {', '.join(kinds_of(files))}")
