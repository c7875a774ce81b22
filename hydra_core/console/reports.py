"""The report of the policy in use: an HTML file and the same as JSON, made on demand."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import streamlit as st

from hydra_core.base.json_values import json_text
from hydra_core.console import state
from hydra_core.evalsets.folders import folder_name
from hydra_core.replay.evaluation import evaluate
from hydra_core.replay.sweep import Sweep

_TUNED_ON = "report.tuned_on"


def button(sweep: Sweep, knob: float, key: str, label: str = "Report") -> None:
    """Draw a popover with both downloads for a router at one setting of its knob."""
    with st.popover(label, icon=":material/summarize:"):
        st.caption(
            "Result, curve, tables, languages and fingerprints in one file that needs no network. "
            "Print it from the browser for a PDF."
        )
        tuned_on = st.text_input(
            "What was this setting chosen on?",
            key=f"{key}.{_TUNED_ON}",
            placeholder="traffic of March, or: these queries",
            max_chars=300,
            persist_state="session",
        )
        name = folder_name(f"{sweep.evalset.name} {state.get().catalog}")
        asked = (sweep, knob, tuned_on, state.get().baseline)
        st.download_button(
            "HTML report", lambda: _html(contents(*asked)), f"{name}.html", "text/html",
            icon=":material/download:", key=f"{key}.html", on_click="ignore", width="stretch",
            type="primary",
        )  # fmt: skip
        st.download_button(
            "JSON report", lambda: json_text(contents(*asked)) + "\n", f"{name}.json",
            "application/json", icon=":material/data_object:", key=f"{key}.json", on_click="ignore",
            width="stretch",
        )  # fmt: skip


def contents(sweep: Sweep, knob: float, tuned_on: str, baseline: str = "") -> dict[str, Any]:
    """The report as values (schema `hydra.evaluation/v1`), with the setting in force.

    Args:
        tuned_on: What the setting was chosen on, '' if that is not known.
        baseline: Model that savings are measured against; '' for the costliest.
    """
    from hydra_core.replay.report import report_document  # a first visit would wait for it

    made = datetime.now().astimezone()
    return report_document(evaluate(sweep, knob, baseline), made=made, tuned_on=tuned_on)


def _html(report: dict[str, Any]) -> str:
    from hydra_core.replay.report import evaluation_html

    return evaluation_html(report)
