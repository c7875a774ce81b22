"""Labelling runs: how far one is, how stable its labels are, what to do next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.base.intervals import Interval
from hydra_core.base.spelling import titled
from hydra_core.base.spelling import usd as spelled_usd
from hydra_core.console import tables, widgets
from hydra_core.console.demo import session
from hydra_core.console.eval_sets.view import interval_text
from hydra_core.console.figures.heat import HeatView, heat_figure
from hydra_core.console.figures.intervals import IntervalsView, Series, intervals_figure
from hydra_core.console.widgets import literal
from hydra_core.lab.labeling.messages import Message
from hydra_core.lab.labeling.run_folder import LEDGER, RunStatus, Setup, TrackedRun, list_runs

#: Krippendorff's customary bounds: below the first no conclusion, from the second on a firm one.
DOUBTFUL: Final = 0.667
FIRM: Final = 0.8
#: Points of five that standing first may be worth before the page speaks of it.
_BIASED = 0.25
_MANY_ASIDE = 0.02
_NEARLY_SPENT = 0.98
_STILL = 0.05
_EVERY = "3s"
_ROWS = 1_000
_VIEWS = ("What next", "Judge", "Labels", "Set aside")
_KINDS = (("stability", "With itself, asked twice", "accent"),
          ("judges", "With the second judge", "ghost"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """Something to do; `command` may be empty, `icon` is the name of a Material symbol."""

    text: str
    command: str = ""
    icon: str = "arrow_forward"


def progress(found: RunStatus) -> tuple[float, str]:
    """(share in [0, 1], what stands beside the bar)."""
    judged = found.labelled + found.aside + found.waiting
    share = (judged - found.waiting) / judged if judged else 1.0
    if found.running:
        left = "" if found.left_s is None else f" · {_spell(found.left_s)} left"
        return share, f"Running: {judged - found.waiting:,} of {judged:,}{left}"
    if found.waiting:
        return share, f"Stopped: {judged - found.waiting:,} of {judged:,}"
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
    known = "cost unknown so far" if found.about_usd is None else f"about {_usd(found.about_usd)}"
    judged = found.labelled + found.aside + found.waiting
    default = f"{found.synthetic:,} more by default" if found.synthetic else f"of {judged:,}"
    share = f"{100 * found.aside / judged:.1f} % of {judged:,}" if judged else "none to judge"
    return [
        ("Labelled by the judge", f"{found.labelled:,}", default,
         "Messages that the judge scored completely. Messages that need a repository are not "
         "judged; they get the default label of their tier."),
        ("Set aside", f"{found.aside:,}", share,
         "Messages without a label, because their calls failed. See Set aside for the reasons."),
        ("Calls still to make", f"{calls:,}", known if calls else "all made",
         "Answers and judgements. The cost estimate uses the mean so far, from 20 calls of each "
         "kind on."),
        ("Spent", _usd(spent), f"of {_usd(found.budget_usd)} at most",
         f"{by_stage or 'Nothing was paid yet'}.{doubtful}"),
    ]  # fmt: skip


def answer(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """(tone, title, sentence): are these labels stable? success, info or warning."""
    own = _alphas(found["stability"])
    if not found["labelled"]:
        return "info", "No labels yet", "Figures appear with the first judged messages."
    if not own and found["stability"]:
        return (
            "info", "The judge was checked on too little",
            f"All of the {found['stability']['n']:,} messages judged twice have the same label, so "
            "alpha is not defined. Judge more, or more different, messages.",
        )  # fmt: skip
    if not own:
        return (
            "info", "The judge was not checked",
            "No message was judged twice, so the stability of the labels is unknown. Set "
            "stability_share in label.yaml.",
        )  # fmt: skip
    name, worst = _worst(own)
    said = [
        f"The judge repeats itself least on {_name(name)}: alpha {interval_text(_interval(worst))}."
    ]
    others = _alphas(found["judges"])
    if others:
        name, other = _worst(others)
        said.append(
            f"Two judges agree least on {_name(name)}: alpha {interval_text(_interval(other))}."
        )
        worst = min(worst, other, key=lambda one: one["value"])
    text = " ".join(said)
    if worst["value"] < DOUBTFUL:
        return "warning", "These labels are noisy", text
    if worst["lo"] < FIRM:
        return "info", "These labels are usable but not firm", text
    return "success", "These labels are stable", text


def next_steps(setup: Setup, run: RunStatus, found: Mapping[str, Any], folder: Path) -> list[Step]:
    """What to do now, the most pressing first."""
    command = (
        f"hydra-router lab label {shlex.quote(setup.source)} --config "
        f"{shlex.quote(setup.settings)} --out {shlex.quote(str(folder))}"
    )
    return [*_of_the_run(run, command), *_of_the_figures(found), *_when_done(run, folder)]


def _of_the_run(run: RunStatus, command: str) -> list[Step]:
    if run.running:
        return [Step("Wait, or stop it with Ctrl-C: no paid call is lost.", icon="schedule")]
    steps = []
    if run.waiting and run.committed_usd > _NEARLY_SPENT * run.budget_usd:
        text = (
            f"The budget is spent. Raise budget_usd (now {_usd(run.budget_usd)}) in label.yaml and "
            "start the run again. No call is paid for twice."
        )
        steps.append(Step(text, command, "payments"))
    elif run.waiting:
        text = "Start the run again: it resumes where it stopped, and no call is paid for twice."
        steps.append(Step(text, command, "play_arrow"))
    if run.aside:
        many = run.aside > _MANY_ASIDE * (run.labelled + run.aside + run.waiting)
        warning = ", which is many. Read the reasons first" if many else ""
        were = "1 message was" if run.aside == 1 else f"{run.aside:,} messages were"
        text = f"{were} set aside{warning}. To try them again:"
        steps.append(Step(text, f"{command} --again", "refresh"))
    return steps


def _of_the_figures(found: Mapping[str, Any]) -> list[Step]:
    if not found["labelled"]:
        return []
    alphas = [*_alphas(found["stability"]).items(), *_alphas(found["judges"]).items()]
    noisy = dict.fromkeys(_name(name) for name, one in alphas if one["value"] < DOUBTFUL)
    leaning = found["position"].get("first_minus_second", {})
    still = [_name(name) for name, one in found["dimensions"].items() if one["sd"] < _STILL]
    known = (
        (not found["stability"], "replay",
         "Judge a share of the messages twice: stability_share: 0.05 in a new run."),
        (not found["judges"], "group",
         "Add a judge from another provider for a share of the messages: servers.second_judge and "
         "agreement_share: 0.1 in a new run."),
        (noisy, "edit_note",
         f"Explain in the rubric what each score of {', '.join(noisy)} means, with an example, and "
         "try it on a few hundred messages."),
        (any(abs(one["value"]) > _BIASED for one in leaning.values()), "swap_horiz",
         "The judge favours one position. Both orders are averaged, so this does not shift the "
         "labels. Use another judge if the labels are noisy too."),
        (still and found["labelled"] > 1, "horizontal_rule",
         f"Nearly all labels of {', '.join(still)} are equal, so they teach the predictor nothing. "
         "Add harder messages."),
    )  # fmt: skip
    return [Step(text, icon=icon) for holds, icon, text in known if holds]


def _when_done(run: RunStatus, folder: Path) -> list[Step]:
    if run.waiting or not run.labelled:
        return []
    command = f"hydra-router lab evaluate-predictor {shlex.quote(str(folder / 'labels.jsonl'))}"
    people = "Ask people to rate a sample (Rated by people): a judge can be consistent and wrong."
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


def _name(dimension: str) -> str:
    return dimension.replace("_", " ")


def _usd(value: float) -> str:
    if 0 < abs(value) < 0.1:
        return spelled_usd(value)
    return f"${value:,.2f}" if value >= 0.995 or not value else f"${value:.3f}"


def _spell(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def agreement_view(found: Mapping[str, Any]) -> IntervalsView:
    """Alpha by dimension: the judge with itself, and with the second judge."""
    names = tuple(found["dimensions"])
    series = [
        Series.of(title, [_interval(found[key][name]["alpha"]) for name in names], tone)
        for key, title, tone in _KINDS
        if found[key]
    ]
    return IntervalsView(
        tuple(map(titled, names)), tuple(series), "Krippendorff's alpha, 95 % interval",
        format=".2f", lines=((DOUBTFUL, "doubtful below"), (FIRM, "firm")),
    )  # fmt: skip


def position_view(found: Mapping[str, Any]) -> IntervalsView:
    """Bias to the answer that is shown first, by dimension, in points of the 1 to 5 scale."""
    bias = found["position"]["first_minus_second"]
    shown = Series.of("First minus second", [_interval(one) for one in bias.values()])
    return IntervalsView(
        tuple(map(titled, bias)), (shown,),
        "First minus second, points of 5, 95 % interval", format="+.2f", lines=((0.0, "no bias"),),
    )  # fmt: skip


def levels_view(found: Mapping[str, Any]) -> HeatView:
    """Share of labels nearest to each level, a row a dimension."""
    rows = found["dimensions"]
    counts = np.array([list(one["near"].values()) for one in rows.values()], dtype=float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    levels = tuple(next(iter(rows.values()))["near"])
    return HeatView(
        tuple(map(titled, rows)), levels, shares,
        tuple(tuple(f"{100 * value:.0f} %" for value in row) for row in shares),
        tuple(
            tuple(f"{titled(name)} near {level}: {int(n):,} messages"
                  for level, n in zip(levels, row, strict=True))
            for name, row in zip(rows, counts, strict=True)
        ),
        (0.0, 1.0), x_title="Nearest label: 0 the cheap model does as well, 0.8 it fails",
    )  # fmt: skip


def judge_frame(found: Mapping[str, Any]) -> pd.DataFrame:
    """Every figure on the judge, a row a dimension; empty cells where nothing was measured."""
    rows = []
    for name in found["dimensions"]:
        row: dict[str, object] = {"dimension": titled(name)}
        for key, _, _ in _KINDS:
            one = found[key].get(name)
            row |= {f"{key}_alpha": None, f"{key}_gap": None}
            if one is not None:
                row[f"{key}_alpha"] = _finite(one["alpha"]["value"])
                row[f"{key}_gap"] = one["mean_absolute_difference"]
        bias = found["position"].get("first_minus_second", {}).get(name)
        row["first_minus_second"] = None if bias is None else _finite(bias["value"])
        rows.append(row)
    return pd.DataFrame(rows)


def _interval(found: Mapping[str, float]) -> Interval:
    return Interval(found["value"], found["lo"], found["hi"])


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def root() -> Path:
    """Where runs are looked for."""
    return session.folder() / "labels"


def runs() -> dict[str, Path]:
    """Folders of the workspace's labelling runs by name."""
    return {folder.name: folder for folder in list_runs(root())}


