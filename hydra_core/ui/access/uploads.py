"""Files are taken only from people who are let in.

Streamlit takes a file from every browser that has a connection, and the page that asks to sign in
is one: a stranger could fill the memory of a console that shows them nothing.
"""

from __future__ import annotations

from streamlit.runtime.runtime import Runtime

from hydra_core.errors import AccessError
from hydra_core.ui.access.sign_in import sign_in

__all__ = ["refuse_strangers_files"]


def refuse_strangers_files() -> None:
    """Have uploads of sessions that nobody signed in to refused before they are read."""
    is_active = Runtime.is_active_session  # asked by nothing but the upload

    def is_let_in(self: Runtime, session_id: str) -> bool:
        return is_active(self, session_id) and _signed_in(self, session_id)

    Runtime.is_active_session = is_let_in  # type: ignore[method-assign]


def _signed_in(runtime: Runtime, session_id: str) -> bool:
    try:
        if sign_in() is None:
            return True
    except AccessError:
        return False
    found = runtime._session_mgr.get_active_session_info(session_id)
    return found is not None and found.session._user_info.get("is_logged_in") is True
