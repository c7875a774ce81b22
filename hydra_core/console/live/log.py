"""Log: an eval set of the operator's own traffic, made of a decision log in one click."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from hydra_core.base.errors import EvalSetError, HydraError, Problem
from hydra_core.console import cache, frame, state, widgets
from hydra_core.console.access import identity
from hydra_core.console.cache import OWN
from hydra_core.console.demo import session
from hydra_core.console.frame import Head
from hydra_core.console.live import cache as logs
from hydra_core.console.live.traffic import teach
from hydra_core.console.widgets import literal
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.folders import folder_name
from hydra_core.evalsets.importers.draft import About, ImportReport, write_draft
from hydra_core.evalsets.importers.traffic.decision_log import read_decision_log
from hydra_core.store.roles import Action

_REPORT = "live.log.report"


def show(head: Head) -> None:
    """Draw the part Log."""
    folders = {str(path): path for path in logs.folders()}
    if not folders:
        teach()
        return
    with head.right.container(horizontal=True, horizontal_alignment="right"):
        named = st.selectbox(
            "Decision log", list(folders), key="live.log", width=260, bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    report = st.session_state.get(_REPORT)
    if report is not None and report[0] == named:
        _made(*report[1:])
        return
    st.markdown(
        "Make an eval set of this traffic: one query for each answered request with feedback, with "
        "the model that served it, its cost and its quality."
    )
    st.caption(
        "Messages are in the log only if `serve` ran with `--log-text`. Each query has the outcome "
        "of one model; to compare models, collect answers of the others for the same messages."
    )
    place, button = st.columns([6, 4], vertical_alignment="bottom")
    name = place.text_input("Name", f"{folders[named].name} traffic", key="live.log.name")
    allowed = identity.may(Action.IMPORT)
    if button.button(
        "Make an eval set", type="primary", icon=":material/dataset:", key="live.log.make",
        disabled=not allowed, help=None if allowed else "Importing needs the role editor.",
    ):  # fmt: skip
        _make(named, folders[named], name.strip() or folders[named].name)


def _make(named: str, log: Path, name: str) -> None:
    root, folder = session.folder() / "evalsets", folder_name(name)
    changes = EvalSetChanges(identity.actor(), cache.store())

    def write() -> ImportReport:
        draft = read_decision_log(log)
        write_draft(draft, root / folder, About(name=name, origin=f"decision log {log.name}"))
        return draft.report

    try:
        root.mkdir(parents=True, exist_ok=True)
        with st.spinner("Reading the log"):
            report = changes.write(root / folder, write)
    except OSError as error:
        problem = Problem("", f"cannot be written: {error.strerror}")
        widgets.problem(EvalSetError(str(root), [problem]))
    except HydraError as error:
        widgets.problem(error)
    else:
        st.session_state[_REPORT] = (named, report, f"{OWN}{folder}", name)
        st.rerun()


def _made(report: ImportReport, key: str, name: str) -> None:
    st.success(
        f"{report.kept:,} queries with outcomes of {len(report.models)} models.",
        title=literal(f"Eval set {name} is made"),
        icon=":material/check_circle:",
    )
    for text in [*report.warnings, *(str(one) for one in report.dropped)]:
        st.caption(f":material/info: {literal(text)}")
    with st.container(horizontal=True):
        if st.button("Can routing help?", type="primary", key="live.log.help"):
            state.put(evalset=key, catalog="", tau=None, weights=None, pin=None)
            frame.go(frame.ROUTING_HELP)
        if st.button("Make another", key="live.log.again"):
            widgets.forget(_REPORT)
            st.rerun()