@st.cache_resource(max_entries=8)
def _tracked(folder: Path, inode: int) -> TrackedRun:
    """The run of a folder; another ledger under its name is another run."""
    del inode
    return TrackedRun(folder)


def watch(run: TrackedRun) -> RunStatus:
    """How far the run is, refreshed every three seconds while it runs."""
    found = run.status()
    if found.running:
        st.fragment(_bar, run_every=_EVERY)(run)
    else:
        _bar(run)
    return found


def _bar(run: TrackedRun) -> None:
    found = run.status()
    share, text = progress(found)
    st.progress(share, text)
    widgets.metric_row(tiles(found))


def judge(found: Mapping[str, Any]) -> None:
    """Agreement of the judge with itself and with another, and its bias to the first answer."""
    left, right = st.columns(2, gap="small")
    parts = (
        (left, "Does the judge repeat itself?", found["stability"] or found["judges"],
         "No message was judged twice. Set stability_share or second_judge in label.yaml.",
         agreement_view, "alpha", "Krippendorff's alpha of the judge by dimension"),
        (right, "Does it matter which answer stands first?", found["position"],
         "No message was judged in both orders yet.", position_view, "position",
         "How much the judge favours the first answer, by dimension"),
    )  # fmt: skip
    for place, question, known, lacking, view, key, alt in parts:
        with place.container(border=True):
            st.markdown(f"**{question}**")
            if known:
                chart = intervals_figure(view(found), widgets.colors())
                widgets.figure(chart, f"labels.{key}", alt=alt)
            else:
                st.caption(lacking)
    counts = [f"{found[key]['n']:,} {text}" for key, text in
              (("stability", "judged twice"), ("judges", "judged by a second judge"))
              if found[key]]  # fmt: skip
    if found["position"]:
        turned = 100 * found["position"]["winner_turned"]
        counts.append(f"the winner changes with the order in {turned:.1f} % of "
                      f"{found['position']['n']:,}")  # fmt: skip
    if counts:
        st.caption(literal(f"Messages: {'; '.join(counts)}."))
    tables.offer_downloads(judge_frame(found), "labels.judge")


