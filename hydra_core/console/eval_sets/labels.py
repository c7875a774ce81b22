"""Labelling runs: how far one is, how stable its labels are, what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hydra_core.base.errors import HydraError
from hydra_core.console import tables, widgets
from hydra_core.console.demo import session
from hydra_core.console.eval_sets import view_labels as views
from hydra_core.console.figures.heat import heat_figure
from hydra_core.console.figures.intervals import intervals_figure
from hydra_core.console.widgets import literal
from hydra_core.lab.labeling.messages import Message
from hydra_core.lab.labeling.run_folder import LEDGER, RunStatus, TrackedRun, list_runs


def root() -> Path:
    """Where runs are looked for."""
    return session.folder() / "labels"


def runs() -> dict[str, Path]:
    """Folders of the workspace's labelling runs by name."""
    return {folder.name: folder for folder in list_runs(root())}


def run(folder: Path) -> TrackedRun:
    """The run of a folder; another ledger under its name is another run."""
    return _followed(folder, (folder / LEDGER).stat().st_ino)


@st.cache_resource(max_entries=8)
def _followed(folder: Path, inode: int) -> TrackedRun:
    del inode
    return TrackedRun(folder)


_EVERY = "3s"
_ROWS = 1_000


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
    share, text = views.progress(found)
    st.progress(share, text)
    widgets.metric_row(views.tiles(found))


def verdict(found: Mapping[str, Any]) -> None:
    """Whether the labels are stable, in a sentence."""
    tone, title, text = views.answer(found)
    widgets.toned(tone, text, title)


def judge(found: Mapping[str, Any]) -> None:
    """Agreement of the judge with itself and with another, and its bias to the first answer."""
    left, right = st.columns(2, gap="small")
    parts = (
        (left, "Does the judge repeat itself?", found["stability"] or found["judges"],
         "No message was judged twice. Set stability_share or second_judge in label.yaml.",
         views.agreement_view, "alpha", "Krippendorff's alpha of the judge by dimension"),
        (right, "Does it matter which answer stands first?", found["position"],
         "No message was judged in both orders yet.", views.position_view, "position",
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
    tables.offer_downloads(views.judge_frame(found), "labels.judge")


def labels(found: Mapping[str, Any]) -> None:
    """How the labels lie on [0, 0.8], by dimension."""
    if not found["dimensions"]:
        st.caption("No message was judged yet.")
        return
    left, right = st.columns([5.5, 4.5], gap="small")
    with left.container(border=True):
        widgets.figure(
            heat_figure(views.levels_view(found), widgets.colors()), "labels.levels",
            alt="Share of labels near each level, by dimension",
        )  # fmt: skip
    frame = views.labels_frame(found)
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
    frame = views.aside_frame(aside)
    column = st.column_config
    st.dataframe(
        views.reasons_frame(aside), hide_index=True, height="content",
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


def steps(found: Sequence[views.Step]) -> None:
    """What to do, with the commands to copy."""
    for step in found:
        st.markdown(f":material/{step.icon}: {literal(step.text)}")
        if step.command:
            widgets.commands(step.command)
    st.caption("Runs start on the command line, because they need API keys and take hours.")


_VIEWS = ("What next", "Judge", "Labels", "Set aside")


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
    widgets.commands(views.start_commands(root()))
    st.markdown("Each line of messages.jsonl is one message. `lang` is optional:")
    st.code('{"id": "q1", "text": "Why is this query slow?", "lang": "en"}', language=None)
    st.caption(
        "Any OpenAI-compatible server works. You can stop a run at any time: it resumes where it "
        "stopped, stays within its budget, and never pays for a call twice."
    )


def one_run(folder: Path) -> None:
    """How far it is, whether its labels are stable, and the view that is asked for."""
    one = run(folder)
    status = watch(one)
    found = one.quality()
    verdict(found)
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
        steps(views.next_steps(one.setup, status, found, folder))


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
