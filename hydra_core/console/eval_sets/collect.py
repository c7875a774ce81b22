"""The part Collect: what every model achieves on the same messages, where nobody knows it yet."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console import tables, widgets
from hydra_core.console.demo import session
from hydra_core.console.frame import Head
from hydra_core.console.widgets import literal
from hydra_core.lab.collect.plan import RunStatus, list_runs, status_of
from hydra_core.lab.collect.settings import EXAMPLE

_EVERY = "3s"
_MESSAGE = '{"id": "q1", "text": "What is 12.5 % of 640?", "reference": "80"}'
_COMMANDS = """\
hydra-router collect --example > grade.yaml
hydra-router collect messages.jsonl --catalog pool.yaml --upstreams upstreams.yaml \\
    --grade grade.yaml --out mine --dry-run
hydra-router collect messages.jsonl --catalog pool.yaml --upstreams upstreams.yaml \\
    --grade grade.yaml --out mine"""


def show(head: Head) -> None:
    """The runs there are, then how one is begun."""
    del head
    root = session.folder() / "evalsets"
    found = list_runs(root)
    if found:
        st.fragment(_runs, run_every=_EVERY)()
    else:
        widgets.empty(
            "Have every model answer the same messages",
            "Routing is learned and judged from what each of your models achieves and costs on the "
            "same messages. 250 to 500 messages are enough to begin with. Every model answers, a "
            "grader scores the answers, and the result is an eval set.",
        )
    st.markdown("##### Begin a run")
    st.markdown(
        "It runs on the command line, where its keys are. The first command writes a commented "
        "grader file, the second estimates the cost without calling a model, the third begins."
    )
    widgets.commands(_COMMANDS)
    st.markdown("Each line of messages.jsonl is one message:")
    st.code(_MESSAGE, language=None)
    st.download_button(
        "Commented grade.yaml", EXAMPLE.read_text(encoding="utf-8"), "grade.yaml",
        icon=":material/download:", key="collect.example",
    )  # fmt: skip
    st.caption(
        "A run may be stopped or killed: it goes on where it was, within its budget, and pays no "
        "call twice. What could not be graded is missing, never wrong."
    )


def _runs() -> None:
    rows: list[RunStatus] = []
    for folder in list_runs(session.folder() / "evalsets"):
        try:
            rows.append(status_of(folder))
        except (HydraError, OSError, ValueError, KeyError) as error:
            st.warning(literal(f"{folder.name}: {error}"), icon=":material/error:")
    if not rows:
        return
    column = st.column_config
    tables.kept(
        runs_table(rows), "collect.runs", height="content",
        column_config={
            "run": column.TextColumn("Run"),
            "state": column.TextColumn("State"),
            "done": column.ProgressColumn("Answers", format="%.0f %%", min_value=0, max_value=100),
            "answers": column.TextColumn("Answered"),
            "aside": column.NumberColumn("Set aside"),
            "spent": column.TextColumn("Spent"),
        },
    )  # fmt: skip


def runs_table(rows: list[RunStatus]) -> pd.DataFrame:
    """One row a run: its state, how many answers are there, and what they cost."""
    return pd.DataFrame(
        {
            "run": [one.name for one in rows],
            "state": [_state(one) for one in rows],
            "done": [100.0 * one.answered / max(one.cells, 1) for one in rows],
            "answers": [f"{one.answered:,} of {one.cells:,}" for one in rows],
            "aside": [one.aside for one in rows],
            "spent": [f"${one.spent_usd:.2f} of ${one.budget_usd:g}" for one in rows],
        }
    )


def _state(one: RunStatus) -> str:
    if one.running:
        return "running"
    return "complete" if one.answered + one.aside >= one.cells else "stopped"
