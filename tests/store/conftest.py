"""The same tests on SQLite and on a real PostgreSQL server."""

import itertools
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import sqlalchemy as sa

from hydra_core.store import Actor, Role, open_store
from tests.store.servers import postgres, postgres_bin

ANA = Actor("ana@example.org", Role.PUBLISHER)
BEN = Actor("ben@example.org", Role.PUBLISHER)
EDITOR = Actor("eve@example.org", Role.EDITOR)
VIEWER = Actor("vic@example.org", Role.VIEWER)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_NAMES = itertools.count()


@pytest.fixture(scope="session")
def postgres_server():
    if postgres_bin() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """An empty database."""
    if request.param == "sqlite":
        return sa.URL.create("sqlite", database=str(tmp_path / "hydra.sqlite3"))
    server = request.getfixturevalue("postgres_server")
    name = f"store_{next(_NAMES)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    address = sa.make_url(server).set(drivername="postgresql+psycopg")
    return address.update_query_dict({"options": f"-csearch_path={name}"})


@pytest.fixture
def store(url):
    """A store whose clock goes on one minute with each look."""
    ticks = itertools.count()
    opened = open_store(url=url, clock=lambda: START + timedelta(minutes=next(ticks)))
    yield opened
    opened.close()
