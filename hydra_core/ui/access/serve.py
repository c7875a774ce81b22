"""Start the console.

It listens on 127.0.0.1 unless `--server.address` says otherwise, and refuses an address of the
network as long as nobody has to sign in; `--insecure-no-sign-in` lets it, with viewers only.

`streamlit run app.py` works too, but the first visit after a start must then be the front page:
Streamlit takes a folder named `pages` for its own older layout until `st.navigation` has run once,
and answers a deep link that comes before with "Page not found".
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from streamlit import config, delta_generator, net_util
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

from hydra_core.addresses import INSECURE_FLAG
from hydra_core.errors import AccessError
from hydra_core.evaluation.evalset.folders import sweep
from hydra_core.shipped import APP
from hydra_core.store.database import workspace_folder
from hydra_core.store.roles import roles_of
from hydra_core.ui.access import doors, warming
from hydra_core.ui.access.departures import forget_departed
from hydra_core.ui.access.sign_in import read_sign_in
from hydra_core.ui.access.uploads import refuse_strangers_files

__all__ = ["main", "safe_options"]

#: Whatever a configuration says: pages of other sites may neither connect nor upload, and no
#: header that a caller can write says who somebody is.
_ALWAYS = (
    *("--server.enableCORS", "true"),
    *("--server.enableXsrfProtection", "true"),
    *("--server.trustedUserHeaders", "{}"),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Run the console until it is stopped; options are those of `streamlit run`.

    Args:
        arguments: The options.
    """
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
    forget_departed()
    refuse_strangers_files()
    warming.begin()
    cli.main(["run", str(APP), *options], prog_name="streamlit")


def _skip_what_is_not_needed() -> None:
    """Half a second of a start: the description of every installed package, all of the source.

    Streamlit looks through the packages for components of their own, which HyDRA has none of, and
    through the modules for whether this is a notebook.
    """
    manifest_scanner.scan_component_manifests = lambda max_workers=None: []
    delta_generator._use_warning_has_been_displayed = True


def safe_options(arguments: Sequence[str]) -> list[str]:
    """The options for Streamlit, with address and host names that are safe.

    Raises:
        AccessError: They are not, or the sign-in is not configured right.
    """
    options = [option for option in arguments if option != INSECURE_FLAG]
    if len(options) < len(arguments):
        os.environ[doors.INSECURE_VARIABLE] = "1"
    address = (_given(options, "server.address") or ["127.0.0.1"])[-1]
    hosts = _given(options, "server.allowedHosts")
    found = read_sign_in(_given(options, "secrets.files"))
    doors.require_safe_console(address, hosts, found)
    options += ["--server.address", address]
    for host in doors.allowed_hosts(address, hosts, found):
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
