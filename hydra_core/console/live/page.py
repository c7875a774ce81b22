"""Live: what is routed right now, experiments on live traffic, and eval sets of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.base.spelling import counted
from hydra_core.console import cache, frame, widgets
from hydra_core.console.access import identity
from hydra_core.console.demo import session
from hydra_core.console.frame import SETS, Head, Part, go
from hydra_core.console.live import cache as cache_live
from hydra_core.console.live import canary, checks, flight, traffic
from hydra_core.console.live.cache import LogKey
from hydra_core.console.live.traffic import LogView, by_team, choose_log, log_view, teach
from hydra_core.console.widgets import literal, metric_row
from hydra_core.evalsets.changes import EvalSetChanges
from hydra_core.evalsets.folders import folder_name
from hydra_core.evalsets.importers.draft import About, write_draft
from hydra_core.evalsets.importers.traffic.gateways import read_decision_log
from hydra_core.store.roles import Action

_VIEWS: dict[str, Callable[[LogView], None]] = {
    "Traffic": traffic.traffic,
    "Cost": traffic.cost,
    "Teams": traffic.teams,
    "Shadow": checks.shadowing,
    "Drift": checks.drifting,
    "Unknown": checks.unknown,
    "Feedback": traffic.rated,
    "Alerts": checks.alerted,
    "Connect": lambda _: traffic.connect(),
}
_EVERY_S = 5.0


@st.fragment(run_every=_EVERY_S)
def live(folder: Path, window_s: int) -> None:
    """The figures, and the view that is asked for; looked at again every few seconds."""
    try:
        whole = log_view(folder, window_s)
        if whole is None:
            return
        look = by_team(whole)
        traffic.figures(look)
        checks.promised(whole)  # what is promised holds for all teams together
        view = st.segmented_control(
            "View", list(_VIEWS), default="Traffic", key="live.view", required=True,
            label_visibility="collapsed", persist_state="session", bind="query-params",
        )  # fmt: skip
        _VIEWS[view or "Traffic"](look)
    except (HydraError, OSError) as error:
        widgets.problem(error)


def _traffic(head: Head) -> None:
    with head.right:
        chosen = choose_log()
    if chosen is None:
        teach()
        traffic.connect()
    else:
        live(*chosen)


def _log(head: Head) -> None:
    """What the log can be used for, and the button that makes an eval set of it."""
    with head.right:
        chosen = choose_log()
    if chosen is None:
        teach()
        st.markdown(
            "An eval set also needs messages and outcomes: add `--log-text`, and send feedback to "
            "`/v1/outcomes`."
        )
        return
    folder, window_s = chosen
    try:
        key = cache_live.key_of(folder, window_s, datetime.now(UTC))
        rows = cache_live.traffic(key).rows
    except (HydraError, OSError) as error:
        widgets.problem(error)
        return
    found = use_of(rows)
    metric_row(
        [
            ("Decisions", f"{found.decisions:,}", "", "Requests in this log and time."),
            ("With the message", f"{found.texts:,}", "", "`serve --log-text` keeps it."),
            ("With feedback", f"{found.rated:,}", "", "An outcome sent to `/v1/outcomes`."),
            ("Usable", f"{found.usable:,}", "", "Message, serving model and feedback are there."),
        ]
    )
    if found.usable == 0:
        st.info("\n".join(uses(found)), icon=":material/info:")
        return
    st.markdown("\n".join(f"- {line}" for line in uses(found)))
    _make(key, found, rows)


def _make(key: LogKey, found: LogUse, rows: pd.DataFrame) -> None:
    """One click: the set is written, and Eval sets opens it."""
    may = identity.may(Action.IMPORT)
    if not st.button(
        f"Make an eval set of {counted(found.usable, 'request')}", type="primary", key="log.make",
        icon=":material/dataset:", disabled=not may,
        help=identity.why_not(Action.IMPORT),
    ):  # fmt: skip
        return
    folder, since = key.folder, datetime.fromtimestamp(key.since, UTC) if key.since else None
    name = f"{folder.name} {rows['at'].min():%Y-%m-%d} to {rows['at'].max():%Y-%m-%d %H-%M-%S}"
    root = session.folder() / "evalsets"
    out = root / folder_name(name)
    about = About(name=name, origin=f"HyDRA decision log {folder.name}", synthetic=False)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with st.spinner("Making the eval set", show_time=True):
            draft = read_decision_log(folder, since=since)
            EvalSetChanges(identity.actor(), cache.store()).write(
                out, lambda: write_draft(draft, out, about, force=True)
            )
    except (HydraError, OSError) as error:
        widgets.problem(error)
        return
    st.session_state["eval_sets.chosen"] = f"my/{out.name}"
    st.session_state["eval_sets.view"] = "Browse"
    st.toast(f"{literal(name)} is an eval set now.")
    go(SETS)


@dataclass(frozen=True, slots=True)
class LogUse:
    """How many requests of a log have what an eval set needs; `models` are the usable by server."""

    decisions: int
    texts: int
    rated: int
    usable: int
    models: dict[str, int]


def use_of(rows: pd.DataFrame) -> LogUse:
    """Count a log's rows by what they hold."""
    text = rows["text"].map(lambda one: isinstance(one, str) and bool(one.strip())).astype(bool)
    rated = rows["quality"].notna()
    served = rows["served"].fillna("").astype(str)
    usable = text & rated & (served != "")
    counts = {str(model): int(n) for model, n in served[usable].value_counts().items()}
    return LogUse(len(rows), int(text.sum()), int(rated.sum()), int(usable.sum()), counts)


def uses(found: LogUse) -> list[str]:
    """What the set can and cannot be used for, one sentence each."""
    if found.decisions == 0:
        return ["No request in this time. Choose a longer one above."]
    if found.texts == 0:
        return [
            "No message is in this log, so no eval set can be made of it. Start `serve` with "
            "`--log-text`: then messages are kept."
        ]
    if found.rated == 0:
        return [
            "No request has feedback, so no outcome is known. Send it to `/v1/outcomes` with the "
            "decision id."
        ]
    if found.usable == 0:
        return ["No request has both its message and feedback."]
    models = ", ".join(f"{name} {n:,}" for name, n in found.models.items())
    return [
        f"Each request has the outcome of one model, the one that served it: {models}.",
        "Good for: what was served and paid, the mix of requirements, drift, and how often another "
        "policy would have chosen the same model.",
        "Not good for: comparing models. For that, have every model answer a sample of the "
        "messages: `hydra-router collect --from-log` (250 to 500 are enough to begin with).",
    ]


PARTS = {
    "traffic": Part("Traffic", _traffic),
    "canary": Part("Canary", canary.show),
    "experiments": Part("Experiments", flight.show, (6.4, 5.6)),
    "log": Part("Log", _log),
}


def show() -> None:
    """The whole page."""
    frame.show("Live", PARTS)
