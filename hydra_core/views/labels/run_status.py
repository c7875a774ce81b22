"""How far a labelling run is, what its figures say, and what to do next; plain values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from hydra_core.labeling.run_folder import RunStatus, Setup

__all__ = ["Step", "answer", "next_steps", "progress", "start_commands", "tiles"]

#: Krippendorff's customary bounds: below the first no conclusion, from the second on a firm one.
DOUBTFUL: Final = 0.667
FIRM: Final = 0.8
#: Points of five that standing first may be worth before the page speaks of it.
_BIASED = 0.25
_MANY_ASIDE = 0.02
_NEARLY_SPENT = 0.98
_STILL = 0.05


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do; `command` may be empty, `icon` is the name of a Material symbol."""

    text: str
    command: str = ""
    icon: str = "arrow_forward"


def start_commands(root: Path) -> str:
    """The commands that begin a run which the page will show."""
    label = "python -m hydra_core label"
    out = shlex.quote(str(root / "first"))
    return (
        f"{label} --example > label.yaml\n"
        f"{label} messages.jsonl --config label.yaml --out {out} --dry-run\n"
        f"{label} messages.jsonl --config label.yaml --out {out}"
    )


def progress(found: RunStatus) -> tuple[float, str]:
    """(share in [0, 1], what stands beside the bar)."""
    judged = found.labelled + found.aside + found.waiting
    share = (judged - found.waiting) / judged if judged else 1.0
    if found.running:
        left = "" if found.left_s is None else f" · {_spell(found.left_s)} left"
        return share, f"Under way: {judged - found.waiting:,} of {judged:,}{left}"
    if found.waiting:
        return share, f"Stands still: {judged - found.waiting:,} of {judged:,}"
    return share, f"Done: {judged:,} messages judged or set aside"


def tiles(found: RunStatus) -> list[tuple[str, str, str, str]]:
    """The row of figures: (label, value, below, help)."""
    spent = sum(found.spent_usd.values())
    by_stage = ", ".join(
        f"{stage.replace('_', ' ')} {_usd(usd)}" for stage, usd in sorted(found.spent_usd.items())
    )
    doubt = found.committed_usd - spent
    doubtful = f" Calls without an answer may have cost {_usd(doubt)} more." if doubt > 0 else ""
    calls = sum(found.calls.values())
    known = "cost not known yet" if found.about_usd is None else f"about {_usd(found.about_usd)}"
    judged = found.labelled + found.aside + found.waiting
    default = f"{found.synthetic:,} more by default" if found.synthetic else f"of {judged:,}"
    share = f"{100 * found.aside / judged:.1f} % of {judged:,}" if judged else "none to judge"
    return [
        ("Labelled by the judge", f"{found.labelled:,}", default,
         "Messages with all their verdicts. Messages that need a repository get the default of "
         "their tier and are not judged."),
        ("Set aside", f"{found.aside:,}", share,
         "Messages whose calls could not be used: no label. Why stands under Set aside."),
        ("Calls still to make", f"{calls:,}", known if calls else "all made",
         "Answers and verdicts; their cost goes by the mean of those so far, from 20 of each kind "
         "on."),
        ("Spent", _usd(spent), f"of {_usd(found.budget_usd)} at most",
         f"{by_stage or 'Nothing was paid yet'}.{doubtful}"),
    ]  # fmt: skip


