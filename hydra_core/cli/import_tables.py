"""The verbs import table, swebench and policy, and how every import writes its eval set."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.spelling import counted
from hydra_core.cli.options import IMPORT, Verbs, verb
from hydra_core.cli.output import progress_bar, say, show, table
from hydra_core.cli.workspace import EVALSET, changes, existing, open_evalset, shown

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.draft import Draft
    from hydra_core.evalsets.importers.mapping import TableMapping

_MB = 1_000_000
#: Bytes of files whose reading shows how far it is.
_LARGE = 20 * _MB
_SWEBENCH = """runs of a SWE-bench leaderboard with their problem statements
Joins runs of a SWE-bench leaderboard with the problem statements. Only instances with a text and
an outcome in every run are kept; the report says what was dropped and why.

examples:
  hydra-router import swebench leaderboards.json --runs
  hydra-router import swebench leaderboards.json --problems swebench_verified.jsonl \\
      --model gpt-5=20250807_mini-v1.7.0_gpt-5 --model gpt-5-mini=20250807_mini-v1.7.0_gpt-5-mini \\
      --out swebench
"""
_TABLE = """tables of queries and outcomes (CSV, JSONL, Parquet; long or wide)
Reads CSV, TSV, Markdown, JSON, JSONL or Parquet (text formats also .gz or .zip), long (a row per
query and model) or wide (a row per query, columns for each model: quality:MODEL and cost:MODEL, or
"MODEL correct" and "MODEL $"). Columns with usual names are recognised; --map names the others,
also by a path inside objects. Signs of currency and percent, decimal commas and thousands are read
column by column; --read says how a column is written where its cells leave it open. Files are
joined on query_id. Nothing is written unless every row is valid; at most 400 MiB and 2,000,000
rows.

fields: query_id text language conversation_id turn group cluster label_<dimension>; what hard gates
read: has_image needs_tools needs require allow deny context_tokens (all but has_image by --map);
long form: model quality cost_usd latency_s tokens input_tokens output_tokens
cached_input_tokens; wide form: quality:MODEL cost:MODEL input_tokens:MODEL output_tokens:MODEL ...

examples:
  hydra-router import table outcomes.csv --out mine
  hydra-router import table texts.jsonl outcomes.parquet --out mine --dry-run
  hydra-router import table wide.csv --map query_id=task --map text=prompt \\
      --map quality:gpt-5=gpt5_correct --map cost:gpt-5=gpt5_usd --out mine
  hydra-router import table sheet.csv --accept-ids --read 'Sonnet score=percent' \\
      --rate EUR=1.08 --out mine
"""
_SETS = """eval sets joined to one
Joins eval sets by query id: every query of any of them, with the outcomes that any of them has,
such as what was collected, a history and a log. Where two have the same outcome, the first named
counts. An id that stands for two texts is refused.

example:
  hydra-router import sets collected live --out both
"""
_POLICY = """another router's decisions, kept with an eval set
Keeps another router's decisions with an eval set: CSV, JSONL or Parquet with one row per query,
columns query_id and model. Every query of the set needs a model that the set has.

example:
  hydra-router import policy decisions.csv --evalset mine --name complexity
