"""Which workspace this browser session looks at: the operator's, or a demo's throw-away copy.

This is the one place that decides it. Every cache is keyed by a path below what is answered here,
or by the digest of what was read, so nothing of one workspace is shown in another.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit import runtime

from hydra_core.base.errors import AccessError
from hydra_core.base.shipped import SAMPLE_DATA
from hydra_core.base.workspace import workspace_folder
from hydra_core.console.demo.copies import DEMOS, SAMPLES, Demo

#: Where a session keeps the token of its demo.
TOKEN = "demo.token"
ENDED = "This demo has ended and its copy is deleted. Reload the page."


def demo() -> Demo | None:
    """The demo of this session, None outside one.

    Raises:
        AccessError: It has ended meanwhile. Never the operator's own workspace instead: what was
            begun on a copy must not end there.
    """
    token = st.session_state.get(TOKEN)
    if token is None:
        return None
    found = DEMOS.get(str(token))
    if found is None:
        raise AccessError(ENDED)
    return found


def folder() -> Path:
    """The workspace's folder; raises as `demo`."""
    now = demo()
    return workspace_folder() if now is None else now.folder


def samples() -> Path:
    """Where the shipped eval sets lie for this session; raises as `demo`."""
    now = demo()
    return SAMPLE_DATA if now is None else now.folder / SAMPLES


DEMOS.connected = lambda browser: (
    runtime.exists() and runtime.get_instance().is_active_session(browser)
)
