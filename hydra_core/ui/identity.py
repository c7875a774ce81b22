"""Who is acting: the signed-in person, or a stated name on a console without sign-in.

This decides what the pages offer. What is allowed is decided again by the store at every write.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
from pathlib import Path

import streamlit as st

from hydra_core.errors import AccessError
from hydra_core.store.roles import Action, Actor, load_roles, require, roles_path
from hydra_core.ui import cache
from hydra_core.ui.widgets import literal

__all__ = ["actor", "badge", "gate", "may"]

_NAME = "who.name"
_MOST_NAMES = 500


def signs_in() -> bool:
    """Whether an identity provider is configured (``[auth]`` in .streamlit/secrets.toml)."""
    try:
        return "auth" in st.secrets
    except FileNotFoundError:
        return False


def actor() -> Actor:
    """Who acts in this session, with the role that the roles file gives.

    Raises:
        AccessError: Nobody is signed in, or the roles file cannot be read.
    """
    roles = load_roles(roles_path(cache.workspace()))
    if not signs_in():
        return roles.actor(_stated_name(), proven=False)
    if not st.user.is_logged_in:
        raise AccessError("sign in first")
    verified = st.user.get("email_verified", True) is not False
    name = st.user.get("email") if verified else None
    return roles.actor(str(name or st.user.get("sub") or ""), proven=True)


def may(action: Action) -> bool:
    """Whether to offer an action."""
    try:
        require(actor(), action)
    except AccessError:
        return False
    return True


def gate() -> None:
    """Stop here unless somebody is let in; on every page, before the page."""
    if signs_in() and not st.user.is_logged_in:
        with st.container(border=True, horizontal_alignment="center", gap="small"):
            st.space("small")
            st.markdown("#### HyDRA console", width="content")
            st.markdown("Sign in to look at catalogs and evaluations.", width="content")
            st.button("Sign in", type="primary", icon=":material/login:", on_click=st.login)
            st.space("small")
        st.stop()
    try:
        actor()
    except AccessError as error:
        st.error(literal(str(error)), icon=":material/lock:")
        st.stop()


def badge() -> None:
    """Name and role at the foot of the sidebar; there a stated name is changed."""
    me = actor()
    with st.sidebar.popover(
        literal(me.name), icon=":material/person:", width="stretch", key="who.popover"
    ):
        st.markdown(f"**{literal(me.name)}** · {me.role.value}")
        if me.proven:
            st.button("Sign out", icon=":material/logout:", on_click=st.logout)
            return
        st.session_state[_NAME + ".typed"] = me.name
        st.text_input("Your name", key=_NAME + ".typed", on_change=_renamed, max_chars=200)
        st.caption(
            "Drafts and revisions carry this name. Without a sign-in it is a label and proves "
            "nothing."
        )


def _renamed() -> None:
    typed = str(st.session_state[_NAME + ".typed"]).strip()
    if not typed or not typed.isprintable():
        return
    st.session_state[_NAME] = typed
    names = _remembered()
    names.pop(_browser(), None)
    names[_browser()] = typed
    kept = dict(list(names.items())[-_MOST_NAMES:])
    path = _names_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".tmp")
    fresh.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    fresh.replace(path)


def _stated_name() -> str:
    """The name stated in this session, else by this browser before, else the account's."""
    if _NAME not in st.session_state:
        known = _remembered().get(_browser())
        st.session_state[_NAME] = known or os.environ.get("HYDRA_OPERATOR") or _account()
    return str(st.session_state[_NAME])


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"


def _browser() -> str:
    """Tells browsers apart well enough to greet them by name; no identity."""
    seen = f"{st.context.ip_address}|{st.context.headers.get('User-Agent', '')}"
    return hashlib.sha256(seen.encode()).hexdigest()[:16]


def _remembered() -> dict[str, str]:
    try:
        names = json.loads(_names_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in names.items()} if isinstance(names, dict) else {}


def _names_path() -> Path:
    return cache.workspace() / "names.json"
