"""Nothing that a test starts may reach another machine: Python imports this by itself where its
folder is on PYTHONPATH. What is refused is also written down, in case somebody swallows the error.
"""

import ipaddress
import os
import socket
import sys

LOG = "HYDRA_TEST_NETWORK_LOG"
#: Ray's own helpers look for a cloud around them and use this machine's address. Its workers, which
#: run our code, are guarded like everything else.
_RAYS_OWN = ("/ray/dashboard/", "/ray/_private/runtime_env/")
_NAMES = {None, "", "localhost", socket.gethostname()}


def _is_here(host):
    name = host.decode() if isinstance(host, bytes) else host
    if name in _NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback or name in ("0.0.0.0", "::")
    except ValueError:
        return False


def _guard(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        made, address = arguments[0], arguments[1]
        if made.family not in (socket.AF_INET, socket.AF_INET6) or not address:
            return
        if event == "socket.connect" and made.type & socket.SOCK_DGRAM:
            return  # sends nothing: a way to ask the kernel for this machine's address
        host = address[0]
    else:
        return
    if not _is_here(host):
        if LOG in os.environ:
            with open(os.environ[LOG], "a") as log:
                log.write(f"{event} {host} in {sys.argv[:3]}\n")
        raise ConnectionRefusedError(f"a test must not reach a network: {event} {host}")


if not any(part in (sys.argv or [""])[0] for part in _RAYS_OWN):
    sys.addaudithook(_guard)
