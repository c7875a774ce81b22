"""A button that stops work in the background, for those who may."""

from __future__ import annotations

import streamlit as st

from hydra_core.base.errors import HydraError
from hydra_core.console.access import identity
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.store import Action


def stop_button(task: Task, key: str, *, help: str | None = None) -> None:
    """Ask it to stop; what another person began takes a publisher.

    Args:
        help: What becomes of what is done.
    """
    own = not task.owner or task.owner == identity.actor().name
    st.button(
        "Stop", icon=":material/stop:", key=key, width="stretch", on_click=_stop, args=(task,),
        disabled=task.cancel.is_set() or not (own or identity.may(Action.MODERATE)), help=help,
    )  # fmt: skip


def _stop(task: Task) -> None:
    try:
        task.stop(identity.actor())
    except HydraError as error:
        st.toast(literal(str(error)), icon=":material/lock:")
