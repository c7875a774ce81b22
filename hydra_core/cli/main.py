"""Entry point: parse, run one verb, turn what went wrong into one message and an exit code.

0: done. 2: the input is not valid (arguments, catalog, eval set, bundle, or they do not fit
together). 1: it could not be run (a file is missing, the disk is full).
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra_core.base.errors import HydraError, MismatchError, ProblemsError, RoutingError
from hydra_core.cli import (
    audit,
    canary,
    collect,
    console,
    evaluate,
    flight,
    imports_policy,
    imports_records,
    imports_traffic,
    init,
    learn,
    maintain,
    partitions,
    predictor,
    releases,
    report,
    route,
    serve,
    shadow,
)
from hydra_core.cli import imports as data
from hydra_core.cli.account import require_account
from hydra_core.cli.grammar import EXIT_CODES, add_fixed, bundle_option, import_options, verb
from hydra_core.cli.lab import ablate, label, probe, recalibrate
from hydra_core.cli.output import CannotRunError, say

_IMPORT_SWEBENCH = """\
Joins runs of a SWE-bench leaderboard with the problem statements. Only instances with a text and
an outcome in every run are kept; the report says what was dropped and why.

examples:
  python -m hydra_core import swebench leaderboards.json --runs
  python -m hydra_core import swebench leaderboards.json --problems swebench_verified.jsonl \\
      --model gpt-5=20250807_mini-v1.7.0_gpt-5 --model gpt-5-mini=20250807_mini-v1.7.0_gpt-5-mini \\
      --out evalsets/swebench
"""
_IMPORT_TABLE = """\
Reads CSV, TSV, JSONL or Parquet (text formats also .gz or .zip), long (a row per query and model)
or wide (a row per query, columns quality:MODEL and cost:MODEL). Columns with usual names are found
by themselves; --map says the others. Files are joined on query_id. Nothing is written unless every
row is fine; at most 200 MiB of data and 2,000,000 rows.

fields: query_id text language has_image conversation_id turn group cluster label_<dimension>;
long form: model quality cost_usd latency_s tokens input_tokens output_tokens
cached_input_tokens; wide form: quality:MODEL cost:MODEL

examples:
  python -m hydra_core import table outcomes.csv --out evalsets/mine
  python -m hydra_core import table texts.jsonl outcomes.parquet --out evalsets/mine --dry-run
  python -m hydra_core import table wide.csv --map query_id=task --map text=prompt \\
      --map quality:gpt-5=gpt5_correct --map cost:gpt-5=gpt5_usd --out evalsets/mine
"""
_SCORE = """\
Scores every query of an eval set with a predictor bundle. Progress on stderr; a job that was
stopped goes on where it was; scores that are there already are kept.

examples:
  python -m hydra_core score evalsets/mine
  python -m hydra_core score evalsets/mine --bundle bundles/compact-2
"""
_DEPENDENCE = """\
Looks for queries that belong together without saying so: the same text, ids that differ by a
language or an attempt, texts that mean nearly the same (by the vectors of a bundle that has scored
the set). They are printed with examples; --accept declares them as clusters, --decline keeps them
apart. The answer is kept in the set and every verdict on it says if the question is open.

examples:
  python -m hydra_core dependence evalsets/mine
  python -m hydra_core dependence evalsets/mine --accept
"""
_EVALUATE = """\
Replays the router over an eval set: single models, oracle, the router at one tau with 95 %
intervals, the verdict against the best constant policy at the same cost, the exact frontier.
Queries that are not scored yet are scored first.

The catalog's own policy counts as fixed beforehand, but on the sets that its chosen_on names: what
was dragged or tuned on a set is judged there by the band over the whole curve. So is a --tau or
--weights of your own, unless you say with --fixed that it was settled before anybody looked: then
the output says that this is your statement.

examples:
  python -m hydra_core evaluate sample_data/paper_swebench \\
      --catalog catalog/paper_five_published.yaml
  python -m hydra_core evaluate evalsets/mine --catalog pool.yaml --tau 0.1 --baseline gpt-5 --json
  python -m hydra_core evaluate evalsets/mine --catalog pool.yaml --weights 1,2,1,0.5
  python -m hydra_core evaluate evalsets/other --catalog pool.yaml --outcome-model om --json
  python -m hydra_core evaluate evalsets/mine --catalog pool.yaml --tau 0.1 --fixed
  python -m hydra_core evaluate evalsets/mine --catalog pool.yaml --table --points 0.1,0.2
  python -m hydra_core evaluate evalsets/mine --catalog pool.yaml --table table.tex
