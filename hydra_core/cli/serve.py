"""Verbs of the live router: serve, token."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final, cast

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, say
from hydra_core.cli.workspace import catalog_source, log_folder

if TYPE_CHECKING:
    from hydra_core.server.settings import Settings

_SERVE = """\
Routes live traffic. POST /v1/decision says which model and why, and spends nothing; POST
/v1/chat/completions with model "auto" passes the request on to the model's upstream, streams
included, and asks the next model when one does not answer. Also /v1/models, /v1/outcomes,
/v1/dry-run, /health/live, /health/ready, /metrics. The catalog is loaded again when it changes;
one that is not valid changes nothing. Keys are in the variables that the upstreams file names.

examples:
  hydra-router serve --catalog paper_five
  hydra-router serve --catalog mine --upstreams upstreams.yaml --log log
  hydra-router serve --catalog mine --upstreams upstreams.yaml --check
  hydra-router serve --catalog store:production --upstreams upstreams.yaml --log log \\
      --canary candidate --canary-share 0.1
  hydra-router serve --catalog pool.yaml --host 0.0.0.0 --tokens tokens.yaml --workers 2 \\
      --redis redis://localhost:6379/0
"""
_TOKEN = """\
Makes a bearer token and prints it once on standard output; the line for the token file, which
holds its hash only, goes to standard error. Roles: a viewer may ask for decisions, an editor may
also have requests answered and send outcomes.

example:
  hydra-router token --name ci --role viewer
