"""The imports of public benchmark results: LiveCodeBench, LLMRouterBench, RouterArena, RouteLLM."""

from __future__ import annotations

import argparse
from pathlib import Path

from hydra_core.cli.import_tables import need_out, pairs, write
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


def add_verbs(sources: Verbs) -> None:
    """Add the four imports."""
    short = "LiveCodeBench pass@1 with its problem texts"
    parser = verb(sources, "livecodebench", _livecodebench, short, _LIVECODEBENCH, "IMPORT")
    parser.add_argument("performances", type=Path, metavar="PERFORMANCES.json")
    parser.add_argument(
        "--problems", type=Path, metavar="PROBLEMS.json", help="without: no texts, no costs"
    )
    _options(parser)
    short = "LLMRouterBench result files"
    parser = verb(sources, "llmrouterbench", _llmrouterbench, short, _LLMROUTERBENCH, "IMPORT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE_OR_DIR")
    _options(parser)
    short = "RouterArena cached results"
    parser = verb(sources, "routerarena", _routerarena, short, _ROUTERARENA, "IMPORT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.jsonl")
    _options(parser)
    short = "RouteLLM evaluation responses"
    parser = verb(sources, "routellm", _routellm, short, _ROUTELLM, "IMPORT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.csv")
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


def _llmrouterbench(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.llmrouterbench import read_llmrouterbench, result_files
    from hydra_core.evalsets.importers.price_card import parse_prices

    files = [file for path in options.files for file in result_files(existing(path))]
    models, prices = pairs(options.model), parse_prices(options.price)
    need_out(options)
    return write(read_llmrouterbench(files, models, prices), options, "LLMRouterBench results")


def _routerarena(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.routerarena import read_routerarena

    files = [existing(path) for path in options.files]
    models, prices = pairs(options.model), parse_prices(options.price)
    need_out(options)
    return write(read_routerarena(files, models, prices), options, "RouterArena cached results")


def _routellm(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.routellm import read_routellm

    files = [existing(path) for path in options.files]
    models, prices = pairs(options.model), parse_prices(options.price)
    need_out(options)
    return write(read_routellm(files, models, prices), options, "RouteLLM evaluation responses")
