"""The part Collect: what every model achieves on the same messages, where nobody knows it yet.

People grade collected answers blind, with the form of the label audit.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted, short_number, usd
from hydra_core.console import cache, tables, widgets
from hydra_core.console.access import identity
from hydra_core.console.demo import session
from hydra_core.console.eval_sets.rating import Question, exchange, rating_form
from hydra_core.console.frame import Head
from hydra_core.console.widgets import literal
from hydra_core.lab.collect.graders import EXAMPLE
from hydra_core.lab.collect.people import SCORE, Blind, forms_of
from hydra_core.lab.collect.plan import SUFFIX, RunStatus, list_runs, status_of
from hydra_core.store.roles import Action

_EVERY = "3s"
_MESSAGE = '{"id": "q1", "text": "What is 12.5 % of 640?", "reference": "80"}'
_COMMANDS = """\
hydra-router collect --example > grade.yaml
hydra-router collect messages.jsonl --catalog pool.yaml --upstreams upstreams.yaml \\
    --grade grade.yaml --out mine --dry-run
hydra-router collect messages.jsonl --catalog pool.yaml --upstreams upstreams.yaml \\
    --grade grade.yaml --out mine"""
_SCALE = (
    "**1** does not do what was asked · **2** a small part · **3** half · **4** nearly all · "
    "**5** does all of it"
)
_VIEWS = ("Rate", "Import and export")


def show(head: Head) -> None:
    """The runs there are, then how one is begun."""
    del head
    root = session.folder() / "evalsets"
    found = list_runs(root)
    if found:
        st.fragment(_runs, run_every=_EVERY)()
        _grading(found)
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
    st.markdown(
        "Live traffic can be asked instead: `--from-log LOG` in the place of messages.jsonl takes "
        "a sample of the logged messages, even over models and requirements."
    )
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
        runs_table(rows), "collect.runs",
        columns={
            "run": column.TextColumn("Run"),
            "state": column.TextColumn("State"),
            "done": column.ProgressColumn("Answers", format="%.0f %%", min_value=0, max_value=100),
            "answers": column.TextColumn("Answered"),
            "aside": column.NumberColumn("Set aside"),
            "spent": column.TextColumn(
                "Committed", help="Spent, and what calls whose answers were lost may have cost"
            ),
        },
    )  # fmt: skip


def runs_table(rows: list[RunStatus]) -> pd.DataFrame:
    """One row a run: its state, how many answers are there, and what they cost."""

    def state(one: RunStatus) -> str:
        if one.running:
            return "running"
        return "complete" if one.complete else "stopped"

    return pd.DataFrame(
        {
            "run": [one.name for one in rows],
            "state": [state(one) for one in rows],
            "done": [100.0 * one.answered / max(one.cells, 1) for one in rows],
            "answers": [f"{one.answered:,} of {one.cells:,}" for one in rows],
            "aside": [one.aside for one in rows],
            "spent": [
                f"{_spent(one.spent_usd)} of ${short_number(one.budget_usd, 10)}" for one in rows
            ],
        }
    )


def _spent(value: float) -> str:
    return usd(value) if 0 < value < 0.1 else f"${value:,.2f}"


def _grading(runs: tuple[Path, ...]) -> None:
    """A run's form and its answers one after another; nothing where no run has a form."""
    try:
        forms = {(run, name): form for run in runs for name, form in forms_of(run).items()}
    except HydraError as error:
        widgets.problem(error)
        return
    if not forms:
        return
    st.markdown("##### Grade answers")
    left, right = st.columns([6, 4], vertical_alignment="bottom")
    run, name = left.selectbox(
        "Answers", list(forms), key="collect.form",
        format_func=lambda one: f"{one[0].name.removesuffix(SUFFIX)}, {one[1]}",
    )  # fmt: skip
    form = forms[run, name]
    ids = tuple(one.id for one in form)
    ratings = cache.store().ratings
    begun = (one for one in ratings.samples() if (one.evalset, one.query_ids) == (run.name, ids))
    sample = next(begun, None)
    if sample is None:
        st.markdown(
            f"This form has {counted(len(form), 'answer')}. You see the request and one answer, "
            "not which model wrote it. Some answers come twice, to see whether grades are stable."
        )
        if (
            identity.may(Action.RATE)
            and st.button("Start grading", type="primary")
            and widgets.done(
                lambda: ratings.draw(
                    f"{run.name} {name}",
                    actor=identity.actor(),
                    evalset=run.name,
                    evalset_digest="",
                    dimensions=(SCORE,),
                    query_ids=ids,
                )
            )
        ):
            st.rerun()
        return
    view = widgets.switch("View", _VIEWS, "collect.grading", place=right)
    if view == _VIEWS[0]:
        by_id = {one.id: one for one in form}
        rating_form(sample, Question("answer", lambda one: _answer(by_id[one]), _SCALE))
    else:
        exchange(sample)
    st.caption("To write what was graded into the eval set, run the same collect command again.")


def _answer(one: Blind) -> None:
    st.caption("How well does the answer do what was asked?")
    parts = {"Request": one.request, "Reference": one.reference, "Answer": one.answer}
    for heading, text in parts.items():
        if text:
            st.markdown(f"**{heading}**")
            widgets.message(text)
