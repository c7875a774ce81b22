"""An optional part that is not installed is named with the command that installs it."""

import subprocess
import sys

import pytest
import sqlalchemy as sa

from hydra_core.base.errors import ExtraError
from hydra_core.routing.sessions import RedisSessions
from hydra_core.store.database import open_database


@pytest.fixture
def without(monkeypatch):
    def hide(*modules):
        for name in [*sys.modules]:
            if name.split(".")[0] in modules:
                monkeypatch.delitem(sys.modules, name)
        for name in modules:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def test_redis(without):
    without("redis")
    with pytest.raises(ExtraError, match=r"hydra-console\[redis\]"):
        RedisSessions.from_url("redis://localhost:1/0")


def test_postgres(without):
    without("psycopg")
    with pytest.raises(ExtraError, match=r"hydra-console\[postgres\]"):
        open_database(sa.make_url("postgresql+psycopg://localhost:1/none"))


def test_windows_is_refused_in_words():
    imported = [sys.executable, "-c", "import os; os.name = 'nt'; import hydra_core"]
    done = subprocess.run(imported, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ImportError: HyDRA does not run on Windows")
