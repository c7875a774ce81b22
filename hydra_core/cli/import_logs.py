"""The imports of live traffic: HyDRA's decision log, LiteLLM, Langfuse, Helicone, spans."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.cli.import_tables import need_out, pairs, reading, write
from hydra_core.cli.options import IMPORT, WINDOW, Grammar, Verbs, verb
from hydra_core.cli.workspace import existing, log_folder

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.given import Given

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
an event gen_ai.evaluation.result on the span. Costs are estimated where --price ID=IN,OUT is given.
{_ONE}{_LABELS}
example:
  hydra-router import spans spans.jsonl --score correctness --out live
"""


def add_verbs(sources: Verbs) -> None:
    """Add the five imports."""
    parser = verb(sources, "log", _log, _LOG, "IMPORT")
    parser.option("folder", "LOG", "folder of the log; `log` is the workspace's", type=log_folder)
    parser.shared(*WINDOW)
    _models(parser)
    parser = verb(sources, "spend-logs", _spend, _SPEND, "IMPORT")
    parser.option("files", "FILE|URL", nargs="+")
    parser.option("--feedback", "FILE", type=Path, action="append", default=[])
    _models(parser, scaled=True)
    parser = verb(sources, "langfuse", partial(_scored, "LANGFUSE"), _LANGFUSE, "IMPORT")
    parser.option("files", "OBSERVATIONS", type=Path, nargs="+")
    parser.option("--scores", "FILE", type=Path, action="append", default=[])
    parser.option("--score", "NAME", "which score is the quality", default="")
    _models(parser, scaled=True)
    for name, text in (("helicone", _HELICONE), ("spans", _SPANS)):
        parser = verb(sources, name, partial(_scored, name.upper()), text, "IMPORT")
        parser.option("files", "FILE.jsonl", type=Path, nargs="+")
        parser.option("--score", "NAME", "which one is the quality", default="")
        parser.each("--price", "ID=IN,OUT[,cached=PRICE]")
        _models(parser, scaled=True)


def _models(parser: Grammar, *, scaled: bool = False) -> None:
    parser.shared("--model")
    if scaled:
        parser.option("--quality-scale", "X", "the score that means 1", type=float, default=1.0)
        said = "what feedback in words is worth, from 0 to 1; once per label"
        parser.each("--label", "LABEL=QUALITY", said)
    parser.shared(*IMPORT)


def _log(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.traffic.decision_log import read_decision_log

    need_out(options)
    draft = read_decision_log(
        existing(options.folder), pairs(options.model),
        since=options.since, until=options.until, arm=options.arm,
    )  # fmt: skip
    write(draft, options, f"HyDRA decision log {options.folder.name}")


def _spend(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.traffic.spend_logs import read_spend_logs, spend_log_rows

    need_out(options)
    databases = [name for name in options.files if name.startswith(("postgresql:", "postgres:"))]
    files = [existing(Path(name)) for name in options.files if name not in databases]
    rows = [row for url in databases for row in spend_log_rows(url)]
    given = _given(options, options.feedback)
    with reading(files):
        draft = read_spend_logs(files, given, rows)
    write(draft, options, "LiteLLM spend logs")


def _given(options: argparse.Namespace, more: Sequence[Path] = ()) -> Given:
    """What the options of logs with scores say, and the files beside them."""
    from hydra_core.evalsets.importers.given import Given
    from hydra_core.evalsets.importers.price_card import parse_prices
    from hydra_core.evalsets.importers.traffic.feedback import parse_labels

    return Given(
        [existing(path) for path in more],
        pairs(options.model),
        parse_prices(getattr(options, "price", [])),
        score=getattr(options, "score", ""),
        scale=options.quality_scale,
        labels=parse_labels(options.label),
    )


def _scored(kind: str, options: argparse.Namespace) -> None:
    """Import files whose rows hold their scores, or have them in files beside them."""
    from hydra_core.evalsets.importers.formats import Kind, read

    given = _given(options, getattr(options, "scores", ()))
    need_out(options)
    files = [existing(path) for path in options.files]
    with reading(files):
        draft = read(Kind[kind], files, given)
    source = {"LANGFUSE": "Langfuse export", "HELICONE": "Helicone export", "SPANS": "spans"}
    write(draft, options, source[kind])
