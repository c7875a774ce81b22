"""The verb collect: every model answers every message, a grader says what was achieved."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.spelling import counted, usd
from hydra_core.cli.options import WINDOW, Verbs, verb
from hydra_core.cli.output import (
    CannotRunError,
    print_json,
    say,
    say_batches,
    say_cost,
    say_taken,
    show,
    spending_bar,
)
from hydra_core.cli.workspace import EVALSET, changes, existing, log_folder, open_catalog, store_of

if TYPE_CHECKING:
    from hydra_core.base.list_price import ListPrice
    from hydra_core.lab.audit.tables import RatingRow
    from hydra_core.lab.collect.graders import GradeSettings
    from hydra_core.lab.collect.outcomes import Collected
    from hydra_core.lab.collect.people import Grades, People
    from hydra_core.lab.collect.plan import Asked, Cell, CollectPlan
    from hydra_core.lab.labeling.config import Server
    from hydra_core.lab.labeling.ledger import Ledger, Record

_SHOWN = 5
_COLLECT = """have every model answer messages, and grade the answers
Asks every model of a catalog or a price file about every message, grades the answers and writes an
eval set with outcomes, tokens, cost and latency. Prices come from there, servers and keys from the
upstreams file. Calls stop before they could cost more than the budget. A run that was stopped or
killed goes on where it was; a call whose answer was lost is set aside, not paid twice. With more
models or messages, or other graders, the same command pays for what is missing only.

MESSAGES: JSONL or a table with id, text or messages (the OpenAI form), and what the grader needs,
such as reference; grader, group, cluster, conversation_id and lang if wanted.
--from-log LOG takes a sample of --sample messages (300) from a decision log with texts instead,
evenly over models and requirements, and keeps it in RUN: what is asked stays the same when the log
grows. Live messages have no reference, so grade them with command, regex, json_schema, judge
or people.
GRADE.yaml: --example prints a commented one; graders: exact, contains, regex, number, json_schema,
multiple_choice, command, judge, people.
People grade on a form in RUN/grades: request and answer without the model's name, in random order,
from 1 (does not do what was asked) to 5 (does all of it). They fill in that file, or copies that
--grades takes in (one a person, named after them), or the console's part Collect. Run the same
command again to write what they graded; the other answers stay unknown.
RUN: a folder for the ledger of the run, beside the set (default: OUT.collect).

examples:
  hydra-router collect messages.jsonl --prices prices.yaml --upstreams upstreams.yaml \\
      --grade grade.yaml --out mine --dry-run
  hydra-router collect messages.jsonl --catalog mine --upstreams upstreams.yaml \\
      --grade grade.yaml --out mine --sample 300
  hydra-router collect --from-log log --since 7d --catalog mine --upstreams upstreams.yaml \\
      --grade grade.yaml --out week --sample 250
  hydra-router collect messages.jsonl --catalog mine --upstreams upstreams.yaml \\
      --grade grade.yaml --out mine --write-batch
  hydra-router collect messages.jsonl --catalog mine --upstreams upstreams.yaml \\
      --grade grade.yaml --out mine --read-batch output.jsonl
  hydra-router collect messages.jsonl --catalog mine --upstreams upstreams.yaml \\
      --grade grade.yaml --out mine --grades ana.csv bo.csv
