"""The verbs that start a server: console, serve; token for its callers."""

from __future__ import annotations

import argparse
import gc
import os
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from hydra_core.base.errors import Problem, ProblemsError
from hydra_core.cli.options import Verbs, verb
from hydra_core.cli.output import print_json, say, show
from hydra_core.cli.workspace import catalog_source, log_folder

if TYPE_CHECKING:
    from hydra_core.server.settings import Settings


_CONSOLE = """start the console in a browser
Starts the console and opens it in a browser; Ctrl-C stops it. Options are Streamlit's, and
--insecure-no-sign-in, with which everybody is a viewer (docs/security.md).
Eval sets, drafts and published catalogs are kept in ./workspace, or in HYDRA_WORKSPACE.

examples:
  hydra-router console
  hydra-router console --server.port 8502 --server.headless true
"""


def add_console(verbs: Verbs) -> None:
    """Add console; options that it does not know go to Streamlit."""
    parser = verb(verbs, "console", _console, _CONSOLE, prints=False)
    parser.usage = "%(prog)s [-h] [STREAMLIT OPTIONS]"
    parser.set_defaults(passed_on=[])


def _console(options: argparse.Namespace) -> None:
    # Read when NumPy and SciPy are loaded. Matrices here are small: a second thread gains nothing
    # and waits at full speed, on a processor that the browser or another page's run would use.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # What is imported stays: looking for garbage meanwhile takes a seventh of the time. It begins
    # again when the first page is prepared.
    gc.disable()
    from hydra_core.console.access.serve import main

    main(options.passed_on)


_SERVE = """route live traffic over HTTP
Routes live traffic. POST /v1/decision says which model and why, and spends nothing; POST
/v1/chat/completions with model "auto" passes the request on to the model's upstream, streams
included, and asks the next model when one does not answer. Also /v1/messages, /v1/responses,
/v1/decisions, /v1/systemone, /v1/models, /v1/models/ID, /v1/outcomes, /v1/dry-run, /health/live,
/health/ready, /metrics. The catalog is loaded again when it changes; one that is not valid changes
nothing. Keys are in the variables that the upstreams file names.

examples:
  hydra-router serve --catalog paper_five
  hydra-router serve --catalog mine --upstreams upstreams.yaml --log log
  hydra-router serve --catalog mine --upstreams upstreams.yaml --check
  hydra-router serve --catalog store:production --upstreams upstreams.yaml --log log \\
      --canary candidate --canary-share 0.1
  hydra-router serve --catalog pool.yaml --host 0.0.0.0 --tokens tokens.yaml --workers 2 \\
      --redis redis://localhost:6379/0
"""
_TOKEN = """make a bearer token for serve
Makes a bearer token and prints it once on standard output; the line for the token file, which
holds its hash only, goes to standard error. Roles: a viewer may ask for decisions; an editor may
also have requests answered and send outcomes of its own decisions; a publisher may send any.

example:
  hydra-router token --name ci --role viewer
"""

_ANOTHER = "share of decisions that may try another capable model (default: none)"
_ALL = "share that may try any model, so that the log can value any policy (default: none)"
_LIMIT = "stop it when it is so many times as expensive or as slow (0: never)"
#: Flag, field of `Settings`, default (whose type the value has), unit, help.
_SETTINGS: Final[tuple[tuple[str, str, float | str, str, str], ...]] = (
    ("--explore", "explore_share", 0.0, "SHARE", _ANOTHER),
    ("--explore-all", "explore_all", 0.0, "SHARE", _ALL),
    ("--explore-floor", "explore_floor", 0.5, "P", "least predicted success"),
    ("--explore-budget", "explore_budget_usd", 1.0, "USD", "a day, all workers"),
    ("--canary", "canary", "", "CATALOG", "a second catalog, stopped when it is worse"),
    ("--canary-share", "canary_share", 0.1, "SHARE", "of the conversations"),
    ("--canary-limit", "canary_limit", 2.0, "X", _LIMIT),
    ("--max-body-mb", "max_body_mb", 20.0, "MB", ""),
    ("--rate", "rate", 0.0, "N", "requests/s a caller, in each worker"),
    ("--queue", "queue", 64, "N", "requests that may wait for a decision"),
    ("--queue-wait", "queue_s", 1.0, "S", "and how long, in seconds"),
    ("--not-ready", "not_ready_s", 3.0, "S", "not ready before a stop, seconds"),
)


