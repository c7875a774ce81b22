"""The imports of what others recorded: benchmarks, evaluation harnesses, logs of live traffic."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import EvalSetError
from hydra_core.cli.import_tables import checked_scale, need_out, pairs, reading, write
from hydra_core.cli.options import IMPORT, WINDOW, Grammar, Verbs, verb
from hydra_core.cli.workspace import existing, log_folder

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
is called by what sets its name apart, or by its folder; --model ID=NAME says otherwise. Files of
several tasks end with their model, such as samples_gsm8k_llama.jsonl. Of several scores, or one
score under several filters, --score says which is the quality. Repeats of a query by a
model are averaged and counted.
{_PRICES}
examples:
  hydra-router import harness samples_gsm8k_*.jsonl --score exact_match,strict-match \\
      --out gsm8k
  hydra-router import harness logs/*.eval --out inspect
  hydra-router import harness promptfoo.json --out promptfoo
"""


_ONE = """
One query a row and one outcome a query: that of the model that was served. Rows without text,
model or feedback are skipped and counted by reason; nothing is filled in.
"""
_LOG = f"""the decision log of serve
Reads the decision log of `serve`; messages are in it only with --log-text.
{_ONE}
examples:
  hydra-router import log log --out live
  hydra-router import log log --since 7d --arm main --out live
"""
_LABELS = """
Feedback in words (good, bad) is read where each label is given its worth: --label good=1 --label
bad=0. Labels without a worth are skipped and counted.
"""
_SPEND = f"""LiteLLM spend logs with feedback
Reads rows of LiteLLM_SpendLogs: JSON, JSONL, CSV or Parquet files, or a PostgreSQL address. LiteLLM
keeps messages only with store_prompts_in_spend_logs, and no feedback: give it with --feedback, a
table with request_id and quality.
{_ONE}{_LABELS}
examples:
  hydra-router import spend-logs spend.jsonl --feedback votes.csv --out live
  hydra-router import spend-logs postgresql://reader@db/litellm --feedback votes.csv \\
      --model gpt-5=openai/gpt-5 --out live
"""
_LANGFUSE = f"""Langfuse generations with scores
Reads an export of Langfuse: files of observations_v2, and with --scores the files of scores.
{_ONE}{_LABELS}
example:
  hydra-router import langfuse observations_v2/*.parquet --scores scores/1.parquet \\
      --score helpful --out live
"""
_HELICONE = f"""Helicone requests with feedback
Reads an export of Helicone, JSON or JSONL, made with --include-body. Its thumbs and scores are the
quality. Where Helicone had no price, --price ID=IN,OUT estimates the cost.
{_ONE}{_LABELS}
example:
  npx @helicone/export --start-date 2026-01-01 --include-body --output requests.jsonl
  hydra-router import helicone requests.jsonl --score helicone-score-feedback --out live
"""
_SPANS = f"""GenAI or OpenInference spans
Reads spans as JSONL: OpenTelemetry's GenAI names or OpenInference's. Feedback is an annotation or
an event gen_ai.evaluation.result, on the span or as a row with its span_id, such as a log record,
in a file beside. Costs are estimated where --price ID=IN,OUT is given.
{_ONE}{_LABELS}
example:
  hydra-router import spans spans.jsonl annotations.jsonl --score correctness --out live
"""


def add_verbs(sources: Verbs) -> None:
    parser = verb(sources, "livecodebench", _livecodebench, _LIVECODEBENCH, "IMPORT")
    parser.option("performances", "PERFORMANCES.json", type=Path)
    parser.option("--problems", "PROBLEMS.json", "without: no texts, no costs", type=Path)
    _options(parser)
    for name, text, files in (
        ("llmrouterbench", _LLMROUTERBENCH, "FILE_OR_DIR"),
        ("routerarena", _ROUTERARENA, "FILE.jsonl"),
        ("routellm", _ROUTELLM, "FILE.csv"),
    ):
        parser = verb(sources, name, partial(_files, name), text, "IMPORT")
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
    _add_logs(sources)


def _options(parser: Grammar) -> None:
    parser.shared("--model")
    parser.each(
        "--price", "ID=IN,OUT[,TOKENS]", "USD per Mtok, and mean answer tokens; once per model"
    )
    parser.shared(*IMPORT)