"""


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "collect", _collect, _COLLECT, "IMPORT")
    parser.option("messages", "MESSAGES", type=Path, nargs="?")
    parser.option("--catalog", "CATALOG", "models and prices")
    parser.option("--prices", "P.yaml", "instead of a catalog", type=Path)
    parser.option("--upstreams", "U.yaml", type=Path)
    parser.option("--grade", "GRADE.yaml", type=Path)
    parser.option("--out", "SET", "name in the workspace, or a new folder", type=EVALSET.place)
    parser.flag("--example", "print a commented GRADE.yaml")
    parser.option("--run", "RUN", type=Path, dest="run_folder")
    parser.option("--models", "a,b,c", "only these models")
    parser.option("--sample", "N", "only N of the messages", type=int)
    parser.option("--from-log", "LOG", "instead of MESSAGES", type=log_folder)
    parser.shared(*WINDOW)
    parser.option("--budget", "USD", "instead of budget_usd", type=float)
    parser.add_argument("--name", default="", help="name of the eval set (default: the folder's)")
    parser.flag("--dry-run", "estimate the cost, call no model")
    parser.flag("--again", "retry what was set aside")
    parser.flag("--write-batch", "write files for a provider's batch API, call no model")
    said = "take the answers of batch files, call no model"
    parser.option("--read-batch", "F.jsonl", said, type=Path, nargs="+", default=[])
    parser.option(
        "--grades", "F.csv", "forms that people filled in", type=Path, nargs="+", default=[]
    )
    parser.flag("--force", "replace an eval set that is there")


def _collect(options: argparse.Namespace) -> int:
    from hydra_core.lab.collect.graders import EXAMPLE
    from hydra_core.lab.collect.outcomes import collected, require_writable
    from hydra_core.lab.collect.people import keep_filled, read_grades
    from hydra_core.lab.collect.plan import LEDGER, SUFFIX, keep_setup, plan_of, read_asked
    from hydra_core.lab.labeling.calls import estimate
    from hydra_core.lab.labeling.ledger import Ledger, Record
    from hydra_core.lab.labeling.run import check_texts, reopen

    if options.example:
        print(EXAMPLE.read_text(encoding="utf-8"), end="")
        return 0
    _require_given(options)
    settings = _settings(options)
    prices = _prices(options)
    plan = plan_of(settings, _servers(options, prices, settings))
    folder = options.run_folder or options.out.with_name(f"{options.out.name}{SUFFIX}")
    if options.from_log is None:
        messages = _sampled(read_asked(existing(options.messages), settings), options.sample)
    else:
        messages = read_asked(_logged(options, folder), settings)
    cells = plan.cells(messages)
    in_files = options.dry_run or options.write_batch  # neither writes the set
    require_writable(messages, options.out, force=options.force or in_files)
    if options.dry_run and not (folder / LEDGER).is_file():  # it leaves nothing behind
        say_cost(estimate(plan, cells, Record()), Record(), plan.budget_usd)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    with Ledger(folder / LEDGER, plan.recipe, plan.asked_as) as ledger:
        check_texts(cells, ledger)
        if options.again:
            count = reopen(plan, cells, ledger, keep=not options.dry_run)
            say(f"{count} answers that were set aside are asked again")
        say_cost(estimate(plan, cells, ledger.record), ledger.record, plan.budget_usd)
        if options.dry_run:
            return 0
        keep_filled(folder, [existing(path) for path in options.grades])
        by_people = read_grades(folder, _console_grades(folder))  # damaged ones before any cost
        keep_setup(folder, plan, cells, options.out)
        if options.write_batch:
            _write_batch(folder, plan, cells, ledger)
            return 0
        code = _answer(options, plan, cells, ledger)
        waiting = _write_form(folder, plan, messages, ledger.record, by_people)
        found = collected(plan, messages, ledger.record, by_people)
        if found.messages or not waiting:
            _write(options, found, prices)
        elif options.json:
            print_json(found.to_dict())
    return code


def _require_given(options: argparse.Namespace) -> None:
    if (options.messages is None) == (options.from_log is None):
        raise CannotRunError("collect needs either MESSAGES or --from-log (see collect --help)")
    for name in ("upstreams", "grade", "out"):
        if getattr(options, name) is None:
            raise CannotRunError(f"collect needs {name} (see collect --help)")
    if options.sample is not None and options.sample < 1:
        raise CannotRunError(f"--sample must be at least 1, got {options.sample}")


def _answer(
    options: argparse.Namespace, plan: CollectPlan, cells: Sequence[Cell], ledger: Ledger
) -> int:
    """Take the answers of batch files, else call the models; the exit code."""
    from hydra_core.lab.labeling.run import BudgetError, read_batch, run

    for path in options.read_batch:
        say_taken(*read_batch(existing(path), plan, cells, ledger), path)
    if options.read_batch:
        return 0
    try:
        with spending_bar(len(cells), " answers") as step:
            run(plan, cells, ledger, progress=step)
    except BudgetError as error:
        say(str(error))
        return 1
    return 0


def _logged(options: argparse.Namespace, folder: Path) -> Path:
    """The run's messages, drawn from the log where that was not done before."""
    from hydra_core.lab.collect.plan import MESSAGES, sample_log

    path = folder / MESSAGES
    if not path.is_file():
        wanted = 300 if options.sample is None else options.sample
        folder.mkdir(parents=True, exist_ok=True)
        count = sample_log(
            existing(options.from_log), path, wanted,
            since=options.since, until=options.until, arm=options.arm,
        )  # fmt: skip
        say(f"{count:,} messages drawn from the log; they stay in {path}")
    return path


