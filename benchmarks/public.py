"""One page of public figures: every real set, every source of shortfalls, LiteLLM's heuristic.

    python -m benchmarks.public [--workspace DIR] [--sets ...] [--python .venv-litellm/bin/python]
        [--no-heads] [--out docs/public.md]

It reads the public data in `../shared/data/replay` (docs/public.md says where each set can be had)
and writes figures only, no texts. Lift is quality above the best fixed mix at the same cost, mean
of 25, 50 and 75 % of the cost range, cross-fitted. LiteLLM's score needs its package (`make
litellm-test`); without it the column says so.
"""

import argparse
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.quality.complexity_router import asked, decisions
from benchmarks.quality.ladder_sets import POOLS_OF, materials
from benchmarks.quality.sources import ladder
from hydra_core.base.shipped import VERSION
from hydra_core.choosing.lift import POINTS, differences_to_hull, hull_of
from hydra_core.choosing.sources.ladder import TITLES, Kind
from hydra_core.predictor.onnx_predictor import default_predictor
from hydra_core.replay.significance import mean_interval

#: Set -> what it is, what it is good for, and where it can be had.
SETS = {
    "mixed-2024": (
        "ZeroEval: GSM8K, MATH, MMLU-Redux, CRUXEval, ZebraLogic; and BFCL (tools)",
        "whether a router learns difficulty over kinds of questions; costs from list prices",
        "github.com/WildEval/ZeroEval, github.com/ShishirPatil/gorilla",
    ),
    "swebench-matched": (
        "SWE-bench Verified by three models, the matched pool of the paper; billed costs",
        "agents on one kind of task: 500 issues, models that differ on 27 % of them",
        "github.com/SWE-bench/swe-bench.github.io, data/leaderboards.json",
    ),
    "swebench-mini-2.0.0": (
        "SWE-bench Verified by twelve models in one harness; billed costs",
        "as above, with a wide pool",
        "github.com/SWE-bench/swe-bench.github.io, data/leaderboards.json",
    ),
    "livecodebench": (
        "LiveCodeBench, one kind of traffic: programming contests",
        "whether the text of one kind of task foretells success; costs from list prices",
        "github.com/LiveCodeBench/submissions and livecodebench.github.io",
    ),
    "gsm8k": (
        "RouteLLM's GSM8K: sums in words, two models; costs from list prices",
        "one kind of traffic that text vectors can tell apart",
        "github.com/lm-sys/RouteLLM",
    ),
    "mmlu": (
        "RouteLLM's MMLU: multiple choice over 57 subjects, two models; costs from list prices",
        "whether a router learns which subjects need the strong model",
        "github.com/lm-sys/RouteLLM",
    ),
    "routerarena": (
        "RouterArena, sub_10: 809 questions that two models were asked",
        "a pool with nothing to route: the better model is the cheaper one",
        "github.com/RouteWorks/RouterArena",
    ),
    "code-2026": (
        "CodeRouterBench, only the cells whose outcomes hold",
        "an honest zero: nothing to gain on the sound part",
        "github.com/LanceZPF/agent-as-a-router, data/coderouterbench",
    ),
    "code-2026-faults": (
        "CodeRouterBench as published, with its grader's faults",
        "a negative control: a gain here comes from telling benchmarks apart",
        "as above",
    ),
    "agents-2026": (
        "OpenHands Index: SWE-bench Verified and SWT-bench, billed costs",
        "agents: the text of an issue does not foretell which model resolves it",
        "github.com/OpenHands/openhands-index-results",
    ),
}
HEAD = """\
# Public figures

Written by `python -m benchmarks.public`, version {version}, on {day}; predictor {bundle}.

Quality above the best fixed mix of models at the same cost, in points: mean of 25, 50 and 75 % of
the cost range, with a 95 % interval. The best fixed mix is 0 by definition; below 0, routing does
harm. Sources are cross-fitted in five parts. LiteLLM's heuristic (release {release}) is its score
as one threshold, its ties cut at random. Where the best model is the cheapest, there is no cost
range to route in. [What each interval means](statistics.md).

To repeat it, get the sets from where the last table says, lay them out as
`benchmarks/quality/ladder_sets.py` reads them, and run the command. The repository holds no texts
of them.
"""
COLUMNS = (
    "set, pool",
    "queries",
    "models",
    *(TITLES[kind] for kind in Kind),
    "LiteLLM's heuristic",
    "what to use",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path, help="where sets are imported and scored already")
    parser.add_argument("--sets", nargs="+", choices=sorted(POOLS_OF), default=list(POOLS_OF))
    parser.add_argument("--python", default=".venv-litellm/bin/python")
    parser.add_argument("--no-heads", dest="heads", action="store_false")
    parser.add_argument("--out", type=Path, default=Path("docs/public.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        options.out.write_text(page(options, options.workspace or scratch), encoding="utf-8")


def page(options, workspace):
    predictor = default_predictor()
    bundle = f"{predictor.bundle.name} ({predictor.bundle.fingerprint[:12]})"
    release, rows, reasons = "", [], []
    for name in options.sets:
        for pool, material in materials(name, workspace, predictor):
            found = ladder(material, heads=options.heads)
            theirs, release = heuristic(options.python, material)
            cells = [lift_cell(found.rung(kind)) for kind in Kind]
            shape = (f"{material.complete.size:,}", str(len(material.models)))
            title = pool if pool == name else f"{name}, {pool.split()[-1]}"
            used = "a fixed mix" if found.recommended is None else TITLES[found.recommended].lower()
            rows.append((title, *shape, *cells, theirs, used))
            reasons.append(f"- {title}: {found.reason}")
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    about = [(name, *SETS[name]) for name in options.sets]
    lines = ["", table(COLUMNS, rows), "", "What HyDRA says of each:", "", *reasons, ""]
    lines += ["## The sets", "", table(("set", "what it is", "good for", "source"), about)]
    head = HEAD.format(
        version=VERSION, day=date.today(), bundle=bundle, release=release or "not measured"
    )
    return head + "\n".join(lines) + "\n"


def lift_cell(rung):
    if rung is None or rung.lift is None:
        return "not measured" if rung is None else "no cost range"
    return cell(rung.lift.mean.scaled(100.0))


def cell(lift):
    return f"{lift.value:+.2f} [{lift.lo:+.2f}, {lift.hi:+.2f}]"


def heuristic(python, material):
    """The lift of LiteLLM's score at the three costs, and its release."""
    rows = material.complete
    texts = material.evalset.queries["text"].iloc[material.rows[rows]]
    try:
        tiers, scores, release = asked(python, texts)
    except (OSError, subprocess.CalledProcessError):
        return "not measured", ""
    data = material_data(material, rows)
    found = decisions(data, tiers, scores, np.random.default_rng(0))
    choices = np.stack([found[f"complexity-random-{percent}"] for percent in POINTS], axis=1)
    hull = hull_of(data.quality, data.cost_usd)
    if len(hull) == 1:
        return "no cost range", release
    added = differences_to_hull(data.quality, data.cost_usd, choices, hull).mean(axis=1)
    return cell(mean_interval(added, material.clusters[rows]).scaled(100.0)), release


def material_data(material, rows):
    """What `decisions` reads of a replay: quality and cost."""
    return argparse.Namespace(quality=material.quality[rows], cost_usd=material.cost_usd[rows])


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
