"""The imports of live traffic: HyDRA's decision log, LiteLLM, Langfuse, Helicone, spans."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.cli.import_tables import need_out, pairs, reading, write
from hydra_core.cli.options import Verbs, import_options, model_names_option, verb, window_options
from hydra_core.cli.workspace import existing, log_folder

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.formats import Kind

_ONE = """
One query a row and one outcome a query: that of the model that was served. Rows without text,
model or feedback are skipped and counted by reason; nothing is filled in.
"""
_LOG = f"""\
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
_SPEND = f"""\
Reads rows of LiteLLM_SpendLogs: JSON, JSONL, CSV or Parquet files, or a PostgreSQL address. LiteLLM
keeps messages only with store_prompts_in_spend_logs, and no feedback: give it with --feedback, a
table with request_id and quality.
{_ONE}{_LABELS}
examples:
  hydra-router import spend-logs spend.jsonl --feedback votes.csv --out live
  hydra-router import spend-logs postgresql://reader@db/litellm --feedback votes.csv \\
      --model gpt-5=openai/gpt-5 --out live
"""
_LANGFUSE = f"""\
Reads an export of Langfuse: files of observations_v2, and with --scores the files of scores.
{_ONE}{_LABELS}
example:
  hydra-router import langfuse observations_v2/*.parquet --scores scores/1.parquet \\
      --score helpful --out live
"""
_HELICONE = f"""\
Reads an export of Helicone, JSON or JSONL, made with --include-body. Its thumbs and scores are the
quality. Where Helicone had no price, --price ID=IN,OUT estimates the cost.
{_ONE}{_LABELS}
example:
  npx @helicone/export --start-date 2026-01-01 --include-body --output requests.jsonl
  hydra-router import helicone requests.jsonl --score helicone-score-feedback --out live
"""
_SPANS = f"""\
Reads spans as JSONL: OpenTelemetry's GenAI names or OpenInference's. Feedback is an annotation or
an event gen_ai.evaluation.result on the span. Costs are estimated where --price ID=IN,OUT is given.
{_ONE}{_LABELS}
example:
  hydra-router import spans spans.jsonl --score correctness --out live
"""


def add_verbs(sources: Verbs) -> None:
    """Add the five imports."""
    parser = verb(sources, "log", _log, "the decision log of serve", _LOG, "IMPORT")
    help_text = "folder of the log; `log` is the workspace's"
    parser.add_argument("folder", type=log_folder, metavar="LOG", help=help_text)
    window_options(parser)
    _models(parser)
    parser = verb(
        sources, "spend-logs", _spend, "LiteLLM spend logs with feedback", _SPEND, "IMPORT"
    )
    parser.add_argument("files", nargs="+", metavar="FILE|URL")
    parser.add_argument("--feedback", type=Path, action="append", default=[], metavar="FILE")
    _models(parser, scaled=True)
    parser = verb(
        sources, "langfuse", _langfuse, "Langfuse generations with scores", _LANGFUSE, "IMPORT"
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="OBSERVATIONS")
    parser.add_argument("--scores", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--score", default="", metavar="NAME", help="which score is the quality")
    _models(parser, scaled=True)
    parser = verb(
        sources, "helicone", _helicone, "Helicone requests with feedback", _HELICONE, "IMPORT"
    )
    _scored_files(parser)
    parser = verb(sources, "spans", _spans, "GenAI or OpenInference spans", _SPANS, "IMPORT")
    _scored_files(parser)


def _scored_files(parser: argparse.ArgumentParser) -> None:
    """Files of rows that hold scores and may lack costs."""
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.jsonl")
    parser.add_argument("--score", default="", metavar="NAME", help="which one is the quality")
    parser.add_argument("--price", action="append", default=[], metavar="ID=IN,OUT[,cached=PRICE]")
    _models(parser, scaled=True)


def _models(parser: argparse.ArgumentParser, *, scaled: bool = False) -> None:
    model_names_option(parser)
    if scaled:
        parser.add_argument(
            "--quality-scale", type=float, default=1.0, metavar="X", help="the score that means 1"
        )
        parser.add_argument(
            "--label",
            action="append",
            default=[],
            metavar="LABEL=QUALITY",
            help="what feedback in words is worth, from 0 to 1; once per label",
        )
    import_options(parser)


def _log(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.traffic.decision_log import read_decision_log

    need_out(options)
    draft = read_decision_log(
        existing(options.folder), pairs(options.model),
        since=options.since, until=options.until, arm=options.arm,
    )  # fmt: skip
    return write(draft, options, f"HyDRA decision log {options.folder.name}")


def _spend(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.reading.bounded import Budget
    from hydra_core.evalsets.importers.reading.issues import Issues
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels
    from hydra_core.evalsets.importers.traffic.rows import rows_of
    from hydra_core.evalsets.importers.traffic.spend_logs import read_spend_logs, spend_log_rows

    need_out(options)
    databases = [name for name in options.files if name.startswith(("postgresql:", "postgres:"))]
    files = [existing(Path(name)) for name in options.files if name not in databases]
    rows = [row for url in databases for row in spend_log_rows(url)]
    unread = Issues()
    with reading(files):
        rows += rows_of(files, Budget(), unread)
    feedback = [existing(path) for path in options.feedback]
    models, scale = pairs(options.model), options.quality_scale
    labels = parse_labels(options.label)
    draft = read_spend_logs(rows, feedback, models, scale=scale, labels=labels, unread=unread)
    return write(draft, options, "LiteLLM spend logs")


def _langfuse(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels
    from hydra_core.evalsets.importers.traffic.langfuse import read_langfuse

    need_out(options)
    files, scores = (
        [existing(path) for path in paths] for paths in (options.files, options.scores)
    )
    models, labels = pairs(options.model), parse_labels(options.label)
    scale, score = options.quality_scale, options.score
    with reading(files):
        draft = read_langfuse(files, scores, models, score=score, scale=scale, labels=labels)
    return write(draft, options, "Langfuse export")


def _helicone(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.formats import Kind

    return _scored(options, Kind.HELICONE, "Helicone export")


def _spans(options: argparse.Namespace) -> int:
    from hydra_core.evalsets.importers.formats import Kind

    return _scored(options, Kind.SPANS, "spans")


def _scored(options: argparse.Namespace, kind: Kind, source: str) -> int:
    """Import files whose rows hold their scores."""
    from hydra_core.evalsets.importers.formats import Given, read
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels

    given = Given(
        models=pairs(options.model), prices=parse_prices(options.price), score=options.score,
        scale=options.quality_scale, labels=parse_labels(options.label),
    )  # fmt: skip
    need_out(options)
    files = [existing(path) for path in options.files]
    with reading(files):
        draft = read(kind, files, given)
    return write(draft, options, source)
