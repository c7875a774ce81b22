"""Start the console.

It listens on 127.0.0.1 unless `--server.address` says otherwise, and refuses an address of the
network as long as nobody has to sign in; `--insecure-no-sign-in` lets it, with viewers only.

`streamlit run app.py` works too, but the first visit after a start must then be the front page:
Streamlit takes a folder named `pages` for its own older layout until `st.navigation` has run once,
and answers a deep link that comes before with "Page not found".
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any, Final

from streamlit import config, delta_generator, net_util
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.session_manager import SessionInfo
from streamlit.web import cli
from streamlit.web.server.starlette import starlette_app

from hydra_core.base.addresses import INSECURE_FLAG
from hydra_core.base.errors import AccessError
from hydra_core.base.shipped import APP
from hydra_core.base.workspace import workspace_folder
from hydra_core.console.access import sign_in
from hydra_core.console.access.sign_in import read_sign_in
from hydra_core.evalsets.folders import sweep
from hydra_core.store.roles import roles_of

#: Seconds after a session's time is up.
_LATER = 0.05


def end_expired_sessions() -> None:
    """Have sessions end when their time is up, with what was uploaded in them."""
    save = MemorySessionStorage.save

    def kept_for_a_while(self: MemorySessionStorage, session_info: SessionInfo) -> None:
        save(self, session_info)
        cache: Any = self._cache

        def end() -> None:
            for _, gone in cache.expire():
                gone.session.shutdown()  # takes its uploads along

        asyncio.get_running_loop().call_later(cache.ttl + _LATER, end)

    MemorySessionStorage.save = kept_for_a_while  # type: ignore[method-assign]


def refuse_uploads_without_sign_in() -> None:
    """Refuse uploads of sessions without a sign-in before they are read."""
    is_active = Runtime.is_active_session  # asked by nothing but the upload

    def is_let_in(self: Runtime, session_id: str) -> bool:
        return is_active(self, session_id) and _signed_in(self, session_id)

    Runtime.is_active_session = is_let_in  # type: ignore[method-assign]


def hide_metrics() -> None:
    """Leave out Streamlit's own metrics, which ask for no sign-in: others than we may connect."""
    starlette_app.create_metrics_routes = lambda runtime, base_url: []  # type: ignore[attr-defined]


def _signed_in(runtime: Runtime, session_id: str) -> bool:
    try:
        if sign_in.sign_in() is None:
            return True
    except AccessError:
        return False
    found = runtime._session_mgr.get_active_session_info(session_id)
    return found is not None and found.session._user_info.get("is_logged_in") is True


#: These say for every call that there is no browser session; here there cannot be one.
_LOUD: Final = (
    "streamlit.runtime.caching.cache_data_api",
    "streamlit.runtime.scriptrunner_utils.script_run_context",
    "streamlit.runtime.state.session_state_proxy",
)


def prepare_first_page() -> threading.Thread:
    """Prepare the first page in a thread; a fault is left to the first visit, which shows it."""
    thread = threading.Thread(target=_warm, name="warming", daemon=True)
    for name in _LOUD:
        logging.getLogger(name).addFilter(
            lambda _: not threading.current_thread().name.startswith(thread.name)
        )
    thread.start()
    return thread


def _warm() -> None:
    try:
        from hydra_core.console.home.page import prepare

        prepare()
        # Streamlit collects garbage after every run, and the page is not done before that has
        # looked at everything: what is there from now on stays, and need not be looked at.
        gc.freeze()
    except Exception:  # noqa: BLE001 (there is no visitor to show it to)
        logging.getLogger(__name__).debug("the first page was not prepared", exc_info=True)
    finally:
        gc.enable()


#: Whatever a configuration says: pages of other sites may neither connect nor upload, and no
#: header that a caller can write says who somebody is.
_ALWAYS = (
    *("--server.enableCORS", "true"),
    *("--server.enableXsrfProtection", "true"),
    *("--server.trustedUserHeaders", "{}"),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Run the console until it is stopped; options are those of `streamlit run`."""
    try:
        options = safe_options(arguments)
    except AccessError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    try:
        roles_of(workspace_folder())
    except AccessError as error:
        sys.stderr.write(f"{error}\n")  # the pages say it too, to whoever comes
    sweep(workspace_folder() / "evalsets")
    sweep(workspace_folder())  # demos of a console that was killed
    PagesManager.uses_pages_directory = False
    # Streamlit would ask a server on the internet for this machine's address, to compare it with
    # the Origin of a page that it is about to refuse.
    net_util.get_external_ip = lambda: None
    _skip_what_is_not_needed()
    end_expired_sessions()
    refuse_uploads_without_sign_in()
    if sign_in.insecure() or read_sign_in(_given(options, "secrets.files")) is not None:
        hide_metrics()
    prepare_first_page()
    cli.main(["run", str(APP), *options], prog_name="streamlit")


def _skip_what_is_not_needed() -> None:
    """Half a second of a start: the description of every installed package, all of the source.

    Streamlit looks through the packages for components of their own, which HyDRA has none of, and
    through the modules for whether this is a notebook.
    """
    manifest_scanner.scan_component_manifests = lambda max_workers=None: []
    delta_generator._use_warning_has_been_displayed = True


def safe_options(arguments: Sequence[str]) -> list[str]:
    """The options for Streamlit, with safe address and host names; AccessError where not."""
    options = [option for option in arguments if option != INSECURE_FLAG]
    if len(options) < len(arguments):
        os.environ[sign_in.INSECURE_VARIABLE] = "1"
    address = (_given(options, "server.address") or ["127.0.0.1"])[-1]
    hosts = _given(options, "server.allowedHosts")
    found = read_sign_in(_given(options, "secrets.files"))
    sign_in.require_safe_console(address, hosts, found)
    options += ["--server.address", address]
    for host in sign_in.allowed_hosts(address, hosts, found):
        options += ["--server.allowedHosts", host]
    return [*options, *_ALWAYS]


def _given(options: Sequence[str], name: str) -> list[str]:
    """The values of a setting: options go before the environment, and that before config.toml."""
    flag, variable = f"--{name}", "STREAMLIT_" + re.sub(r"[.]|(?=[A-Z])", "_", name).upper()
    following = zip(options, options[1:], strict=False)
    values = [value for option, value in following if option == flag]
    values += [o.partition("=")[2] for o in options if o.startswith(f"{flag}=")]
    found = values or os.environ.get(variable, "").split() or config.get_option(name) or []
    return [found] if isinstance(found, str) else list(found)
