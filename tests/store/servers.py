"""A private PostgreSQL server for the tests, from Debian's package, as an unprivileged user."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg


def postgres_bin() -> Path | None:
    """Where initdb and postgres lie, newest version first; None where they are not installed."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).parent if found and shutil.which("postgres") else None


def free_port() -> int:
    """A port on the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _unprivileged() -> dict[str, int]:
    """How to start the server: it refuses root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid}
    raise RuntimeError("neither a user postgres nor nobody is there")


@contextlib.contextmanager
def postgres(fsync: bool = False):
    """The URL of a fresh server that lives as long as the block."""
    binaries = postgres_bin()
    assert binaries is not None
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="hydra-pg-"))
    try:
        if user:
            os.chown(folder, user["user"], user["group"])
        data, port = folder / "data", free_port()
        make = [binaries / "initdb", "-D", data, "-U", "hydra", "-A", "trust", "-E", "UTF8"]
        quick = [] if fsync else ["--no-sync"]
        subprocess.run(
            [*make, "--locale=C", *quick], check=True, capture_output=True, cwd=folder, **user
        )
        server = _start(binaries, data, port, folder, fsync, user)
        try:
            url = f"postgresql://hydra@127.0.0.1:{port}/postgres"
            _wait(url, server)
            yield url
        finally:
            server.send_signal(signal.SIGQUIT)  # at once: nothing here is kept
            server.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start(binaries, data, port, folder, fsync, user):
    options = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on" if fsync else "off",
        "synchronous_commit": "on" if fsync else "off",
        "max_connections": "120",
        "shared_buffers": "16MB",
    }
    settings = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
    command = [binaries / "postgres", "-D", data, "-p", str(port), *settings]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, **user)


def _wait(url, server):
    for _ in range(300):
        if server.poll() is not None:
            raise RuntimeError(f"the PostgreSQL server ended with {server.returncode}")
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the PostgreSQL server does not answer")
