"""A private PostgreSQL server for the tests, from Debian's package, as an unprivileged user."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.console.consoles import free_port


def postgres_bin() -> Path | None:
    """Where initdb and postgres lie, newest version first; None where they are not installed."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).parent if found and shutil.which("postgres") else None


def _unprivileged() -> dict[str, int]:
    """How to start the server: it refuses root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid}
    raise RuntimeError("neither a user postgres nor nobody is there")


@dataclass
class Server:
    """A PostgreSQL server over one data folder, which can be stopped at once and started again."""

    binaries: Path
    folder: Path
    port: int
    fsync: bool
    user: dict[str, int]
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self):
        return f"postgresql://hydra@127.0.0.1:{self.port}/postgres"

    def start(self):
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if self.fsync else "off",
            "synchronous_commit": "on" if self.fsync else "off",
            "max_connections": "120",
            "shared_buffers": "16MB",
        }
        settings = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        data = str(self.folder / "data")
        command = [self.binaries / "postgres", "-D", data, "-p", str(self.port), *settings]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, **self.user
            )
        _wait(self.url, self.process)

    def stop_at_once(self):
        """What is running is broken off; the next start recovers."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=30)


@contextlib.contextmanager
def postgres_server(fsync: bool = False):
    """A fresh server, running, that lives as long as the block."""
    binaries = postgres_bin()
    assert binaries is not None
    user = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="hydra-pg-"))
    try:
        if user:
            os.chown(folder, user["user"], user["group"])
        make = [binaries / "initdb", "-D", folder / "data", "-U", "hydra", "-A", "trust"]
        quick = [] if fsync else ["--no-sync"]
        subprocess.run(
            [*make, "-E", "UTF8", "--locale=C", *quick],
            check=True,
            capture_output=True,
            cwd=folder,
            **user,
        )
        server = Server(binaries, folder, free_port(), fsync, user)
        server.start()
        try:
            yield server
        finally:
            if server.process.poll() is None:
                server.stop_at_once()  # nothing here is kept
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def postgres(fsync: bool = False):
    """The URL of a fresh server that lives as long as the block."""
    with postgres_server(fsync) as server:
        yield server.url


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
