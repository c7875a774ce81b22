"""Which addresses only this machine can reach. Below the console and the router service alike."""

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from hydra_core.base.errors import AccessError

#: The flag that serves others without asking who they are.
INSECURE_FLAG = "--insecure-no-sign-in"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
#: What proxies add to a request; one that passes on nothing cannot be told from a caller here.
_FORWARDED: Final = (
    "forwarded", "via", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
)  # fmt: skip


@lru_cache(64)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address or be meant by a host name."""
    name = host.strip().strip("[]").rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Whether a proxy passed a request on, so that it may come from any machine."""
    return any(name.lower() in _FORWARDED for name in headers)


def require_safe(host: str, *, proof: bool, insecure: bool, remedy: str) -> None:
    """Refuse an address that others can reach while nobody has to say who they are.

    Args:
        host: What is listened on or served as; '' stands for every address.
        proof: Whether callers prove who they are.
        insecure: Whether somebody asked for it all the same.
        remedy: How callers can be made to prove it, such as "configure a sign-in".

    Raises:
        AccessError: With the ways out.
    """
    if proof or insecure or is_loopback(host):
        return
    raise AccessError(
        f"{host or 'every address'} can be reached from other machines, and nobody has to say who "
        f"they are. {remedy}; or stay on 127.0.0.1; or give {INSECURE_FLAG}: then whoever comes is "
        "a viewer and may change nothing"
    )