"""


def _sets(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.draft import join_sets

    need_out(options)
    sets = [open_evalset(path) for path in options.sets]
    write(join_sets(sets), options, "joined: " + ", ".join(one.name for one in sets))


def add_verbs(sources: Verbs) -> None:
    _add_table(sources)
    _add_swebench(sources)
    joined = verb(sources, "sets", _sets, _SETS, "IMPORT")
    joined.option("sets", "SET", type=EVALSET.find, nargs="+")
    joined.shared(*IMPORT)
    parser = verb(sources, "policy", _policy, _POLICY, "IMPORT")
    parser.option("file", "FILE", type=Path)
    parser.option(
        "--evalset", "SET", "name in the workspace, or a folder", type=EVALSET.find, required=True
    )
    parser.add_argument("--name", required=True, help="name of the policy")
    parser.flag("--force", "replace one of that name")


def _add_swebench(sources: Verbs) -> None:
    parser = verb(sources, "swebench", _swebench, _SWEBENCH, "IMPORT")
    parser.option("leaderboards", "LEADERBOARDS.json", type=Path)
    parser.option("--problems", "PROBLEMS.jsonl", "without: a set without texts", type=Path)
    parser.each("--model", "ID=RUN_FOLDER", "once per model")
    parser.add_argument("--board", help="which board, where a run is on several")
    parser.flag("--runs", "list the runs of the file")
    parser.shared(*IMPORT)


def _add_table(sources: Verbs) -> None:
    parser = verb(sources, "table", _table, _TABLE, "IMPORT")
    parser.option("files", "FILE", type=Path, nargs="+")
    parser.each("--map", "FIELD=COLUMN", "once per field")
    parser.option("--quality-scale", "X", "the quality that means 1", type=float, default=1.0)
    parser.flag("--decimal-comma", "numbers are written as 0,5")
    parser.flag("--quality-words", "pass is 1, fail 0; resolved, unresolved, ...")
    said = "how one column is written: comma, point, percent, cents, words, 1/5 (5 means 1)"
    parser.each("--read", "COLUMN=HOW", said)
    parser.each("--rate", "EUR=1.08", "USD of one unit")
    parser.flag("--no-cost", "the files have no costs")
    parser.flag("--no-texts", "the files have no texts")
    parser.each("--rename", "ID=NAME", "what the files call model ID")
    parser.flag("--accept-ids", "use the proposed id for each model name that is not a valid id")
    parser.shared(*IMPORT)


def _swebench(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.swebench import read_swebench

    existing(options.leaderboards)
    if options.runs:
        _list_runs(options)
        return
    models = pairs(options.model, "ID=RUN_FOLDER")
    need_out(options)
    problems = None if options.problems is None else existing(options.problems)
    draft = read_swebench(options.leaderboards, problems, models, board=options.board)
    runs = ", ".join(f"{model} = {folder}" for model, folder in models.items())
    write(draft, options, f"SWE-bench leaderboard: {runs}")


def _table(options: argparse.Namespace) -> None:
    from hydra_core.evalsets.importers.mapping import parse_map

    files = [existing(path) for path in options.files]
    mapping = parse_map(options.map)
    checked_scale(options.quality_scale)
    need_out(options)
    with reading(files):
        draft = _read_table(options, files, mapping)
    write(draft, options, ", ".join(path.name for path in files))


def _read_table(options: argparse.Namespace, files: list[Path], mapping: TableMapping) -> Draft:
    from hydra_core.catalog.identifiers import proposed_ids
    from hydra_core.evalsets.importers.reading.cells import Form
    from hydra_core.evalsets.importers.reading.notation import parse_notations, parse_rates
    from hydra_core.evalsets.importers.table import model_names, read_table

    ids = _renames(options.rename)
    known = model_names(files, mapping) if ids or options.accept_ids else ()
    there = f"models: {', '.join(known[:20])}"
    unknown = [Problem(repr(name), "is no model here", there) for name in ids if name not in known]
    EvalSetError.raise_any("--rename", unknown)
    if options.accept_ids:
        ids = proposed_ids([n for n in known if n not in ids]) | ids
        for name, model in ids.items():
            if name != model:
                say(f"note: {name!r} is now {model}")
    return read_table(
        files,
        mapping,
        need_cost=not options.no_cost,
        need_text=not options.no_texts,
        form=Form(
            decimal="," if options.decimal_comma else ".",
            scale=options.quality_scale,
            words=options.quality_words,
        ),
        notations=parse_notations(options.read),
        rates=parse_rates(options.rate),
        ids=ids,
    )


def _policy(options: argparse.Namespace) -> None:
    from hydra_core.replay.imported_policies import read_policy, save_policy

    evalset = open_evalset(options.evalset)
    models = read_policy(existing(options.file), evalset)
    path = save_policy(evalset, options.name, models, force=options.force)
    shares = models.value_counts(normalize=True).to_dict()
    listed = ", ".join(f"{model} {100 * share:.1f} %" for model, share in shares.items())
    document = {"out": str(path), "n": evalset.n, "shares": shares}
    show(options, document, f"{path}: {counted(evalset.n, 'query')}; {listed}")


@contextmanager
def reading(files: Sequence[Path]) -> Iterator[None]:
    """A progress bar on stderr while large files are read."""
    from hydra_core.evalsets.importers.reading.bounded import size_of, watched

    if size_of(files) < _LARGE:
        yield
        return
    with (
        progress_bar("reading", unit=" MB") as step,
        watched(lambda done, total: step(done // _MB, total // _MB), files),
    ):
        yield


def pairs(texts: list[str], form: str = "ID=NAME", *, place: str = "--model") -> dict[str, str]:
    """Model id -> upstream name from `ID=NAME` texts."""
    problems, names = [], {}
    for text in texts:
        model, _, name = text.partition("=")
        if not (model and name):
            problems.append(Problem(repr(text), f"is not {form}"))
        elif model in names:
            problems.append(Problem(repr(text), f"names {model} twice"))
        names[model] = name
    EvalSetError.raise_any(place, problems)
    return names


def checked_scale(scale: float) -> float:
    """The quality that means 1; EvalSetError where it is no number > 0."""
    if not 0 < scale < float("inf"):
        raise EvalSetError.of("--quality-scale", f"must be > 0, got {scale:g}")
    return scale


def _renames(texts: list[str]) -> dict[str, str]:
    """Name in the tables -> model id, from `ID=NAME` texts; one id may have several names."""
    ids: dict[str, str] = {}
    for text in texts:
        for model, name in pairs([text], place="--rename").items():
            if ids.setdefault(name, model) != model:
                raise EvalSetError.of(
                    "--rename",
                    f"is renamed {ids[name]} and {model}",
                    "choose one",
                    place=repr(name),
                )
    return ids


def need_out(options: argparse.Namespace) -> None:
    """Refuse a folder that is taken before reading large files."""
    from hydra_core.evalsets.folders import require_free

    if options.dry_run:
        return
    if options.out is None:
        remedy = "give a name or a new folder; --dry-run only reports"
        raise EvalSetError.of("--out", "is missing", remedy)
    require_free(options.out, force=options.force)


def write(draft: Draft, options: argparse.Namespace, origin: str) -> None:
    """Write a draft unless it is a dry run, and print its report."""
    from hydra_core.evalsets.importers.draft import About, write_draft

    about = About(
        name=options.name,
        origin=options.origin or origin,
        licence=options.licence,
        synthetic=options.synthetic,
        cost_estimated=options.cost_estimated,
        price_notes=options.price_notes,
    )
    out, where, done = options.out, None, "nothing was written (dry run)"
    if not options.dry_run:
        changes(out).write(out, lambda: write_draft(draft, out, about, force=options.force))
        where, done = str(out), f"written to {out}"
    show(options, {**draft.report.to_dict(), "out": where}, f"{draft.report}\n{done}")
    if where and "text" in draft.queries:
        say(f"next: hydra-router score {shown(out)}")


def _list_runs(options: argparse.Namespace) -> None:
    import numpy as np

    from hydra_core.evalsets.importers.swebench import list_runs

    runs = list_runs(options.leaderboards)
    costs = [float(np.mean([c for _, c in run.outcomes.values()] or [np.nan])) for run in runs]
    document, rows = [], []
    for run, cost in zip(runs, costs, strict=True):
        n = len(run.outcomes)
        document.append(
            {
                "board": run.board,
                "folder": run.folder,
                "name": run.name,
                "n": n,
                "resolved_percent": run.headline,
                "mean_cost_usd": cost,
                "problem": run.problem,
            }
        )
        figures = [str(n), f"{run.headline:.1f}", f"{cost:.3f}"]
        rows.append([run.folder, run.board, *figures, run.problem])
    head = ["run", "board", "n", "resolved %", "USD/instance", "problem"]
    show(options, document, table(head, rows))
