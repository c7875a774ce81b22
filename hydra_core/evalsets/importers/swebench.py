"""Import of SWE-bench leaderboard runs (`leaderboards.json`) joined with problem statements.

The leaderboard file holds boards with runs; a run's `per_instance_details` say for each instance
whether it was resolved and what it cost (USD). The texts come from the dataset's own table
(instance_id, problem_statement). Only instances with a text and an outcome in every chosen run
are kept; the report counts the others.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.base.json_values import mapping
from hydra_core.base.types import FloatArray
from hydra_core.evalsets.importers.assemble import NO_TEXTS
from hydra_core.evalsets.importers.draft import Draft, Dropped, report_on
from hydra_core.evalsets.importers.reading.bounded import Budget, TableFile
from hydra_core.evalsets.importers.reading.cells import LINE, Issues
from hydra_core.evalsets.importers.reading.json_document import number_in, read_json
from hydra_core.evalsets.importers.reading.tables import columns_of, read_columns
from hydra_core.evalsets.rules import model_id_problem

#: Percentage points between a run's headline and its details that rounding may explain.
_HEADLINE_SLACK = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One run of a leaderboard.

    Attributes:
        headline: Published percentage resolved, NaN if not given.
        outcomes: Instance id -> (quality 0 or 1, cost in USD or NaN).
        problem: Why it cannot be imported; empty when it can.
    """

    board: str
    folder: str
    name: str
    headline: float
    outcomes: Mapping[str, tuple[float, float]]
    problem: str = ""


def read_swebench(
    leaderboards: TableFile,
    problems: TableFile | None,
    models: Mapping[str, str],
    *,
    board: str | None = None,
) -> Draft:
    """Read runs and problem statements into an eval set in memory.

    Args:
        problems: Table with instance_id, problem_statement and optionally repo; None for a set
            without texts.
        models: Model id -> folder of its run.
        board: Board to look on when a folder is on several.

    Raises:
        EvalSetError: Unknown, empty or broken runs, bad model ids, damaged files: all of them.
    """
    runs = _chosen(list_runs(leaderboards), models, board, leaderboards.name)
    texts, warnings = _instances(runs) if problems is None else _texts(problems)
    ids, dropped = _common(texts, runs)
    if not ids:
        reasons = "; ".join(str(entry) for entry in dropped if entry.count)
        also = "" if problems is None else "a text and "
        message = f"no instance has {also}an outcome in every run: {reasons}"
        raise EvalSetError.of(leaderboards.name, message)
    queries = texts.loc[ids].rename_axis("query_id").reset_index()
    quality, cost_usd = _matrix(ids, runs, 0), _matrix(ids, runs, 1)
    if free := int((cost_usd == 0).sum()):
        cost_usd[cost_usd == 0] = np.nan
        warnings = (*warnings, f"{free} outcomes have a cost of 0: it was read as not known")
    if board is None and len({run.folder for run in runs}) < len(runs):
        warnings = (*warnings, "one run stands for several models")
    report = report_on(tuple(models), quality, cost_usd, dropped, warnings, queries)
    return Draft(queries, tuple(models), quality, cost_usd, report)


def _matrix(ids: Sequence[str], runs: Sequence[Run], which: int) -> FloatArray:
    return np.array([[run.outcomes[i][which] for run in runs] for i in ids], dtype=np.float64)


def _common(texts: pd.DataFrame, runs: Sequence[Run]) -> tuple[list[str], list[Dropped]]:
    """Instances that have everything, sorted, and what was dropped for which reason."""
    every = set(texts.index).union(*(run.outcomes for run in runs))
    reasons = [("no problem text", set(texts.index))]
    reasons += [(f"not in run {run.folder}", set(run.outcomes)) for run in runs]
    dropped, left = [], every
    for reason, having in reasons:
        gone = sorted(left - having)
        dropped.append(Dropped(f"instance with {reason}", len(gone), tuple(gone[:3])))
        left = left & having
    return sorted(left), dropped