"""

_ANOTHER = "share of decisions that may try another capable model (default: none)"
_ALL = "share that may try any model, so that the log can value any policy (default: none)"
_LIMIT = "stop it when it is so many times as expensive or as slow (0: never)"
#: Flag, default (whose type the value has), unit, help.
_SETTINGS: Final[tuple[tuple[str, float | str, str, str | None], ...]] = (
    ("--explore", 0.0, "SHARE", _ANOTHER),
    ("--explore-all", 0.0, "SHARE", _ALL),
    ("--explore-floor", 0.5, "P", "least predicted success"),
    ("--explore-budget", 1.0, "USD", "a day, all workers"),
    ("--canary", "", "CATALOG", "a second catalog, stopped when it is worse"),
    ("--canary-share", 0.1, "SHARE", "of the conversations"),
    ("--canary-limit", 2.0, "X", _LIMIT),
    ("--max-body-mb", 20.0, "MB", None),
    ("--rate", 0.0, "N", "requests/s a caller"),
    ("--queue", 64, "N", "requests that may wait for a decision"),
    ("--queue-wait", 1.0, "S", "and how long, in seconds"),
    ("--not-ready", 3.0, "S", "not ready before a stop, seconds"),
)


def add_verbs(verbs: Verbs) -> None:
    """Add serve and token."""
    parser = verb(verbs, "serve", _serve, "route live traffic over HTTP", _SERVE)
    help_text = "name in the workspace, a YAML file, or store:NAME"
    parser.add_argument("--catalog", required=True, metavar="CATALOG", help=help_text)
    parser.add_argument("--upstreams", default="", metavar="U.yaml", help="who serves each model")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: this machine only)")
    parser.add_argument("--port", type=int, default=8600)
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--redis", default="", metavar="URL", help="workers share conversations")
    help_text = "write a decision log to this folder; `log` is the workspace's"
    parser.add_argument("--log", default="", metavar="LOG", help=help_text)
    parser.add_argument("--log-text", action="store_true", help="with the messages themselves")
    parser.add_argument(
        "--tokens", default="", metavar="T.yaml", help="who may send requests, as hashes"
    )
    parser.add_argument(
        "--insecure-no-sign-in", action="store_true", help="answer anybody, decisions only"
    )
    parser.add_argument("--bundle", default="", metavar="B", help="predictor bundle folder")
    for flag, default, unit, words in _SETTINGS:
        parser.add_argument(flag, type=type(default), default=default, metavar=unit, help=words)
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"]
    )
    parser.add_argument("--spans", action="store_true", help="OpenTelemetry spans (OTEL_* set up)")
    parser.add_argument("--check", action="store_true", help="only say whether it would start")
    short = "make a bearer token for serve"
    parser = verb(verbs, "token", _token, short, _TOKEN)
    parser.add_argument("--name", required=True, help="who gets it")
    parser.add_argument("--role", default="viewer", choices=["viewer", "editor", "publisher"])
    parser.add_argument("--team", default="", help="who pays for what it asks")
    help_text = "tag that a model must have to serve it; may be repeated"
    parser.add_argument("--require", action="append", metavar="TAG", help=help_text)


def _serve(options: argparse.Namespace) -> int:
    _check_numbers(options)
    from hydra_core.server.run import check, serve
    from hydra_core.server.settings import Settings

    settings = Settings(
        catalog=catalog_source(options.catalog),
        upstreams=options.upstreams,
        host=options.host,
        port=options.port,
        workers=options.workers,
        redis=options.redis,
        log=str(log_folder(options.log)) if options.log else "",
        log_text=options.log_text,
        tokens=options.tokens,
        insecure=options.insecure_no_sign_in,
        bundle=options.bundle,
        explore_share=options.explore,
        explore_all=options.explore_all,
        explore_floor=options.explore_floor,
        explore_budget_usd=options.explore_budget,
        canary=catalog_source(options.canary) if options.canary else "",
        canary_share=options.canary_share,
        canary_limit=options.canary_limit,
        max_body_mb=options.max_body_mb,
        rate=options.rate,
        log_level=options.log_level,
        queue=options.queue,
        queue_s=options.queue_wait,
        not_ready_s=options.not_ready,
        spans=options.spans,
    )
    if options.check:
        report = check(settings)
        if options.json:
            print_json(report)
        else:
            warnings = cast(list[str], report.pop("warnings", []))
            lines = [f"{name}: {_in_words(value)}" for name, value in report.items()]
            print("\n".join([*lines, *(f"warning: {one}" for one in warnings)]))
        return 0
    if settings.explore_all:
        say(_cost_of_trying_all(settings))
    say(f"routing on http://{options.host}:{options.port} (Ctrl-C stops)")
    serve(settings)
    return 0


def _cost_of_trying_all(settings: Settings) -> str:
    """What --explore-all would have cost a day on the log's newest day, or that nobody knows."""
    from datetime import timedelta
    from pathlib import Path

    from hydra_core.decision_log.reading import read_log
    from hydra_core.live.costs import cost_of_trying_all
    from hydra_core.live.traffic import traffic_of
    from hydra_core.server.live import source_of

    share, most = settings.explore_all, settings.explore_budget_usd
    said = f"--explore-all {share:g}: at most ${most:g} a day (--explore-budget)"
    if not settings.log or not Path(settings.log).is_dir():
        return f"{said}; a log of a day's traffic would say what it costs"
    since = datetime.now(UTC) - timedelta(days=1)
    traffic = traffic_of(read_log(Path(settings.log), since=since))
    usd = cost_of_trying_all(traffic, source_of(settings.catalog).load().catalog, date.today())
    if usd is None:
        return f"{said}; no request of the last 24 hours in the log has known tokens"
    return f"{said}; on the last 24 hours' traffic it would have cost ${share * usd:.2f} more"


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _check_numbers(options: argparse.Namespace) -> None:
    wrong = [
        Problem(f"--{name}", f"must be {words}, got {value:g}")
        for name, value, words, fine in (
            ("port", options.port, "from 1 to 65535", 0 < options.port < 65536),
            ("workers", options.workers, "from 1 to 64", 0 < options.workers < 65),
            ("explore", options.explore, "in [0, 1]", 0 <= options.explore <= 1),
            ("explore-all", options.explore_all, "in [0, 1]", 0 <= options.explore_all <= 1),
            ("explore-floor", options.explore_floor, "in [0, 1]", 0 <= options.explore_floor <= 1),
            ("explore-budget", options.explore_budget, ">= 0", options.explore_budget >= 0),
            ("canary-share", options.canary_share, "in (0, 1)", 0 < options.canary_share < 1),
            ("canary-limit", options.canary_limit, "0 or >= 1", _is_limit(options.canary_limit)),
            ("max-body-mb", options.max_body_mb, "in (0, 1000]", 0 < options.max_body_mb <= 1000),
            ("rate", options.rate, ">= 0", options.rate >= 0),
            ("queue", options.queue, "from 1 to 10000", 0 < options.queue <= 10_000),
            ("queue-wait", options.queue_wait, "in (0, 60]", 0 < options.queue_wait <= 60),
            ("not-ready", options.not_ready, "in [0, 600]", 0 <= options.not_ready <= 600),
        )
        if not fine
    ]
    if wrong:
        raise ProblemsError("serve", wrong)


def _is_limit(value: float) -> bool:
    return value == 0 or 1 <= value < 1e6


def _token(options: argparse.Namespace) -> int:
    from hydra_core.server.access.tokens import new_token
    from hydra_core.store.roles import Role

    token, line = new_token(options.name, Role(options.role), options.team, options.require or ())
    if options.json:
        print_json({"token": token, "line": line.strip()})
    else:
        say("put this line under 'tokens:' in the token file; the token itself is not shown again")
        say(line)
        print(token)
    return 0
