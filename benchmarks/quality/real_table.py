"""The figures of the real sets as Markdown."""

import re

import numpy as np

from benchmarks.quality.real_policies import VALUE_RULE
from hydra_core.replay.baselines import RANDOM_MIX
from hydra_core.replay.routability import PREDICTIVE_AUC


def cell_text(cell):
    qr, lo, hi = (100 * value for value in cell["qr"])
    delta, low, high = (100 * value for value in cell["delta"])
    return f"{qr:.1f} [{lo:.1f}, {hi:.1f}], {delta:+.1f} pp [{low:+.1f}, {high:+.1f}]"


def row_text(name, row):
    delta, low, high = (100 * value for value in row["delta"])
    cells = " | ".join(cell_text(cell) for cell in row["cells"])
    result = f"**{row['result']}**" if row["result"] == "better" else row["result"]
    return f"| {name} | {cells} | {delta:+.1f} pp [{low:+.1f}, {high:+.1f}] | {result} |"


def auc_text(auc):
    return f"{auc.value:.2f} [{auc.lo:.2f}, {auc.hi:.2f}]"


def section(found):
    """The Markdown of one set."""
    explored = found["routability"]
    aucs = [auc.text.value for auc in explored.aucs]
    scores = [auc.scores.value for auc in explored.aucs]
    advantage = explored.advantage
    lines = [f"## {found['title']}", "", found["note"], ""]
    if found["derived"]:
        lines += ["Profiles and cost order come from the other half only.", ""]
    lines.append(
        f"{found['queries']:,} queries, {len(found['constants'])} models. Oracle quality "
        f"{100 * found['oracle'][0]:.1f} % at ${found['oracle'][1]:.4g} per query. {explored.text}"
    )
    if aucs:
        lines.append(
            f"The success of a single model is predicted with AUC {min(aucs):.2f} to "
            f"{max(aucs):.2f} from the text, and {min(scores):.2f} to {max(scores):.2f} from the "
            "four scores."
            + (
                f" Where {advantage.model.replace(' over ', ' and ')} differ, the better one is "
                f"predicted with AUC {auc_text(advantage.text)} from the text and "
                f"{auc_text(advantage.scores)} from the scores."
                if advantage
                else ""
            )
        )
    heads = [f"${cost:.4g}" for cost in found["costs"]]
    heads += ["mean of the three", "result"]
    lines += ["", "| policy | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    hull = [f"{100 * qr:.1f}" for qr in found["hull_qr"]]
    lines.append(f"| best fixed mix ({', '.join(found['hull'])}) | {' | '.join(hull)} | | |")
    lines += [row_text(name, row) for name, row in found["policies"].items()]
    oracle = f"100.0 at ${found['oracle'][1]:.4g}"
    lines.append(f"| oracle | {oracle} | | | | |")
    constants = "; ".join(f"{m} {100 * qr:.1f} at ${c:.4g}" for m, qr, c in found["constants"])
    lines += ["", f"Always using one model (QR in %): {constants}.", ""]
    return lines


def summary(results):
    """One row per set: is the text predictive, and what HyDRA and the best baseline reach."""
    lines = [
        "| set | AUC, text | AUC, scores | HyDRA | best tuned HyDRA | value rule | best baseline |",
        "|---|---|---|---|---|---|---|",
    ]
    for found in results:
        rows = found["policies"]
        aucs = found["routability"].aucs
        medians = [
            float(np.median([getattr(a, k).value for a in aucs])) for k in ("text", "scores")
        ]
        tuned = {name: row for name, row in rows.items() if name.startswith("HyDRA,")}
        others = {n: row for n, row in rows.items() if "HyDRA" not in n and n != RANDOM_MIX}
        best = [max(group, key=lambda n: group[n]["delta"][0]) for group in (tuned, others)]
        cells = [short_text(rows[name]) for name in ("HyDRA", best[0], VALUE_RULE)]
        cells.append(f"{best[1]}: {short_text(others[best[1]])}")
        shown = " | ".join([found["name"], *(f"{m:.2f}" for m in medians), *cells])
        lines.append(f"| {shown} |")
    lines += [
        "",
        "Each cell holds the mean difference in quality from the best fixed mix over the three "
        'costs. AUC is the median over the models. "Best" is picked after the fact, which flatters '
        "its column.",
        "",
    ]
    return lines


def short_text(row):
    delta, low, high = (100 * value for value in row["delta"])
    return f"{delta:+.1f} pp [{low:+.1f}, {high:+.1f}] {row['result']}"


def document(results, bundle):
    """The whole Markdown file."""
    lines = [
        "# Real outcomes at matched cost",
        "",
        "Written by `python -m benchmarks.quality.real_sets`.",
        "",
        "How to read the tables:",
        "",
        "- Every policy is cross-fitted in two halves: no query is routed by something that was "
        "learned, profiled or tuned on it.",
        "- The three costs per query are 25, 50 and 75 % of the way from the cheapest single model "
        "to the best one. tau, threshold or alpha is set by cost only.",
        "- Each cell holds quality retention (QR: quality / oracle quality, in %) with its 95 % "
        "interval, and the difference in quality from the best fixed mix at the policy's own cost.",
        "- The result is that of the mean difference over the three costs (bootstrap over "
        "queries), with Holm's correction over the policies of the set. `no difference` means: no "
        "measurable difference from the best fixed mix on this set.",
        "- The random mixture is a control. It is a fixed mix itself, so its differences show "
        "chance.",
        "",
        "The value rule routes by success heads on the predictor's vectors. The heads are learned "
        "from the other half, and everything is chosen inside it (`learn`, without its guard).",
        "",
        "All baselines except the random mixture depend on the models: they must be trained again "
        "when the pool changes. They follow the published descriptions, with character n-grams "
        "instead of the published embeddings. If a pool has no published evidence, HyDRA's "
        "profiles come from the other half by Algorithm 1: each query is a benchmark that uses a "
        "dimension as much as its requirement says. The models are then ordered by their mean "
        f"cost there. Text counts as predictive from a median AUC of {PREDICTIVE_AUC:.2f}.",
        "",
        f"Predictor bundle: {bundle.name} {bundle.version} ({bundle.fingerprint[:12]}).",
        "",
    ]
    if results:
        lines += summary(results)
    for found in results:
        lines += section(found)
    return "\n".join(lines).rstrip() + "\n"


def sections_of_others(text):
    """The sections that other commands wrote into the document, and say so."""
    sections = re.findall(r"^## .*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return "".join(f"\n{one}" for one in sections if "\n\nWritten by `" in one[:200])
