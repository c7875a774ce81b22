"""Who can reach the console: the address, the host names it answers to, and a sign-in or none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from streamlit import config

from hydra_core.addresses import LOOPBACK_NAMES, is_loopback, require_safe
from hydra_core.ui.access.sign_in import SignIn, sign_in

__all__ = ["INSECURE_VARIABLE", "allowed_hosts", "configured", "insecure", "require_safe_console"]

#: How the pages of a console learn of `--insecure-no-sign-in`.
INSECURE_VARIABLE: Final = "HYDRA_INSECURE_NO_SIGN_IN"
_EVERY: Final = ("", "0.0.0.0", "::")  # noqa: S104


def insecure() -> bool:
    """Whether somebody asked to serve others without a sign-in; then everybody is a viewer."""
    return os.environ.get(INSECURE_VARIABLE, "") not in ("", "0")


def configured() -> SignIn | None:
    """The sign-in of the running console, on an address that is safe with it.

    Raises:
        AccessError: Others can reach the console and nobody asks who they are, or the sign-in
            is not configured right.
    """
    found = sign_in()
    require_safe_console(
        config.get_option("server.address") or "", config.get_option("server.allowedHosts"), found
    )
    return found


def require_safe_console(address: str, hosts: Iterable[str], found: SignIn | None) -> None:
    """Refuse an address or a host name of the network where there is no sign-in.

    Args:
        address: What is listened on, '' for every address.
        hosts: Further host names it answers to, as a proxy in front of it would name.
        found: The sign-in.

    Raises:
        AccessError: With the ways out.
    """
    for host in (address, *hosts):
        require_safe(
            host,
            proof=found is not None,
            insecure=insecure(),
            remedy="Configure a sign-in ([auth] in .streamlit/secrets.toml, see docs/security.md)",
        )


def allowed_hosts(address: str, given: Sequence[str], found: SignIn | None) -> tuple[str, ...]:
    """The host names that the console answers to; any other is somebody's trick.

    A page of another site that has its own name point to this machine would otherwise be let in
    (DNS rebinding).
    """
    own = [] if address in _EVERY or is_loopback(address) else [address.strip("[]")]
    outside = [] if found is None else [found.host]
    return tuple(dict.fromkeys([*LOOPBACK_NAMES, *own, *outside, *given]))