def _write_batch(folder: Path, plan: CollectPlan, cells: Sequence[Cell], ledger: Ledger) -> None:
    """Write the calls that can be made now as files for a provider's batch API."""
    from hydra_core.lab.labeling.calls import estimate
    from hydra_core.lab.labeling.run import write_batches

    left = plan.budget_usd - ledger.record.committed_usd
    most = estimate(plan, cells, ledger.record).most_usd
    if most > left:
        raise CannotRunError(
            f"these calls may cost up to {usd(most)} and {usd(max(left, 0.0))} of the budget is "
            "left; raise budget_usd or take a smaller --sample"
        )
    say_batches(folder, write_batches(folder, plan, cells, ledger))


def _console_grades(folder: Path) -> list[RatingRow]:
    """What people graded in the console's part Collect."""
    from hydra_core.store.records import RatingState

    store = store_of(folder)
    if store is None:
        return []
    samples = [one for one in store.ratings.samples() if one.evalset == folder.name]
    rows = [
        (one.query_id, one.rater, one.scores, one.note)
        for sample in samples
        for one in store.ratings.of(sample.name)
        if one.state is RatingState.RATED
    ]
    store.close()
    return rows


def _write_form(
    folder: Path,
    plan: CollectPlan,
    messages: Sequence[Asked],
    record: Record,
    by_people: Grades,
) -> bool:
    """Write a form of the answers that people have not seen; whether some wait for a grade."""
    from hydra_core.base.whole_file import whole_file
    from hydra_core.export.downloads import csv_file
    from hydra_core.lab.collect.people import FILLED, to_grade, write_form

    answers = to_grade(plan, messages, record)
    written = write_form(folder, answers)
    if written is not None:
        path, table = written
        with whole_file(path) as target:
            target.write_bytes(csv_file(table))
    waiting = sum(one.id not in by_people for one in answers)
    if waiting:
        where = f"{folder / FILLED} or in the console (Eval sets, Collect)"
        say(f"{waiting:,} answers wait for people: fill in quality (1 to 5) in {where}, then run "
            "this again")  # fmt: skip
    return waiting > 0


def _settings(options: argparse.Namespace) -> GradeSettings:
    from hydra_core.lab.collect.graders import load_settings

    settings = load_settings(existing(options.grade))
    if options.budget is None:
        return settings
    if not 0.0 < options.budget < 1e9:
        raise CannotRunError(f"--budget must be over 0, got {options.budget:g}")
    return replace(settings, budget_usd=options.budget)


def _prices(options: argparse.Namespace) -> dict[str, ListPrice]:
    """Model id -> list price, of a catalog or a price file; only those asked for."""
    from hydra_core.catalog.prices.price_file import read_price_file
    from hydra_core.catalog.profiles import is_routable

    if (options.catalog is None) == (options.prices is None):
        raise CannotRunError("collect needs either --catalog or --prices (see collect --help)")
    if options.prices is not None:
        given = read_price_file(existing(options.prices))
        known = {model: one.price for model, one in given.items()}
        in_pool = list(known)
    else:
        models = open_catalog(options.catalog).models
        known = {model.id: model.price for model in models}
        in_pool = [model.id for model in models if is_routable(model, date.today())]
        left_out = [name for name in known if name not in in_pool]
        if left_out and not options.models:
            say(f"left out, as nothing is routed there: {', '.join(left_out)} (--models asks them)")
    ids = [one.strip() for one in options.models.split(",")] if options.models else in_pool
    for one in ids:
        if one not in known:
            raise CannotRunError(f"--models: {one!r} has no price; known: {', '.join(known)}")
    return {one: known[one] for one in ids}