def add_verbs(verbs: Verbs) -> None:
    parser = verb(verbs, "serve", _serve, _SERVE)
    parser.shared("--catalog")
    parser.option("--upstreams", "U.yaml", "who serves each model", default="")
    parser.add_argument("--host", default="127.0.0.1", help="address (default: this machine only)")
    parser.add_argument("--port", type=int, default=8600)
    parser.option("--workers", "N", "processes", type=int, default=1)
    parser.option("--redis", "URL", "workers share conversations", default="")
    parser.option(
        "--log", "LOG", "write a decision log to this folder; `log` is the workspace's", default=""
    )
    parser.flag("--log-text", "with the messages themselves")
    parser.option("--tokens", "T.yaml", "who may send requests, as hashes", default="")
    said = "answer anybody, decisions only"
    parser.add_argument("--insecure-no-sign-in", action="store_true", dest="insecure", help=said)
    parser.option("--bundle", "B", "predictor bundle folder", default="")
    for flag, name, default, unit, said in _SETTINGS:
        parser.option(flag, unit, said, dest=name, type=type(default), default=default)
    parser.add_argument(
        "--log-level", default="info", choices=["debug", "info", "warning", "error"]
    )
    parser.flag("--spans", "OpenTelemetry spans (OTEL_* set up)")
    parser.flag("--check", "only say whether it would start")
    parser = verb(verbs, "token", _token, _TOKEN)
    parser.add_argument("--name", required=True, help="who gets it")
    parser.add_argument("--role", default="viewer", choices=["viewer", "editor", "publisher"])
    parser.add_argument("--team", default="", help="who pays for what it asks")
    said = "tag that a model must have to serve it; may be repeated"
    parser.option("--require", "TAG", said, action="append")


def _serve(options: argparse.Namespace) -> None:
    _check_numbers(options)
    from hydra_core.server.run import check, serve
    from hydra_core.server.settings import Settings

    names = {field.name for field in fields(Settings)}
    given = {name: value for name, value in vars(options).items() if name in names}
    given["catalog"] = catalog_source(options.catalog)
    given["log"] = str(log_folder(options.log)) if options.log else ""
    given["canary"] = catalog_source(options.canary) if options.canary else ""
    settings = Settings(**given)
    if options.check:
        report = check(settings)
        lines = [f"{name}: {_in_words(one)}" for name, one in report.items() if name != "warnings"]
        warnings = cast(list[str], report.get("warnings", []))
        show(options, report, "\n".join([*lines, *(f"warning: {one}" for one in warnings)]))
        return
    if settings.explore_all:
        say(_cost_of_trying_all(settings))
    where = f"http://{options.host}:{options.port}"
    serve(settings, lambda: say(f"starting on {where} (Ctrl-C stops)"))


def _cost_of_trying_all(settings: Settings) -> str:
    """What --explore-all would have cost a day on the log's newest day, or that nobody knows."""
    from hydra_core.decision_log.reading import read_log
    from hydra_core.live.traffic import cost_of_trying_all, traffic_of
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
    limit = options.canary_limit
    wrong = [
        Problem(f"--{name}", f"must be {words}, got {value:g}")
        for name, value, words, fine in (
            ("port", options.port, "from 1 to 65535", 0 < options.port < 65536),
            ("workers", options.workers, "from 1 to 64", 0 < options.workers < 65),
            ("explore", options.explore_share, "in [0, 1]", 0 <= options.explore_share <= 1),
            ("explore-all", options.explore_all, "in [0, 1]", 0 <= options.explore_all <= 1),
            ("explore-floor", options.explore_floor, "in [0, 1]", 0 <= options.explore_floor <= 1),
            ("explore-budget", options.explore_budget_usd, ">= 0", options.explore_budget_usd >= 0),
            ("canary-share", options.canary_share, "in (0, 1)", 0 < options.canary_share < 1),
            ("canary-limit", limit, "0 or >= 1", limit == 0 or 1 <= limit < 1e6),
            ("max-body-mb", options.max_body_mb, "in (0, 1000]", 0 < options.max_body_mb <= 1000),
            ("rate", options.rate, ">= 0", options.rate >= 0),
            ("queue", options.queue, "from 1 to 10000", 0 < options.queue <= 10_000),
            ("queue-wait", options.queue_s, "in (0, 60]", 0 < options.queue_s <= 60),
            ("not-ready", options.not_ready_s, "in [0, 600]", 0 <= options.not_ready_s <= 600),
        )
        if not fine
    ]
    ProblemsError.raise_any("serve", wrong)


def _token(options: argparse.Namespace) -> None:
    from hydra_core.server.callers import new_token, parse_tokens
    from hydra_core.store.roles import Role

    token, line = new_token(options.name, Role(options.role), options.team, options.require or ())
    parse_tokens(f"tokens:\n{line}\n", "token")  # refuses what serve would
    if options.json:
        print_json({"token": token, "line": line.strip()})
    else:
        say("put this line under 'tokens:' in the token file; the token itself is not shown again")
        say(line)
        print(token)
