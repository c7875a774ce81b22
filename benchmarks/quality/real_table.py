"""The figures of the real sets as Markdown."""

from __future__ import annotations

import numpy as np

from benchmarks.quality.real_policies import VALUE_RULE
from hydra_core.replay.baselines.run import RANDOM_MIX
from hydra_core.replay.routability import PREDICTIVE_AUC

__all__ = ["document"]


def cell_text(cell):
    qr, lo, hi = (100 * value for value in cell["qr"])
    delta, low, high = (100 * value for value in cell["delta"])
    return f"{qr:.1f} [{lo:.1f}, {hi:.1f}], {delta:+.1f} pp [{low:+.1f}, {high:+.1f}]"


def row_text(name, row):
    delta, low, high = (100 * value for value in row["delta"])
    cells = " | ".join(cell_text(cell) for cell in row["cells"])
    said = f"**{row['label']}**" if row["label"] == "beats" else row["label"]
    return f"| {name} | {cells} | {delta:+.1f} pp [{low:+.1f}, {high:+.1f}] | {said} |"


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
        lines += ["Profiles and cost order come from the other half alone (see above).", ""]
    lines.append(
        f"{found['queries']:,} queries, {len(found['constants'])} models. Oracle quality "
        f"{100 * found['oracle'][0]:.1f} % at ${found['oracle'][1]:.4g} per query. {explored.text}"
    )
    if aucs:
        lines.append(
            f"Success of single models is predicted with AUC {min(aucs):.2f} to {max(aucs):.2f} "
            f"from the text and {min(scores):.2f} to {max(scores):.2f} from the four scores"
            + (
                f"; which of {advantage.model.replace(' over ', ' and ')} wins where they differ, "
                f"with {auc_text(advantage.text)} and {auc_text(advantage.scores)}."
                if advantage
                else "."
            )
        )
    heads = [f"${cost:.4g}" for cost in found["costs"]]
    heads += ["mean of the three", "verdict"]
    lines += ["", "| policy | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    hull = [f"{100 * qr:.1f}" for qr in found["hull_qr"]]
    lines.append(f"| hull of constants ({', '.join(found['hull'])}) | {' | '.join(hull)} | | |")
    lines += [row_text(name, row) for name, row in found["policies"].items()]
    oracle = f"100.0 at ${found['oracle'][1]:.4g}"
    lines.append(f"| oracle | {oracle} | | | | |")
    constants = "; ".join(f"{m} {100 * qr:.1f} at ${c:.4g}" for m, qr, c in found["constants"])
    lines += ["", f"Always one model (QR %): {constants}.", ""]
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
        "Mean difference in quality from the hull over the three costs, and the median AUC over "
        "the models; the best of several is picked after the fact and flatters its column.",
        "",
    ]
    return lines


def short_text(row):
    delta, low, high = (100 * value for value in row["delta"])
    return f"{delta:+.1f} pp [{low:+.1f}, {high:+.1f}] {row['label']}"


def document(results, bundle):
    """The whole Markdown file."""
    lines = [
        "# Real outcomes at matched cost",
        "",
        "Written by `python -m benchmarks.quality.real_sets`. Every policy is cross-fitted in two "
        "halves: nothing routes a query that it was learned, profiled or tuned on. At three costs "
        "per query (25, 50 and 75 % of the way from the cheapest constant to the best one) each "
        "cell holds QR (quality / oracle quality, in %) with its 95 % interval, and the difference "
        "in quality from the hull of constants at the policy's own cost. The knob (tau, threshold, "
        "alpha) is set by cost alone. The verdict is on the mean difference over the three costs "
        "(bootstrap over queries), with Holm's correction over the set's policies; `ties` means: "
        "cannot be told from the hull on this set. The random mixture is a control: it is the "
        "hull, so what it shows is chance.",
        "",
        "The value rule routes by success heads on the predictor's vectors, learned from the other "
        "half with everything chosen inside it (`learn`, without its guard).",
        "",
        "All baselines but the random mixture are model-coupled: they need retraining when the "
        "pool changes. They are written after the published descriptions, on character n-grams "
        "instead of the published embeddings. Where a pool has no published evidence, HyDRA's "
        "profiles come from the other half by Algorithm 1, each query a benchmark that exercises "
        "a dimension as far as its requirement says, and models are ordered by their mean cost "
        f"there. Text is called predictive from a median AUC of {PREDICTIVE_AUC:.2f}.",
        "",
        f"Predictor bundle: {bundle.name} {bundle.version} ({bundle.fingerprint[:12]}).",
        "",
    ]
    if results:
        lines += summary(results)
    for found in results:
        lines += section(found)
    return "\n".join(lines).rstrip() + "\n"
