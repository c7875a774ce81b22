"""The report of the policy in use: an HTML file and its JSON twin, made when asked for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import streamlit as st

from hydra_core.evaluation.replay.sweep import Bench
from hydra_core.evaluation.report.document import evaluate_policy, report_dict
from hydra_core.evaluation.report.html import report_html
from hydra_core.ui import state
from hydra_core.views.evalsets import folder_name

__all__ = ["button", "contents"]

_TUNED_ON = "report.tuned_on"


def button(bench: Bench, tau: float, key: str, label: str = "Report") -> None:
    """A popover with both downloads for a router at one tau."""
    with st.popover(label, icon=":material/summarize:"):
        st.caption(
            "Verdict, frontier, tables, languages and fingerprints in one file that needs no "
            "network; print it from the browser for a PDF."
        )
        tuned_on = st.text_input(
            "What were τ and weights chosen on?",
            key=f"{key}.{_TUNED_ON}",
            placeholder="traffic of March, or: these queries",
            max_chars=300,
            persist_state="session",
        )
        name = folder_name(f"{bench.evalset.name} {state.get().catalog}")
        baseline = state.get().baseline
        st.download_button(
            "HTML report", lambda: _html(bench, tau, tuned_on, baseline), f"{name}.html",
            "text/html", icon=":material/download:", key=f"{key}.html", on_click="ignore",
            width="stretch", type="primary",
        )  # fmt: skip
        st.download_button(
            "JSON twin", lambda: _json(bench, tau, tuned_on, baseline), f"{name}.json",
            "application/json", icon=":material/data_object:", key=f"{key}.json",
            on_click="ignore", width="stretch",
        )  # fmt: skip


def contents(
    bench: Bench, tau: float, tuned_on: str, baseline: str = "", *, made: datetime | None = None
) -> dict[str, Any]:
    """The report as values (schema `hydra.report/v1`), with the weights and tau in force.

    Args:
        tuned_on: What tau and weights were chosen on, '' if that is not known.
        baseline: Model that savings are measured against; '' for the costliest.
    """
    policy = replace(bench.catalog.policy, tau=tau, weights=bench.weights)
    catalog = replace(bench.catalog, policy=policy)
    found = evaluate_policy(
        catalog,
        bench.evalset,
        bench.data,
        tau=tau,
        made=made or datetime.now().astimezone(),
        tuned_on=tuned_on,
        baseline=baseline if baseline in bench.data.pool.ids else None,
    )
    return report_dict(found)


def _html(bench: Bench, tau: float, tuned_on: str, baseline: str) -> str:
    return report_html(contents(bench, tau, tuned_on, baseline))


def _json(bench: Bench, tau: float, tuned_on: str, baseline: str) -> str:
    content = _finite(contents(bench, tau, tuned_on, baseline))
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    """The value with NaN and infinities, which JSON does not know, as null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
