"""A console started as an operator starts it, on a port of its own."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_WAIT_S = 90


def free_port() -> int:
    """A port on the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _basics(workspace):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {"PYTHONPATH": path, "HYDRA_WORKSPACE": str(workspace)}


def start(port, workspace, *options, cwd=ROOT, **environ):
    """The process of a console."""
    return subprocess.Popen(
        [sys.executable, "-m", "hydra_core", "console", "--server.port", str(port)]
        + ["--server.headless", "true", *options],
        cwd=cwd,
        env={**os.environ, **_basics(workspace), **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(url, server):
    """Until it answers."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the console stopped with exit code {server.returncode}"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError(f"{url} did not answer within {_WAIT_S} s")


@contextlib.contextmanager
def console(workspace, *options, port=None, cwd=ROOT, **environ):
    """Process and port of a running console."""
    port = port or free_port()
    server = start(port, workspace, *options, cwd=cwd, **environ)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield server, port
    finally:
        server.terminate()
        server.communicate(timeout=_WAIT_S)


def refused(workspace, *options, cwd=ROOT, **environ):
    """What a console says that does not start."""
    server = start(free_port(), workspace, *options, cwd=cwd, **environ)
    try:
        _, told = server.communicate(timeout=_WAIT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        raise AssertionError("the console started") from None
    assert server.returncode == 1
    assert "Traceback" not in told
    return told


def handshake(port, **headers):
    """Status of a WebSocket handshake with these headers, as a browser or a stranger sends it."""
    asked = {
        "Host": f"localhost:{port}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **headers,
    }
    lines = [f"{name}: {value}" for name, value in asked.items()]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        request = "\r\n".join(["GET /_stcore/stream HTTP/1.1", *lines, "", ""])
        line.sendall(request.encode())
        return int(line.recv(64).split()[1])