def answer(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """(tone, title, sentence): are these labels stable? success, info or warning."""
    own = _alphas(found["stability"])
    if not found["labelled"]:
        return "info", "No labels yet", "The first figures come with the first judged messages."
    if not own:
        return (
            "info", "Nobody checked the judge",
            "No message was judged a second time, so how stable its verdicts are is not known: set "
            "stability_share in label.yaml.",
        )  # fmt: skip
    name, worst = _worst(own)
    said = [f"Asked twice, the judge agrees with itself least on {_name(name)}: {_shown(worst)}."]
    others = _alphas(found["judges"])
    if others:
        name, other = _worst(others)
        said.append(f"Two judges agree least on {_name(name)}: {_shown(other)}.")
        worst = min(worst, other, key=lambda one: one["value"])
    text = " ".join(said)
    if worst["value"] < DOUBTFUL:
        return "warning", "These labels are noisy", text
    if worst["lo"] < FIRM:
        return "info", "These labels are usable, not firm", text
    return "success", "These labels are stable", text


def next_steps(setup: Setup, run: RunStatus, found: Mapping[str, Any], folder: Path) -> list[Step]:
    """What to do now, the most pressing first."""
    command = (
        f"python -m hydra_core label {shlex.quote(setup.source)} --config "
        f"{shlex.quote(setup.settings)} --out {shlex.quote(str(folder))}"
    )
    return [*_of_the_run(run, command), *_of_the_figures(found), *_when_done(run, folder)]


def _of_the_run(run: RunStatus, command: str) -> list[Step]:
    if run.running:
        return [Step("Wait, or stop it with Ctrl-C: what was paid is kept.", icon="schedule")]
    steps = []
    if run.waiting and run.committed_usd > _NEARLY_SPENT * run.budget_usd:
        text = (
            f"The budget is spent. Raise budget_usd (now {_usd(run.budget_usd)}) in label.yaml and "
            "start the run again; no call is paid twice."
        )
        steps.append(Step(text, command, "payments"))
    elif run.waiting:
        text = "Start the run again: it goes on where it was, and no call is paid twice."
        steps.append(Step(text, command, "play_arrow"))
    if run.aside:
        many = run.aside > _MANY_ASIDE * (run.labelled + run.aside + run.waiting)
        warning = ", which is many: read why first" if many else ""
        were = "1 message was" if run.aside == 1 else f"{run.aside:,} messages were"
        text = f"{were} set aside{warning}. To ask again:"
        steps.append(Step(text, f"{command} --again", "refresh"))
    return steps


def _of_the_figures(found: Mapping[str, Any]) -> list[Step]:
    if not found["labelled"]:
        return []
    steps = []
    if not found["stability"]:
        text = "Judge a share of the messages twice: stability_share: 0.05 in a new run."
        steps.append(Step(text, icon="replay"))
    if not found["judges"]:
        text = (
            "Let a judge of another maker score a share as well: servers.second_judge and "
            "agreement_share: 0.1 in a new run."
        )
        steps.append(Step(text, icon="group"))
    alphas = [*_alphas(found["stability"]).items(), *_alphas(found["judges"]).items()]
    noisy = dict.fromkeys(_name(name) for name, one in alphas if one["value"] < DOUBTFUL)
    if noisy:
        text = (
            f"Say in the rubric what the scores of {', '.join(noisy)} mean, with an example each, "
            "and try it on a few hundred messages."
        )
        steps.append(Step(text, icon="edit_note"))
    leaning = found["position"].get("first_minus_second", {})
    if any(abs(one["value"]) > _BIASED for one in leaning.values()):
        text = (
            "The judge leans to one place. Both orders are averaged, so labels are not shifted by "
            "it; take another judge if they are noisy too."
        )
        steps.append(Step(text, icon="swap_horiz"))
    still = [_name(name) for name, one in found["dimensions"].items() if one["sd"] < _STILL]
    if still and found["labelled"] > 1:
        text = (
            f"Nearly all labels of {', '.join(still)} are the same: nothing can be learned from "
            "them there. Add harder messages."
        )
        steps.append(Step(text, icon="horizontal_rule"))
    return steps


def _when_done(run: RunStatus, folder: Path) -> list[Step]:
    if run.waiting or not run.labelled:
        return []
    command = f"python -m hydra_core evaluate-predictor {shlex.quote(str(folder / 'labels.jsonl'))}"
    people = "Have people rate a sample on the page Audit: a judge may agree with itself and err."
    return [
        Step("Measure the predictor on these labels:", command, "straighten"),
        Step(people, icon="rate_review"),
    ]


def _worst(alphas: Mapping[str, Mapping[str, float]]) -> tuple[str, Mapping[str, float]]:
    return min(alphas.items(), key=lambda one: one[1]["value"])


def _alphas(found: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """Alpha by dimension where it is defined."""
    return {name: one["alpha"] for name, one in found.items()
            if name != "n" and np.isfinite(one["alpha"]["value"])}  # fmt: skip


def _shown(one: Mapping[str, float]) -> str:
    told = f"alpha {one['value']:.2f} [{one['lo']:.2f}, {one['hi']:.2f}]"
    return told.replace("-", "−")


def _name(dimension: str) -> str:
    return dimension.replace("_", " ")


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 0.995 or not value else f"${value:.3f}"


def _spell(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
