"""The verb dependence: which queries of an eval set belong together."""

from __future__ import annotations

import argparse

from hydra_core.cli.options import Verbs, evalset_argument, verb
from hydra_core.cli.output import print_json, progress_bar, say
from hydra_core.cli.workspace import changes, existing

_GROUPS_SHOWN = 5
_DEPENDENCE = """\
Looks for queries that belong together although the set does not say so: the same text, ids that
differ by a language or an attempt, texts that mean nearly the same (by the vectors of a bundle that
has scored the set). They are printed with examples; --accept declares them as clusters, --decline
keeps them apart. The answer is kept in the set. Until there is one, every result says that the
question is open.

examples:
  hydra-router dependence mine
  hydra-router dependence mine --accept
"""


def add_verbs(verbs: Verbs) -> None:
    """Add dependence."""
    short = "look for queries that depend on each other"
    parser = verb(verbs, "dependence", _dependence, short, _DEPENDENCE)
    evalset_argument(parser)
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--accept", action="store_true", help="declare them as clusters")
    answers.add_argument("--decline", action="store_true", help="count them as independent")


def _dependence(options: argparse.Namespace) -> int:
    """Keep the answer if one is given or none is needed."""
    from hydra_core.evalsets.evalset import load_evalset
    from hydra_core.evalsets.suspects import answer, look

    evalset = load_evalset(existing(options.evalset))
    with progress_bar(evalset.name) as step:
        suspects = look(evalset, step)
    answered = options.accept or options.decline or not suspects.groups
    if answered:
        path, accepted = evalset.path, options.accept
        evalset = changes(path).write(path, lambda: answer(evalset, suspects, accepted=accepted))
    state = evalset.dependence.answer if answered and evalset.dependence else "open"
    ids = evalset.queries["query_id"]
    groups = [ids.iloc[rows].tolist() for rows in suspects.groups]
    if options.json:
        counts = {"queries": suspects.queries, "vectors": suspects.vectors}
        print_json({"answer": state, "groups": groups, **counts})
        return 0
    print(suspects)
    for members in groups[:_GROUPS_SHOWN]:
        more = ["..."] if len(members) > _GROUPS_SHOWN else []
        print("  " + ", ".join([*members[:_GROUPS_SHOWN], *more]))
    if not suspects.vectors:
        say("note: texts were not compared by meaning; score the set first for that")
    print(f"answer: {state}" if answered else "give --accept or --decline to settle it")
    return 0
