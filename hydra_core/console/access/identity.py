"""Who is acting: the signed-in person, or a stated name on a console without sign-in.

This decides what the pages offer. What is allowed is decided again by the store at every write.
"""

from __future__ import annotations

import getpass
import os
from contextlib import suppress

import streamlit as st

from hydra_core.base.addresses import is_forwarded, is_loopback
from hydra_core.base.errors import AccessError, HydraError
from hydra_core.base.workspace import workspace_folder
from hydra_core.console.access import sign_in
from hydra_core.console.demo import session
from hydra_core.console.state import bound
from hydra_core.console.tasks import Task
from hydra_core.console.widgets import literal
from hydra_core.store.roles import Action, Actor, Role, Roles, require, roles_of

_NAME = "who.name"
_SHORT = 14
_MAY = {
    Role.VIEWER: "You can see everything and change nothing.",
    Role.EDITOR: "You can draft, pin, note, import, score and learn.",
    Role.PUBLISHER: "You can draft, import, publish, roll back, replace and remove.",
}


def actor() -> Actor:
    """Who acts in this session: in a demo, whoever began it, as a publisher of the copy.

    Raises:
        AccessError: As `person`; or the demo has ended, or may not be gone on with.
    """
    demo, me = session.demo(), person()
    if demo is None:
        return me
    require(me, Action.DEMO)
    return demo.owner


def person() -> Actor:
    """Who this is, with the role that the roles file gives in the operator's own workspace.

    Raises:
        AccessError: Nobody is signed in, the console is open to the network without a sign-in, or
            the roles or the sign-in cannot be read.
    """
    roles = roles_of(workspace_folder())
    if sign_in.configured() is None:
        return _stated(roles)
    if not st.user.is_logged_in:
        raise AccessError("sign in first")
    return roles.signed_in(dict(st.user.items()))


def may(action: Action) -> bool:
    """Return whether to offer an action."""
    try:
        require(actor(), action)
    except AccessError:
        return False
    return True


def why_not(action: Action) -> str | None:
    """Return what a disabled button says of the role that it needs; None to whoever has it."""
    return None if may(action) else f"This needs the role {action.least.value}."


def gate() -> None:
    """Stop here unless somebody is let in; on every page, before the page."""
    try:
        configured = sign_in.configured()
        if configured is not None and not st.user.is_logged_in:
            _offer_sign_in(configured.providers)
            st.stop()
        actor()
    except AccessError as error:
        st.error(literal(str(error)), icon=":material/lock:")
        if getattr(st.user, "is_logged_in", False):
            st.button("Sign out", icon=":material/logout:", on_click=st.logout)
        st.stop()


def _offer_sign_in(providers: tuple[str, ...]) -> None:
    around = st.container(horizontal_alignment="center")
    around.space(120)
    with around.container(border=True, width=420, horizontal_alignment="center", gap="small"):
        st.space("small")
        st.subheader("HyDRA console", anchor=False, width="content")
        st.caption("Sign in to see catalogs and evaluations.", width="content")
        st.space("small")
        for name in providers:
            st.button(
                f"Sign in with {literal(name)}" if name else "Sign in",
                type="primary", icon=":material/login:", key=f"who.sign_in.{name}",
                on_click=st.login, args=(name,) if name else (),
            )  # fmt: skip
        st.space("small")


def badge() -> None:
    """Draw name and role at the foot of the sidebar, where a stated name can be changed."""
    me = actor()
    with st.sidebar.popover(
        literal(_short(me.name)), icon=":material/person:", width="stretch", key="who.popover"
    ):
        st.markdown(f"**{literal(me.name)}** · {me.role.value}")
        if session.demo() is not None:
            st.caption("In this demo you can do everything: it is a copy, deleted at the end.")
            return
        st.caption(_MAY[me.role])
        if me.proven:
            st.button("Sign out", icon=":material/logout:", on_click=st.logout)
            return
        st.text_input("Your name", max_chars=200, **bound(_NAME + ".typed", me.name, _rename))
        refused = st.session_state.pop(_NAME + ".refused", "")
        if refused:
            st.error(literal(refused), icon=":material/lock:")
        st.caption(
            "Drafts and revisions carry this name. Without a sign-in it is a label, not a proof."
        )


def _short(name: str) -> str:
    """Return the name before the @, cut to one line of the sidebar."""
    said = name.partition("@")[0] or name
    return said if len(said) <= _SHORT else f"{said[: _SHORT - 1]}…"


def _rename(typed: str) -> None:
    try:
        st.session_state[_NAME] = roles_of(workspace_folder()).stated(typed).name
    except AccessError as error:
        st.session_state[_NAME + ".refused"] = str(error)


def _stated(roles: Roles) -> Actor:
    """Return who the session says it is, at first the account; never a name of the roles file."""
    if _NAME not in st.session_state:
        st.session_state[_NAME] = _first_name(roles)
    found = roles.stated(str(st.session_state[_NAME]))
    return found if _from_this_machine() else Actor(found.name, Role.VIEWER)


def _first_name(roles: Roles) -> str:
    names = [os.environ.get("HYDRA_OPERATOR", "")]
    with suppress(KeyError, OSError):  # an account without a name
        names.append(getpass.getuser())
    for name in (*names, "operator"):
        with suppress(AccessError):
            return roles.stated(name).name
    return "visitor"


def _from_this_machine() -> bool:
    """Return whether the browser seems to run on this machine; behind a proxy it may not."""
    address = st.context.ip_address  # None for loopback; no text at all in Streamlit's AppTest
    elsewhere = isinstance(address, str) and not is_loopback(address)
    return not (sign_in.insecure() or is_forwarded(st.context.headers) or elsewhere)


def stop_button(task: Task, key: str, *, help: str | None = None) -> None:
    """Ask it to stop; what another person began takes a publisher. `help`: what becomes of it."""
    own = not task.owner or task.owner == actor().name
    st.button(
        "Stop", icon=":material/stop:", key=key, width="stretch", on_click=_stop, args=(task,),
        disabled=task.cancel.is_set() or not (own or may(Action.MODERATE)), help=help,
    )  # fmt: skip


def _stop(task: Task) -> None:
    try:
        task.stop(actor())
    except HydraError as error:
        st.toast(literal(str(error)), icon=":material/lock:")