def labels(found: Mapping[str, Any]) -> None:
    """How the labels lie on [0, 0.8], by dimension."""
    if not found["dimensions"]:
        st.caption("No message was judged yet.")
        return
    left, right = st.columns([5.5, 4.5], gap="small")
    with left.container(border=True):
        widgets.figure(
            heat_figure(levels_view(found), widgets.colors()), "labels.levels",
            alt="Share of labels near each level, by dimension",
        )  # fmt: skip
    frame = pd.DataFrame(
        [
            {"dimension": titled(name), "mean": one["mean"], "sd": one["sd"],
             "zero": 100 * one["zero"], **{f"near {v}": n for v, n in one["near"].items()}}
            for name, one in found["dimensions"].items()
        ]
    )  # fmt: skip
    number = st.column_config.NumberColumn
    with right:
        tables.kept(
            frame, "labels.levels",
            columns={
                "dimension": "Dimension",
                "mean": number("Mean", format="%.3f"),
                "sd": number("Spread", format="%.3f", help="Standard deviation"),
                "zero": number("No gap", format="%.0f %%",
                               help="The judge found the cheap answer as good or better"),
            },
        )  # fmt: skip
    if found["synthetic"]:
        st.caption(f"Not counted: {found['synthetic']:,} messages that need a repository. They "
                   "get the default label of their tier.")  # fmt: skip


