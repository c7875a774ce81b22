"""The console's sign-in as configured: `[auth]` in Streamlit's secrets.toml, read with care.

Streamlit raises one error for "there is no secrets file" and for "there is one that cannot be
read", so asking it would turn a slip of the pen into a console without a sign-in. Here only "no
such file" means none; everything else is an error that names file and line.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urlsplit

from streamlit import config

from hydra_core.base.addresses import LOOPBACK_NAMES, is_loopback, require_safe
from hydra_core.base.errors import AccessError

_LEAST_SECRET: Final = 32
_PROVIDER_KEYS: Final = ("client_id", "client_secret", "server_metadata_url")


@dataclass(frozen=True, slots=True)
class SignIn:
    """A configured sign-in: the host of redirect_uri, and names for `st.login` ('' without one)."""

    host: str
    providers: tuple[str, ...]


def sign_in() -> SignIn | None:
    """The sign-in of this console, None where nothing is configured; raises as `read_sign_in`."""
    return read_sign_in(config.get_option("secrets.files"))


def read_sign_in(files: Sequence[str]) -> SignIn | None:
    """The sign-in that the first to last of `files` configure; later ones win, as in Streamlit.

    AccessError where one cannot be read, or `[auth]` is not complete: then nobody may enter.
    """
    auth, source = None, ""
    for path in files:
        if not os.path.lexists(path):
            continue
        found = _read(path)
        if "auth" in found:
            auth, source = found["auth"], path
        near = [
            key
            for key in found
            if key != "auth" and get_close_matches(key.strip().lower(), ["auth"], 1, cutoff=0.7)
        ]
        if near:
            raise _wrong(path, f"has [{near[0]}]", "write [auth]")
    return None if auth is None else _checked(auth, source)


def _read(path: str) -> Mapping[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            return tomllib.loads(file.read())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _wrong(path, reason, "correct it, or remove it to run without a sign-in") from error


def _checked(auth: object, path: str) -> SignIn:
    if not isinstance(auth, Mapping):
        raise _wrong(path, "auth is not a section", "write [auth] and its settings below")
    secret, address = auth.get("cookie_secret"), auth.get("redirect_uri")
    if not isinstance(secret, str) or len(secret) < _LEAST_SECRET:
        remedy = "python -c 'import secrets; print(secrets.token_urlsafe(48))' makes one"
        raise _wrong(path, f"[auth] cookie_secret needs {_LEAST_SECRET} characters or more", remedy)
    parts = urlsplit(address) if isinstance(address, str) else None
    if (
        parts is None
        or not parts.hostname
        or parts.path.rstrip("/").split("/")[-1] != "oauth2callback"
    ):
        remedy = "such as https://hydra.example.org/oauth2callback"
        raise _wrong(path, "[auth] redirect_uri is not the address of this console", remedy)
    named = {name: part for name, part in auth.items() if isinstance(part, Mapping)}
    own = {name: part for name, part in named.items() if name != "client_kwargs"}
    for name, part in (own or {"": auth}).items():
        missing = [key for key in _PROVIDER_KEYS if not isinstance(part.get(key), str)]
        if missing:
            place = f"[auth.{name}]" if name else "[auth]"
            raise _wrong(path, f"{place} has no {missing[0]}", "your identity provider tells it")
    return SignIn(parts.hostname, tuple(own) or ("",))


def _wrong(path: str, message: str, remedy: str) -> AccessError:
    return AccessError(f"{path}: {message} ({remedy}). Nobody is let in until then")


#: How the pages of a console learn of `--insecure-no-sign-in`.
INSECURE_VARIABLE: Final = "HYDRA_INSECURE_NO_SIGN_IN"
_EVERY: Final = ("", "0.0.0.0", "::")  # noqa: S104


def insecure() -> bool:
    """Return whether others are served without a sign-in; then everybody is a viewer."""
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