"""
_ROUTE = """\
Routes the message on standard input and prints the model's id.

With --stream every line of standard input is a request and every line of standard output its
decision, in order, flushed at once. Keys: text or messages (the OpenAI form, with tools), and if
wanted id turn conversation_id prefix has_image needs_tools context_tokens allow deny compacted
current health. Conversations keep their model as the catalog's sticky policy says. A line that
cannot be routed is answered with "error".

With messages the last user turn is routed. A bundle that was trained on what came before it reads
that, too; the two that come with HyDRA score the message alone.

examples:
  echo "Fix the failing test" | python -m hydra_core route --catalog catalog/paper_five.yaml
  python -m hydra_core route --catalog pool.yaml --tau 0.1 --explain < message.txt
  python -m hydra_core route --catalog pool.yaml --json < message.txt | jq .model
  python -m hydra_core route --catalog pool.yaml --messages < conversation.json
  python -m hydra_core route --catalog pool.yaml --stream --receipt < requests.jsonl > routed.jsonl
"""
_VALIDATE = """\
Checks a catalog (YAML file), an eval set (folder) or a predictor bundle (folder) and lists every
problem, not only the first. Exit code 0: valid; 2: not valid; 1: could not be run.

examples:
  python -m hydra_core validate catalog/paper_five.yaml
  python -m hydra_core validate evalsets/mine --json
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of all verbs; `options.run(options)` runs the one that was given."""
    parser = argparse.ArgumentParser(
        prog="hydra-router" if Path(sys.argv[0]).name == "hydra-router" else "python -m hydra_core",
        description="HyDRA on the command line: import, score, evaluate, route, validate.",
        epilog=f"{EXIT_CODES}\nevery verb has --help with examples",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    importers = verbs.add_parser("import", help="make an eval set of other people's files")
    sources = importers.add_subparsers(metavar="SOURCE", required=True)
    _import_swebench(sources)
    _import_table(sources)
    imports_policy.add_policy(sources)
    imports_records.add_importers(sources)
    imports_traffic.add_importers(sources)
    _score(verbs)
    _dependence(verbs)
    _evaluate(verbs)
    _route(verbs)
    _validate(verbs)
    predictor.add_predictor(verbs)
    maintain.add_rebind(verbs)
    collect.add_collect(verbs)
    releases.add_releases(verbs)
    learn.add_learn(verbs)
    report.add_report(verbs)
    init.add_init(verbs)
    console.add_console(verbs)
    label.add_label(verbs)
    flight.add_flight(verbs)
    shadow.add_shadow(verbs)
    recalibrate.add_recalibrate(verbs)
    probe.add_probe(verbs)
    ablate.add_ablate(verbs)
    serve.add_serve(verbs)
    canary.add_canary(verbs)
    partitions.add_partitions(verbs)
    audit.add_audit(verbs)
    return parser


def _import_swebench(sources: Any) -> None:  # noqa: ANN401
    short = "runs of a SWE-bench leaderboard with their problem statements"
    parser = verb(sources, "swebench", data.import_swebench, short, _IMPORT_SWEBENCH, "IMPORT")
    parser.add_argument("leaderboards", type=Path, metavar="LEADERBOARDS.json")
    parser.add_argument(
        "--problems", type=Path, metavar="PROBLEMS.jsonl", help="without: a set without texts"
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="ID=RUN_FOLDER", help="once per model"
    )
    parser.add_argument("--board", help="board to look on when a run is on several")
    parser.add_argument("--runs", action="store_true", help="list the runs of the file")
    import_options(parser)


def _import_table(sources: Any) -> None:  # noqa: ANN401
    short = "tables of queries and outcomes (CSV, JSONL, Parquet; long or wide)"
    parser = verb(sources, "table", data.import_table, short, _IMPORT_TABLE, "IMPORT")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN", help="once per field"
    )
    parser.add_argument(
        "--quality-scale", type=float, default=1.0, metavar="X", help="the quality that means 1"
    )
    parser.add_argument("--decimal-comma", action="store_true", help="numbers are written 0,5")
    parser.add_argument(
        "--quality-words", action="store_true", help="pass is 1, fail 0; resolved, unresolved, ..."
    )
    parser.add_argument("--no-cost", action="store_true", help="there are no costs")
    parser.add_argument("--no-texts", action="store_true", help="there are no texts")
    parser.add_argument(
        "--rename", action="append", default=[], metavar="ID=NAME", help="a model's id for its name"
    )
    parser.add_argument(
        "--accept-ids",
        action="store_true",
        help="take the proposed id for each name that cannot be one",
    )
    import_options(parser)


def _catalog_and_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--catalog", type=Path, required=True, metavar="C.yaml")
    parser.add_argument("--tau", type=float, metavar="T", help="threshold (default: the catalog's)")


def _score(verbs: Any) -> None:  # noqa: ANN401
    short = "score an eval set with a predictor bundle"
    parser = verb(verbs, "score", data.score, short, _SCORE, "SCORE")
    parser.add_argument("evalset", type=Path, metavar="DIR")
    bundle_option(parser)


def _dependence(verbs: Any) -> None:  # noqa: ANN401
    short = "look for queries that depend on each other"
    parser = verb(verbs, "dependence", data.dependence, short, _DEPENDENCE)
    parser.add_argument("evalset", type=Path, metavar="DIR")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--accept", action="store_true", help="declare them as clusters")
    answers.add_argument("--decline", action="store_true", help="count them as independent")


def _evaluate(verbs: Any) -> None:  # noqa: ANN401
    short = "replay the router over an eval set"
    parser = verb(verbs, "evaluate", evaluate.evaluate, short, _EVALUATE)
    parser.add_argument("evalset", type=Path, metavar="DIR")
    _catalog_and_policy(parser)
    parser.add_argument(
        "--weights", metavar="r,c,d,t", help="one stored weight per dimension, catalog order"
    )
    parser.add_argument("--baseline", metavar="MODEL", help="savings against it (default: dearest)")
    costs = "at the catalog's prices (default), or as they were recorded"
    parser.add_argument("--costs", choices=("today", "recorded"), default="today", help=costs)
    bundle_option(parser)
    parser.add_argument(
        "--outcome-model",
        type=Path,
        metavar="DIR",
        help="replay the value rule by its predictions",
    )
    parser.add_argument(
        "--value", type=float, metavar="V", help="USD that one more resolved query is worth"
    )
    parser.add_argument(
        "--cross-fitted",
        action="store_true",
        help="the set was learned on: use predictions by heads that had not seen its queries",
    )
    add_fixed(parser)
    table = "significance table of router, constants and imported policies; FILE: .csv or .tex"
    parser.add_argument("--table", nargs="?", const="-", metavar="FILE", help=table)
    points = "more values of tau (or V) as rows of the table"
    parser.add_argument("--points", metavar="a,b,c", help=points)
    parser.add_argument(
        "--baselines", action="store_true", help="learned routers, cross-fitted, in the table too"
    )


def _route(verbs: Any) -> None:  # noqa: ANN401
    parser = verb(verbs, "route", route.route, "route one message, or a stream of them", _ROUTE)
    _catalog_and_policy(parser)
    parser.add_argument("--explain", action="store_true", help="why, model by model")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--stream", action="store_true", help="JSONL in, JSONL out")
    given = "a conversation in: OpenAI messages, or lines User: ... and Assistant: ..."
    form.add_argument("--messages", action="store_true", help=given)
    parser.add_argument("--receipt", action="store_true", help="the whole receipt as JSON")
    bundle_option(parser)


def _validate(verbs: Any) -> None:  # noqa: ANN401
    short = "check a catalog, an eval set, a bundle or an outcome model"
    parser = verb(verbs, "validate", maintain.validate, short, _VALIDATE)
    parser.add_argument("file", type=Path, metavar="FILE")


#: The input is fine, the place to write to is not.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code.

    Args:
        arguments: Command line without the program's name; None takes the process's own.
    """
    parser = build_parser()
    options, unknown = parser.parse_known_args(arguments)
    if unknown and not hasattr(options, "passed_on"):
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.passed_on = unknown
    if sys.stdout is None:
        say("standard output is closed; send it somewhere, such as > result.txt")
        return 1
    try:
        require_account("" if getattr(options, "dry_run", False) else options.asks)
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`); nothing more may be written to it.
        _discard_output()
        return 0
    except (ProblemsError, MismatchError, RoutingError) as error:
        say(str(error))
        return 1 if getattr(error.__cause__, "errno", None) in _DISK else 2
    except (CannotRunError, HydraError, OSError) as error:
        say(str(error))
        if isinstance(error, OSError) and error.errno in _DISK:
            _discard_output()
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return code


def _discard_output() -> None:
    """What could not be written must not be tried again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