def _instances(runs: Sequence[Run]) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Every instance of the runs (language, group), for a set without texts."""
    ids = pd.Index(sorted(set().union(*(run.outcomes for run in runs))))
    groups = ids.str.rsplit("-", n=1).str[0]
    return pd.DataFrame({"language": "en", "group": groups}, index=ids), (NO_TEXTS,)


def _texts(problems: TableFile) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Texts by instance id (text, language, group); blank ones are left out."""
    columns = columns_of(problems)
    needed = ["instance_id", "problem_statement"]
    missing = [
        Problem(name, "the column is missing", f"columns: {', '.join(columns[:20])}")
        for name in needed
        if name not in columns
    ]
    EvalSetError.raise_any(problems.name, missing)
    wanted = needed + (["repo"] if "repo" in columns else [])
    rows, warnings = read_columns(problems, wanted, Budget())
    issues = Issues()
    for line in rows.loc[rows["instance_id"].duplicated(), LINE]:
        issues.add("instance_id occurs before", int(line), "keep one row for each instance")
    issues.raise_any(problems.name)
    rows = rows[rows["problem_statement"].str.strip() != ""]
    repo = (
        rows["repo"] if "repo" in rows.columns else rows["instance_id"].str.rsplit("-", n=1).str[0]
    )
    content = {"text": rows["problem_statement"], "language": "en", "group": repo}
    return pd.DataFrame(content).set_index(pd.Index(rows["instance_id"])), warnings


def _chosen(
    runs: Sequence[Run], models: Mapping[str, str], board: str | None, source: str
) -> list[Run]:
    problems = [] if models else [Problem("--model", "no model is named", "ID=RUN_FOLDER")]
    chosen = []
    for model, folder in models.items():
        bad = model_id_problem(model, f"--model {model[:40]}")
        problems += [bad] if bad is not None else []
        found = [r for r in runs if r.folder == folder and board in (None, r.board)]
        if len(found) != 1:
            problems.append(_not_one(model, folder, found, runs))
        elif found[0].problem:
            fine = sum(not run.problem for run in runs)
            remedy = f"choose another run; {fine} runs of this file can be imported"
            problems.append(Problem(f"{model}={folder}", found[0].problem, remedy))
        chosen += found[:1]
    EvalSetError.raise_any(source, problems)
    return chosen


def _not_one(model: str, folder: str, found: Sequence[Run], runs: Sequence[Run]) -> Problem:
    place = f"{model}={folder}"
    if found:
        boards = ", ".join(run.board for run in found)
        return Problem(place, f"is on several boards: {boards}", "say which one with --board")
    near = difflib.get_close_matches(folder, [run.folder for run in runs], n=3, cutoff=0.4)
    return Problem(place, "there is no such run", f"runs like it: {', '.join(near) or 'none'}")


def list_runs(leaderboards: TableFile) -> tuple[Run, ...]:
    """Every run of a leaderboard file; those that cannot be imported carry their `problem`.

    Raises:
        EvalSetError: The file is damaged, too large, or has another layout.
    """
    boards = mapping(read_json(leaderboards)).get("leaderboards")
    if not isinstance(boards, list) or not boards:
        message = 'has no "leaderboards" list'
        raise EvalSetError.of(
            leaderboards.name, message, "give the leaderboard's leaderboards.json"
        )
    runs = []
    for number, board in enumerate(boards):
        results = mapping(board).get("results")
        if not isinstance(results, list):
            message = 'has no "results" list'
            raise EvalSetError.of(leaderboards.name, message, place=f"leaderboards[{number}]")
        runs += [_run(str(board.get("name", number)), r) for r in results if isinstance(r, dict)]
    return tuple(runs)


def _run(board: str, result: Mapping[str, Any]) -> Run:
    folder, name = str(result.get("folder", "")), str(result.get("name", ""))
    headline = number_in(result.get("resolved"))
    details = result.get("per_instance_details")
    if not isinstance(details, dict) or not details:
        return Run(board, folder, name, headline, {}, "has no per-instance details")
    outcomes = {instance: _outcome(entry) for instance, entry in details.items()}
    bad = sorted(instance for instance, (quality, _) in outcomes.items() if np.isnan(quality))
    costs = sorted(instance for instance, (_, cost) in outcomes.items() if cost < 0)
    problem = ""
    if bad:
        problem = f"`resolved` is not true or false for {len(bad)} instances (e.g. {bad[0]})"
    elif costs:
        problem = f"`cost` is not a number >= 0 for {len(costs)} instances (e.g. {costs[0]})"
    else:
        share = 100 * float(np.mean([quality for quality, _ in outcomes.values()]))
        if abs(share - headline) > _HEADLINE_SLACK:
            problem = (
                f"its details are broken upstream: they say {share:.1f} % resolved, "
                f"the leaderboard says {headline:.1f} %"
            )
    return Run(board, folder, name, headline, outcomes, problem)


def _outcome(entry: object) -> tuple[float, float]:
    """(quality, cost): quality NaN if it is no flag; cost NaN if absent, -1 if it is no cost."""
    facts = mapping(entry)
    resolved = facts.get("resolved")
    quality = float(resolved) if isinstance(resolved, bool) or resolved in (0, 1) else math.nan
    if facts.get("cost") is None:
        return quality, math.nan
    cost = number_in(facts["cost"])
    return quality, cost if 0 <= cost < math.inf else -1.0
