"""The imports of records: leaderboards, router benchmarks, results of evaluation harnesses."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.cli.import_tables import need_out, pairs, reading, write
from hydra_core.cli.options import Verbs, import_options, model_names_option, verb
from hydra_core.cli.workspace import existing

_PRICES = """
Costs that were not recorded are estimated: --price ID=INPUT,OUTPUT in USD per million tokens. Add
a third number, the mean tokens of an answer, where the files hold neither tokens nor answers.
Prices are never guessed, and the eval set says that its costs are estimates.
"""
_LIVECODEBENCH = f"""\
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
_LLMROUTERBENCH = f"""\
Reads result files or folders of them (one JSON file per dataset, split and model), joined by index;
demo runs are skipped and the newest of several runs is taken.
{_PRICES}
example:
  hydra-router import llmrouterbench results/bench --out llmrouterbench
"""
_ROUTERARENA = f"""\
Reads cached results (one JSONL file per model), joined by global_index.
{_PRICES}
example:
  hydra-router import routerarena cached_results/*.jsonl --out routerarena
"""
_ROUTELLM = f"""\
Reads CSV files with a prompt and a True/False column per model; <model>_response gives the length
of its answer.
{_PRICES}
example:
  hydra-router import routellm gsm8k_responses.csv \\
      --model mixtral-8x7b=mistralai/Mixtral-8x7B-Instruct-v0.1 --price mixtral-8x7b=0.24,0.24 \\
      --model gpt-4-turbo=gpt-4-1106-preview --price gpt-4-turbo=10,30 --out gsm8k
"""

_HARNESS = f"""\
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
    short = "LiveCodeBench pass@1 with its problem texts"
    parser = verb(sources, "livecodebench", _livecodebench, short, _LIVECODEBENCH, "IMPORT")
    parser.add_argument("performances", type=Path, metavar="PERFORMANCES.json")
    parser.add_argument(
        "--problems", type=Path, metavar="PROBLEMS.json", help="without: no texts, no costs"
    )
    _options(parser)
    for name, short, long, files in (
        ("llmrouterbench", "LLMRouterBench result files", _LLMROUTERBENCH, "FILE_OR_DIR"),
        ("routerarena", "RouterArena cached results", _ROUTERARENA, "FILE.jsonl"),
        ("routellm", "RouteLLM evaluation responses", _ROUTELLM, "FILE.csv"),
    ):
        parser = verb(sources, name, partial(_records, name), short, long, "IMPORT")
        parser.add_argument("files", type=Path, nargs="+", metavar=files)
        _options(parser)
    short = "results of lm-eval, Inspect, promptfoo, HELM, EvalPlus, LLMRouter"
    parser = verb(sources, "harness", _harness, short, _HARNESS, "IMPORT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE_OR_DIR")
    parser.add_argument("--score", default="", metavar="NAME", help="which score is the quality")
    parser.add_argument(
        "--quality-scale", type=float, default=1.0, metavar="X", help="the score that means 1"
    )
    parser.add_argument(
        "--label", action="append", default=[], metavar="LABEL=QUALITY", help="a score in words"
    )
    parser.add_argument(
        "--problems", type=Path, metavar="FILE.jsonl", help="task_id and prompt, for EvalPlus"
    )
    parser.add_argument(
        "--map", action="append", default=[], metavar="text=PATH", help="where the message stands"
    )
    _options(parser)


def _options(parser: argparse.ArgumentParser) -> None:
    model_names_option(parser)
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="ID=IN,OUT[,TOKENS]",
        help="USD per Mtok, and mean answer tokens; once per model",
    )
    import_options(parser)


def _livecodebench(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.livecodebench import read_livecodebench
    from hydra_core.evalsets.importers.price_card import parse_prices

    problems = None if options.problems is None else existing(options.problems)
    models, prices = pairs(options.model), parse_prices(options.price)
    need_out(options)
    draft = read_livecodebench(existing(options.performances), problems, models, prices)
    return write(draft, options, f"LiveCodeBench leaderboard, {options.performances.name}")


def _records(name: str, options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.llmrouterbench import read_llmrouterbench, result_files
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.routellm import read_routellm
    from hydra_core.evalsets.importers.routerarena import read_routerarena

    files = [existing(path) for path in options.files]
    if name == "llmrouterbench":
        files = [file for path in files for file in result_files(path)]
    models, prices = pairs(options.model), parse_prices(options.price)
    need_out(options)
    read, origin = {
        "llmrouterbench": (read_llmrouterbench, "LLMRouterBench results"),
        "routerarena": (read_routerarena, "RouterArena cached results"),
        "routellm": (read_routellm, "RouteLLM evaluation responses"),
    }[name]
    return write(read(files, models, prices), options, origin)


def _harness(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.harness.adapters import kinds_of, read_harness, run_files
    from hydra_core.evalsets.importers.mapping import parse_map
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels

    models, prices = pairs(options.model), parse_prices(options.price)
    labels, mapping = parse_labels(options.label), parse_map(options.map)
    if set(mapping.all_columns()) - {"text"}:
        raise EvalSetError("--map", [Problem("", "maps the text alone here", "text=doc.question")])
    need_out(options)
    files = [file for path in options.files for file in run_files(existing(path))]
    with reading(files):
        draft = read_harness(
            files,
            models,
            prices,
            score=options.score,
            scale=options.quality_scale,
            labels=labels,
            problems=None if options.problems is None else existing(options.problems),
            text_path=mapping.fields.get("text", ""),
        )
    return write(draft, options, f"results of {', '.join(kinds_of(files))}")
