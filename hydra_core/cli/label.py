"""The verb lab label: requirement labels of an operator's own messages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.json_values import json_text
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import (
    CannotRunError,
    say,
    say_batches,
    say_cost,
    say_taken,
    show,
    spending_bar,
)
from hydra_core.cli.workspace import LABELING_RUN, existing, require_account

if TYPE_CHECKING:
    from hydra_core.lab.labeling.calls import LabelPlan
    from hydra_core.lab.labeling.config import LabelConfig
    from hydra_core.lab.labeling.ledger import Ledger
    from hydra_core.lab.labeling.messages import Message


_LABEL = """label messages by two answers and a judge
Labels messages as the paper does: a cheap and a strong model answer each one, a judge scores both
answers in both orders, and a dimension's label is max(0, strong - cheap) / 5. Messages that need a
repository (tiers T1 and T2) get the configuration's default instead.

Any OpenAI-compatible server; keys come from the environment. Needs: pip install openai jsonschema
A run can be stopped or killed at any moment: started again, it goes on where it was. A call whose
answer was lost is never paid twice: its message is set aside (--again asks it anew).

MESSAGES.jsonl: {"id", "text", "lang"}, and optionally "messages" (earlier turns), "tier" (1-3)
RUN: labels.jsonl (for evaluate-predictor and training), set_aside.jsonl, quality.md, quality.json,
ledger.jsonl, run.json. A run with a bare name lies in the workspace, and the console shows it under
Eval sets > Label quality while it is running.

examples:
  hydra-router lab label --example > label.yaml
  hydra-router lab label messages.jsonl --config label.yaml --out one --dry-run
  hydra-router lab label messages.jsonl --config label.yaml --out one
  hydra-router lab label messages.jsonl --config label.yaml --out two --write-batch
  hydra-router lab label messages.jsonl --config label.yaml --out two \\
      --read-batch output.jsonl
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "label", _label, _LABEL)
    parser.option("messages", "MESSAGES.jsonl", type=Path, nargs="?")
    parser.option("--config", "LABEL.yaml", type=Path)
    parser.option("--out", "RUN", "name in the workspace, or a folder", type=LABELING_RUN.place)
    parser.flag("--example", "print a commented configuration")
    parser.flag("--dry-run", "estimate the cost, call no model")
    parser.flag("--again", "retry messages that were set aside")
    parser.option("--answers", "F.jsonl", "answers you have", type=Path)
    parser.option("--judgements", "F.jsonl", "judgements you have", type=Path)
    parser.flag("--write-batch", "write batch files, call no model")
    parser.option("--read-batch", "F.jsonl", type=Path, nargs="+", default=[])


def _label(options: argparse.Namespace) -> int:
    from hydra_core.lab.labeling.config import EXAMPLE, load_config
    from hydra_core.lab.labeling.ledger import Ledger
    from hydra_core.lab.labeling.messages import read_messages
    from hydra_core.lab.labeling.run import check_texts
    from hydra_core.lab.labeling.run_folder import LEDGER, keep_setup

    if options.example:
        print(EXAMPLE.read_text(encoding="utf-8"), end="")
        return 0
    if not (options.messages and options.config and options.out):
        raise CannotRunError(
            "label needs MESSAGES.jsonl, --config and --out (see lab label --help)"
        )
    require_account("LABEL")
    config = load_config(existing(options.config))
    messages = read_messages(existing(options.messages))
    options.out.mkdir(parents=True, exist_ok=True)
    with Ledger(options.out / LEDGER, config.recipe) as ledger:
        check_texts(messages, ledger)
        keep_setup(
            options.out, config, messages, ledger.record, source=str(options.messages),
            settings=str(options.config), now=datetime.now(UTC),
        )  # fmt: skip
        return _with_ledger(options, config, messages, ledger)


def _with_ledger(
    options: argparse.Namespace, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> int:
    from hydra_core.lab.labeling.calls import LabelPlan, estimate
    from hydra_core.lab.labeling.run import BudgetError, reopen, run, write_batches

    plan = LabelPlan(config)
    _read_answers(options, plan, messages, ledger)
    if options.again:
        count = reopen(plan, messages, ledger, keep=not options.dry_run)
        say(f"{count} messages that were set aside are asked again")
    if not options.write_batch and not options.read_batch:
        say_cost(estimate(plan, messages, ledger.record), ledger.record, config.budget_usd)
    if options.dry_run:
        return 0
    stopped = ""
    if options.write_batch:
        say_batches(options.out, write_batches(options.out, plan, messages, ledger))
    elif not options.read_batch:
        try:
            with spending_bar(len(messages), " messages") as step:
                run(plan, messages, ledger, progress=step)
        except BudgetError as error:
            stopped = str(error)
    _finish(options, config, messages, ledger)
    if stopped:
        say(stopped)
    return 1 if stopped else 0


def _read_answers(
    options: argparse.Namespace, plan: LabelPlan, messages: Sequence[Message], ledger: Ledger
) -> None:
    from hydra_core.lab.labeling.run import read_batch, take_answers, take_verdicts

    if options.answers:
        taken = take_answers(existing(options.answers), messages, ledger)
        say(f"{taken} answers taken from {options.answers}")
    if options.judgements:
        taken = take_verdicts(existing(options.judgements), plan.config, messages, ledger)
        say(f"{taken} verdicts taken from {options.judgements}")
    for path in options.read_batch:
        say_taken(*read_batch(existing(path), plan, messages, ledger), path)


def _finish(
    options: argparse.Namespace, config: LabelConfig, messages: Sequence[Message], ledger: Ledger
) -> None:
    from hydra_core.lab.labeling.quality import quality, quality_text, write_outputs

    write_outputs(options.out, config, messages, ledger.record)
    figures = quality(config, messages, ledger.record)
    text = quality_text(figures)
    (options.out / "quality.md").write_text(text + "\n", encoding="utf-8")
    document = json_text(figures, ascii_only=True)
    (options.out / "quality.json").write_text(document + "\n", encoding="utf-8")
    show(options, figures, text)