def _livecodebench(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.records import read_livecodebench

    given = _given(options, _problems(options))
    need_out(options)
    draft = read_livecodebench([existing(options.performances)], given)
    write(draft, options, f"LiveCodeBench leaderboard, {options.performances.name}")


def _given(options: argparse.Namespace, beside: Sequence[Path] = ()) -> Given:
    from hydra_core.evalsets.importers.given import Given, parse_prices
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels

    return Given(
        [existing(path) for path in beside],
        pairs(options.model),
        parse_prices(getattr(options, "price", [])),
        score=getattr(options, "score", ""),
        scale=checked_scale(getattr(options, "quality_scale", 1.0)),
        labels=parse_labels(getattr(options, "label", [])),
    )


def _problems(options: argparse.Namespace) -> list[Path]:
    return [] if options.problems is None else [options.problems]


def _files(kind: str, options: argparse.Namespace) -> None:
    """Import files of a format, and those beside them that hold scores."""
    from hydra_core.evalsets.importers.formats import FORMATS, Kind, read
    from hydra_core.evalsets.importers.records import result_files

    given = _given(options, getattr(options, "scores", ()))
    need_out(options)
    files = [existing(path) for path in options.files]
    if kind == "llmrouterbench":
        files = [file for path in files for file in result_files(path)]
    with reading(files):
        draft = read(Kind(kind), files, given)
    write(draft, options, FORMATS[Kind(kind)].name)


def _harness(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.harness.adapters import kinds_of, read_harness, run_files
    from hydra_core.evalsets.importers.mapping import parse_map

    mapping = parse_map(options.map)
    given = replace(_given(options, _problems(options)), text_path=mapping.fields.get("text", ""))
    if set(mapping.all_columns()) - {"text"}:
        raise EvalSetError.of("--map", "maps the text alone here", "text=doc.question")
    need_out(options)
    files = [file for path in options.files for file in run_files(existing(path))]
    with reading(files):
        draft = read_harness(files, given)
    write(draft, options, f"results of {', '.join(kinds_of(files))}")


def _add_logs(sources: Verbs) -> None:
    parser = verb(sources, "log", _decision_log, _LOG, "IMPORT")
    parser.option("folder", "LOG", "folder of the log; `log` is the workspace's", type=log_folder)
    parser.shared(*WINDOW)
    _log_options(parser)
    parser = verb(sources, "spend-logs", _spend, _SPEND, "IMPORT")
    parser.option("files", "FILE|URL", nargs="+")
    parser.option("--feedback", "FILE", type=Path, action="append", default=[])
    _log_options(parser, scaled=True)
    parser = verb(sources, "langfuse", partial(_files, "langfuse"), _LANGFUSE, "IMPORT")
    parser.option("files", "OBSERVATIONS", type=Path, nargs="+")
    parser.option("--scores", "FILE", type=Path, action="append", default=[])
    parser.option("--score", "NAME", "which score is the quality", default="")
    _log_options(parser, scaled=True)
    for name, text in (("helicone", _HELICONE), ("spans", _SPANS)):
        parser = verb(sources, name, partial(_files, name), text, "IMPORT")
        parser.option("files", "FILE.jsonl", type=Path, nargs="+")
        parser.option("--score", "NAME", "which one is the quality", default="")
        _log_options(parser, scaled=True)


def _log_options(parser: Grammar, *, scaled: bool = False) -> None:
    parser.shared("--model")
    if scaled:
        parser.option("--quality-scale", "X", "the score that means 1", type=float, default=1.0)
        said = "what feedback in words is worth, from 0 to 1; once per label"
        parser.each("--label", "LABEL=QUALITY", said)
        said = "USD per Mtok, where no cost was recorded; or ID=free; once per model"
        parser.each("--price", "ID=IN,OUT[,cached=PRICE]", said)
    parser.shared(*IMPORT)


def _decision_log(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.traffic.gateways import read_decision_log

    need_out(options)
    draft = read_decision_log(
        existing(options.folder), pairs(options.model),
        since=options.since, until=options.until, arm=options.arm,
    )  # fmt: skip
    write(draft, options, f"HyDRA decision log {options.folder.name}")


def _spend(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.traffic.gateways import read_spend_logs, spend_log_rows

    need_out(options)
    databases = [name for name in options.files if name.startswith(("postgresql:", "postgres:"))]
    files = [existing(Path(name)) for name in options.files if name not in databases]
    rows = [row for url in databases for row in spend_log_rows(url)]
    given = _given(options, options.feedback)
    with reading(files):
        draft = read_spend_logs(files, given, rows)
    write(draft, options, "LiteLLM spend logs")