def _servers(
    options: argparse.Namespace, prices: Mapping[str, ListPrice], settings: GradeSettings
) -> dict[str, Server]:
    from hydra_core.lab.labeling.config import JsonMode, Server
    from hydra_core.server.upstream.file import load_upstreams
    from hydra_core.server.wire import Form

    upstreams = load_upstreams(existing(options.upstreams))
    upstreams.require(prices, os.environ)
    servers = {}
    for model, price in prices.items():
        upstream = upstreams.by_model[model]
        if Form.CHAT not in upstream.speaks:
            text = f"{model}: {upstream.name!r} does not speak the form chat, which collect asks in"
            raise CannotRunError(text)
        servers[model] = Server(
            model, upstream.models[model].name, upstream.base_url, upstream.key_env,
            price, settings.max_tokens, settings.concurrency, settings.honours_idempotency_key,
            JsonMode.NONE, upstream.models[model].bodies.get(Form.CHAT, {}), upstream.key_header,
        )  # fmt: skip
    return servers


def _sampled(messages: Sequence[Asked], wanted: int | None) -> tuple[Asked, ...]:
    """The same messages for the same file and number, in the file's order."""
    if wanted is None or wanted >= len(messages):
        return tuple(messages)
    drawn = sorted(messages, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:wanted]
    chosen = {one.id for one in drawn}
    return tuple(one for one in messages if one.id in chosen)


def _write(options: argparse.Namespace, found: Collected, prices: Mapping[str, ListPrice]) -> None:
    from hydra_core.choosing.sources.grader_check import findings_of
    from hydra_core.lab.collect.outcomes import write_set

    if not found.messages:
        reasons = Counter(reason for one in found.missing.values() for reason in one.elements())
        why = "; ".join(f"{count:,} {reason}" for reason, count in reasons.most_common(3))
        raise CannotRunError(f"no answer could be graded, so no eval set is written: {why}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    name = options.name or options.out.name
    made = changes(options.out).write(
        options.out, lambda: write_set(found, options.out, name, prices, force=options.force)
    )
    doubts = findings_of(made, made.models)
    lines = [
        f"{options.out}: {counted(len(found.messages), 'query')}, "
        f"{counted(len(found.models), 'model')}"
    ]
    for model, facts in found.to_dict()["models"].items():
        quality = "-" if facts["quality"] is None else f"{facts['quality']:.3f}"
        cost = "-" if facts["mean_cost_usd"] is None else usd(facts["mean_cost_usd"])
        missing = facts["missing"].items()
        why = "".join(f"; {count} without a grade: {reason}" for reason, count in missing)
        if count := facts["as_long_as_allowed"]:
            why += f"; {counted(count, 'answer')} of max_tokens, perhaps cut off"
        known = f"{facts['graded']:,} graded, quality {quality}, {cost} per query"
        lines.append(f"  {model}: {known}{why}")
    lines += [f"check: {one.text}" for one in doubts[:_SHOWN]]
    if found.people is not None:
        lines.append(_people(found.people))
    if found.agreement is not None:
        share = f"{found.agreement:.0%}"
        lines.append(f"the judge agreed with itself on {share} of what it graded twice")
    document = {**found.to_dict(), "findings": [one.numbers() for one in doubts]}
    show(options, document, "\n".join(lines))


def _people(people: People) -> str:
    """How far people are, and how well they agree."""
    text = f"people: {people.graded:,} of {people.answers:,} answers graded by {people.raters}"
    if people.twice is not None:
        text += f"; the same grade again for {people.twice:.0%} of those graded twice"
    if people.alpha is not None:
        one = people.alpha
        text += f"; agreement of raters (alpha) {one.value:.2f} [{one.lo:.2f}, {one.hi:.2f}]"
    return text
