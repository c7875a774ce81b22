import gc
import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from hydra_core.base.errors import StoreError
from hydra_core.base.workspace import workspace_folder
from hydra_core.store import database, open_store, tables
from hydra_core.store.database import HEAD, database_url, sqlite_url
from tests.catalog.small import SMALL
from tests.store import first_release
from tests.store.conftest import ANA
from tests.store.openers import CONTEXT, open_once


def test_head_is_the_newest_migration():
    folder = str(Path(tables.__file__).parent / "migrations")
    assert ScriptDirectory(folder, version_locations=[folder]).get_heads() == [HEAD]


def test_the_migrations_make_the_tables_of_the_module(url):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        first_release.make(connection)
        database._upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []
    engine.dispose()


def described(connection):
    """All that a database says of its tables, and what is in them."""
    found, kinds = sa.inspect(connection), ("indexes", "foreign_keys", "check_constraints")
    kinds += ("unique_constraints",)
    told = {}
    for name in found.get_table_names():
        columns = {
            one["name"]: {**one, "type": str(one["type"])} for one in found.get_columns(name)
        }
        limits = [sorted(map(str, getattr(found, f"get_{kind}")(name))) for kind in kinds]
        limits.append(str(found.get_pk_constraint(name)))
        rows = connection.execute(sa.text(f"SELECT * FROM {name}")).all()
        told[name] = (columns, limits, [tuple(row) for row in rows])
    return told


def test_a_new_store_is_what_the_migrations_make(tmp_path):
    open_store(tmp_path).close()
    engines = [sa.create_engine(sqlite_url(tmp_path)), sa.create_engine("sqlite://")]
    with engines[0].connect() as new, engines[1].begin() as old:
        first_release.make(old)
        database._upgrade(old)
        made, migrated = described(new), described(old)
    assert made == migrated
    assert made["audit_head"][2] == [(1, 0, "")]
    for engine in engines:
        engine.dispose()


def test_a_store_lies_beside_the_tables_of_others(url):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE theirs (id INTEGER)"))
    open_store(url=url).close()
    with engine.connect() as connection:
        assert {"theirs", "revisions"} <= set(sa.inspect(connection).get_table_names())
    engine.dispose()


def test_somebody_elses_table_of_the_same_name_is_refused(url):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (id INTEGER)"))
    with pytest.raises(StoreError, match="could not be opened: .*notes.*already exists"):
        open_store(url=url)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["notes"]
    engine.dispose()


def test_processes_that_open_at_once_migrate_once(url):
    barrier, results = CONTEXT.Barrier(4), CONTEXT.Queue()
    text = url.render_as_string(hide_password=False)
    openers = [CONTEXT.Process(target=open_once, args=(text, barrier, results)) for _ in range(4)]
    for opener in openers:
        opener.start()
    assert [results.get(timeout=180) for _ in openers] == [{}] * 4
    for opener in openers:
        opener.join()
        assert opener.exitcode == 0


def test_a_store_of_a_newer_version_is_refused(store, url):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreError, match="newer version of HyDRA"):
        open_store(url=url)


@pytest.mark.parametrize("schema", ["0001", "0003", "0004"])
def test_a_store_from_before_the_first_release_is_refused_in_words(store, url, schema):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE alembic_version SET version_num = '{schema}'"))
    engine.dispose()
    with pytest.raises(StoreError, match=f"first release .schema {schema}.*HYDRA_WORKSPACE"):
        open_store(url=url)


def test_sqlite_is_durable_and_checks_references(tmp_path):
    store = open_store(tmp_path)
    with store._journal.database.reading() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    assert (tmp_path / "hydra.sqlite3").exists()
    store.close()


def test_a_database_that_nobody_holds_closes_its_connections(tmp_path):
    base = database.open_database(sqlite_url(tmp_path))
    with base.reading() as connection:
        raw = connection.connection.dbapi_connection
    del base, connection
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        raw.execute("SELECT 1")


def test_what_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "hydra.sqlite3").write_text("hello " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        open_store(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="HYDRA_WORKSPACE"):
        open_store(tmp_path / "file" / "deeper")


def test_a_server_that_does_not_answer_is_told_without_its_password(tmp_path):
    url = database_url(tmp_path, {"HYDRA_DATABASE_URL": "postgresql://ana:hush@127.0.0.1:1/hydra"})
    with pytest.raises(StoreError, match="could not be opened") as caught:
        open_store(url=url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("given", ["mysql://x/y", "sqlite:///x", "no url", "postgresql://a:b:c:d/"])
def test_other_databases_are_refused(tmp_path, given):
    with pytest.raises(StoreError, match="HYDRA_DATABASE_URL") as caught:
        database_url(tmp_path, {"HYDRA_DATABASE_URL": given})
    assert "b:c" not in str(caught.value)


def test_the_environment_says_where_the_store_is(tmp_path):
    assert workspace_folder({"HYDRA_WORKSPACE": str(tmp_path)}) == tmp_path
    assert workspace_folder({}) == Path.cwd() / "workspace"
    assert database_url(tmp_path, {}).database == str(tmp_path / "hydra.sqlite3")
    url = database_url(tmp_path, {"HYDRA_DATABASE_URL": "postgres://ana@host/hydra"})
    assert url.drivername == "postgresql+psycopg"


def test_an_error_inside_a_write_undoes_all_of_it(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="")

    def failing():
        with store._journal.database.writing() as connection:
            connection.execute(tables.audit.delete())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert len(store.audit()) == 1


def test_reading_does_not_wait_for_a_writer(store):
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="")
    with store._journal.database.writing() as connection:
        connection.execute(tables.catalogs.update().values(head=5))
        assert store.catalogs() == {"small": 1}
        assert store.newest("small").number == 1


def test_a_file_copied_without_its_wal_has_everything_that_was_acknowledged(tmp_path):
    store = open_store(tmp_path / "one")
    for number in range(3):
        text = SMALL + f"# {number}\n"
        store.publish("pool", text, actor=ANA, base_revision=number, note="more")
    (tmp_path / "two").mkdir()
    copied = tmp_path / "two" / "hydra.sqlite3"
    copied.write_bytes((tmp_path / "one" / "hydra.sqlite3").read_bytes())  # the store is open
    store.close()
    other = open_store(tmp_path / "two")
    assert [one.number for one in other.history("pool")] == [3, 2, 1]
    assert len(other.audit()) == 3
    other.close()


def test_a_database_without_an_encoding_keeps_every_letter(postgres_server):
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE plain ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0")
    address = sa.make_url(postgres_server).set(drivername="postgresql+psycopg", database="plain")
    store = open_store(url=address)
    store.publish("small", SMALL, actor=ANA, base_revision=0, note="früher – 更早")
    assert store.history("small")[0].note == "früher – 更早"
    store.close()
