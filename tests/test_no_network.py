"""The guard that the whole suite runs under does hold, here and in processes that tests start."""

import os
import socket
import subprocess
import sys

import pytest

STRANGER = ("192.0.2.1", 9)


@pytest.fixture
def unlogged(monkeypatch):
    monkeypatch.delenv("HYDRA_TEST_NETWORK_LOG")


def test_no_test_connects_to_another_machine(unlogged):
    with socket.socket() as line, pytest.raises(ConnectionRefusedError, match="must not reach"):
        line.connect(STRANGER)
    with pytest.raises(ConnectionRefusedError, match="must not reach"):
        socket.getaddrinfo("example.org", 443)


def test_nor_does_a_process_that_a_test_starts(unlogged, tmp_path):
    log = tmp_path / "log"
    code = f"import socket; socket.create_connection({STRANGER!r}, timeout=1)"
    environ = {**os.environ, "HYDRA_TEST_NETWORK_LOG": str(log)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environ)
    assert b"must not reach a network" in done.stderr
    assert "192.0.2.1" in log.read_text()


def test_the_predictor_reports_to_nobody(tmp_path):
    """onnxruntime's own reports go past Python's sockets; what they leave on disk shows them."""
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environ.pop("ORT_DISABLE_TELEMETRY", None)
    code = "import hydra_core.predictor.graph; import onnxruntime"
    subprocess.run([sys.executable, "-c", code], env=environ, check=True)
    assert list(tmp_path.rglob("*")) == []