def set_aside(aside: Sequence[tuple[Message, str]]) -> None:
    """What has no label, and why."""
    if not aside:
        st.caption(":material/check: Nothing was set aside.")
        return
    frame = pd.DataFrame(
        [{"id": m.id, "language": m.lang, "tier": f"T{m.tier}", "reason": why} for m, why in aside]
    )
    column = st.column_config
    st.dataframe(
        frame["reason"].value_counts().reset_index(name="messages"),
        hide_index=True, height="content",
        column_config={"reason": column.TextColumn("Why", width="large"),
                       "messages": column.NumberColumn("Messages", width="small")},
    )  # fmt: skip
    st.dataframe(
        frame.head(_ROWS), hide_index=True, height="content" if len(frame) < 9 else 360,
        column_config={
            "id": column.TextColumn("Message", width="small"),
            "language": column.TextColumn("Language", width="small"),
            "tier": column.TextColumn("Tier", width="small"),
            "reason": column.TextColumn("Why", width="large"),
        },
    )  # fmt: skip
    if len(frame) > _ROWS:
        st.caption(f"Shown: the first {_ROWS:,} of {len(frame):,}. The download has all rows.")
    tables.offer_downloads(frame, "labels.aside")


def steps(found: Sequence[Step]) -> None:
    """What to do, with the commands to copy."""
    for step in found:
        st.markdown(f":material/{step.icon}: {literal(step.text)}")
        if step.command:
            widgets.commands(step.command)
    st.caption("Runs start on the command line, because they need API keys and take hours.")


def choose() -> Path | None:
    """The run to look at."""
    known = runs()
    if not known:
        return None
    with st.container(horizontal=True, horizontal_alignment="right"):
        name = st.selectbox(
            "Run", list(known), key="labels.run", width=280, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    return known.get(name or "")


def begin() -> None:
    """Say what a run is, with the commands that start one."""
    widgets.empty(
        "No labelling run yet",
        "A labelling run makes labels for your own messages. A cheap and a strong model answer "
        "each message, and a judge model scores both answers in both orders. The label is what the "
        "cheap answer lacks. Start the run on the command line, where its API keys are; this page "
        "then shows its progress and how stable the labels are.",
    )
    st.markdown("The first command writes a configuration, the second estimates the cost without "
                "calling a model, the third starts the run:")  # fmt: skip
    label, out = "hydra-router lab label", shlex.quote(str(root() / "first"))
    widgets.commands(
        f"{label} --example > label.yaml\n"
        f"{label} messages.jsonl --config label.yaml --out {out} --dry-run\n"
        f"{label} messages.jsonl --config label.yaml --out {out}"
    )
    st.markdown("Each line of messages.jsonl is one message. `lang` is optional:")
    st.code('{"id": "q1", "text": "Why is this query slow?", "lang": "en"}', language=None)
    st.caption(
        "Any OpenAI-compatible server works. You can stop a run at any time: it resumes where it "
        "stopped, stays within its budget, and never pays for a call twice."
    )


def one_run(folder: Path) -> None:
    """How far it is, whether its labels are stable, and the view that is asked for."""
    one = _tracked(folder, (folder / LEDGER).stat().st_ino)
    status = watch(one)
    found = one.quality()
    tone, title, text = answer(found)
    widgets.toned(tone, text, title)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        view = st.segmented_control(
            "View", _VIEWS, default=_VIEWS[0], key="labels.view", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        if status.running:
            st.button("Refresh figures", icon=":material/refresh:", type="tertiary",
                      key="labels.refresh")  # fmt: skip
    if view == "Judge":
        judge(found)
    elif view == "Labels":
        labels(found)
    elif view == "Set aside":
        set_aside(one.aside())
    else:
        steps(next_steps(one.setup, status, found, folder))


def show(place: DeltaGenerator) -> None:
    """Labelling runs: how far one is, whether its labels are stable, what is to be done next."""
    with place:
        chosen = choose()
    if chosen is None:
        begin()
        return
    try:
        one_run(chosen)
    except (HydraError, OSError) as error:
        widgets.problem(error)
