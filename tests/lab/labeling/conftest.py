"""A fake server and a folder with a run's files."""

import pytest

from tests.lab.labeling.fake_server import FakeServer, messages, settings


@pytest.fixture
def server():
    """A server without faults; tests set them."""
    found = FakeServer()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def files(tmp_path, server):
    """(messages.jsonl, label.yaml) for `server`."""
    path, config = tmp_path / "messages.jsonl", tmp_path / "label.yaml"
    path.write_text(messages(40))
    config.write_text(settings(server.url))
    return path, config
