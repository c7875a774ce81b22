"""Labels: how far is a labelling run, are its labels stable, what is to be done next?"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import widgets
from hydra_core.console.eval_sets import labels
from hydra_core.console.eval_sets import labels as panels
from hydra_core.console.eval_sets.view_labels import next_steps, start_commands

_PARTS = ("What next", "Judge", "Labels", "Set aside")


def choose() -> Path | None:
    """The run to look at."""
    runs = labels.runs()
    if not runs:
        return None
    with st.container(horizontal=True, horizontal_alignment="right"):
        name = st.selectbox(
            "Run", list(runs), key="labels.run", width=280, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    return runs.get(name or "")


def begin() -> None:
    """What a run is, and the commands that begin one."""
    widgets.empty(
        "No labelling run yet",
        "A run labels your own messages: a cheap and a strong model answer each, a judge scores "
        "both answers in both orders, and what the cheap one lacks is the label. Begin it on the "
        "command line, where its keys are; this page shows it while it runs.",
    )
    st.markdown("The first writes a commented configuration, the second says the cost and asks "
                "nothing, the third begins:")  # fmt: skip
    widgets.commands(start_commands(labels.root()))
    st.markdown("Each line of messages.jsonl is one message:")
    st.code('{"id": "q1", "text": "Why is this query slow?", "lang": "en"}', language=None)
    st.caption(
        "Any OpenAI-compatible server will do. A run may be stopped or killed: it goes on where it "
        "was, within its budget, and pays no call twice."
    )


def show(folder: Path) -> None:
    """How far it is, whether its labels are stable, and the part that is asked for."""
    run = labels.run(folder)
    standing = panels.watch(run)
    found = run.quality()
    panels.verdict(found)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        part = st.segmented_control(
            "Part", _PARTS, default=_PARTS[0], key="labels.part", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        if standing.running:
            st.button("Refresh figures", icon=":material/refresh:", type="tertiary",
                      key="labels.refresh")  # fmt: skip
    if part == "Judge":
        panels.judge(found)
    elif part == "Labels":
        panels.labels(found)
    elif part == "Set aside":
        panels.set_aside(run.aside())
    else:
        panels.steps(next_steps(run.setup, standing, found, folder))


left, right = st.columns([2.8, 7.2], vertical_alignment="bottom")
left.title("Labels", anchor=False)
with right:
    chosen = choose()
if chosen is None:
    begin()
else:
    try:
        show(chosen)
    except (HydraError, OSError) as error:
        widgets.problem(error)
