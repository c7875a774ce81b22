"""Verbs that make eval sets: import swebench, import table, score, dependence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hydra_core.base.errors import EvalSetError, Problem
from hydra_core.cli.account import changes
from hydra_core.cli.output import existing, open_predictor, print_json, progress_bar, say, table
from hydra_core.cli.scoring import score_now

if TYPE_CHECKING:
    from hydra_core.evalsets.importers.draft import About, Draft


_GROUPS_SHOWN = 5


def import_swebench(options: argparse.Namespace) -> int:
    """Import leaderboard runs, or list them."""
    from hydra_core.evalsets.importers.swebench import read_swebench

    existing(options.leaderboards)
    if options.runs:
        return _list_runs(options)
    models = pairs(options.model, "ID=RUN_FOLDER")
    need_out(options)
    problems = None if options.problems is None else existing(options.problems)
    draft = read_swebench(options.leaderboards, problems, models, board=options.board)
    runs = ", ".join(f"{model} = {folder}" for model, folder in models.items())
    return write(draft, options, f"SWE-bench leaderboard: {runs}")


def import_table(options: argparse.Namespace) -> int:
    """Import tables."""
    from hydra_core.catalog.identifiers import proposed_ids
    from hydra_core.evalsets.importers.mapping import parse_map
    from hydra_core.evalsets.importers.reading.cells import Form
    from hydra_core.evalsets.importers.table import model_names, read_table

    files = [existing(path) for path in options.files]
    mapping = parse_map(options.map)
    if not 0 < options.quality_scale < float("inf"):
        raise EvalSetError(
            "--quality-scale", [Problem("", f"must be > 0, got {options.quality_scale:g}")]
        )
    need_out(options)
    ids = pairs(options.rename, "ID=NAME", place="--rename")
    ids = {name: model for model, name in ids.items()}
    if options.accept_ids:
        ids = proposed_ids([n for n in model_names(files, mapping) if n not in ids]) | ids
        for name, model in ids.items():
            if name != model:
                say(f"note: {name!r} is now {model}")
    draft = read_table(
        files,
        mapping,
        need_cost=not options.no_cost,
        need_text=not options.no_texts,
        form=Form(
            decimal="," if options.decimal_comma else ".",
            scale=options.quality_scale,
            words=options.quality_words,
        ),
        ids=ids,
    )
    return write(draft, options, ", ".join(path.name for path in files))


def score(options: argparse.Namespace) -> int:
    """Score an eval set."""
    from hydra_core.evalsets.evalset import load_evalset

    evalset = load_evalset(existing(options.evalset))
    predictor = open_predictor(options.bundle)
    scores = score_now(evalset, predictor)
    fingerprint = predictor.bundle.fingerprint
    means = dict(zip(predictor.bundle.dimensions, scores.mean(axis=0).tolist(), strict=True))
    if options.json:
        print_json({"n": len(scores), "fingerprint": fingerprint, "mean": means})
    else:
        shown = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
        print(
            f"{len(scores)} queries scored by {predictor.bundle.name} ({fingerprint[:12]}): {shown}"
        )
    return 0


def dependence(options: argparse.Namespace) -> int:
    """Look for dependent queries, and keep the answer if one is given or none is needed."""
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.suspects import answer, look

    evalset = load_evalset(existing(options.evalset))
    with progress_bar(evalset.name) as step:
        found = look(evalset, step)
    answered = options.accept or options.decline or not found.groups
    if answered:
        path, accepted = evalset.path, options.accept
        evalset = changes(path).write(path, lambda: answer(evalset, found, accepted=accepted))
    said = evalset.dependence.answer if answered and evalset.dependence else "open"
    ids = evalset.queries["query_id"]
    groups = [ids.iloc[rows].tolist() for rows in found.groups]
    if options.json:
        print_json(
            {"answer": said, "groups": groups, "queries": found.queries, "vectors": found.vectors}
        )
        return 0
    print(found)
    for members in groups[:_GROUPS_SHOWN]:
        more = ["..."] if len(members) > _GROUPS_SHOWN else []
        print("  " + ", ".join([*members[:_GROUPS_SHOWN], *more]))
    if not found.vectors:
        say("note: texts were not compared by meaning; score the set first for that")
    print(f"answer: {said}" if answered else "give --accept or --decline to settle it")
    return 0


def pairs(texts: list[str], form: str = "ID=NAME", *, place: str = "--model") -> dict[str, str]:
    """Model id -> upstream name from `ID=NAME` texts."""
    problems, found = [], {}
    for text in texts:
        model, equals, folder = text.partition("=")
        if not (model and equals and folder):
            problems.append(Problem(repr(text), f"is not {form}"))
        elif model in found:
            problems.append(Problem(repr(text), f"names {model} twice"))
        found[model] = folder
    if problems:
        raise EvalSetError(place, problems)
    return found


def _missing(name: str, what: str) -> EvalSetError:
    return EvalSetError(name, [Problem("", "is missing", f"give {what}")])


def need_out(options: argparse.Namespace) -> None:
    """Refuse a taken target before reading a lot."""
    from hydra_core.evalsets.format import require_free

    if options.dry_run:
        return
    if options.out is None:
        raise _missing("--out", "the folder to write, or look first with --dry-run")
    require_free(options.out, force=options.force)


def write(draft: Draft, options: argparse.Namespace, origin: str) -> int:
    """Write a draft unless it is a dry run, and print its report."""
    from hydra_core.evalsets.importers.draft import write_draft

    if not options.dry_run:
        about, out = _about(options, origin), options.out
        changes(out).write(out, lambda: write_draft(draft, out, about, force=options.force))
    where = None if options.dry_run else str(options.out)
    if options.json:
        print_json({**draft.report.to_dict(), "out": where})
    else:
        print(draft.report)
        print(f"written to {where}" if where else "nothing was written (dry run)")
    if where:
        say(f"next: python -m hydra_core score {where}")
    return 0


def _about(options: argparse.Namespace, origin: str) -> About:
    from hydra_core.evalsets.importers.draft import About

    return About(
        name=options.name,
        origin=options.origin or origin,
        licence=options.licence,
        synthetic=options.synthetic,
        cost_estimated=options.cost_estimated,
        price_notes=options.price_notes,
    )


def _list_runs(options: argparse.Namespace) -> int:
    import numpy as np

    from hydra_core.evalsets.importers.swebench import list_runs

    runs = list_runs(options.leaderboards)
    costs = [float(np.mean([c for _, c in run.outcomes.values()] or [np.nan])) for run in runs]
    if options.json:
        print_json(
            [
                {
                    "board": run.board,
                    "folder": run.folder,
                    "name": run.name,
                    "n": len(run.outcomes),
                    "resolved_percent": run.headline,
                    "mean_cost_usd": cost,
                    "problem": run.problem,
                }
                for run, cost in zip(runs, costs, strict=True)
            ]
        )
        return 0
    rows = [
        [
            run.folder,
            run.board,
            str(len(run.outcomes)),
            f"{run.headline:.1f}",
            f"{cost:.3f}",
            run.problem,
        ]
        for run, cost in zip(runs, costs, strict=True)
    ]
    print(table(["run", "board", "n", "resolved %", "USD/instance", "problem"], rows))
    return 0
